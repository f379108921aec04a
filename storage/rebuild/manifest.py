"""Put together a lost `recording.json`; a manifest that can be read is never written over."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sensors.hololens.catalogue import STREAMS
from sensors.host_clock import utc_anchor
from storage.copies.copies import freed_to
from storage.copies.read_through import stores_of
from storage.copies.target import Target
from storage.disk.self_check import is_sound, whole_lines
from storage.errors import CannotRebuild, ManifestDamaged, ManifestLost, NotARecording, TargetAway
from storage.manifest import SCHEMA, Manifest, read_manifest, write_json
from storage.names import CLOCK_STREAMS, MANIFEST, MEDIA
from storage.rebuild.moments import moments_of
from storage.rebuild.sealed import SealedFacts, read_sealed, streams_of

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
    for line in stores_of(recording):
        try:
            copy = Target(Path(line.where), line.target).place_of(recording, "")
            manifest = read_manifest(copy)
        except (TargetAway, NotARecording):
            continue
        if not sealed.uuids or manifest.get("uuid") in sealed.uuids:
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
            said = json.loads(path.read_bytes())
        except ValueError:
            said = {}
        found[path.parent.name] = said if isinstance(said, dict) else {}
    return found


def _devices(
    recording: Path, streams: dict[str, dict[str, Any]], media: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    devices: dict[str, dict[str, Any]] = {}
    for name, facts in streams.items():
        device, _, short = name.partition("/")
        module = str((facts.get("format") or {}).get("module", ""))
        has_clock = (recording / CLOCK_STREAMS / device).is_dir()
        is_headset = module.startswith("sensors.hololens.") or (short in STREAMS and has_clock)
        headset = {"kind": "hololens", "gyroscope_unit": "auto"}
        devices.setdefault(device, headset if is_headset else {"kind": "plugin", "settings": {}})
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
    for path in sorted((recording / "events").glob("*.jsonl")):
        for line in whole_lines(path.read_bytes()):
            if is_sound(line):
                yield json.loads(line)
