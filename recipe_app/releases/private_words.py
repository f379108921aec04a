"""What must not leave with a data set: names of people, places and devices, as the manifests hold them, and paths."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from storage.errors import StorageError
from storage.manifest import Manifest, read_manifest
from storage.names import recordings_in

SHORTEST = 5
"""A shorter word stands everywhere by chance."""


def private_words(data: Path) -> frozenset[str]:
    """Return the words of all recordings below a folder; those of a manifest that cannot be read are not known."""
    found: set[str] = set()
    for recording in recordings_in(data):
        try:
            found |= _words(read_manifest(recording)) | {str(recording.resolve())}
        except StorageError:
            continue
    return frozenset(word for word in found if len(word) >= SHORTEST)


def _words(manifest: Manifest) -> set[str]:
    about = {str(manifest.get(key) or "") for key in ("uuid", "pseudonym", "place", "consent")} - {"none"}
    for device in manifest.get("devices", {}).values():
        address = str(device.get("address") or "")
        about |= {str(device.get("serial") or ""), urlsplit(address).hostname or address}
    return about
