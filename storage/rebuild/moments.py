"""When a recording without its manifest began and ended, by its log, its cameras, or the times of its files."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storage.ledger import EndNote, Note, of_kind
from storage.names import LOGS
from storage.rebuild.sealed import SealedFacts

LOG = Path(LOGS) / "recording.jsonl"
BEGINS, ENDS, RECOVERED = "recording begins", "recording ends", "recording is recovered"


@dataclass
class Moments:
    """What a manifest says of time."""

    started: dict[str, int] | None
    stopped: dict[str, Any] | None
    zone: dict[str, Any]
    unknown: list[str] = field(default_factory=list)


def moments_of(recording: Path, sealed: SealedFacts, media: dict[str, dict[str, Any]]) -> Moments:
    """Tell when it began and ended; what had to be guessed is in `unknown`."""
    lines = _log(recording)
    offset_ns, guessed = _utc_offset(lines, sealed, media)
    begins = [line["host_ns"] for line in lines if line["event"] == BEGINS]
    seen = [*begins[:1]] or [*_noted(sealed), *filter(None, [sealed.first_host_ns])]
    first_ns = min(seen, default=None)
    unknown = ["when it was by the calendar"] if guessed else []
    if first_ns is None or offset_ns is None:
        return Moments(None, None, _zone(media, unknown), [*unknown, "when it began"])
    last_ns, reason = _end(lines, sealed, first_ns)
    if reason == "unknown":
        unknown.append("why it ended")
    started = {"host_ns": first_ns, "utc_ns": first_ns + offset_ns}
    stopped = {"host_ns": last_ns, "utc_ns": last_ns + offset_ns, "reason": reason}
    return Moments(started, stopped, _zone(media, unknown), unknown)


def _log(recording: Path) -> list[dict[str, Any]]:
    try:
        texts = (recording / LOG).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    lines = [line for line in map(_parsed, texts) if line is not None]
    return [line for line in lines if {"host_ns", "utc_ns", "event"} <= line.keys()]


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


def _utc_offset(
    lines: list[dict[str, Any]], sealed: SealedFacts, media: dict[str, dict[str, Any]]
) -> tuple[int | None, bool]:
    """Return UTC minus the capture clock, ns, and whether that is only guessed."""
    anchors = [*lines, *(one["anchor"] for one in media.values() if one.get("anchor"))]
    if anchors:
        return int(anchors[0]["utc_ns"]) - int(anchors[0]["host_ns"]), False
    if sealed.newest is None or sealed.last_host_ns is None:
        return None, True
    return sealed.newest.stat().st_mtime_ns - sealed.last_host_ns, True


def _noted(sealed: SealedFacts, kind: type[Note] = Note) -> list[int]:
    """Return when the ledger was written, host ns; `kind` asks for notes of one kind."""
    notes = (note for notes in sealed.notes.values() for note in of_kind(notes, kind))
    return [note.host_ns for note in notes if note.host_ns]


def _end(lines: list[dict[str, Any]], sealed: SealedFacts, first_ns: int) -> tuple[int, str]:
    """A recorder that was killed lived at least until its last packet."""
    last_packet = sealed.last_host_ns or first_ns
    for number, line in enumerate(lines):
        if line["event"] == RECOVERED:
            before = [int(earlier["host_ns"]) for earlier in lines[:number]]
            return max([last_packet, *before]), "recovered"
    ends = [line for line in lines if line["event"] == ENDS]
    if ends:
        return int(ends[-1]["host_ns"]), str(ends[-1].get("reason", "unknown"))
    noted = _noted(sealed, EndNote)
    return max([last_packet, *noted]), "unknown"


def _zone(media: dict[str, dict[str, Any]], unknown: list[str]) -> dict[str, Any]:
    """The cameras' clocks were set to the time of the place."""
    clocks = [(one.get("clock") or {}).get("start") or {} for one in media.values()]
    minutes = next((clock["zone_minutes"] for clock in clocks if "zone_minutes" in clock), None)
    unknown.append("time zone" if minutes is None else "name of the time zone")
    return {"iana": None, "utc_offset_s": 60 * int(minutes or 0), "changes": []}
