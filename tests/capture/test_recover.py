"""Taking up what a killed recorder left, wherever it lies now and whatever is missing of it."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from processes import wait_until_synced

from kitchensync.capture.plan import HeadsetPlan, Plan, load_plan
from kitchensync.capture.queue.queue_connection import connect
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.server import QueueServer
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.capture.session.recover import orphan_in, recover, recover_all, work_folders
from kitchensync.storage.manifest import edit_manifest, read_manifest, write_json
from kitchensync.storage.names import LOGS, MANIFEST, WORK
from kitchensync.storage.verify import verify

pytestmark = pytest.mark.slow

STREAM = "hololens/gyroscope"
COUNT = 100


def put(server: QueueServer, plan: Plan) -> None:
    with connect(server.url) as client:
        writer = QueueWriter(client, plan.uuid, STREAM, 7)
        packets = [QueuedPacket(n, n * 100, n * 10_000, 1, b"%06d" % n, 0) for n in range(COUNT)]
        assert writer.put(packets, lambda: True) == COUNT
        writer.close()
        wait_until_synced(client)


@pytest.fixture
def data(tmp_path, short_folder, monkeypatch) -> Path:
    """A folder with one recording whose recorder, queue server and all, was killed; its queue is full."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_folder))
    data = tmp_path / "data"
    work, recording = data / WORK / "take", data / "take"
    work.mkdir(parents=True)
    (recording / LOGS).mkdir(parents=True)
    runtime = short_folder / "r"
    runtime.mkdir()
    plan = Plan(
        recording="take",
        uuid="u-1",
        path=str(recording),
        work=str(work),
        runtime=str(runtime),
        queue_url=f"unix://{runtime}/queue",
        headsets=[HeadsetPlan("hololens", "127.0.0.1", ["gyroscope"], {})],
        drainers=1,
        supervisor_pid=os.getpid(),
    )
    plan.save(work / "plan.json")
    manifest = {
        "schema": "recording/1",
        "recording": "take",
        "state": "recording",
        "devices": {},
        "files": {},
    }
    write_json(recording / MANIFEST, manifest | {"streams": {STREAM: {}}, "started": None, "stopped": None})
    server = QueueServer(work, runtime / "queue")
    server.start()
    put(server, plan)
    server.process.kill()
    server.process.wait()
    return data


def recovered(data: Path) -> list[str]:
    """Recover everything; return the names of what is whole again."""
    done = recover_all(data)
    assert done.left == []
    return [path.name for path in done.paths]


def stored(recording: Path) -> int:
    return verify(recording)["streams"][STREAM]["stored"]


def test_a_disk_that_is_mounted_under_another_name_is_recovered_where_it_is(data):
    elsewhere = data.with_name("elsewhere")
    data.rename(elsewhere)
    assert recovered(elsewhere) == ["take"]
    assert stored(elsewhere / "take") == COUNT
    assert not (elsewhere / WORK).exists()
    assert not data.exists()


def test_a_queue_whose_files_are_gone_is_closed_with_what_is_sealed(data):
    """On a full disk the queue's files are given up; a recorder that is killed then must not block the next."""
    shutil.rmtree(data / WORK / "take" / "appendonlydir")
    assert recovered(data) == ["take"]
    assert read_manifest(data / "take")["state"] == "complete"
    assert recovered(data) == []


def test_a_queue_is_kept_as_long_as_nobody_can_read_the_manifest(data):
    kept = (data / "take" / MANIFEST).read_bytes()
    (data / "take" / MANIFEST).write_bytes(kept[:-5])
    (line,) = recover_all(data).left
    assert "recording.json cannot be read" in line
    assert (data / WORK / "take" / "appendonlydir").is_dir()
    (data / "take" / MANIFEST).write_bytes(kept)
    assert recovered(data) == ["take"]
    assert stored(data / "take") == COUNT


def test_who_comes_second_finds_it_done(data):
    (work,) = work_folders(data)
    plan = orphan_in(work)
    recover(work, plan)
    recover(work, plan)
    assert stored(data / "take") == COUNT


def test_what_a_closed_recording_left_on_a_server_of_yours_is_taken_off_it(data, server, client):
    plan_file = data / WORK / "take" / "plan.json"
    plan = replace(load_plan(plan_file), queue_url=server.url)
    plan.save(plan_file)
    put(server, plan)
    with edit_manifest(data / "take") as manifest:
        manifest["state"] = "complete"
    assert client.dbsize() == 1
    assert recovered(data) == ["take"]
    assert client.dbsize() == 0


def test_a_server_of_yours_that_is_gone_is_named_without_its_password(data, monkeypatch):
    monkeypatch.setattr("kitchensync.capture.session.recover.RUNNING_READY_S", 0.1)
    plan_file = data / WORK / "take" / "plan.json"
    replace(load_plan(plan_file), queue_url="redis://cook:secret@127.0.0.1:1/0").save(plan_file)
    (line,) = recover_all(data).left
    assert "redis://127.0.0.1:1/0" in line
    assert "secret" not in line
    assert plan_file.exists()
