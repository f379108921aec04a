"""Destroy in one folder what a redaction names. Doing it again goes on where it was interrupted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sensors.files_on_disk import file_sha256, sync_path
from storage.chunks.archive_part import write_without
from storage.chunks.chunk import is_archive
from storage.chunks.chunk_reader import Chunk
from storage.disk.durable import LOCAL
from storage.manifest import edit_manifest, write_json
from storage.media_blocks import block_checksums
from storage.names import CHUNK_SUFFIX, MEDIA, PART_SUFFIX, REVIEW, chunk_name, stream_folder
from storage.redact.blanked_films import blank
from storage.redact.redactions import KEY, NOT_YET
from storage.redact.to_destroy import is_of
from storage.tombstones import destroy

STALE = ("index.parquet", "poses.parquet", "events.json", "report.html", "verify.json")
"""Files of `sync/` that count packets which are gone, or show them: `sync` and `report` make them anew."""

Facts = dict[str, dict[str, Any]]
"""What files that were changed are now, by path."""


def apply(folder: Path, redaction: dict[str, Any], elsewhere: Facts) -> Facts:
    """Destroy chunks and samples in the folder of a recording, or of a copy, and put its manifest right.

    `elsewhere` says what files are now that are not here. Raises OSError, StorageError, UnreadableMedia.
    """
    facts = dict(elsewhere)
    for stream, chunks in redaction["streams"].items():
        numbers = {int(chunk["chunk"]) for chunk in chunks}
        facts |= _chunks(folder, stream, numbers)
    for film, one in redaction["films"].items():
        if (folder / film).is_file():
            blank(folder / film, one["samples"])
            blocks = block_checksums(folder / film)
            facts[film] = {"sha256": file_sha256(folder / film), "blocks": blocks}
        small = (folder / film).parent.glob("proxies/*")
        destroy(folder, [path.relative_to(folder).as_posix() for path in small])
    reviewed = [path.relative_to(folder).as_posix() for path in (folder / REVIEW).glob("*")]
    destroy(folder, [*(f"sync/{name}" for name in STALE), *reviewed])
    _media(folder, redaction, facts)
    _manifest(folder, redaction, facts)
    return facts


def _chunks(folder: Path, stream: str, numbers: set[int]) -> Facts:
    """Remove chunks, and rewrite archives without them; return what the archives are now."""
    home = stream_folder(folder, stream)
    facts: Facts = {}
    for path in sorted(home.glob(f"*{CHUNK_SUFFIX}")):
        if is_archive(path) and is_of(path, numbers):
            facts |= _archive(path, f"{stream}/{path.name}", numbers)
    destroy(folder, [f"{stream}/{chunk_name(number)}" for number in numbers])
    return facts


def _archive(path: Path, relative: str, numbers: set[int]) -> Facts:
    with Chunk(path) as chunk:
        held = set(chunk.blocks["number"].tolist())
    if held <= numbers:
        destroy(path.parent, [path.name])
        return {}
    if held & numbers:
        part = path.with_name(path.name + PART_SUFFIX)
        try:
            write_without(part, path, numbers)
            sync_path(part)
            LOCAL.rename(part, path)
        finally:
            LOCAL.remove(part)
        LOCAL.sync_folder(path.parent)
    return {relative: {"bytes": path.stat().st_size, "sha256": file_sha256(path)}}


def _media(folder: Path, redaction: dict[str, Any], facts: Facts) -> None:
    """Say in `media.json` what the films are now."""
    for camera in {film.rpartition("/")[0] for film in redaction["films"]}:
        path = folder / camera / MEDIA
        if not path.is_file():
            continue
        media = json.loads(path.read_bytes())
        for entry in media["files"]:
            entry |= facts.get(f"{camera}/{entry['file']}", {})
        write_json(path, {key: value for key, value in media.items() if key != "check"})


def _manifest(folder: Path, redaction: dict[str, Any], facts: Facts) -> None:
    gone = {
        f"{stream}/{chunk_name(int(chunk['chunk']))}"
        for stream, chunks in redaction["streams"].items()
        for chunk in chunks
    }
    with edit_manifest(folder) as manifest:
        files = manifest["files"]
        for name in list(files):
            numbers = {int(one["chunk"]) for one in redaction["streams"].get(name.rpartition("/")[0], [])}
            is_empty = is_archive(Path(name)) and is_of(Path(name), numbers) and name not in facts
            if name in gone or is_empty:
                del files[name]
            elif name in facts:
                files[name] = facts[name]
        manifest["problems"] = [one for one in manifest.get("problems", []) if not one.startswith(NOT_YET)]
        others = [one for one in manifest.get(KEY, []) if one["id"] != redaction["id"]]
        manifest[KEY] = [*others, redaction]
