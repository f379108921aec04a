"""The end of a recording, when drainers empty the queue: with a dying queue server and a hanging drainer."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cameras import virtual_camera
from drained import stored
from processes import wait_until_synced
from queue_contents import numbers_in_queue
from waiting import until

from kitchensync.capture.camera import camera_recorder as camera_clip
from kitchensync.capture.camera.camera_recorder import CameraRecorder
from kitchensync.capture.process import supervised_process as worker_module
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.capture.session import supervisor as supervisor_module
from kitchensync.capture.session.child_processes import DrainProgress
from kitchensync.capture.session.closing import close_recording
from kitchensync.capture.session.control import ask
from kitchensync.capture.session.supervisor import DRAIN_LIMIT_S, Supervisor
from kitchensync.storage.manifest import read_manifest, write_json
from kitchensync.storage.names import LOGS, MANIFEST

pytestmark = pytest.mark.slow

STREAM = "hololens/gyroscope"
PV = "hololens/pv"
COUNT = 1000
MANIFEST_OF_BOTH = {
    "schema": "recording/1",
    "recording": "take",
    "state": "recording",
    "files": {},
    "devices": {},
    "streams": {STREAM: {}, PV: {}},
}


@pytest.fixture
def ending(server, client, plan) -> Iterator[Supervisor]:
    """Return a supervisor that drains the queue."""
    writer = QueueWriter(client, plan.uuid, STREAM, 7)
    assert writer.put([QueuedPacket(n, n, n, 1, b"%06d" % n, 0) for n in range(COUNT)], lambda: True) == COUNT
    writer.pipe.close()
    wait_until_synced(client)
    plan.save(Path(plan.work) / "plan.json")
    (Path(plan.path) / LOGS).mkdir()
    supervisor = Supervisor(plan, server, [])
    yield supervisor
    supervisor.close()


CRASH = """
import os
import kitchensync.storage.chunks.chunk_writer
lay_out = kitchensync.storage.chunks.chunk_writer.layout_image

def crash(packets, attributes, *rest, **options):
    if attributes["stream"] == "hololens/gyroscope":
        os._exit(9)
    return lay_out(packets, attributes, *rest, **options)

kitchensync.storage.chunks.chunk_writer.layout_image = crash
"""
"""A fault below Python: no exception tells of it."""


def test_a_drainer_that_keeps_dying_does_not_keep_the_others_from_ending(
    ending, client, plan, monkeypatch, tmp_path
):
    monkeypatch.setattr(worker_module, "MAX_DEATHS", 1)
    monkeypatch.setattr(
        worker_module, "DEATHS_WINDOW_S", 3600.0
    )  # starting two takes long on a busy computer
    (tmp_path / "sitecustomize.py").write_text(CRASH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    two = replace(plan, drainers=2)
    assert STREAM in two.share(0)
    assert PV in two.share(1)
    writer = QueueWriter(client, plan.uuid, PV, 7)
    assert writer.put([QueuedPacket(n, n, n, 1, b"%06d" % n, 0) for n in range(COUNT)], lambda: True) == COUNT
    writer.pipe.close()
    write_json(Path(plan.path) / MANIFEST, MANIFEST_OF_BOTH)
    ending.close()
    two.save(Path(plan.work) / "plan.json")
    supervisor = Supervisor(two, ending.server, [])
    supervisor.drain()
    (waiting,) = close_recording(two, supervisor.outcome, ending.server)
    supervisor.close()
    assert (waiting.stream, waiting.packets) == (STREAM, COUNT)
    assert any("drainer 0 died" in problem for problem in supervisor.outcome.problems)
    assert stored(plan.path, PV) == list(range(COUNT))
    manifest = read_manifest(Path(plan.path))
    assert (manifest["state"], manifest["declared_losses"]) == ("recording", [])
    assert numbers_in_queue(client, plan.uuid, STREAM) == list(range(COUNT))


def test_a_queue_server_that_dies_at_the_end_is_started_again(ending, server, plan):
    server.process.kill()
    server.process.wait()
    ending.drain()
    assert stored(plan.path, STREAM) == list(range(COUNT))
    assert [restart["process"] for restart in ending.outcome.restarts] == ["queue server"]
    assert not [text for text in ending.outcome.problems if "not everything" in text]


def test_a_recovery_does_not_wait_for_producers_it_never_started(ending):
    assert ending.children.producers
    assert ending.children.busy_producers() == []


def test_a_hanging_drainer_is_replaced_and_requests_are_answered(ending, plan, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(supervisor_module, "DrainProgress", lambda: DrainProgress(lambda: now[0]))
    (drainer,) = ending.children.drainers
    begin = drainer.start_to_end

    def begin_and_hang() -> None:
        begin()
        os.kill(drainer.process.pid, signal.SIGSTOP)

    monkeypatch.setattr(drainer, "start_to_end", begin_and_hang)
    answers = []

    def operator() -> None:
        until(lambda: ending.waiting, "the end of the recording")
        answers.append(ask(Path(plan.runtime) / "control", "state", limit_ms=60_000))
        now[0] += 0.6 * DRAIN_LIMIT_S

    asking = threading.Thread(target=operator)
    asking.start()
    ending.drain()
    asking.join()
    assert stored(plan.path, STREAM) == list(range(COUNT))
    assert [restart["exit"] for restart in ending.outcome.restarts] == [-9]
    assert [answer and answer["phase"] for answer in answers] == ["stopping"]


def test_an_error_at_the_end_of_a_recording_still_closes_the_shutters(server, plan, tmp_path, monkeypatch):
    """For example the queue server cannot be restarted; the camera would record until its card is full."""
    monkeypatch.setattr(camera_clip, "measure_clock", lambda camera: None)
    monkeypatch.setattr(supervisor_module, "KILL_AFTER_S", 60.0)
    (Path(plan.path) / LOGS).mkdir()
    with virtual_camera(tmp_path / "sim") as (_, url):
        take = CameraRecorder("gopro", url, Path(plan.path) / "gopro")
        take.prepare()
        supervisor = Supervisor(plan, server, [take])
        take.start()
        until(lambda: take.state.state == "recording", "the open shutter")
        supervisor._kill_all()
        shutter_off = take._media.get("shutter_off")
        supervisor.close()
        take.join(60)
    assert shutter_off is not None
