"""A gyroscope packet followed through the real modules: the page about its path names every one of them."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import numpy as np
import pytest
from follower import ROOT, Follower
from small_recordings import SECONDS, gyroscope_packets, seal_stream, write_manifest
from waiting import until

from kitchensync.capture.drain.drainer import Drainer
from kitchensync.capture.produce.receiver import Receiver
from kitchensync.capture.produce.stream_end import Streams
from kitchensync.capture.produce.stream_recorder import StreamRecorder, StreamSource
from kitchensync.capture.queue.pipe import QueuePipe
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.sensors.errors import StreamClosed
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.sensors.hololens.client import StreamClient
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.sensors.hololens.streams import inertial_samples as imu
from kitchensync.sensors.hololens.wire import join_frame
from kitchensync.storage.manifest import write_json
from kitchensync.storage.reading.inertial import inertial_clock
from kitchensync.storage.recording import open_recording
from kitchensync.storage.verify import verify
from kitchensync.sync.align.gyro import align_pair
from kitchensync.sync.fit.resample import make_track
from kitchensync.sync.recording.headset import gyroscope
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world.motion import simulated_motion

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "explanation" / "way-of-a-packet.md"
NAME = "hololens/gyroscope"
MOST = 20


def page_modules() -> list[str]:
    """Return the modules of the page's numbered list, in order."""
    text = PAGE.read_text(encoding="utf-8").partition("## A gyroscope packet, module by module")[2]
    return re.findall(r"^\d+\. `([\w/]+\.py)`", text.partition("\n## ")[0], re.MULTILINE)


class Pair(StreamSource):
    """The recorder's side of a socket whose peer is this test."""

    def __init__(self, receiver: Receiver) -> None:
        self.stream = headset_stream("gyroscope")
        self.pose_bytes = self.stream.pose_bytes
        self._receiver, self._client = receiver, StreamClient(self.stream, "pair", b"")
        self._client._sock, self.device = socket.socketpair()

    def receive(self, recorder: StreamRecorder) -> None:
        try:
            self._receiver.receive(self._client, recorder)
        except StreamClosed:
            recorder.stop()
        finally:
            self._client.close()


@pytest.fixture
def samples() -> np.ndarray:
    imu_samples = np.zeros(315, imu.SAMPLE)
    imu_samples["vinyl_ns"] = np.arange(315) * 147_000
    imu_samples["soc_ticks"], imu_samples["xyz"] = 1_000_000, np.random.default_rng(5).normal(size=(315, 3))
    return imu_samples


@pytest.mark.slow
def test_every_module_that_holds_the_packet_is_on_the_page(server, client, plan, samples):
    stream = headset_stream("gyroscope")
    described = {"device": "hololens", "nominal_hz": 21.0, "format": stream.describe(Profile())}
    manifest = {
        "schema": "recording/1", "recording": "take", "uuid": plan.uuid, "state": "complete", "files": {},
        "devices": {"hololens": {"kind": "hololens"}}, "streams": {NAME: described},
    }  # fmt: skip
    write_json(Path(plan.path) / "recording.json", manifest)
    payload = imu.encode_samples(samples)
    frame = join_frame(1_000_000, payload, bytes(64))
    with Follower(payload) as follower:
        pipe = QueuePipe(client)
        receiver = Receiver(pipe)
        source = Pair(receiver)
        ledger = type("Ledger", (), {"note": lambda *_, **__: None})()
        recorder = StreamRecorder(
            NAME, source, QueueWriter(client, plan.uuid, NAME, 7, pipe=pipe), ledger, Streams()
        )
        receiver.start()
        recorder.start()
        source.device.sendall(frame)
        until(lambda: recorder.state.received == 1, "the packet")
        source.device.close()
        recorder._thread.join(60)
        receiver.stop()
        receiver.join(60)
        drainer = Drainer(plan, 0)
        drainer.end()
        drainer.run()
        answer = verify(Path(plan.path))
    assert answer["streams"][NAME]["stored"] == 1
    assert follower.modules == page_modules()[:14], "in this order"


def test_every_module_that_holds_its_samples_is_on_the_page(tmp_path):
    motion = simulated_motion(5)
    kitchen = Kitchen(5, motion, Truth(tmp_path / "truth", 5))
    rows = gyroscope_packets(kitchen, np.random.default_rng(5))
    seal_stream(tmp_path / "take", NAME, rows)
    write_manifest(tmp_path / "take", {NAME: {}}, {"hololens": "hololens"})
    camera_s = np.arange(1.0, SECONDS - 1.0, 1 / 200)
    camera = make_track("camera", camera_s, motion.angular_velocity(camera_s))
    with open_recording(tmp_path / "take") as recording, Follower(rows[300][1]) as follower:
        stream = recording[NAME]
        clock = inertial_clock(stream)
        alignment = align_pair(gyroscope(stream, clock), camera)
    assert alignment.verdict.status == "aligned"
    before, names = page_modules()[:14], page_modules()
    assert [module for module in follower.modules if module not in before] == names[14:17], "in this order"
    last = ("align/gyro.py", "report/alignment.py", "report/page.py")
    assert names[17:] == [f"kitchensync/sync/{name}" for name in last]


def test_the_page_names_every_module_in_a_short_list():
    modules = page_modules()
    assert 0 < len(modules) <= MOST
    assert len(set(modules)) == len(modules)
    assert [module for module in modules if not (ROOT / module).is_file()] == []
