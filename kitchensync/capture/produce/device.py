"""Base class of the devices that producers run."""

from __future__ import annotations

from collections.abc import Sequence

from kitchensync.capture.produce.probe_clock import Ask
from kitchensync.capture.produce.stream_recorder import StreamSource
from kitchensync.capture.queue.pipe import QueuePipe
from kitchensync.sensors.stream import SensorStream


class Device:
    """The streams of one device and the steps around receiving them."""

    sources: Sequence[StreamSource]
    ask: Ask | None = None
    """Reads the clock of the device, if it has one."""
    pipe: QueuePipe | None = None
    """Queue connection shared by all streams; None gives each stream its own."""

    def rate_hz(self, stream: SensorStream) -> float:
        """Return the nominal packet rate of a stream."""
        return stream.nominal_hz

    def start(self) -> None:
        """Start receiving."""

    def queue_stalls(self) -> list[tuple[int, int]]:
        """Return the times, (start, end) in host_ns, in which nothing was received because the queue was full."""
        return []

    def end_sources(self) -> float:
        """Make the sources end; return how many seconds they may take."""
        return float("inf")

    def switch_off(self) -> None:
        """Switch the device off after its streams have ended."""

    def stop(self) -> None:
        """Stop receiving."""
