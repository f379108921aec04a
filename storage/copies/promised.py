"""Which sealed files and films a recording says it has, and which of them are not in a folder."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from storage.manifest import Manifest
from storage.names import CHUNK_SUFFIX, MEDIA, chunk_range


def promised_hashes(recording: Path, manifest: Manifest) -> dict[str, str]:
    """Return the hash that each sealed file, each constant and each film was taken in with, by its path inside."""
    return {name: facts["sha256"] for name, facts in manifest["files"].items()} | _film_hashes(recording)


def _film_hashes(recording: Path) -> dict[str, str]:
    known = {}
    for media in recording.glob(f"*/{MEDIA}"):
        with contextlib.suppress(ValueError, KeyError, TypeError):  # verify names a damaged media.json
            for entry in json.loads(media.read_text(encoding="utf-8"))["files"]:
                if "sha256" in entry:
                    known[f"{media.parent.name}/{entry['file']}"] = str(entry["sha256"])
    return known


def missing_files(folder: Path, manifest: Manifest) -> list[str]:
    """Return what is promised and not in a folder, in order of name; an archive stands for its chunks."""
    promised = sorted(promised_hashes(folder, manifest))
    return [name for name in promised if not (folder / name).is_file() and not _is_packed(folder / name)]


def _is_packed(chunk: Path) -> bool:
    numbers = chunk_range(chunk)
    if numbers is None:
        return False
    archives = (chunk_range(path) for path in chunk.parent.glob(f"*-*{CHUNK_SUFFIX}"))
    return any(held and held[0] <= numbers[0] and numbers[1] <= held[1] for held in archives)
