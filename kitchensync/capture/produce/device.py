"""One device as its producer runs it; a kind of device fills in what it has."""

from __future__ import annotations

from collections.abc import Sequence

from kitchensync.capture.produce.probe_clock import Ask
from kitchensync.capture.produce.stream_recorder import StreamSource
from kitchensync.capture.queue.pipe import QueuePipe
from kitchensync.sensors.stream import SensorStream


class Device:
    """The streams of one device, and what is done to it besides receiving them."""

    sources: Sequence[StreamSource]
    ask: Ask | None = None
    """Asks the device for its time, where it has one."""
    pipe: QueuePipe | None = None
    """What all its streams travel over; None: each has a connection of its own."""

    def rate_hz(self, stream: SensorStream) -> float:
        """Packets a second that a stream is to send."""
        return stream.nominal_hz

    def start(self) -> None:
        """Start what carries packets."""

    def held_by_queue(self) -> list[tuple[int, int]]:
        """Return times, (start, end) in host_ns, in which the queue let us wait and nobody received."""
        return []

    def let_go(self) -> float:
        """Do what makes the recorders end besides their `stop`; return how many seconds they may take."""
        return float("inf")

    def leave(self) -> None:
        """Do what is left to do with the device after its streams have ended."""

    def rest(self) -> None:
        """End what carries packets: nothing comes any more."""
