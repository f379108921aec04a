"""A stream that cannot be stored is set aside: the others are stored, its packets stay queued, none is lost."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from drained import stored
from killed import QUEUED, leave_an_orphan, put
from processes import in_small_disk
from queue_contents import numbers_in_queue

from kitchensync.capture.drain import drainer as drainer_module
from kitchensync.capture.drain.drainer import Drainer
from kitchensync.capture.plan import load_plan
from kitchensync.capture.process.health import HealthBoard
from kitchensync.capture.process.outcome import Outcome
from kitchensync.capture.queue.queue_connection import connect
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.server import QueueServer
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.capture.session.alarms import StorageTrouble
from kitchensync.capture.session.closing import close_recording
from kitchensync.capture.session.recover import holds_packets, orphan_in, recover_all
from kitchensync.storage.chunks.chunk_writer import prepare_folder
from kitchensync.storage.manifest import read_manifest, write_json
from kitchensync.storage.names import MANIFEST, WORK, stream_key
from kitchensync.storage.verify import verify

GOOD, BAD = "hololens/gyroscope", "hololens/pv"


def drain(plan) -> dict[str, str]:
    """Run a drainer to its end; return the streams that it set aside."""
    drainer = Drainer(plan, 0)
    states: list[dict] = []
    drainer._health.send = lambda **state: states.append(state)
    drainer.end()
    drainer.run()
    assert states[-1]["done"]
    assert GOOD in states[-1]["streams"]
    return states[-1]["aside"]


def cannot_seal(monkeypatch) -> None:
    real = drainer_module.seal

    def seal(folder, number, packets, attributes, *rest, **options):
        if attributes["stream"] == BAD:
            raise ZeroDivisionError("planted")
        return real(folder, number, packets, attributes, *rest, **options)

    monkeypatch.setattr(drainer_module, "seal", seal)


@pytest.fixture
def queued(server, plan):
    """Return the plan of two streams whose packets are all in the queue."""
    write_json(
        Path(plan.path) / MANIFEST,
        {
            "schema": "recording/1",
            "recording": "take",
            "uuid": plan.uuid,
            "state": "recording",
            "devices": {},
            "files": {},
            "streams": {GOOD: {}, BAD: {}},
            "started": None,
            "stopped": None,
        },
    )
    for stream in (GOOD, BAD):
        put(server, plan, stream)
    return plan


def test_a_stream_that_cannot_be_sealed_leaves_the_others_alone(queued, client, monkeypatch):
    with monkeypatch.context() as patch:
        cannot_seal(patch)
        assert drain(queued) == {BAD: "ZeroDivisionError: planted"}
    assert stored(Path(queued.path), GOOD) == list(range(QUEUED))
    assert numbers_in_queue(client, queued.uuid, BAD) == list(range(QUEUED))
    assert drain(queued) == {}
    assert stored(Path(queued.path), BAD) == list(range(QUEUED))


def test_a_last_chunk_that_does_not_open_leaves_the_others_alone(queued, client):
    damaged = prepare_folder(Path(queued.path), BAD) / "000001.h5"
    damaged.write_bytes(b"no HDF5")
    assert BAD in drain(queued)
    assert stored(Path(queued.path), GOOD) == list(range(QUEUED))
    assert numbers_in_queue(client, queued.uuid, BAD) == list(range(QUEUED))
    assert damaged.read_bytes() == b"no HDF5"


def test_a_foreign_entry_does_not_affect_other_streams(queued, client):
    client.xadd(stream_key(queued.uuid, BAD), {"strange": "1"}, id="9-1000")
    assert BAD in drain(queued)
    assert stored(Path(queued.path), GOOD) == list(range(QUEUED))
    assert client.xrevrange(stream_key(queued.uuid, BAD), count=1)[0][0] == b"9-1000"


@pytest.mark.slow
def test_on_an_external_server_keys_stay_until_they_are_stored(queued, client, monkeypatch, short_folder):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_folder))
    recording = Path(queued.path)
    queued = replace(queued, runtime=str(short_folder / "gone"), work=str(recording.parent / WORK / "take"))
    Path(queued.work).mkdir(parents=True)
    queued.save(Path(queued.work) / "plan.json")
    with monkeypatch.context() as patch:
        cannot_seal(patch)
        aside = drain(queued)
    (waiting,) = close_recording(queued, Outcome(reason="time", aside=aside), None)
    assert (waiting.stream, waiting.packets, waiting.why) == (BAD, QUEUED, "ZeroDivisionError: planted")
    manifest = read_manifest(recording)
    assert (manifest["state"], manifest["declared_losses"]) == ("recording", [])
    assert verify(recording)["status"] == "FAIL"
    assert holds_packets(queued, None)
    done = recover_all(recording.parent)
    assert done.failures == []
    assert stored(recording, BAD) == list(range(QUEUED))
    assert client.dbsize() == 0
    manifest = read_manifest(recording)
    assert (manifest["state"], manifest["stopped"]["reason"]) == ("complete", "time")
    assert any("waited in the queue" in problem for problem in manifest["problems"])
    assert "waiting" not in manifest


@pytest.mark.slow
def test_a_failed_recovery_does_not_stop_the_others(tmp_path, short_folder, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_folder))
    data = tmp_path / "data"
    for name in ("broken", "fine", "lost"):
        leave_an_orphan(data, short_folder, name)
    (data / WORK / "broken" / "plan.json").write_text("{")
    (data / "lost").rename(tmp_path / "elsewhere")
    done = recover_all(data)
    assert done.paths == [data / "fine"]
    broken, lost = done.failures
    assert str(data / WORK / "broken") in broken
    assert str(data / WORK / "lost") in lost
    assert (data / WORK / "lost" / "appendonlydir").is_dir()
    (data / "kitchen 2").mkdir()
    (tmp_path / "elsewhere").rename(data / "kitchen 2" / "found")
    assert recover_all(data).paths == [data / "kitchen 2" / "found"]
    assert stored(data / "kitchen 2" / "found", GOOD) == list(range(QUEUED))
    assert not (data / WORK / "lost").exists()


def test_a_new_recording_of_the_same_name_is_not_mistaken_for_the_lost_one(
    tmp_path, short_folder, monkeypatch
):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_folder))
    data = tmp_path / "data"
    leave_an_orphan(data, short_folder)
    (data / "take").rename(data / "first")
    shutil.copytree(data / "first", data / "take")
    write_json(data / "take" / MANIFEST, read_manifest(data / "first") | {"uuid": "another"})
    plan = orphan_in(data / WORK / "take")
    assert plan is not None
    assert plan.path == str(data / "first")
    assert load_plan(data / WORK / "take" / "plan.json").path == str(data / "take")


def test_released_queue_files_are_written_again_if_there_is_room(server, plan, client):
    server.give_up_persistence()
    put_without_file(server, plan)
    assert server.keep_files()
    server.stop()
    assert holds_packets(plan, QueueServer(server.folder, server.socket))


def put_without_file(server, plan) -> None:
    with connect(server.url) as client:
        writer = QueueWriter(client, plan.uuid, GOOD, 7)
        packets = [QueuedPacket(n, n, n, 1, b"%06d" % n, 0) for n in range(QUEUED)]
        assert writer.put(packets, lambda: True) == QUEUED
        writer.pipe.close()


NO_ROOM = """
from pathlib import Path
from kitchensync.capture.queue.queue_connection import connect
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.capture.queue.server import QueueServer

