"""What a producer makes of its streams' ends."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest

from kitchensync.capture.errors import StreamsFailed
from kitchensync.capture.process.heartbeat import HELD
from kitchensync.capture.process.pause import Pause
from kitchensync.capture.produce.device import Device
from kitchensync.capture.produce.producer import Producer
from kitchensync.capture.produce.stream_end import StreamState
from kitchensync.capture.produce.stream_watch import RateWatch

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
    made.rates = {one.name: RateWatch(0.0, adaptive=False) for one in made.recorders}
    return made


def test_streams_that_failed_are_no_end_by_the_device(plan):
    """Else the supervisor would take it for the end of the recording and start nobody again."""
    with pytest.raises(StreamsFailed, match="hololens/1, hololens/2"):
        producer(plan, "ended_by_device", "failed", "").run()


def test_streams_that_the_device_ended_are_the_end(plan):
    producer(plan, "ended_by_device", "ended_by_device").run()


def test_at_the_end_nobody_is_started_again(plan):
    made = producer(plan, "failed")
    made.end()
    made.run()


SECOND = 10**9


@pytest.mark.parametrize(
    ("slept", "recorder_held", "expected"),
    [(False, False, "restart"), (False, True, "suspend"), (True, False, "suspend")],
)
def test_a_producer_that_was_held_names_who_was_held_with_it(plan, slept, recorder_held, expected):
    made = producer(plan, "", "")
    told = []
    made.ledger.note = lambda note, stream, give_up: told.append((note.kind, stream, note.facts()))
    now_ns = time.monotonic_ns()
    if recorder_held:
        (Path(plan.work) / HELD).write_bytes(struct.pack("<qq", now_ns - 20 * SECOND, now_ns))
    made._held.append(Pause(now_ns - 20 * SECOND, now_ns, slept))
    made._note_holds(60 * SECOND)
    assert told == [], "the recorder may still have to say whether it was held too"
    made._note_holds(0)
    facts = {"cause": expected, "start_host_ns": now_ns - 20 * SECOND, "end_host_ns": now_ns}
    assert told == [("held", "hololens/0", facts), ("held", "hololens/1", facts)]
    made._note_holds(0)
    made._health.close()
    assert len(told) == 2


def test_what_the_queue_held_up_is_backpressure(plan):
    made = producer(plan, "")
    told = []
    made.ledger.note = lambda note, stream, give_up: told.append(note.facts())
    made.device.held_by_queue = lambda: [(5, 9)]
    made._note_holds(SECOND)
    made._health.close()
    assert told == [{"cause": "backpressure", "start_host_ns": 5, "end_host_ns": 9}]
