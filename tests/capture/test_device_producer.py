"""What a producer makes of its streams' ends."""

from __future__ import annotations

import pytest

from capture.device_producer import DeviceProducer
from capture.errors import StreamsFailed
from capture.stream_end import StreamState


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


def producer(plan, *ends: str) -> DeviceProducer:
    made = DeviceProducer(plan, "hololens")
    made.recorders = [Over(f"hololens/{number}", ended) for number, ended in enumerate(ends)]
    made.rates, made.probe = {}, None
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
