"""Search the bytes and the name of every file for private words."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

from kitchensync.dataset.checks.release_faults import ReleaseFaults, overlapping_blocks
from kitchensync.dataset.data_set_cards import card_facts, readme
from kitchensync.storage.errors import StorageError
from kitchensync.storage.manifest import read_manifest
from kitchensync.storage.names import recordings_in

SHORTEST = 5
"""Minimum length of a private word; shorter words occur by chance."""


def private_words(data: Path) -> frozenset[str]:
    """Return the private words of all recordings below a folder; unreadable manifests are skipped."""
    words: set[str] = set()
    for recording in recordings_in(data):
        try:
            manifest = read_manifest(recording)
        except StorageError:
            continue
        about = {str(manifest.get(key) or "") for key in ("uuid", "pseudonym", "place", "consent")} - {"none"}
        for device in manifest.get("devices", {}).values():
            address = str(device.get("address") or "")
            about |= {str(device.get("serial") or ""), urlsplit(address).hostname or address}
        words |= about | {str(recording.resolve())}
    return frozenset(word for word in words if len(word) >= SHORTEST)


def check_private(folder: Path, words: frozenset[str], faults: ReleaseFaults) -> None:
    """Search for words as plain text and as JSON; words of the texts that every data set has are skipped."""
    of_all = json.dumps([readme.PLACES, card_facts.texts(is_own=True, is_virtual=False)])
    forms_of = {
        word: {word.encode(), json.dumps(word)[1:-1].encode()} for word in words if word not in of_all
    }
    longest = max((len(form) for forms in forms_of.values() for form in forms), default=1)
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        matches = {word for word, forms in forms_of.items() if any(form in name.encode() for form in forms)}
        for block in overlapping_blocks(path, longest):
            matches |= {
                word for word in forms_of.keys() - matches if any(form in block for form in forms_of[word])
            }
        faults.names.extend({"file": name, "found": word} for word in sorted(matches))
