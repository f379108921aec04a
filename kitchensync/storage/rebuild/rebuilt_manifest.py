"""Put together a lost `recording.json`; a manifest that can be read is never written over."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NotRequired, TypedDict, cast

from kitchensync.sensors.errors import UnknownSensorStream
from kitchensync.sensors.hololens.catalogue import STREAMS, headset_stream
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.sensors.stream import Format
from kitchensync.shell.files_on_disk import file_sha256, read_plain
from kitchensync.shell.host_clock import utc_anchor
from kitchensync.shell.untrusted_json import BadJson, parse_object
from kitchensync.storage.chunks.apart import ReaderApart
from kitchensync.storage.chunks.chunk_reader import Chunk, chunk_paths
from kitchensync.storage.copies.copy_log import COPIED, folders_of, freed_to, read_copies
from kitchensync.storage.copies.target import Target
from kitchensync.storage.disk.self_check import read_sound_lines
from kitchensync.storage.errors import CannotRebuild, ManifestDamaged, ManifestLost, NotARecording, TargetAway
from kitchensync.storage.events import event_logs
from kitchensync.storage.ledger import EndNote, Note, of_kind
from kitchensync.storage.ledger_reader import notes_in
from kitchensync.storage.manifest import SCHEMA, Manifest, read_manifest, write_json
from kitchensync.storage.names import (
    CHUNK_SUFFIX,
    CLOCK_STREAMS,
    COPYING,
    LEDGER_STREAMS,
    LOGS,
    MANIFEST,
    MEDIA,
)
from kitchensync.storage.reading.device_constants import calibration_files
from kitchensync.storage.recording_files.media_file import load_media
from kitchensync.storage.timeline.utc_times import UtcTimes

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import (
        AnchorForm,
        ChoiceForm,
        DeviceForm,
        FileFactsForm,
        MediaForm,
        MomentForm,
        RebuiltForm,
        ScriptForm,
        StreamForm,
        ZoneForm,
    )

LOG = Path(LOGS) / "recording.jsonl"
MOST_LOG_BYTES = 256 << 20
BEGINS, ENDS, RECOVERED = "recording begins", "recording ends", "recording is recovered"


@dataclass
class SealedFacts:
    """What the sound ones among the sealed files tell."""

    files: dict[str, FileFactsForm] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    uuids: set[str] = field(default_factory=set)
    formats: dict[str, Format] = field(default_factory=dict)
    "Of every sensor stream that was armed, also of one that delivered nothing; empty where nobody said."
    notes: dict[str, list[Note]] = field(default_factory=dict)
    first_host_ns: int | None = None
    last_host_ns: int | None = None
    newest: Path | None = None
    "The file with the last packet, for want of a better clock."


def read_sealed(recording: Path) -> SealedFacts:
    """Read all sealed files, each in a process apart first."""
    found = SealedFacts()
    # as they were copied, before the loss: a file that changed since then is found by it
    known = {line.file: line.sha256 for line in read_copies(recording) if line.kind == COPIED}
    folders = sorted({path.parent for path in recording.glob(f"*/*/*{CHUNK_SUFFIX}")})
    with ReaderApart() as apart:
        for folder in folders:
            stream = folder.relative_to(recording).as_posix()
            for path in chunk_paths(folder):
                relative = f"{stream}/{path.name}"
                if apart.look(path).damage:
                    found.damaged.append(relative)
                    continue
                with Chunk(path) as chunk:
                    attributes, index = chunk.attributes, chunk.index
                if uuid := attributes.get("recording"):
                    found.uuids.add(str(uuid))
                if stream.startswith(f"{LEDGER_STREAMS}/"):
                    for name, notes in notes_in([path]).items():
                        found.notes.setdefault(name, []).extend(notes)
                if stream.partition("/")[0] not in (CLOCK_STREAMS, LEDGER_STREAMS):
                    form = json.loads(attributes.get("format", "{}"))
                    found.formats[stream] = form or found.formats.get(stream, {})
                    if len(index):
                        first, last = int(index["host_ns"].min()), int(index["host_ns"].max())
                        found.first_host_ns = min(first, found.first_host_ns or first)
                        if last >= (found.last_host_ns or last):
                            found.last_host_ns, found.newest = last, path
                sha256 = known.get(relative) or file_sha256(path)
                found.files[relative] = {"bytes": path.stat().st_size, "sha256": sha256}
    for stream in found.notes:
        found.formats.setdefault(stream, {})
    found.files |= calibration_files(recording)
    return found


def streams_of(sealed: SealedFacts) -> dict[str, StreamForm]:
    """Return the streams as a manifest describes them."""
    order = {short: place for place, short in enumerate(STREAMS)}
    found: dict[str, StreamForm] = {}
    for device, _, short in sorted(
        (name.partition("/") for name in sealed.formats),
        key=lambda parts: (parts[0], order.get(parts[2], len(order)), parts[2]),
    ):
        form = sealed.formats[f"{device}/{short}"]
        try:
            sensor = headset_stream(short)
            sound: Literal["aac", "pcm"] = "aac" if form.get("codec", "aac") == "aac" else "pcm"
            usual_hz = sensor.rate_hz(Profile(microphone=sound, extended_audio=sound))
            hz = float(form.get("hz", usual_hz))
            entry: StreamForm = {"device": device, "port": sensor.port, "nominal_hz": hz}
            entry["adaptive"] = sensor.adaptive
        except UnknownSensorStream:  # of a plug-in sensor nobody else knows
            entry = {"device": device, "nominal_hz": 0.0, "adaptive": True}
        if form:
            entry["format"] = form
        found[f"{device}/{short}"] = entry
    return found


class LogLine(TypedDict):
    """A line of the recorder's log that has a time and an event."""

    host_ns: int
    utc_ns: int
    event: str
    reason: NotRequired[str]


