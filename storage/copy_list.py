"""What of a recording is to be copied elsewhere, in which order, and what each file must be."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

from storage.chunk import chunk_paths
from storage.copies import BOOK
from storage.manifest import Manifest
from storage.names import CHUNK_SUFFIX, MANIFEST, MEDIA, PART_SUFFIX, chunk_range


@dataclass(frozen=True)
class Item:
    """One file to copy and what it must be."""

    relative: str
    expected: str | None


def is_closed(manifest: Manifest) -> bool:
    """Tell whether nothing more will come into a recording."""
    return manifest["state"] in ("complete", "aborted")


def files_of(recording: Path, manifest: Manifest) -> list[Item]:
    """List what is to be copied now, in order: sealed files as they come, all the rest once it is closed.

    The manifest comes last, so that a copy that has one is whole.
    """
    folders = sorted({path.parent for path in recording.rglob(f"*{CHUNK_SUFFIX}")})
    sealed = [path for folder in folders for path in chunk_paths(folder)]
    if not is_closed(manifest):
        return [Item(path.relative_to(recording).as_posix(), None) for path in sealed]
    known = {name: facts["sha256"] for name, facts in manifest["files"].items()} | _media_hashes(recording)
    others = [
        path
        for path in sorted(recording.rglob("*"))
        if path.is_file()
        and path.suffix != PART_SUFFIX
        and chunk_range(path) is None
        and path not in (recording / MANIFEST, recording / BOOK)
    ]
    paths = [path.relative_to(recording).as_posix() for path in [*sealed, *others, recording / MANIFEST]]
    return [Item(path, known.get(path)) for path in paths]


def _media_hashes(recording: Path) -> dict[str, str]:
    """Return the hashes that camera files were fetched with."""
    known = {}
    for media in recording.glob(f"*/{MEDIA}"):
        with contextlib.suppress(ValueError, KeyError, TypeError):  # verify names a damaged media.json
            for entry in json.loads(media.read_text(encoding="utf-8"))["files"]:
                if "sha256" in entry:
                    known[f"{media.parent.name}/{entry['file']}"] = str(entry["sha256"])
    return known


def is_heavy(item: Item) -> bool:
    """Tell what is freed: sealed files and films. Manifest, constants, events and reports are small and stay."""
    path = Path(item.relative)
    return chunk_range(path) is not None or path.suffix.lower() == ".mp4"
