"""Rebuild a lost `recording.json`; a readable manifest is never overwritten."""

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
    """Facts from the undamaged sealed files."""

    files: dict[str, FileFactsForm] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    uuids: set[str] = field(default_factory=set)
    formats: dict[str, Format] = field(default_factory=dict)
    "Of every armed sensor stream, including streams without packets; empty if not known."
    notes: dict[str, list[Note]] = field(default_factory=dict)
    first_host_ns: int | None = None
    last_host_ns: int | None = None
    newest: Path | None = None
    "The file with the last packet; its modification time is the fallback for UTC."


def read_sealed(recording: Path) -> SealedFacts:
    """Read all sealed files, each first in a separate process."""
    facts = SealedFacts()
    # Hashes from before the loss reveal files that changed since.
    hashes = {line.file: line.sha256 for line in read_copies(recording) if line.kind == COPIED}
    folders = sorted({path.parent for path in recording.glob(f"*/*/*{CHUNK_SUFFIX}")})
    with ReaderApart() as checker:
        for folder in folders:
            stream = folder.relative_to(recording).as_posix()
            for path in chunk_paths(folder):
                relative = f"{stream}/{path.name}"
                if checker.look(path).damage:
                    facts.damaged.append(relative)
                    continue
                with Chunk(path) as chunk:
                    attributes, index = chunk.attributes, chunk.index
                if uuid := attributes.get("recording"):
                    facts.uuids.add(str(uuid))
                if stream.startswith(f"{LEDGER_STREAMS}/"):
                    for name, notes in notes_in([path]).items():
                        facts.notes.setdefault(name, []).extend(notes)
                if stream.partition("/")[0] not in (CLOCK_STREAMS, LEDGER_STREAMS):
                    form = json.loads(attributes.get("format", "{}"))
                    facts.formats[stream] = form or facts.formats.get(stream, {})
                    if len(index):
                        first, last = int(index["host_ns"].min()), int(index["host_ns"].max())
                        facts.first_host_ns = min(first, facts.first_host_ns or first)
                        if last >= (facts.last_host_ns or last):
                            facts.last_host_ns, facts.newest = last, path
                sha256 = hashes.get(relative) or file_sha256(path)
                facts.files[relative] = {"bytes": path.stat().st_size, "sha256": sha256}
    for stream in facts.notes:
        facts.formats.setdefault(stream, {})
    facts.files |= calibration_files(recording)
    return facts


def streams_of(sealed: SealedFacts) -> dict[str, StreamForm]:
    """Return the descriptions of the streams for the manifest."""
    order = {short: place for place, short in enumerate(STREAMS)}
    streams: dict[str, StreamForm] = {}
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
        except UnknownSensorStream:  # a plug-in sensor
            entry = {"device": device, "nominal_hz": 0.0, "adaptive": True}
        if form:
            entry["format"] = form
        streams[f"{device}/{short}"] = entry
    return streams


class LogLine(TypedDict):
    """A line of the recorder's log that has a time and an event."""

    host_ns: int
    utc_ns: int
    event: str
    reason: NotRequired[str]


class Moments(NamedTuple):
    """The times in a manifest; `unknown` names values that had to be guessed."""

    started: MomentForm | None
    stopped: MomentForm | None
    zone: ZoneForm
    unknown: list[str]
    utc_anchors: list[AnchorForm]


def moments_of(recording: Path, sealed: SealedFacts, media: dict[str, MediaForm]) -> Moments:
    """Determine when a recording began and ended."""
    # The cameras' clocks were set to local time.
    clocks = [(camera.get("clock") or {}).get("start") for camera in media.values()]
    minutes = next((clock["zone_minutes"] for clock in clocks if clock and "zone_minutes" in clock), None)
    unknown = ["time zone" if minutes is None else "name of the time zone"]
    zone: ZoneForm = {"iana": None, "utc_offset_s": 60 * int(minutes or 0), "changes": []}
    lines = _log(recording)
    anchors: list[Mapping[str, Any]] = [
        *lines,
        *(camera["anchor"] for camera in media.values() if camera.get("anchor")),
    ]
    if not anchors:
        unknown.insert(0, "when it was by the calendar")
        if sealed.newest is not None and sealed.last_host_ns is not None:
            newest_ns = sealed.newest.stat().st_mtime_ns
            anchors = [{"host_ns": sealed.last_host_ns, "utc_ns": newest_ns}]
    begins = [line["host_ns"] for line in lines if line["event"] == BEGINS]
    first_times = begins[:1] or [*_noted(sealed), *filter(None, [sealed.first_host_ns])]
    if not first_times or not anchors:
        return Moments(None, None, zone, [*unknown, "when it began"], [])
    first_ns, utc = min(first_times), UtcTimes(anchors)
    last_ns, reason = _end(lines, sealed, first_ns)
    if reason == "unknown":
        unknown.insert(-1, "why it ended")
    started: MomentForm = {"host_ns": first_ns, "utc_ns": int(utc.to_utc(first_ns))}
    stopped: MomentForm = {"host_ns": last_ns, "utc_ns": int(utc.to_utc(last_ns)), "reason": reason}
    return Moments(started, stopped, zone, unknown, cast("list[AnchorForm]", utc.where_set()))


