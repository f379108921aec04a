"""Convert ticks of one headset to those of another through the host clock. Pure functions.

Heads move independently, so only the clock exchanges relate two headsets; the bounds of both add up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kitchensync.shell.array_types import Int64
from kitchensync.storage.timeline.clock_map import TICKS_PER_S, ClockMap
from kitchensync.storage.timeline.device_clock import HostClock

FIT_POINTS = 201


@dataclass(frozen=True, slots=True)
class Bridge:
    """Ticks of one headset to those of another."""

    source: HostClock
    target: HostClock

    @property
    def bound_ms(self) -> float:
        """Largest error: the sum of both clocks' bounds."""
        return (self.source.bound_ns + self.target.bound_ns) / 1e6

    def to_ticks(self, ticks: Int64) -> Int64:
        """Target ticks (n,) int64 of source `ticks` (n,) int64."""
        return self.target.to_ticks(self.source.to_host_ns(ticks))

    def as_map(self, epoch_ticks: int, source_epoch: int, last_ticks: int) -> tuple[ClockMap, float]:
        """Return the linear fit, s since `source_epoch` to target ticks, and its largest deviation, ms."""
        ticks = np.unique(
            np.linspace(source_epoch, max(last_ticks, source_epoch + 1), FIT_POINTS).astype(np.int64)
        )
        t_s = (ticks - source_epoch) / TICKS_PER_S
        tau_s = (self.to_ticks(ticks) - epoch_ticks - (ticks - source_epoch)) / TICKS_PER_S
        middle = float(t_s[-1]) / 2
        line = np.polynomial.polynomial.polyfit(t_s - middle, tau_s, 1 if len(t_s) > 1 else 0)
        clock_map = ClockMap(epoch_ticks, middle, tuple(float(c) for c in line), (0.0, float(t_s[-1])))
        return clock_map, float(np.abs(clock_map.tau_s(t_s) - tau_s).max()) * 1e3
