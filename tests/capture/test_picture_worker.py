"""The newest frame of a running recording is read from the queue without affecting the drainers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from numbered_pictures import number_in
from numbered_recording import PV_S, write_numbered

from kitchensync.capture.monitor.picture_worker import NewestPictures
from kitchensync.capture.queue.queue_reader import QueueReader
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.sensors.hololens.streams import pv
from kitchensync.sensors.hololens.video import is_key_frame
from kitchensync.storage.events import EventLog
from kitchensync.storage.recording import open_recording

pytestmark = pytest.mark.slow

PV = "hololens/pv"


@pytest.fixture
def unsealed(tmp_path, plan) -> tuple[Path, list[QueuedPacket]]:
    """Make a recording without its newest video chunk; return its folder and the packets of that chunk."""
    write_numbered(tmp_path)
    path = tmp_path / "take1"
    work = tmp_path / ".kitchensync" / "take1"
    work.mkdir(parents=True)
    replace(plan, recording="take1", path=str(path), work=str(work)).save(work / "plan.json")
    with open_recording(path) as opened:
        stream = opened.newest(PV)
        packets = [
            QueuedPacket(int(row["seq"]), int(row["device_ticks"]), int(row["host_ns"]), 1,
                         stream.payload(number) + stream.pose(number).tobytes(), 64)
            for number, row in enumerate(stream.index)
        ]  # fmt: skip
    sorted((path / PV).glob("*.h5"))[-1].unlink()
    return path, packets


@pytest.fixture
def take(unsealed, plan, client) -> tuple[Path, list[int]]:
    """Make a recording whose newest frames are still queued; return its folder and their arrival times."""
    path, packets = unsealed
    assert QueueWriter(client, plan.uuid, PV, 7).put(packets, lambda: False) == len(packets)
    return path, [packet.host_ns for packet in packets]


def numbers(pictures: NewestPictures) -> list[tuple[int, int]]:
    """Return the arrival time and the number shown in each new frame."""
    shown = []
    for _, host_ns, jpeg in pictures.new_frames({PV}):
        grey = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_GRAYSCALE)
        shown.append((host_ns, number_in(cv2.resize(grey, (640, 360)))))
    return shown


@pytest.mark.promise("Live pictures come from the queue, and nothing of a privacy pause")
def test_the_newest_frame_is_shown_before_it_is_sealed_and_stays_in_the_queue(take, plan, client):
    path, arrivals = take
    pictures = NewestPictures(path)
    assert numbers(pictures) == [(arrivals[-1], len(PV_S) - 1)]
    assert numbers(pictures) == [], "nothing newer"
    drained = QueueReader(client, plan.uuid, [PV], "drainer-0").fresh(count=1000, block_ms=100)[PV]
    assert [packet.host_ns for packet in drained] == arrivals
    assert numbers(NewestPictures(path)) == [(arrivals[-1], len(PV_S) - 1)], (
        "read by the drainer, but not sealed yet"
    )


def test_frames_are_decoded_live_although_their_key_frame_is_sealed(unsealed, plan, client):
    path, packets = unsealed
    first = len(PV_S) - len(packets)
    pictures, writer = NewestPictures(path), QueueWriter(client, plan.uuid, PV, 7)
    reader = QueueReader(client, plan.uuid, [PV], "drainer-0")
    reader.unfinished()
    images = [pv.cut(bytes(packet.body[: -packet.pose_bytes])).image for packet in packets]
    key = next(row for row, image in enumerate(images) if is_key_frame("h264", image))
    for begin, end in ((0, key + 1), (key + 1, key + 4), (key + 4, key + 5)):
        assert writer.put(packets[begin:end], lambda: False) == end - begin
        assert numbers(pictures) == [(packets[end - 1].host_ns, first + end - 1)]
        reader.acknowledge(PV, reader.fresh(count=1000, block_ms=None)[PV], None)
        assert numbers(pictures) == [], "nothing newer"
    assert numbers(NewestPictures(path))[0][1] == first - 1, "a new reader begins at a key frame"


@pytest.mark.promise("Live pictures come from the queue, and nothing of a privacy pause")
def test_nothing_of_a_privacy_pause_is_visible_in_the_queue(take):
    path, arrivals = take
    EventLog(path, "tablet").append("pause", host_ns=arrivals[0], uncertainty_ns=0, body={})
    assert numbers(NewestPictures(path)) == []


def test_without_the_queue_the_newest_sealed_frame_is_shown(take, server):
    path, arrivals = take
    server.stop()
    ((host_ns, number),) = numbers(NewestPictures(path))
    assert host_ns < arrivals[0]
    assert number == len(PV_S) - 1 - len(arrivals)
