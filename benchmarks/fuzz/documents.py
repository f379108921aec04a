"""Documents of our own form that others may have changed: manifest, plan, control, dump, log, lab, rig, study."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import zmq
from media import written
from pydantic import ValidationError
from registry import parser
from small_recordings import true_alignment

from kitchensync.capture.errors import BadPlan, BadRig
from kitchensync.capture.plan import HeadsetPlan, Plan, SensorPlan, load_plan
from kitchensync.capture.process.health import _is_state
from kitchensync.capture.rig.rig_file import read_rig, template
from kitchensync.capture.session.control import ControlServer, signed
from kitchensync.dataset.data_set_cards.about import BadAbout, parse_about
from kitchensync.dataset.source.numbering import SCHEMA as NUMBERING
from kitchensync.dataset.source.numbering import parse_numbering
from kitchensync.operations.errors import BadOperation
from kitchensync.operations.operation_kinds import KINDS, Misfit, Operation, checked_body
from kitchensync.recipe_app.errors import BadSetup
from kitchensync.recipe_app.exchange.dumps import read_dump
from kitchensync.recipe_app.store import backup
from kitchensync.recipe_app.study.plan_file import read_locked
from kitchensync.recipe_app.study.study_file import read_study
from kitchensync.shell.untrusted_json import BadJson, parse_json
from kitchensync.storage import events, lab
from kitchensync.storage.copies.copy_log import COPY_LOG, read_copies
from kitchensync.storage.disk.self_check import checked_json
from kitchensync.storage.errors import BadAnnotations, BadEventLog, BadLabFile, NotARecording, UnreadableFile
from kitchensync.storage.ledger import read_note
from kitchensync.storage.manifest import SCHEMA, read_manifest
from kitchensync.storage.reading.alignments import read_alignment
from kitchensync.storage.recording_files import annotation_folder
from kitchensync.task_graphs.errors import RecipeError

ROOT = Path(__file__).parents[2]


def _in_json(*values: Any) -> list[bytes]:
    return [json.dumps(value).encode() for value in values]


def _sealed(content: bytes) -> bytes:
    """Put the checksum right that a file of our own carries; of what is no object nothing is changed."""
    try:
        found = json.loads(content)
        return checked_json(found, indent=1) if isinstance(found, dict) else content
    except (ValueError, RecursionError):
        return content


def _folder(*, of: str = "") -> Path:
    folder = Path(tempfile.gettempdir()) / "take1"
    (folder / of).mkdir(parents=True, exist_ok=True)
    return folder


@parser(
    "any JSON of strangers",
    BadJson,
    seeds=lambda: _in_json({"a": [1, -2.5e3, True, None, "b\u00e4"], "c": {}}),
)
def untrusted_json(content: bytes) -> None:
    parse_json(content)


def _manifests() -> list[bytes]:
    manifest = {
        "schema": SCHEMA, "recording": "take1", "uuid": "u", "state": "complete", "virtual": True,
        "files": {"hololens/pv/000000.h5": {"bytes": 10, "sha256": "0" * 64}},
        "streams": {"hololens/pv": {"received": 10, "stored": 10, "losses": []}},
        "devices": {"hololens": {"kind": "hololens"}}, "consent": "none", "consent_scopes": [],
        "started": {"host_ns": 10**12, "utc_ns": 10**18}, "stopped": {"host_ns": 2 * 10**12, "utc_ns": 10**18},
    }  # fmt: skip
    return [checked_json(manifest, indent=1)]


@parser("the manifest of a recording", NotARecording, seeds=_manifests, seal=_sealed)
def manifest(content: bytes) -> None:
    (_folder() / "recording.json").write_bytes(content)
    read_manifest(_folder())


def _plans() -> list[bytes]:
    headset = HeadsetPlan("hololens", "10.0.0.2", ["pv"], {"link": "wifi"})
    sensor = SensorPlan("scale", "plugins.scale:Scale", ["weight"], {"port": 1})
    return _in_json(
        asdict(
            Plan("take1", "u", "/a", "/b", "/c", "unix:///d", [headset], {"gopro": "usb:"}, sensors=[sensor])
        )
    )


@parser("the plan that a recorder leaves to `recover`", BadPlan, seeds=_plans)
def plan(content: bytes) -> None:
    read = load_plan(written(content, "plan.json"))
    read.stored_streams()
    read.share(0)


@parser(
    "requests to a running recording", seeds=lambda: [signed(b"k" * 32, one) for one in ("stop", "state")]
)
def control_frame(content: bytes) -> None:
    assert _control()._checked(content) is None, "obeyed without the key"


_servers: list[ControlServer] = []


def _control() -> ControlServer:
    if not _servers:
        with contextlib.suppress(zmq.ZMQError):
            _servers.append(ControlServer(f"ipc://{tempfile.mkdtemp()}/control"))
    return _servers[0]


def _states() -> list[bytes]:
    told = {"last_host_ns": 1, "received": 5, "state": "connected"}
    return _in_json({"process": "producer", "host_ns": 5, "streams": {"hololens/pv": told}, "problem": ""})


@parser("states that our processes tell each other", BadJson, seeds=_states)
def process_state(content: bytes) -> None:
    found = parse_json(content)
    if isinstance(found, dict):
        _is_state(found)


_NOTES = (
    {"note": "connected", "stream": "pv", "host_ns": 5, "connection": 1, "host": "a"},
    {"note": "closed", "stream": "pv", "host_ns": 5, "connection": 1, "cause": "network", "why": ""},
    {"note": "declared_loss", "stream": "pv", "host_ns": 5, "count": 4, "cause": "restart"},
    {"note": "suspend", "stream": "pv", "host_ns": 5, "start_host_ns": 1, "end_host_ns": 2},
    {"note": "new world frame", "stream": "pv", "host_ns": 5},
)


@parser("notes of the ledger", ValueError, seeds=lambda: _in_json(*_NOTES))
def ledger_note(content: bytes) -> None:
    read_note(content)


def _event_logs() -> list[bytes]:
    text, previous = b"", events.FIRST
    for number in range(3):
        line = checked_json(
            {"n": number, "kind": "done", "host_ns": 5, "uncertainty_ns": 1, "body": {}, "prev": previous}
        )
        previous, text = hashlib.sha256(line).hexdigest(), text + line
    return [text]


def _chained(content: bytes) -> bytes:
    """Put the checksums of lines right, and the chain where they have one."""
    lines, previous = [], events.FIRST
    for line in content.splitlines():
        with contextlib.suppress(ValueError, RecursionError, TypeError):
            found = json.loads(line)
            line = checked_json(found | ({"prev": previous} if "prev" in found else {}))[:-1]
        lines.append(line + b"\n")
        previous = hashlib.sha256(lines[-1]).hexdigest()
    return b"".join(lines)


@parser("event logs of a recording", BadEventLog, seeds=_event_logs, seal=_chained)
def event_log(content: bytes) -> None:
    (_folder(of="events") / "events" / "tablet.jsonl").write_bytes(content)
    events.read_events(_folder())


@parser("the copy log", UnreadableFile, seeds=lambda: [_COPY], seal=_chained)
def copy_book(content: bytes) -> None:
    (_folder() / COPY_LOG).write_bytes(content)
    read_copies(_folder())


_COPY = checked_json(
    {
        "kind": "copy",
        "file": "a",
        "bytes": 3,
        "sha256": "0",
        "mtime_ns": 1,
        "target": "t",
        "where": "/n",
        "read": "x",
    }
)


def _alignments() -> list[bytes]:
    return _in_json(true_alignment("GX010001.MP4", np.linspace(0, 20, 5), np.arange(5) * 50_000_000 + 10**9))


@parser("results of `sync`, which say what is wrong with themselves", seeds=_alignments)
def alignment(content: bytes) -> None:
    read_alignment(written(content, "GX010001.MP4.json"))


@parser("accepted step times", BadAnnotations, seeds=lambda: [_ACCEPTED], seal=_sealed)
def accepted_steps(content: bytes) -> None:
    (_folder(of="annotations") / "annotations" / annotation_folder.ACCEPTED).write_bytes(content)
    annotation_folder.accepted_steps(_folder())


_ACCEPTED = checked_json(
    {
        "schema": annotation_folder.ACCEPTED_SCHEMA, "version": 1, "author": "a", "fps": "30000/1001", "frames": 900,
        "steps": [{"node": 1, "start_frame": 0, "end_frame": 30}],
    }
)  # fmt: skip

_LAB = b"""
stores = ["file:///mnt/nas", "s3://lab"]
pause = "mark"
withdrawal = "destroy"
grace_hours = 72
"""


@parser("lab.toml", BadLabFile, seeds=lambda: [_LAB])
def lab_file(content: bytes) -> None:
    path = written(content, "lab.toml")
    lab.lab_of(path.parent / "take").owns("file:///mnt/nas/a")


@parser("rig.toml", BadRig, seeds=lambda: [template("10.0.0.2", "usb:").encode(), _RIG])
def rig_file(content: bytes) -> None:
    read_rig(written(content, "rig.toml"))


_RIG = b"""
gyroscope_unit = "auto"
[hololens.hololens]
address = "10.0.0.2"
link = "wifi"
[gopro]
gopro = "usb:"
[sensor.scale]
kind = "plugins.scale:Scale"
port = 1
"""


def _studies() -> list[bytes]:
    found = (ROOT / "examples" / "study.toml").read_text()
    recipes = ROOT / "kitchensync" / "examples" / "recipes"
    return [found.replace('"../kitchensync/examples/recipes"', json.dumps(str(recipes))).encode()]


@parser("the file of a study", RecipeError, seeds=_studies)
def study_file(content: bytes) -> None:
    read_study(written(content, "study.toml"))


_PLANNED = {
    "sessions": [
        {"recipe": "tea", "strategy": "normal", "display": "steps", "person": "Basil", "kitchen": "north", "part": "",
         "start": f"2027-01-11T{hour:02}:00:00+01:00", "minutes": 60, "locked": True, "order": [0, 1]}
        for hour in (9, 11)
    ]
}  # fmt: skip


@parser("the plan of a study", RecipeError, seeds=lambda: _in_json(_PLANNED))
def study_plan(content: bytes) -> None:
    read_locked(written(content, "plan.json"))


@parser("published numbers", RecipeError, seeds=lambda: _in_json(_NUMBERS))
def numbering(content: bytes) -> None:
    parse_numbering(content.decode("utf-8", "replace"), "numbers.json")


_NUMBERS = {"schema": NUMBERING, "recordings": {"u": "1_7"}, "activities": {"tea": 1}, "persons": {"p": 1}}
_NUMBERS |= {"environments": {"k": 1}, "steps": {"Boil": 3}}
_ABOUT = b'title = "Tea"\nlicence = "CC-BY-4.0"\ncreators = ["A"]\npublished = 2026-11-24\n[rai]\n'


@parser("the description of a data set", BadAbout, seeds=lambda: [_ABOUT])
def about_data_set(content: bytes) -> None:
    parse_about(content.decode("utf-8", "replace"), "about.toml")


_ID = "01890a5d-ac96-774b-bcce-b302099a8057"
_CLOCK = {
    "touch_ms": 5.0,
    "sent_ms": 1.0,
    "received_ms": 2.0,
    "host_ns": 10**12,
    "clock_id": "b",
    "signature": "s",
}
_BODIES: dict[str, dict[str, Any]] = {
    "plan_error": {"error_id": _ID, "fields": {"node": 1, "categories": [2], "text": "a"}, "hint": "x"},
    "start": {"node": 1, "shown": "Boil"}, "done": {"node": 1}, "consent": {"version": "1", "scopes": ["annotate"]},
    "error": {"error_id": _ID, "fields": {"node": 1, "at": 5}}, "undo": {"op_id": _ID}, "mark": {"text": "a"},
    "timer": {"node": 1, "seconds": 60}, "voice": {"sha256": "0" * 64, "media_type": "audio/webm"}, "finish": {},
}  # fmt: skip


def _operations() -> list[bytes]:
    whole = {"op_id": _ID, "seq": 1, "recording": _ID, "actor": "Basil", "seen": 3, "clock": _CLOCK}
    return _in_json(*({**whole, "kind": kind, "body": body} for kind, body in _BODIES.items()))


@parser("operations of a tablet", BadOperation, ValidationError, BadJson, seeds=_operations)
def operation(content: bytes) -> None:
    found = parse_json(content)
    try:
        read = Operation.model_validate(found)
    except ValidationError:
        Misfit.model_validate(found).refuse()
    assert read.kind in KINDS
    checked_body(read)


def _dumps() -> list[bytes]:
    sound = {"sha256": "0" * 64, "recording": _ID, "media_type": "audio/webm", "base64": "AAAA"}
    touch = {"wall_ms": 5.0}
    waiting = [
        {"operation": {**json.loads(one), "clock": None}, "touch": touch, "clock": _CLOCK}
        for one in _operations()
    ]
    for entry in waiting:
        del entry["operation"]["clock"]  # type: ignore[attr-defined]
    content = {"site": "s", "device": "d", "made_ms": 5, "waiting": waiting, "refused": [], "sounds": [sound]}
    return [json.dumps(content).encode()]


def _as_dump(content: bytes) -> bytes:
    text = content.decode("utf-8", "replace")
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({"schema": "tablet-dump/1", "sha256": sha256, "content": text}).encode()


@parser("dumps of a tablet", BadOperation, seeds=lambda: [*_dumps(), *map(_as_dump, _dumps())], seal=_as_dump)
def tablet_dump(content: bytes) -> None:
    read_dump(content.decode("utf-8", "replace"), "dump")


def _backups() -> list[bytes]:
    import io
    import zipfile

    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(backup.DUMP, b'{"table": "op", "row": {}}\n')
        facts = {"bytes": 27, "sha256": hashlib.sha256(b'{"table": "op", "row": {}}\n').hexdigest()}
        archive.writestr(
            backup.MANIFEST, json.dumps({"schema": backup.SCHEMA, "files": {backup.DUMP: facts}})
        )
    return [held.getvalue()]


@parser("backups of the app", BadSetup, seeds=_backups)
def app_backup(content: bytes) -> None:
    path = written(content, "app.backup")
    with backup.opened(path) as found:
        found.prove(backup.DUMP, lambda _: None)
