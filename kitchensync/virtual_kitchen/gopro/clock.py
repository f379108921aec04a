"""The virtual GoPro's wall clock: the world's UTC with a small error, in a time zone that can be set."""

from __future__ import annotations

from datetime import UTC, datetime

from kitchensync.virtual_kitchen.gopro.files.chapters import WallTimes
from kitchensync.virtual_kitchen.kitchen import Kitchen

NS_PER_S = 1_000_000_000


class WallClock:
    """Local time = the world's UTC + offset; zone and summer time as last set."""

    def __init__(self, kitchen: Kitchen, offset_s: float) -> None:
        """Start in UTC with the camera's own error."""
        self._kitchen = kitchen
        self._local_minus_utc_ns = round(offset_s * NS_PER_S)
        self.zone_minutes = 0
        self.is_summer_time = False

    def set_local(self, local: datetime, zone_minutes: int, is_summer_time: bool) -> None:
        """Set the clock; `zone_minutes` excludes summer time, `local` has no zone."""
        local_ns = int(local.replace(tzinfo=UTC).timestamp()) * NS_PER_S
        self._local_minus_utc_ns = local_ns - self._utc_now_ns()
        # A HERO12 reports a zone that includes summer time.
        self.zone_minutes = zone_minutes + (60 if is_summer_time else 0)
        self.is_summer_time = is_summer_time

    def _utc_now_ns(self) -> int:
        return self._kitchen.utc_ns_of_host(self._kitchen.clock.now_ns())

    def local_now(self) -> datetime:
        """Return the local time, whole seconds, without a zone."""
        local_ns = self._utc_now_ns() + self._local_minus_utc_ns
        return datetime.fromtimestamp(local_ns // NS_PER_S, UTC).replace(tzinfo=None)

    def at_world(self, world_s: float) -> WallTimes:
        """Return the clock at a world time; UTC is local time minus the zone, as on a HERO12."""
        kitchen = self._kitchen
        local_ns = kitchen.utc_ns_of_host(kitchen.host_ns_of(world_s)) + self._local_minus_utc_ns
        return WallTimes(
            created_utc_s=local_ns // NS_PER_S - 60 * self.zone_minutes, local_s=local_ns / NS_PER_S
        )
