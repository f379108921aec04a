"""The way of a gyroscope packet, followed through the real pieces: the page that tells of it names every module."""

from __future__ import annotations

import re
import socket
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from capture.drain.drainer import Drainer
from capture.produce.receiver import Receiver
from capture.produce.stream_end import Streams
from capture.produce.stream_recorder import StreamRecorder, StreamSource
from capture.queue.stream_queue import QueuePipe, QueueWriter
from sensors.errors import StreamClosed
from sensors.hololens import imu
from sensors.hololens.catalogue import headset_stream
from sensors.hololens.client import StreamClient
from sensors.hololens.profile import Profile
from sensors.hololens.wire import join_frame
from storage.manifest import write_json
from storage.verify import verify

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "way-of-a-packet.md"
NAME = "hololens/gyroscope"
MOST = 20


def told() -> list[str]:
    """The modules of the page's numbered list, in order."""
    text = PAGE.read_text(encoding="utf-8").partition("## A gyroscope packet, module by module")[2]
    return re.findall(r"^\d+\. `([\w/]+\.py)`", text.partition("\n## ")[0], re.MULTILINE)


class Pair(StreamSource):
    """The recorder's side of a socket whose other end is here."""

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


class Follower:
    """Notes in which order modules of ours hold some bytes, in whatever they hold them."""

    def __init__(self, mark: bytes) -> None:
        self._mark, self.modules = mark, dict[str, None]()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        is_ours = event in ("call", "return") and path.startswith(f"{ROOT}/") and "/.venv/" not in path
        if is_ours and any(self._holds(value) for value in list(frame.f_locals.values())):
            self.modules.setdefault(path.removeprefix(f"{ROOT}/"))

    def _holds(self, value: Any, depth: int = 0) -> bool:
        if isinstance(value, bytes | bytearray):
            return self._mark in value
        if isinstance(value, memoryview):
            return self._mark in value.tobytes()
        if isinstance(value, np.ndarray):
            return value.dtype != object and self._mark in value.tobytes()
        return (
            isinstance(value, tuple | list)
            and depth < 3
            and any(self._holds(one, depth + 1) for one in value)
        )


@pytest.fixture
def samples() -> np.ndarray:
    found = np.zeros(315, imu.SAMPLE)
    found["vinyl_ns"] = np.arange(315) * 147_000
    found["soc_ticks"], found["xyz"] = 1_000_000, np.random.default_rng(5).normal(size=(315, 3))
    return found


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
    follower = Follower(payload[3200:3264])
    threading.setprofile(follower)
    sys.setprofile(follower)
    try:
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
        end_s = time.monotonic() + 30
        while recorder.state.received < 1:
            assert time.monotonic() < end_s
            time.sleep(0.01)
        source.device.close()
        recorder._thread.join(10)
        receiver.stop()
        receiver.join(10)
        drainer = Drainer(plan, 0)
        drainer.end()
        drainer.run()
        answer = verify(Path(plan.path))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert answer["streams"][NAME]["stored"] == 1
    passed = [module for module in follower.modules if not module.startswith("tests/")]
    assert passed == [module for module in told() if module in passed], "in this order"
    assert set(passed) <= set(told())
    assert len(passed) >= 12, "it was followed"


def test_the_way_is_short_and_every_module_is_there():
    modules = told()
    assert 0 < len(modules) <= MOST
    assert len(set(modules)) == len(modules)
    assert [module for module in modules if not (ROOT / module).is_file()] == []
