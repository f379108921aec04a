"""A lost `recording.json` is taken from a copy, or made anew from the other files; nothing is written over."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.errors import CannotRebuild, NotARecording
from kitchensync.storage.events import EventLog
from kitchensync.storage.life import Life, life_of
from kitchensync.storage.manifest import edit_manifest, read_manifest
from kitchensync.storage.move.freeing import FreeRule
from kitchensync.storage.move.mover import run_mover
from kitchensync.storage.names import MANIFEST, MEDIA
from kitchensync.storage.rebuild import rebuild
from kitchensync.storage.verify import verify

pytestmark = pytest.mark.slow

BEGAN = {"host_ns": 4_000_000_000, "utc_ns": 1_700_000_000_000_000_000, "event": "recording begins"}
FORM = {"codec": "h264", "hz": 30, "module": "sensors.hololens.vlc_leftfront", "width": 640}
SAME = ("received", "stored", "missing", "gaps", "bytes", "sha256")


def packets(
    stream: str, uuid: str = "u-1", form: dict[str, Any] | None = None, count: int = 30
) -> dict[str, Any]:
    attributes = {"recording": uuid, "stream": stream} | ({"format": json.dumps(form)} if form else {})
    rows = [
        Packet(n, 1, 333_333 * n, 5_000_000_000 + 33_333_300 * n, 1, b"%04d" % n, b"") for n in range(count)
    ]
    return {"packets": rows, "attributes": attributes}


def notes(*said: dict[str, Any]) -> dict[str, Any]:
    rows = [Packet(n, 1, 0, n, 1, json.dumps(note).encode(), b"") for n, note in enumerate(said)]
    return {"packets": rows, "attributes": {"recording": "u-1"}}


def put(recording: Path, stream: str, number: int = 1, **content: Any) -> Path:
    folder = recording / stream
    folder.mkdir(parents=True, exist_ok=True)
    return seal(folder, number, content["packets"], content["attributes"]).path


@pytest.fixture
def lost(tmp_path) -> Path:
    """The files of a recording: a camera's stream, one that delivered nothing, a plug-in's, ledger, clock, log."""
    recording = tmp_path / "data" / "take"
    put(recording, "hololens/vlc_leftfront", **packets("hololens/vlc_leftfront", form=FORM))
    put(recording, "scale/grams", **packets("scale/grams", form={"unit": "g"}))
    put(recording, "clock/hololens", **packets("clock/hololens", count=1))
    end = {"note": "end", "host_ns": 6_000_000_000, "received": 30}
    quiet = {"note": "end", "stream": "hololens/pv", "reason": "stopped", "host_ns": 6 * 10**9, "received": 0}
    told = [end | {"stream": s, "reason": "stopped"} for s in ("hololens/vlc_leftfront", "scale/grams")]
    put(recording, "ledger/hololens", **notes(*told, quiet))
    (recording / "logs").mkdir()
    later = {name: BEGAN[name] + 3_000_000_000 for name in ("host_ns", "utc_ns")}
    ended = BEGAN | later | {"event": "recording ends", "reason": "time"}
    lines = [json.dumps(line) for line in (BEGAN, ended)]
    (recording / "logs" / "recording.jsonl").write_text("\n".join(["torn {", *lines]) + "\n")
    (recording / "events").mkdir()
    return recording


def test_streams_devices_and_times_come_from_the_files(lost):
    done = rebuild(lost)
    manifest = read_manifest(lost)
    assert (manifest["recording"], manifest["uuid"], manifest["state"]) == ("take", "u-1", "complete")
    assert manifest["streams"] == {
        "hololens/pv": {"device": "hololens", "port": 3810, "nominal_hz": 30.0, "adaptive": False},
        "hololens/vlc_leftfront": {
            "device": "hololens", "port": 3800, "nominal_hz": 30.0, "adaptive": False, "format": FORM,
        },
        "scale/grams": {"device": "scale", "nominal_hz": 0.0, "adaptive": True, "format": {"unit": "g"}},
    }  # fmt: skip
    assert {name: device["kind"] for name, device in manifest["devices"].items()} == {
        "hololens": "hololens",
        "scale": "plugin",
    }
    offset_ns = BEGAN["utc_ns"] - BEGAN["host_ns"]
    assert manifest["started"] == {"host_ns": 4 * 10**9, "utc_ns": 4 * 10**9 + offset_ns}
    assert manifest["stopped"] == {"host_ns": 7 * 10**9, "utc_ns": 7 * 10**9 + offset_ns, "reason": "time"}
    assert done.copy is None
    assert {"participant", "place", "time zone", "recipe"} <= set(done.unknown)
    assert life_of(lost) == Life.COMPLETE


def test_a_clock_that_was_set_while_it_recorded_is_known_by_the_log(lost):
    """The last line is an hour later than the clock of the first would have it."""
    log = lost / "logs" / "recording.jsonl"
    set_ns = BEGAN["utc_ns"] + 3600 * 10**9
    sealed = BEGAN | {"host_ns": 5 * 10**9, "utc_ns": set_ns + 10**9, "event": "sealed"}
    ended = sealed | {"host_ns": 7 * 10**9, "utc_ns": set_ns + 3 * 10**9, "event": "recording ends"}
    log.write_text("".join(json.dumps(line) + "\n" for line in (BEGAN, sealed, ended)))
    rebuild(lost)
    manifest = read_manifest(lost)
    assert manifest["started"]["utc_ns"] == BEGAN["utc_ns"]
    assert manifest["stopped"]["utc_ns"] == set_ns + 3 * 10**9
    times = [(one["host_ns"], one["utc_ns"]) for one in manifest["utc_anchors"]]
    assert times == [(line["host_ns"], line["utc_ns"]) for line in (BEGAN, sealed, ended)]
    assert any("clock was set by +3600.0 s at" in reason for reason in verify(lost)["reasons"])


@pytest.mark.parametrize("before", ["", "kitchensync."])
def test_a_headset_without_clock_answers_is_known_by_the_module_of_its_streams(lost, before):
    """Under the name that recordings hold since the folders are imported as `kitchensync.<folder>`, and before."""
    for folder in ("clock", "hololens"):
        shutil.rmtree(lost / folder)
    form = FORM | {"module": f"{before}{FORM['module']}"}
    put(lost, "hololens/vlc_leftfront", **packets("hololens/vlc_leftfront", form=form))
    rebuild(lost)
    assert read_manifest(lost)["devices"]["hololens"]["kind"] == "hololens"


def test_verify_warns_and_names_what_is_unknown_and_an_armed_stream_without_packets(lost):
    rebuild(lost)
    answer = verify(lost)
    assert answer["status"] == "FAIL"
    assert any("is rebuilt from the other files; unknown: participant, place" in r for r in answer["reasons"])
    assert "hololens/pv was armed and holds no packet" in answer["reasons"]
    assert answer["streams"]["hololens/vlc_leftfront"]["stored"] == 30


def test_a_rebuilt_recording_balances_as_before(finished):
    before = verify(finished)
    (finished / MANIFEST).unlink()
    rebuild(finished)
    answer = verify(finished)
    assert (answer["status"], answer["life"]) == ("WARN", "complete")
    assert {name: {key: facts[key] for key in SAME} for name, facts in answer["streams"].items()} == {
        name: {key: facts[key] for key in SAME} for name, facts in before["streams"].items()
    }


@pytest.mark.parametrize("content", [b"", b"\0" * 300, b'{"schema": "recording/1", "rec'])
def test_what_nobody_can_read_is_kept_beside_the_new_one(lost, content):
    (lost / MANIFEST).write_bytes(content)
    rebuild(lost)
    (kept,) = lost.glob(f"{MANIFEST}.unreadable-*")
    assert kept.read_bytes() == content


def test_a_manifest_that_can_be_read_is_never_written_over(finished, tmp_path):
    before = (finished / MANIFEST).read_bytes()
    with pytest.raises(CannotRebuild, match="is whole; there is nothing to rebuild"):
        rebuild(finished)
    flipped = before.replace(b'"take"', b'"tale"')
    (finished / MANIFEST).write_bytes(flipped)
    with pytest.raises(CannotRebuild, match="is damaged: take it from a copy"):
        rebuild(finished)
    assert (finished / MANIFEST).read_bytes() == flipped
    with pytest.raises(NotARecording):
        rebuild(tmp_path)
    assert not (tmp_path / MANIFEST).exists()


def test_what_people_entered_comes_back_and_so_does_a_withdrawal(lost):
    log = EventLog(lost, "tablet")
    body = {"name": "soup", "graph_hash": "abc", "order": [2, 1], "seed": 7, "source": "own", "script": None}
    log.append("recipe", host_ns=1, uncertainty_ns=1, body=body | {"strategy": "all", "display": "text"})
    rebuild(lost)
    manifest = read_manifest(lost)
    assert manifest["recipe"] == {key: body[key] for key in ("name", "graph_hash", "order", "seed", "source")}
    assert manifest["script"] == {"strategy": "all", "display": "text", "certificate": None}
    assert "recipe" not in manifest["rebuilt"]["unknown"]
    (lost / MANIFEST).unlink()
    log.append("withdraw", host_ns=77, uncertainty_ns=1, body={})
    rebuild(lost)
    assert (read_manifest(lost)["withdrawn"], life_of(lost)) == ({"host_ns": 77}, Life.WITHDRAWN)


def test_a_damaged_file_is_named_again_by_every_verify_and_not_taken_for_sealed(lost):
    path = put(lost, "hololens/vlc_leftfront", 2, **packets("hololens/vlc_leftfront", form=FORM, count=5))
    content = bytearray(path.read_bytes())
    content[content.index(b"0003")] ^= 4
    path.write_bytes(content)
    rebuild(lost)
    relative = "hololens/vlc_leftfront/000002.h5"
    assert relative not in read_manifest(lost)["files"]
    assert [entry["file"] for entry in verify(lost)["corrupt"]] == [relative]


def test_files_of_two_recordings_are_refused(lost):
    put(lost, "hololens/gyroscope", **packets("hololens/gyroscope", uuid="u-2"))
    with pytest.raises(CannotRebuild, match="of several recordings"):
        rebuild(lost)
    assert not (lost / MANIFEST).exists()


def test_without_a_log_the_cameras_tell_the_calendar_and_without_cameras_the_files(lost):
    (lost / "logs" / "recording.jsonl").unlink()
    rebuild(lost)
    manifest = read_manifest(lost)
    assert manifest["started"]["host_ns"] == 5 * 10**9
    assert manifest["stopped"]["reason"] == "unknown"
    assert {"when it was by the calendar", "why it ended"} <= set(manifest["rebuilt"]["unknown"])
    (lost / MANIFEST).unlink()
    (lost / "gopro").mkdir()
    said = {
        "anchor": {"host_ns": 5, "utc_ns": 10**18 + 5},
        "clock": {"start": {"zone_minutes": 120}},
        "serial": "C1",
    }
    (lost / "gopro" / MEDIA).write_text(json.dumps(said))
    rebuild(lost)
    manifest = read_manifest(lost)
    assert manifest["started"] == {"host_ns": 5 * 10**9, "utc_ns": 10**18 + 5 * 10**9}
    assert manifest["zone"]["utc_offset_s"] == 7200
    assert manifest["devices"]["gopro"] == {"kind": "gopro", "serial": "C1"}


def test_a_copy_gives_the_manifest_as_it_was(finished, tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    with edit_manifest(finished) as manifest:
        manifest["place"] = "kitchen 3"
    run_mover([finished], [store], rule=None)
    before = (finished / MANIFEST).read_bytes()
    (finished / MANIFEST).unlink()
    assert rebuild(finished).copy == store / "take"
    assert (finished / MANIFEST).read_bytes() == before


def test_freed_files_tell_nothing_but_their_store_does(finished, tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    run_mover([finished], [store], rule=FreeRule(1, 0.0))
    (finished / MANIFEST).unlink()
    store.rename(tmp_path / "away")
    with pytest.raises(CannotRebuild, match=f"mount a store that has them: {store}"):
        rebuild(finished)
    (tmp_path / "away").rename(store)
    rebuild(finished)
    assert verify(finished)["status"] == "PASS"
