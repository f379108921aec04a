"""A connection closed between two packets: faults and ends of streams are distinguished."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_headset import FakeHeadset

from kitchensync.capture.produce import stream_end
from kitchensync.capture.produce.headset_device import HeadsetSource
from kitchensync.capture.produce.headset_setup import HeadsetSetup
from kitchensync.capture.produce.receiver import Receiver
from kitchensync.capture.produce.stream_end import Streams, StreamState, end_of
from kitchensync.capture.produce.stream_recorder import StreamRecorder, StreamSource
from kitchensync.capture.queue.pipe import QueuePipe
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.sensors.errors import StreamRefused, StreamUnreachable
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.storage.ledger import BY_DEVICE, LOST, STOPPED, Note
from kitchensync.storage.manifest import write_json

pytestmark = pytest.mark.slow

PORTS = {"gyroscope": 3807, "accelerometer": 3806}
SECOND = 10**9


class Notes:
    """A ledger in memory."""

    def __init__(self) -> None:
        self.notes: list[dict[str, Any]] = []

    def note(self, note: Note, stream: str, give_up: Callable[[], bool] | None = None) -> None:
        self.notes.append({"note": note.kind, "stream": stream, **note.facts()})

    def end(self, stream: str) -> dict[str, Any]:
        (end,) = [note for note in self.notes if (note["note"], note["stream"]) == ("end", stream)]
        return end


class Setup(HeadsetSetup):
    """A device without commands and constants, which the fake headset does not support."""

    def before_stream(self, stream) -> None:
        pass


@dataclass
class Clip:
    """Two streams of a fake headset recorded into a real queue."""

    headset: FakeHeadset
    ledger: Notes
    recorders: dict[str, StreamRecorder] = field(default_factory=dict)

    def state(self, name: str) -> StreamState:
        return self.recorders[name].state

    def wait(self, what: Callable[[], bool]) -> None:
        end_s = time.monotonic() + 60
        while not what():
            assert time.monotonic() < end_s, [recorder.state for recorder in self.recorders.values()]
            time.sleep(0.02)

    def wait_for_packets(self, name: str) -> None:
        before = self.state(name).received
        self.wait(lambda: self.state(name).received > before + 5)

    def stop(self) -> None:
        for recorder in self.recorders.values():
            recorder.stop()
        self.wait(lambda: not any(recorder.is_alive() for recorder in self.recorders.values()))


@pytest.fixture
def take(server, client, loopback_host, tmp_path) -> Iterator[Clip]:
    write_json(
        tmp_path / "recording.json",
        {"schema": "recording/1", "devices": {"hololens": {"kind": "hololens", "utc_offset_ticks": 5}}},
    )
    ledger, streams, pipe = Notes(), Streams(), QueuePipe(client)
    setup = Setup("hololens", loopback_host, list(PORTS), Profile(), Path(tmp_path), ledger)
    receiver = Receiver(pipe)
    made = Clip(FakeHeadset(loopback_host, PORTS), ledger)
    for name in PORTS:
        writer = QueueWriter(client, "u", name, 7, pipe=pipe)
        source = HeadsetSource(headset_stream(name), setup, receiver)
        made.recorders[name] = StreamRecorder(name, source, writer, ledger, streams)
    receiver.start()
    for recorder in made.recorders.values():
        recorder.start()
    for name in PORTS:
        made.wait_for_packets(name)
    yield made
    made.stop()
    made.headset.close()
    receiver.stop()
    receiver.join(10)
    pipe.close()


def test_streams_that_the_device_closes_while_it_still_answers_are_ended(take):
    take.headset.close(*PORTS)
    take.wait(lambda: not any(recorder.is_alive() for recorder in take.recorders.values()))
    assert [take.ledger.end(name)["reason"] for name in PORTS] == [BY_DEVICE, BY_DEVICE]
    assert [take.ledger.end(name).get("cause") for name in PORTS] == [None, None]


def test_an_unreachable_device_has_not_ended_its_streams_and_is_used_again_later(take):
    take.headset.close()
    for name in PORTS:
        take.wait(lambda name=name: "does not answer" in take.state(name).fault)
        take.wait(lambda name=name: take.state(name).state == "refused")
    assert all(recorder.is_alive() for recorder in take.recorders.values())
    assert all(take.state(name).away for name in PORTS)
    take.headset.open()
    for name in PORTS:
        take.wait_for_packets(name)
        assert (take.state(name).away, take.state(name).fault) == ("", "")
    take.stop()
    assert [take.ledger.end(name)["reason"] for name in PORTS] == [STOPPED, STOPPED]
    closings = [note for note in take.ledger.notes if note["note"] == "closed"]
    assert {(note["stream"], note["cause"]) for note in closings} == {(name, "network") for name in PORTS}


def test_a_device_that_never_comes_back_is_lost_until_the_stop(take):
    take.headset.close()
    take.wait(lambda: "does not answer" in take.state("gyroscope").fault)
    before_ns = time.monotonic_ns()
    take.stop()
    for name in PORTS:
        end = take.ledger.end(name)
        assert (end["reason"], end["cause"]) == (LOST, "network")
        assert end["closed_host_ns"] >= before_ns > take.state(name).last_host_ns


def test_a_dead_port_counts_as_lost_until_the_device_ends_the_other_stream(take, monkeypatch):
    monkeypatch.setattr(stream_end, "OUTLIVED_NS", SECOND)
    take.headset.close("gyroscope")
    take.wait(lambda: "go on" in take.state("gyroscope").fault)
    take.wait(lambda: take.state("gyroscope").state == "refused")
    assert take.recorders["gyroscope"].is_alive()
    take.headset.close("accelerometer")
    take.wait(lambda: not any(recorder.is_alive() for recorder in take.recorders.values()))
    assert take.ledger.end("accelerometer")["reason"] == BY_DEVICE
    lost = take.ledger.end("gyroscope")
    assert (lost["reason"], lost["cause"]) == (LOST, "network")
    closed_ns = take.state("accelerometer").closed_host_ns
    assert lost["closed_host_ns"] == closed_ns > take.state("gyroscope").last_host_ns + SECOND


def test_a_restarted_app_has_not_ended_its_streams(take):
    take.headset.utc_offset = 9
    take.headset.close(*PORTS)
    take.wait(lambda: all("started again" in take.state(name).fault for name in PORTS))
    take.headset.open(*PORTS)
    for name in PORTS:
        take.wait_for_packets(name)


def test_a_stop_right_after_the_device_ended_its_streams_is_not_a_loss(take):
    take.headset.close(*PORTS)
    take.wait(lambda: all(take.state(name).away for name in PORTS))
    take.stop()
    assert [take.ledger.end(name)["reason"] for name in PORTS] == [BY_DEVICE, BY_DEVICE]


def state(last_s: float, ticks_s: float, **more: Any) -> StreamState:
    return StreamState(
        last_host_ns=round(last_s * SECOND), last_ticks=round(ticks_s * 1e7), first_host_ns=1, **more
    )


@pytest.mark.parametrize(
    ("other_host_s", "other_ticks_s", "expected"),
    [
        (105.1, 1005.1, True),
        (104.9, 1004.9, False),
        (130.0, 1000.2, False),  # a slow computer: sent in time, received late
        (100.1, 1030.0, False),  # a jump of the timestamps
    ],
)
def test_outliving_a_closed_stream_needs_later_arrivals_and_later_timestamps(
    other_host_s, other_ticks_s, expected
):
    streams = Streams()
    streams.add("closed", state(100.0, 1000.0, away="network"))
    streams.add("other", state(other_host_s, other_ticks_s, state="streaming"))
    assert streams.outlived("closed", 100 * SECOND) is expected
    assert streams.others_come("closed")


def test_streams_are_over_only_if_none_comes_and_the_device_ended_one():
    streams = Streams()
    streams.add("lost", state(1, 1, away="network"))
    streams.add("ended", state(9, 9, ended=BY_DEVICE, away="network", closed_host_ns=9 * SECOND))
    streams.add("third", state(9, 9, state="streaming"))
    assert streams.over_since("lost") == 0
    streams.add("third", state(9, 9, state="refused", away="network"))
    assert streams.over_since("lost") == 9 * SECOND
    streams.add("ended", state(9, 9, state="refused", away="network"))
    assert streams.over_since("lost") == 0


def test_a_stream_that_is_silent_when_it_is_stopped_is_lost():
    end = end_of(state(10, 10, state="streaming"), "", 18 * SECOND)
    assert (end.reason, end.cause) == (LOST, "network")
    assert end_of(state(10, 10, state="streaming"), "", 11 * SECOND).reason == STOPPED
    assert end_of(state(10, 10, state="streaming"), "", 18 * SECOND, 60 * SECOND).reason == STOPPED


@pytest.mark.parametrize(
    ("error", "longest_s"),
    [
        (StreamRefused("h", 3807, "gyroscope"), 0.5),
        (StreamUnreachable("h", 3807, "gyroscope", why="asleep"), 2.0),
    ],
)
def test_a_missing_app_is_retried_more_often_than_an_unreachable_host(error, longest_s):
    class Refusing(StreamSource):
        stream = headset_stream("gyroscope")

        def open(self, *, is_again: bool) -> None:
            raise error

    class NoTime(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            return len(waits) == 10

    waits: list[float | None] = []
    writer = SimpleNamespace(next_sequence=lambda: 0)
    recorder = StreamRecorder("gyroscope", Refusing(), writer, Notes(), Streams())
    recorder._ending = NoTime()
    recorder._run()
    assert waits[:3] == [0.0, 0.25, 0.5]
    assert waits[-1] == longest_s