class Moments(NamedTuple):
    """What a manifest says of time; `unknown` names what had to be guessed."""

    started: MomentForm | None
    stopped: MomentForm | None
    zone: ZoneForm
    unknown: list[str]
    utc_anchors: list[AnchorForm]


def moments_of(recording: Path, sealed: SealedFacts, media: dict[str, MediaForm]) -> Moments:
    """Tell when a recording began and ended."""
    # the cameras' clocks were set to the time of the place
    clocks = [(one.get("clock") or {}).get("start") for one in media.values()]
    minutes = next((clock["zone_minutes"] for clock in clocks if clock and "zone_minutes" in clock), None)
    unknown = ["time zone" if minutes is None else "name of the time zone"]
    zone: ZoneForm = {"iana": None, "utc_offset_s": 60 * int(minutes or 0), "changes": []}
    lines = _log(recording)
    anchors: list[Mapping[str, Any]] = [
        *lines,
        *(one["anchor"] for one in media.values() if one.get("anchor")),
    ]
    if not anchors:
        unknown.insert(0, "when it was by the calendar")
        if sealed.newest is not None and sealed.last_host_ns is not None:
            newest_ns = sealed.newest.stat().st_mtime_ns
            anchors = [{"host_ns": sealed.last_host_ns, "utc_ns": newest_ns}]
    begins = [line["host_ns"] for line in lines if line["event"] == BEGINS]
    seen = begins[:1] or [*_noted(sealed), *filter(None, [sealed.first_host_ns])]
    if not seen or not anchors:
        return Moments(None, None, zone, [*unknown, "when it began"], [])
    first_ns, utc = min(seen), UtcTimes(anchors)
    last_ns, reason = _end(lines, sealed, first_ns)
    if reason == "unknown":
        unknown.insert(-1, "why it ended")
    started: MomentForm = {"host_ns": first_ns, "utc_ns": int(utc.to_utc(first_ns))}
    stopped: MomentForm = {"host_ns": last_ns, "utc_ns": int(utc.to_utc(last_ns)), "reason": reason}
    return Moments(started, stopped, zone, unknown, cast("list[AnchorForm]", utc.where_set()))


def _log(recording: Path) -> list[LogLine]:
    """Return the lines of the recorder's log that say what happened when."""
    try:
        content = read_plain(recording / LOG, MOST_LOG_BYTES)
    except OSError:
        return []
    lines = []
    for text in content.decode(errors="replace").splitlines():
        with suppress(BadJson):
            lines.append(parse_object(text))
    return [cast(LogLine, line) for line in lines if {"host_ns", "utc_ns", "event"} <= line.keys()]


def _noted(sealed: SealedFacts, kind: type[Note] = Note) -> list[int]:
    """Return when the ledger was written, host ns; `kind` asks for notes of one kind."""
    notes = (note for notes in sealed.notes.values() for note in of_kind(notes, kind))
    return [note.host_ns for note in notes if note.host_ns]