def _log(recording: Path) -> list[LogLine]:
    """Return the lines of the recorder's log with a time and an event."""
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
    """Return the times of ledger notes, host ns; only notes of `kind`."""
    notes = (note for notes in sealed.notes.values() for note in of_kind(notes, kind))
    return [note.host_ns for note in notes if note.host_ns]


def _end(lines: list[LogLine], sealed: SealedFacts, first_ns: int) -> tuple[int, str]:
    """Return end and reason; a recorder that was killed ran at least until its last packet."""
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
"""Keys of the recipe choice in a manifest."""
NOWHERE = [
    "participant",
    "place",
    "consent (taken as none)",
    "retake of",
    "warnings, restarts and losses that the recorder declared",
]
"""Facts that are in no other file."""
CAMERA = ("address", "model", "firmware", "serial", "notes")
PLANNED = ("uuid", "state", "stopped", "devices", "profile", "streams", "files")
"""Keys for which a plan is more reliable than the sealed files."""
BY_DEVICE = ["addresses, versions and settings of the headsets"]


@dataclass
class Rebuilt:
    """The result: `copy` is the source of the manifest; without a copy, `unknown` lists facts not recovered."""

    copy: Path | None = None
    unknown: list[str] = field(default_factory=list)


def rebuild(recording: Path, plan: Manifest | None = None) -> Rebuilt:
    """Write the lost manifest of a recording.

    It is copied from a reachable copy of the recording. Without one it is rebuilt from sealed files, ledger, log,
    camera files and events. `plan` is a first manifest from the recorder's work folder: with it the recording is
    open, and `recover` closes it. Raises CannotRebuild, NotARecording, OSError.
    """
    _check_lost(recording, is_planned=plan is not None)
    sealed = read_sealed(recording)
    from_copy = _find_copy(recording, sealed)
    done = Rebuilt()
    if from_copy is not None:
        done.copy, manifest = from_copy
    elif freed_to(recording):
        where = " or ".join(freed_to(recording))
        raise CannotRebuild(recording, f"its files were freed; mount a store that has them: {where}")
    elif len(sealed.uuids) > 1:
        why = "its files are of several recordings: sort them into separate folders; cut parts again"
        raise CannotRebuild(recording, why)
    else:
        manifest = _manifest_from_files(recording, sealed, plan, done.unknown)
    path = recording / MANIFEST
    if path.exists():  # keep the unreadable file for inspection
        os.replace(path, path.with_name(f"{MANIFEST}.unreadable-{uuid.uuid4().hex[:8]}"))
    write_json(path, manifest)
    return done


def _check_lost(recording: Path, *, is_planned: bool) -> None:
    try:
        read_manifest(recording)
    except ManifestLost:
        return
    except ManifestDamaged as error:
        why = f"its {MANIFEST} is damaged: take it from a copy, or rename it and run this again"
        raise CannotRebuild(recording, why) from error
    except NotARecording:
        if is_planned:  # the recorder died before it sealed a file
            return
        raise
    raise CannotRebuild(recording, f"its {MANIFEST} is whole; there is nothing to rebuild")


def _find_copy(recording: Path, sealed: SealedFacts) -> tuple[Path, Manifest] | None:
    """Return a copy of this recording in a reachable store, and its manifest."""
    for line in folders_of(recording):
        try:
            copy = Target(Path(line.where), line.target).place_of(recording, "")
            manifest = read_manifest(copy)
        except (TargetAway, NotARecording):
            continue
        if COPYING not in manifest and (not sealed.uuids or manifest.get("uuid") in sealed.uuids):
            return copy, manifest
    return None


def _manifest_from_files(
    recording: Path, sealed: SealedFacts, plan: Manifest | None, unknown: list[str]
) -> Manifest:
    """Build the manifest from the other files; append facts that they do not have to `unknown`."""
    media: dict[str, MediaForm] = {}
    for path in sorted(recording.glob(f"*/{MEDIA}")):
        try:
            media[path.parent.name] = load_media(path)
        except (OSError, BadJson):
            media[path.parent.name] = {}
    moments, people, streams = moments_of(recording, sealed, media), entered(recording), streams_of(sealed)
    devices = _devices(recording, streams, media)
    kinds = {device["kind"] for device in devices.values()}
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
    for device, content in media.items():
        if any("video" in entry for entry in content.get("files", [])):
            devices[device] = {"kind": "video"}
        else:
            settings = dict(content)
            kept: Any = {key: settings[key] for key in CAMERA if key in settings}
            devices[device] = {"kind": "gopro", **kept}
    return devices


def entered(recording: Path) -> Manifest:
    """Return `recipe` and `script` of the last choice, and `withdrawn`, if they were entered."""
    manifest: Manifest = {}
    # Every undamaged line counts, also beside damaged lines.
    for event in (line for path in event_logs(recording) for line in read_sound_lines(path)):
        body = event.get("body") or {}
        if event.get("kind") == "recipe":
            manifest["recipe"] = cast("ChoiceForm", {key: body.get(key) for key in RECIPE})
            script = {key: body.get(key) for key in ("strategy", "display")}
            manifest["script"] = cast("ScriptForm", script | {"certificate": body.get("script")})
        if event.get("kind") == "withdraw":
            manifest["withdrawn"] = {"host_ns": event.get("host_ns")}
    return manifest
