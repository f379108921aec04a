"""Set a camera's clock and measure what came of it: it has whole seconds only, so its turn of a second is caught."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sensors.errors import SensorError
from sensors.gopro.camera import GoProHttp
from sensors.gopro.camera_types import CameraClock
from sensors.host_clock import UtcAnchor, host_ns, utc_anchor

NS_PER_S = 1_000_000_000
POLL_S = 0.005
CATCH_LIMIT_S = 2.5
TICKS_WANTED = 2


@dataclass(frozen=True)
class ClockOffset:
    """The camera's local clock against this computer's UTC, at a moment of the capture clock."""

    host_ns: int
    offset_ns: int
    "Camera's local time as if it were UTC, minus this computer's UTC: the zone is in it."
    error_ns: int
    "Half of the interval in which the camera's second turned: the offset is right to this."
    zone_minutes: int | None
    samples: int

    def as_dict(self) -> dict[str, Any]:
        """Return it as media.json holds it."""
        return asdict(self)


def set_clock_now(camera: GoProHttp, zone_minutes: int) -> None:
    """Set the camera to this computer's local time, sent so that it arrives at the turn of a second."""
    begin_ns = host_ns()
    camera.get_clock()
    one_way_ns = (host_ns() - begin_ns) // 2
    anchor = utc_anchor()
    now_ns = anchor.utc_ns
    wait_ns = (NS_PER_S - (now_ns + one_way_ns) % NS_PER_S) % NS_PER_S
    time.sleep(wait_ns / NS_PER_S)
    utc_s = round((now_ns + wait_ns + one_way_ns) / NS_PER_S)
    local = datetime.fromtimestamp(utc_s, UTC).replace(tzinfo=None)
    camera.set_clock(local + timedelta(minutes=zone_minutes), zone_minutes)


def measure_clock(
    camera: GoProHttp, limit_s: float = CATCH_LIMIT_S, wait: Callable[[float], None] = time.sleep
) -> ClockOffset | None:
    """Ask again and again until the second turns; the turn lies between two questions. None when it never did.

    Two turns are caught and the narrower interval kept. Works on models that answer `get_date_time` (HERO11 on).
    """
    deadline_ns = host_ns() + int(limit_s * NS_PER_S)
    anchor = utc_anchor()
    best: ClockOffset | None = None
    last: tuple[int, CameraClock] | None = None
    caught = asked = 0
    while host_ns() < deadline_ns and caught < TICKS_WANTED:
        sent_ns = host_ns()
        try:
            clock = camera.get_clock()
        except SensorError:
            return best
        asked += 1
        if (
            last is not None
            and clock.local != last[1].local
            and clock.local - last[1].local <= timedelta(seconds=1)
        ):
            caught += 1
            found = _offset(anchor, last[0], clock, asked)
            best = found if best is None or found.error_ns < best.error_ns else best
        last = (sent_ns, clock)
        wait(POLL_S)
    return best


def _offset(anchor: UtcAnchor, asked_ns: int, clock: CameraClock, samples: int) -> ClockOffset:
    """The new second began after the last question before it was sent, and before its own answer came."""
    middle_ns = (asked_ns + clock.host_ns) // 2
    shown = clock.local.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    local_ns = (shown.days * 86400 + shown.seconds) * NS_PER_S
    utc_ns = anchor.utc_ns + middle_ns - anchor.host_ns
    error_ns = (clock.host_ns - asked_ns + 1) // 2
    return ClockOffset(middle_ns, local_ns - utc_ns, error_ns, clock.zone_minutes, samples)
