"""Put together a lost `recording.json`; a manifest that can be read is never written over."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.shell.files_on_disk import read_plain
from kitchensync.shell.host_clock import utc_anchor
from kitchensync.shell.untrusted_json import BadJson, parse_object
from kitchensync.storage.copies.copy_log import folders_of, freed_to
from kitchensync.storage.copies.target import Target
from kitchensync.storage.disk.self_check import read_sound_lines
from kitchensync.storage.errors import CannotRebuild, ManifestDamaged, ManifestLost, NotARecording, TargetAway
from kitchensync.storage.events import event_logs
from kitchensync.storage.ledger import EndNote, Note, of_kind
from kitchensync.storage.manifest import SCHEMA, Manifest, read_manifest, write_json
from kitchensync.storage.names import CLOCK_STREAMS, COPYING, LOGS, MANIFEST, MEDIA
from kitchensync.storage.rebuild.sealed import SealedFacts, read_sealed, streams_of
from kitchensync.storage.recording_files.media_file import load_media
from kitchensync.storage.timeline.utc_times import UtcTimes

LOG = Path(LOGS) / "recording.jsonl"
MOST_LOG_BYTES = 256 << 20
BEGINS, ENDS, RECOVERED = "recording begins", "recording ends", "recording is recovered"


@dataclass
class Moments:
    """What a manifest says of time."""

    started: dict[str, int] | None
    stopped: dict[str, Any] | None
    zone: dict[str, Any]
    unknown: list[str] = field(default_factory=list)
    utc_anchors: list[dict[str, int]] = field(default_factory=list)


def moments_of(recording: Path, sealed: SealedFacts, media: dict[str, dict[str, Any]]) -> Moments:
    """Tell when it began and ended; what had to be guessed is in `unknown`."""
    lines = _log(recording)
    utc, guessed = _utc(lines, sealed, media)
    begins = [line["host_ns"] for line in lines if line["event"] == BEGINS]
    seen = [*begins[:1]] or [*_noted(sealed), *filter(None, [sealed.first_host_ns])]
    first_ns = min(seen, default=None)
    unknown = ["when it was by the calendar"] if guessed else []
    if first_ns is None or utc is None:
        return Moments(None, None, _zone(media, unknown), [*unknown, "when it began"])
    last_ns, reason = _end(lines, sealed, first_ns)
    if reason == "unknown":
        unknown.append("why it ended")
    started = {"host_ns": first_ns, "utc_ns": int(utc.to_utc(first_ns))}
    stopped = {"host_ns": last_ns, "utc_ns": int(utc.to_utc(last_ns)), "reason": reason}
    return Moments(started, stopped, _zone(media, unknown), unknown, utc.where_set())


def _log(recording: Path) -> list[dict[str, Any]]:
    try:
        content = read_plain(recording / LOG, MOST_LOG_BYTES)
    except OSError:
        return []
    texts = content.decode(errors="replace").splitlines()
    lines = [line for line in map(_parsed, texts) if line is not None]
    return [line for line in lines if {"host_ns", "utc_ns", "event"} <= line.keys()]


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return parse_object(text)
    except BadJson:
        return None


def _utc(
    lines: list[dict[str, Any]], sealed: SealedFacts, media: dict[str, dict[str, Any]]
) -> tuple[UtcTimes | None, bool]:
    """Return UTC of the capture clock, and whether that is only guessed."""
    anchors = [*lines, *(one["anchor"] for one in media.values() if one.get("anchor"))]
    if anchors:
        return UtcTimes(anchors), False
    if sealed.newest is None or sealed.last_host_ns is None:
        return None, True
    return UtcTimes([{"host_ns": sealed.last_host_ns, "utc_ns": sealed.newest.stat().st_mtime_ns}]), True


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


RECIPE = ("name", "graph_hash", "order", "seed", "source")
"""What a manifest keeps of the choice of a recipe."""
NOWHERE = [
    "participant",
    "place",
    "consent (taken as none)",
    "retake of",
    "warnings, restarts and losses that the recorder declared",
]
"""What stands in no other file."""
CAMERA = ("address", "model", "firmware", "serial", "notes")
BY_DEVICE = ["addresses, versions and settings of the headsets"]


@dataclass
class Rebuilt:
    """What was made: `copy` is where the manifest was taken from; without one, what could not be found out."""

    copy: Path | None = None
    unknown: list[str] = field(default_factory=list)


def rebuild(recording: Path, plan: Manifest | None = None) -> Rebuilt:
    """Write the lost manifest of a recording.

    It comes from a copy where one can be reached. Else it is put together from sealed files, ledger, log, what the
    cameras said, and events. `plan` is a first manifest made of what the recorder's work folder still says: with it
    the recording is open, and `recover` closes it. Raises CannotRebuild, NotARecording, OSError.
    """
    _check_lost(recording, is_planned=plan is not None)
    sealed = read_sealed(recording)
    taken = _of_a_copy(recording, sealed)
    if taken is not None:
        copy, manifest = taken
        done = Rebuilt(copy)
    elif freed_to(recording):
        where = " or ".join(freed_to(recording))
        raise CannotRebuild(recording, f"its files were freed; mount a store that has them: {where}")
    elif len(sealed.uuids) > 1:
        why = "its files are of several recordings: sort them into folders of their own; a part is cut anew"
        raise CannotRebuild(recording, why)
    else:
        manifest = _put_together(recording, sealed, plan)
        done = Rebuilt(unknown=manifest["rebuilt"]["unknown"])
    _keep_what_was_there(recording)
    write_json(recording / MANIFEST, manifest)
    return done


def _check_lost(recording: Path, *, is_planned: bool) -> None:
    try:
        read_manifest(recording)
    except ManifestLost:
        return
    except ManifestDamaged as error:
        why = f"its {MANIFEST} is there, though damaged: take it from a copy, or rename it and run this again"
        raise CannotRebuild(recording, why) from error
    except NotARecording:
        if is_planned:  # its recorder died before anything was sealed
            return
        raise
    raise CannotRebuild(recording, f"its {MANIFEST} is whole; there is nothing to rebuild")


def _of_a_copy(recording: Path, sealed: SealedFacts) -> tuple[Path, Manifest] | None:
    """Return a copy of this very recording in a store that can be reached, and its manifest."""
    for line in folders_of(recording):
        try:
            copy = Target(Path(line.where), line.target).place_of(recording, "")
            manifest = read_manifest(copy)
        except (TargetAway, NotARecording):
            continue
        if COPYING not in manifest and (not sealed.uuids or manifest.get("uuid") in sealed.uuids):
            return copy, manifest
    return None


def _keep_what_was_there(recording: Path) -> None:
    """A manifest that nobody can read may tell somebody something."""
    path = recording / MANIFEST
    if path.exists():
        os.replace(path, path.with_name(f"{MANIFEST}.unreadable-{uuid.uuid4().hex[:8]}"))


def _put_together(recording: Path, sealed: SealedFacts, plan: Manifest | None) -> Manifest:
    media = _media(recording)
    moments = moments_of(recording, sealed, media)
    people = entered(recording)
    streams = streams_of(sealed)
    devices = _devices(recording, streams, media)
    unknown = NOWHERE + (BY_DEVICE if any(one["kind"] == "hololens" for one in devices.values()) else [])
    unknown += moments.unknown + ([] if "recipe" in people else ["recipe"])
    manifest: Manifest = {
        "schema": SCHEMA,
        "recording": recording.name,
        "uuid": next(iter(sealed.uuids), str(uuid.uuid4())),
        "state": "complete",
        "retake_of": None,
        "started": moments.started,
        "stopped": moments.stopped,
        "zone": moments.zone,
        "utc_anchors": moments.utc_anchors,
        "consent": "none",
        "pseudonym": "",
        "place": "",
        "recipe": None,
        "devices": devices,
        "profile": {},
        "streams": streams,
        "software": {"kitchensync": "unknown"},
        "files": sealed.files,
        "problems": [],
        **people,
    }
    if plan is not None:
        manifest |= {
            key: plan[key] for key in ("uuid", "state", "stopped", "devices", "profile", "streams", "files")
        }
    if any(one["kind"] == "video" for one in devices.values()):
        manifest["adopted"] = manifest["started"]
    return manifest | {"rebuilt": _about(sealed, unknown)}


def _about(sealed: SealedFacts, unknown: list[str]) -> dict[str, Any]:
    about = {"utc_ns": utc_anchor().utc_ns, "software": version("kitchensync"), "unknown": unknown}
    return about | ({"damaged": sealed.damaged} if sealed.damaged else {})


def _media(recording: Path) -> dict[str, dict[str, Any]]:
    """Return what the cameras' `media.json` say, by device; one that is damaged says nothing."""
    found = {}
    for path in sorted(recording.glob(f"*/{MEDIA}")):
        try:
            found[path.parent.name] = load_media(path)
        except (OSError, BadJson):
            found[path.parent.name] = {}
    return found