def _end(lines: list[LogLine], sealed: SealedFacts, first_ns: int) -> tuple[int, str]:
    """A recorder that was killed lived at least until its last packet."""
    last_packet = sealed.last_host_ns or first_ns
    for number, line in enumerate(lines):
        if line["event"] == RECOVERED:
            before = [int(earlier["host_ns"]) for earlier in lines[:number]]
            return max([last_packet, *before]), "recovered"
    ends = [line for line in lines if line["event"] == ENDS]
    if ends:
        return int(ends[-1]["host_ns"]), str(ends[-1].get("reason", "unknown"))
    return max([last_packet, *_noted(sealed, EndNote)]), "unknown"


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
PLANNED = ("uuid", "state", "stopped", "devices", "profile", "streams", "files")
"""What a plan knows better than the sealed files."""
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
    done = Rebuilt()
    if taken is not None:
        done.copy, manifest = taken
    elif freed_to(recording):
        where = " or ".join(freed_to(recording))
        raise CannotRebuild(recording, f"its files were freed; mount a store that has them: {where}")
    elif len(sealed.uuids) > 1:
        why = "its files are of several recordings: sort them into folders of their own; a part is cut anew"
        raise CannotRebuild(recording, why)
    else:
        manifest = _put_together(recording, sealed, plan, done.unknown)
    path = recording / MANIFEST
    if path.exists():  # one that nobody can read may tell somebody something
        os.replace(path, path.with_name(f"{MANIFEST}.unreadable-{uuid.uuid4().hex[:8]}"))
    write_json(path, manifest)
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


def _put_together(
    recording: Path, sealed: SealedFacts, plan: Manifest | None, unknown: list[str]
) -> Manifest:
    """Return the manifest that the other files tell; what they do not tell is added to `unknown`."""
    media: dict[str, MediaForm] = {}
    for path in sorted(recording.glob(f"*/{MEDIA}")):
        try:
            media[path.parent.name] = load_media(path)
        except (OSError, BadJson):
            media[path.parent.name] = {}
    moments, people, streams = moments_of(recording, sealed, media), entered(recording), streams_of(sealed)
    devices = _devices(recording, streams, media)
    kinds = {one["kind"] for one in devices.values()}
    unknown += NOWHERE + BY_DEVICE * ("hololens" in kinds) + moments.unknown
    unknown += [] if "recipe" in people else ["recipe"]
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
        manifest |= cast(Manifest, {key: value for key, value in plan.items() if key in PLANNED})
    if "video" in kinds:
        manifest["adopted"] = manifest["started"]
    rebuilt: RebuiltForm = {
        "utc_ns": utc_anchor().utc_ns,
        "software": version("kitchensync"),
        "unknown": unknown,
    }
    return {**manifest, "rebuilt": {**rebuilt, "damaged": sealed.damaged} if sealed.damaged else rebuilt}


def _devices(
    recording: Path, streams: dict[str, StreamForm], media: dict[str, MediaForm]
) -> dict[str, DeviceForm]:
    devices: dict[str, DeviceForm] = {}
    for name, facts in streams.items():
        device, _, short = name.partition("/")
        module = str((facts.get("format") or {}).get("module", ""))
        has_clock = (recording / CLOCK_STREAMS / device).is_dir()
        of_headset = module.removeprefix("kitchensync.").startswith("sensors.hololens.")
        if of_headset or (short in STREAMS and has_clock):
            devices[device] = {"kind": "hololens", "gyroscope_unit": "auto"}
        devices.setdefault(device, {"kind": "plugin", "settings": {}})
    for device, said in media.items():
        if any("video" in entry for entry in said.get("files", [])):
            devices[device] = {"kind": "video"}
        else:
            facts_of = dict(said)
            known: Any = {key: facts_of[key] for key in CAMERA if key in facts_of}
            devices[device] = {"kind": "gopro", **known}
    return devices


def entered(recording: Path) -> Manifest:
    """Return `recipe` and `script` of the last choice, and `withdrawn`, where somebody entered them."""
    found: Manifest = {}
    # every event whose line is as it was written, damaged neighbours or not
    for event in (one for path in event_logs(recording) for one in read_sound_lines(path)):
        body = event.get("body") or {}
        if event.get("kind") == "recipe":
            found["recipe"] = cast("ChoiceForm", {key: body.get(key) for key in RECIPE})
            script = {key: body.get(key) for key in ("strategy", "display")}
            found["script"] = cast("ScriptForm", script | {"certificate": body.get("script")})
        if event.get("kind") == "withdraw":
            found["withdrawn"] = {"host_ns": event.get("host_ns")}
    return found
