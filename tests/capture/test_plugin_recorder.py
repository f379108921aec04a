"""Streams of a plug-in sensor that end: all together is an end, one alone is a fault."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from waiting import until

from kitchensync.capture.produce import stream_end
from kitchensync.capture.produce.plugin_device import PluginSource
from kitchensync.capture.produce.stream_end import Streams
from kitchensync.capture.produce.stream_recorder import StreamRecorder
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.sensors.plugin import SensorPacket, SensorStream
from kitchensync.storage.ledger import BY_DEVICE, LOST, STOPPED, EndNote, Note


class Notes:
    """A ledger in memory."""

    def __init__(self) -> None:
        self.ends: dict[str, dict[str, Any]] = {}

    def note(self, note: Note, stream: str, give_up: Callable[[], bool] | None = None) -> None:
        if isinstance(note, EndNote):
            self.ends[stream] = note.facts()


class Device:
    """A device with two streams that end on command."""

    def __init__(self) -> None:
        self.over = {"left": threading.Event(), "right": threading.Event()}
        self.is_gone = False

    def packets(self, stream: str) -> Iterator[SensorPacket]:
        while not self.over[stream].wait(0.02):
            yield SensorPacket(time.monotonic_ns() // 100, b"x")

    def ask(self) -> list[Any]:
        if self.is_gone:
            raise OSError("no route")
        return []


@pytest.fixture
def take(server, client):
    device, notes, together = Device(), Notes(), Streams()
    recorders = {
        name: StreamRecorder(
            name,
            PluginSource(SensorStream(name, nominal_hz=50), device, device.ask),
            QueueWriter(client, "u", name, 7),
            notes,
            together,
        )
        for name in device.over
    }
    for recorder in recorders.values():
        recorder.start()
    until(lambda: all(recorder.state.received > 5 for recorder in recorders.values()), "packets of both")
    yield device, recorders, notes
    for name, recorder in recorders.items():
        recorder.stop()
        device.over[name].set()
    until(lambda: not any(recorder.is_alive() for recorder in recorders.values()), "the end of both")


def test_a_device_that_ends_all_its_streams_has_ended_them(take):
    device, recorders, notes = take
    for over in device.over.values():
        over.set()
    until(lambda: not any(recorder.is_alive() for recorder in recorders.values()), "the end of both")
    assert [end["reason"] for end in notes.ends.values()] == [BY_DEVICE, BY_DEVICE]


@pytest.mark.slow
def test_a_stream_that_ends_alone_is_retried_and_lost_until_the_other_ends(take, monkeypatch):
    monkeypatch.setattr(stream_end, "OUTLIVED_NS", 10**9)
    device, recorders, notes = take
    device.over["left"].set()
    until(lambda: "go on" in recorders["left"].state.fault, "an outlived stream")
    assert recorders["left"].is_alive()
    device.over["left"].clear()  # it comes back
    before = recorders["left"].state.received
    until(lambda: recorders["left"].state.received > before, "packets again")
    until(lambda: recorders["left"].state.fault == "", "the end of the fault")
    device.over["left"].set()
    until(lambda: "go on" in recorders["left"].state.fault, "an outlived stream")
    device.over["right"].set()
    until(lambda: not any(recorder.is_alive() for recorder in recorders.values()), "the end of both")
    assert {name: end["reason"] for name, end in notes.ends.items()} == {"left": LOST, "right": BY_DEVICE}
    assert notes.ends["left"]["cause"] == "reconnect"


def test_a_device_that_stops_answering_has_not_ended_its_streams(take):
    device, recorders, notes = take
    device.is_gone = True
    for over in device.over.values():
        over.set()
    until(
        lambda: all("does not answer" in recorder.state.fault for recorder in recorders.values()),
        "both faults",
    )
    for recorder in recorders.values():
        recorder.stop()
    until(lambda: not any(recorder.is_alive() for recorder in recorders.values()), "the end of both")
    assert [end["reason"] for end in notes.ends.values()] == [LOST, LOST]


def test_running_streams_that_are_stopped_have_lost_nothing(take):
    _, recorders, notes = take
    for recorder in recorders.values():
        recorder.stop()
    until(lambda: not any(recorder.is_alive() for recorder in recorders.values()), "the end of both")
    assert [end["reason"] for end in notes.ends.values()] == [STOPPED, STOPPED]
