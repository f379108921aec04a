"""Watch a stream while it delivers: its rate, its silence, and timestamps that do not advance. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from kitchensync.sensors.hololens.headset_stream import HeadsetStream
from kitchensync.sensors.stream import SensorStream

WINDOW_S = 5.0  # at 5 packets/s a late packet changes the rate by only 4 %
LOW_RATE = 0.8
"""Share of the nominal rate below which a stream is slow."""
QUIET_PERIODS = 6.0  # twice PERIODS of the monitor's rule, which reports silence first
MIN_QUIET_S = 1.5  # above MIN_SILENT_S of the same rule
JUMP_NS = 1_000_000_000
"""Lead over the arrivals from which on a timestamp counts as a jump."""

STREAMING, RATE_LOW, SLOW_BY_ITSELF, STALLED = "streaming", "rate low", "slow by the device", "stalled"


class RateWatch:
    """Judges the rate of a stream from packet counts; `adaptive` streams slow down by themselves without loss."""

    def __init__(self, nominal_hz: float, *, adaptive: bool) -> None:
        self.nominal_hz, self.adaptive = nominal_hz, adaptive
        self.rate_hz = 0.0
        """Rate over the last `WINDOW_S`."""
        self._quiet_ns = round(max(MIN_QUIET_S, QUIET_PERIODS / nominal_hz if nominal_hz else 0) * 1e9)
        self._counts: deque[tuple[int, int]] = deque()
        self.condition = STREAMING

    def update(self, now_ns: int, received: int, last_host_ns: int) -> str | None:
        """Add a packet count; return the condition if it changed, else None."""
        self._counts.append((now_ns, received))
        while len(self._counts) > 2 and now_ns - self._counts[1][0] >= WINDOW_S * 1e9:
            self._counts.popleft()
        before, self.condition = self.condition, self._judge(now_ns, received, last_host_ns)
        return self.condition if self.condition != before else None

    def _judge(self, now_ns: int, received: int, last_host_ns: int) -> str:
        if now_ns - last_host_ns > self._quiet_ns:
            self._counts.clear()
            self.rate_hz = 0.0
            return STALLED
        since_ns, count = self._counts[0] if self._counts else (now_ns, received)
        self.rate_hz = (received - count) * 1e9 / max(now_ns - since_ns, 1)
        if now_ns - since_ns < WINDOW_S * 1e9 or not self.nominal_hz:
            return self.condition if self.condition != STALLED else STREAMING
        if self.rate_hz >= LOW_RATE * self.nominal_hz:
            return STREAMING
        return SLOW_BY_ITSELF if self.adaptive else RATE_LOW


class StampWatch:
    """Compares each device timestamp with the previous one."""

    def __init__(self) -> None:
        self._ticks: int | None = None
        self._host_ns = 0

    def flag(self, ticks: int, host_ns: int) -> tuple[str, int] | None:
        """Return ("back" | "same" | "jump", previous timestamp) for a suspicious timestamp, else None."""
        before, arrived_ns = self._ticks, self._host_ns
        self._ticks, self._host_ns = ticks, host_ns
        if before is None:
            return None
        step = ticks - before
        if step <= 0:
            return ("same" if step == 0 else "back"), before
        return ("jump", before) if step * 100 - (host_ns - arrived_ns) > JUMP_NS else None


def head_check(stream: SensorStream, pose_bytes: int) -> Callable[[bytes | memoryview], bool] | None:
    """Return a function that tells from a packet (payload and pose) whether the headset tracked its position.

    None for streams other than the head poses and the front camera: two streams are enough.
    """
    if not isinstance(stream, HeadsetStream):
        return None
    if stream.is_head_pose and stream.flags is not None:
        at, bit = stream.flags.at, stream.flags.parts["head"]
        return lambda body: bool(int.from_bytes(body[at : at + 4], "little") & bit)
    if stream.is_front_camera and pose_bytes:
        return lambda body: any(body[-4:])  # the last number of a pose is 1, without one it is 0
    return None


def since(began_ns: int, now_ns: int, *, holds: bool) -> int:
    """Return the start (host_ns) of a condition that began at `began_ns` or now; 0 if it does not hold."""
    return (began_ns or now_ns) if holds else 0
