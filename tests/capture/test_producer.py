"""Ends of the streams of a producer."""

from __future__ import annotations

import struct
import time
from dataclasses import replace
from pathlib import Path

import pytest
from drained import drain

from kitchensync.capture.errors import StreamsFailed
from kitchensync.capture.process.heartbeat import PAUSED
from kitchensync.capture.process.pause import Pause
from kitchensync.capture.produce.device import Device
from kitchensync.capture.produce.producer import Producer
from kitchensync.capture.produce.stream_end import StreamState
from kitchensync.capture.produce.stream_watch import RateWatch
from kitchensync.capture.queue import stream_entries
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.storage.names import chunk_name, stream_folder, stream_key

pytestmark = pytest.mark.slow


class Over:
    """A stream that has ended."""

    def __init__(self, name: str, ended: str) -> None:
        self.name, self.state = name, StreamState(ended=ended)

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def is_alive(self) -> bool:
        return False


def producer(plan, *ends: str) -> Producer:
    device = Device()
    device.sources = []
    made = Producer(plan, "hololens", lambda ledger: device)
    made.recorders = [Over(f"hololens/{number}", ended) for number, ended in enumerate(ends)]
    made.rates = {recorder.name: RateWatch(0.0, adaptive=False) for recorder in made.recorders}
    return made


def test_failed_streams_are_not_an_end_by_the_device(plan):
    """Else the supervisor would take it for the end of the recording and not restart the producer."""
    with pytest.raises(StreamsFailed, match="hololens/1, hololens/2"):
        producer(plan, "ended_by_device", "failed", "").run()


def test_streams_that_the_device_ended_are_the_end(plan):
    producer(plan, "ended_by_device", "ended_by_device").run()


@pytest.mark.parametrize(("pause", "entries"), [("mark", 1), ("drop", 10)])
def test_packets_that_a_pause_may_withhold_have_their_own_entries(plan, client, pause, entries):
    made = producer(replace(plan, pause=pause), "ended_by_device")
    packets = [QueuedPacket(seq, seq, seq, 1, b"x", 0) for seq in range(10)]
    assert made.writer("hololens/pv").put(packets, lambda: False) == 10
    assert client.xlen(stream_key(plan.uuid, "hololens/pv")) == entries
    made.run()


def test_nothing_is_restarted_at_the_end(plan):
    made = producer(plan, "failed")
    made.end()
    made.run()


SECOND = 10**9


@pytest.mark.parametrize(
    ("slept", "recorder_held", "expected"),
    [(False, False, "restart"), (False, True, "suspend"), (True, False, "suspend")],
)
def test_a_suspended_producer_reports_whether_the_recorder_was_suspended_too(
    plan, slept, recorder_held, expected
):
    made = producer(plan, "", "")
    notes = []
    made.ledger.note = lambda note, stream, give_up: notes.append((note.kind, stream, note.facts()))
    now_ns = time.monotonic_ns()
    if recorder_held:
        (Path(plan.work) / PAUSED).write_bytes(struct.pack("<qq", now_ns - 20 * SECOND, now_ns))
    made._unsettled_pauses.append(Pause(now_ns - 20 * SECOND, now_ns, slept))
    made._note_holds(60 * SECOND)
    assert notes == [], "the recorder may still report that it was suspended too"
    made._note_holds(0)
    facts = {"cause": expected, "start_host_ns": now_ns - 20 * SECOND, "end_host_ns": now_ns}
    assert notes == [("held", "hololens/0", facts), ("held", "hololens/1", facts)]
    made._note_holds(0)
    made._health.close()
    assert len(notes) == 2


def test_a_stall_by_the_queue_is_backpressure(plan):
    made = producer(plan, "")
    notes = []
    made.ledger.note = lambda note, stream, give_up: notes.append(note.facts())
    made.device.queue_stalls = lambda: [(5, 9)]
    made._note_holds(SECOND)
    made._health.close()
    assert notes == [{"cause": "backpressure", "start_host_ns": 5, "end_host_ns": 9}]


STREAM = "hololens/gyroscope"


@pytest.mark.parametrize(("damaged", "begin"), [(False, 50), (True, 0)])
def test_after_a_queue_vanished_only_unsealed_packets_are_noted_as_lost(
    plan, client, monkeypatch, damaged, begin
):
    monkeypatch.setattr(stream_entries, "KEEP_BYTES", 10)
    made = producer(plan)
    notes = []
    made.ledger.note = lambda note, stream: notes.append((note.kind, stream, note.first_seq, note.last_seq))
    writer = made.writer(STREAM)

    def put(*seqs: int) -> None:
        for seq in seqs:
            assert writer.put([QueuedPacket(seq, seq, seq, 1, b"x", 0)], lambda: False) == 1

    put(*range(50))
    drain(plan)
    if damaged:
        (stream_folder(Path(plan.path), STREAM) / chunk_name(1)).write_bytes(b"")
    put(*range(50, 100))
    client.flushall()
    put(100)
    ((kind, stream, first, last),) = notes
    assert (kind, stream, first) == ("queue_loss", STREAM, begin)
    assert last < 100
    writer.pipe.close()
    made._health.close()


def test_a_queue_that_vanished_after_everything_was_sealed_has_lost_nothing(plan, client, monkeypatch):
    monkeypatch.setattr(stream_entries, "KEEP_BYTES", 10)
    made = producer(plan)
    notes = []
    made.ledger.note = lambda note, stream: notes.append(note)
    writer = made.writer(STREAM)
    assert writer.put([QueuedPacket(seq, seq, seq, 1, b"x", 0) for seq in range(50)], lambda: False) == 50
    drain(plan)
    client.flushall()
    assert writer.put([QueuedPacket(50, 50, 50, 1, b"x", 0)], lambda: False) == 1
    assert notes == []
    writer.pipe.close()
    made._health.close()