def _devices(
    recording: Path, streams: dict[str, dict[str, Any]], media: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    devices: dict[str, dict[str, Any]] = {}
    for name, facts in streams.items():
        device, _, short = name.partition("/")
        module = str((facts.get("format") or {}).get("module", ""))
        has_clock = (recording / CLOCK_STREAMS / device).is_dir()
        of_headset = module.removeprefix("kitchensync.").startswith("sensors.hololens.")
        is_headset = of_headset or (short in STREAMS and has_clock)
        if is_headset:
            devices[device] = {"kind": "hololens", "gyroscope_unit": "auto"}
        devices.setdefault(device, {"kind": "plugin", "settings": {}})
    for device, said in media.items():
        devices[device] = _camera(said)
    return devices


def _camera(said: dict[str, Any]) -> dict[str, Any]:
    if any("video" in entry for entry in said.get("files", [])):
        return {"kind": "video"}
    known: dict[str, Any] = {key: said[key] for key in CAMERA if key in said}
    return {"kind": "gopro", **known}


def entered(recording: Path) -> dict[str, Any]:
    """Return `recipe` and `script` of the last choice, and `withdrawn`, where somebody entered them."""
    found: dict[str, Any] = {}
    for event in _events(recording):
        body = event.get("body") or {}
        if event.get("kind") == "recipe":
            found["recipe"] = {key: body.get(key) for key in RECIPE}
            script = {"strategy": body.get("strategy"), "display": body.get("display")}
            found["script"] = script | {"certificate": body.get("script")}
        if event.get("kind") == "withdraw":
            found["withdrawn"] = {"host_ns": event.get("host_ns")}
    return found


def _events(recording: Path) -> Iterator[dict[str, Any]]:
    """Yield every event whose line is as it was written, damaged neighbours or not."""
    for path in event_logs(recording):
        yield from read_sound_lines(path)