disk = Path({disk!r})
(disk / "work").mkdir()
server = QueueServer(disk / "work", Path({short!r}) / "q")
server.start()
try:
    server.give_up_persistence()
    with connect(server.url) as client:
        writer = QueueWriter(client, "u", "hololens/pv", 7)
        assert writer.put([QueuedPacket(n, n, n, 1, bytes(1 << 20), 0) for n in range(30)], lambda: True) == 30
        writer.pipe.close()
    print("kept", server.keep_files())
finally:
    server.stop()
"""


@pytest.mark.slow
def test_queue_files_without_room_are_not_reported_as_kept(tmp_path, short_folder):
    script = tmp_path / "no_room.py"
    script.write_text(NO_ROOM.format(disk=str(tmp_path / "disk"), short=str(short_folder)))
    done = in_small_disk(tmp_path, f"{sys.executable} {script}", megabytes=16)
    assert done.stdout == "kept False\n", done.stderr


@pytest.fixture
def trouble(server, plan) -> Iterator[StorageTrouble]:
    """Return the trouble state of a plan's supervisor."""
    board = HealthBoard(plan.health)
    yield StorageTrouble(plan, board)
    board.close()


def test_a_queue_filled_by_waiting_packets_ends_the_recording(trouble, client, plan, server):
    client.config_set("maxmemory", int(client.info("memory")["used_memory"] * 1.1))
    assert not trouble.fills_queue(), "packets are being stored: producers wait as usual"
    trouble._board.states["drainer 0"] = {"aside": {BAD: "planted"}}
    assert trouble.fills_queue()
    assert any(BAD in line and "planted" in line for line in trouble.problems())


def test_a_folder_that_was_put_back_is_no_longer_a_problem(trouble, plan):
    recording = Path(plan.path)
    (recording / MANIFEST).write_text("{}")
    trouble.update()
    recording.rename(recording.with_name("away"))
    trouble.update()
    assert trouble.is_gone
    assert any("is gone" in line for line in trouble.problems())
    recording.with_name("away").rename(recording)
    trouble.update()
    assert (trouble.problems(), trouble.hopeless_s()) == ([], 0.0)
