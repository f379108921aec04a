"""The account of one camera: every file that `media.json` promises, byte for byte, damage located to its block.

A sound film is also asked where its telemetry lies on its pictures: what it says is kept, and is no verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.clue import Clue, disagreements
from kitchensync.shell.files_on_disk import file_sha256, read_plain
from kitchensync.shell.untrusted_json import MOST_BYTES, BadJson
from kitchensync.storage.disk.media_blocks import damaged_stretches
from kitchensync.storage.disk.self_check import is_sound
from kitchensync.storage.errors import pass_on_trouble
from kitchensync.storage.names import MEDIA
from kitchensync.storage.reading.shutter_openings import clip_openings
from kitchensync.storage.recording_files.media_file import parse_media
from kitchensync.storage.verify.findings import FAIL, Findings

Progress = Callable[[str], None]
WHOLE = "file"
"""The block of a small file that has only one."""


def account(recording: Path, device: str, findings: Findings, progress: Progress) -> dict[str, Any]:
    """Return what `verify/1` says of the files of a camera, by full name; note what is wrong with them."""
    entries = _entries(recording / device, device, findings)
    if entries is None:
        return {}
    if not entries:
        findings.add(FAIL, f"{device} was armed and has no file")
    streams = {}
    for entry in entries:
        name = f"{device}/{entry['file']}"
        progress(name)
        streams[name] = _check(recording / device / entry["file"], name, entry, findings)
    damaged = {place["stream"] for place in findings.corrupt}
    whole = [name for name, facts in streams.items() if not facts["missing"] and name not in damaged]
    for clip in clip_openings({}, [recording / name for name in whole]):
        clues = _clues(list(clip.files))
        first = clip.files[0].relative_to(recording).as_posix()
        if clues:
            streams[first]["clues"] = [asdict(clue) for clue in clues]
        for says in disagreements(clues):
            findings.note(f"{first}: {says}; `kitchensync sync` lets the pictures decide")
    return streams


def _clues(chapters: list[Path]) -> list[Clue]:
    """Return what the films of a clip say of where their telemetry lies; nothing where they have none to read."""
    from kitchensync.sensors.gopro.files.clip import Clip
    from kitchensync.sensors.gopro.files.clip_clues import clip_clues
    from kitchensync.sensors.gopro.files.media import open_media

    try:
        clip = Clip([open_media(path) for path in chapters])
        return clip_clues(clip) if clip.payloads else []
    except (SensorError, OSError, ValueError, IndexError) as error:
        pass_on_trouble(error)
        return []


def _entries(folder: Path, device: str, findings: Findings) -> list[dict[str, Any]] | None:
    """Return what `media.json` promises, None when it cannot be trusted."""
    relative = f"{device}/{MEDIA}"
    try:
        content = read_plain(folder / MEDIA, MOST_BYTES)
        entries: list[dict[str, Any]] = parse_media(content).get("files") or []
    except OSError as error:
        findings.add(FAIL, f"{relative} cannot be read ({error.strerror})")
        return None
    except BadJson:
        findings.damage(relative, device, WHOLE)
        return None
    if not is_sound(content):
        findings.damage(relative, device, WHOLE)
        return None
    return entries


def _check(path: Path, name: str, entry: dict[str, Any], findings: Findings) -> dict[str, Any]:
    stored = path.stat().st_size if path.is_file() else 0
    digest = file_sha256(path) if path.is_file() and stored == entry["bytes"] else ""
    if stored != entry["bytes"]:
        findings.add(FAIL, f"{name}: {stored} of {entry['bytes']} bytes are here; fetch it again")
    elif digest != entry.get("sha256"):
        known = entry.get("blocks")
        for place in (damaged_stretches(path, known) if known else []) or [WHOLE]:
            findings.damage(name, name, place)
    return {
        "received": entry["bytes"],
        "stored": stored,
        "duplicates": 0,
        "missing": [[stored, entry["bytes"] - 1]] if stored < entry["bytes"] else [],
        "gaps": [],
        "bytes": stored,
        "sha256": digest,
    }
