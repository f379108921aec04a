"""What can be seen of a stream while it comes: its rate, its silence, and stamps that do not go forward. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from kitchensync.sensors.hololens.headset_stream import HeadsetStream
from kitchensync.sensors.stream import SensorStream

WINDOW_S = 5.0
LOW_RATE = 0.8
"""Below this share of the nominal rate a stream is slow."""
QUIET_PERIODS = 6.0
LEAST_QUIET_S = 1.5
JUMP_NS = 1_000_000_000
"""A stamp that runs ahead of the arrivals by more than this has jumped."""

STREAMING, RATE_LOW, SLOW_BY_ITSELF, STALLED = "streaming", "rate low", "slow by the device", "stalled"


class RateWatch:
    """Tells from counts how a stream does; `adaptive` streams slow down by themselves and lose nothing."""

    def __init__(self, nominal_hz: float, *, adaptive: bool) -> None:
        """Begin without knowledge."""
        self.nominal_hz, self.adaptive = nominal_hz, adaptive
        self.rate_hz = 0.0
        "Of the last seconds."
        self._quiet_ns = round(max(LEAST_QUIET_S, QUIET_PERIODS / nominal_hz if nominal_hz else 0) * 1e9)
        self._seen: deque[tuple[int, int]] = deque()
        self.condition = STREAMING

    def look(self, now_ns: int, received: int, last_host_ns: int) -> str | None:
        """Take one look; return the condition when it is another than before, else None."""
        self._seen.append((now_ns, received))
        while len(self._seen) > 2 and now_ns - self._seen[1][0] >= WINDOW_S * 1e9:
            self._seen.popleft()
        before, self.condition = self.condition, self._judge(now_ns, received, last_host_ns)
        return self.condition if self.condition != before else None

    def _judge(self, now_ns: int, received: int, last_host_ns: int) -> str:
        if now_ns - last_host_ns > self._quiet_ns:
            self._seen.clear()
            self.rate_hz = 0.0
            return STALLED
        since_ns, count = self._seen[0] if self._seen else (now_ns, received)
        self.rate_hz = (received - count) * 1e9 / max(now_ns - since_ns, 1)
        if now_ns - since_ns < WINDOW_S * 1e9 or not self.nominal_hz:
            return self.condition if self.condition != STALLED else STREAMING
        if self.rate_hz >= LOW_RATE * self.nominal_hz:
            return STREAMING
        return SLOW_BY_ITSELF if self.adaptive else RATE_LOW


class StampWatch:
    """Compares each stamp with the one before; packets are kept whatever it says."""

    def __init__(self) -> None:
        """Begin without a packet."""
        self._ticks: int | None = None
        self._host_ns = 0

    def flag(self, ticks: int, host_ns: int) -> tuple[str, int] | None:
        """Return ("back" | "same" | "jump", the stamp before) for a stamp that is not to be trusted, else None."""
        before, arrived_ns = self._ticks, self._host_ns
        self._ticks, self._host_ns = ticks, host_ns
        if before is None:
            return None
        step = ticks - before
        if step <= 0:
            return ("same" if step == 0 else "back"), before
        return ("jump", before) if step * 100 - (host_ns - arrived_ns) > JUMP_NS else None


def head_check(stream: SensorStream, pose_bytes: int) -> Callable[[bytes | memoryview], bool] | None:
    """Return what tells of a packet (payload and pose) whether the headset knew its head; None where nothing does.

    Asked are the stream of head positions and the poses of the front camera; others would say the same once more.
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
    """Return since when something holds, host ns; 0 while it does not."""
    return (began_ns or now_ns) if holds else 0
