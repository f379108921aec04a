"""Session time: nanoseconds since the main headset's first packet, on its clock, for all other devices too."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kitchensync.storage.timeline.device_clock import NS_PER_TICK, WANDER, HostClock, HostLine

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SessionTime:
    """`session_ns` of device ticks and of host times (CLOCK_MONOTONIC ns).

    A headset that is started anew during a recording counts from zero again: from there on the capture clock goes on
    where its first clock ended.
    """

    ticks0: int
    "Ticks of the main headset's first packet."
    clock: HostClock | None
    "Its ticks on the capture clock; None where no exchange of clocks tells."

    @property
    def bound_ns(self) -> int | None:
        """Largest error between the first and the last clock exchange, except within a break; None without exchanges.

        After the first break all times depend on the unobserved end of the first clock, and packets on their own
        clock too: both bounds add up.
        """
        if self.clock is None:
            return None
        first, *later = self.clock.lines
        if not later:
            return first.bound_ns
        seen_ns, end_ns = int(first.to_host_ns(first.last_ticks)), self.clock.breaks_host_ns[0]
        again_ns = int(later[0].to_host_ns(later[0].ticks0))
        drawn_on_ns = (int(first.to_ticks(end_ns)) - first.last_ticks) * NS_PER_TICK - (end_ns - seen_ns)
        wander_ns = math.ceil(WANDER * (again_ns - seen_ns))
        return first.bound_ns + abs(drawn_on_ns) + wander_ns + max(line.bound_ns for line in later)

    def of_ticks(self, ticks: npt.ArrayLike, *, near_host_ns: npt.ArrayLike | None = None) -> Int64:
        """Return session ns (n,) int64 of device ticks (n,).

        `near_host_ns` (n,), the arrivals say, tells which of the clocks is meant where the headset was started anew.
        """
        at = np.asarray(ticks, np.int64)
        session_ns: Int64 = (at - self.ticks0) * NS_PER_TICK
        if self.clock is None or len(self.clock.lines) == 1:
            return session_ns
        near = None if near_host_ns is None else np.asarray(near_host_ns, np.int64)
        host_ns = self.clock.to_host_ns(at, near_host_ns=near)
        is_first = self.clock.stretches_of(at, near_host_ns=near) == 0
        return np.where(is_first, session_ns, self._after_the_first(host_ns))

    def of_host(self, host_ns: npt.ArrayLike) -> Int64 | None:
        """Return session ns (n,) int64 of host times (n,), within `bound_ns`; None without a clock."""
        if self.clock is None:
            return None
        at = np.asarray(host_ns, np.int64)
        if len(self.clock.lines) == 1:
            return self._by(self.clock.lines[0], at)
        is_first = at < self.clock.breaks_host_ns[0]
        session_ns = self._after_the_first(at)
        session_ns[is_first] = self._by(self.clock.lines[0], at[is_first])  # its line says nothing of later
        return session_ns

    def to_host(self, session_ns: npt.ArrayLike) -> Int64 | None:
        """Return host times (n,) of session ns (n,), as `of_host` places them; None without a clock."""
        if self.clock is None:
            return None
        at = np.asarray(session_ns, np.int64)
        first = self.clock.lines[0]
        host_ns = first.to_host_ns(self.ticks0 + at // NS_PER_TICK)
        if len(self.clock.lines) == 1:
            return host_ns
        end_ns = self.clock.breaks_host_ns[0]
        after_ns = at - self._by(first, np.asarray(end_ns, np.int64))
        return np.where(after_ns < 0, host_ns, end_ns + after_ns)

    def _by(self, line: HostLine, host_ns: Int64) -> Int64:
        session_ns: Int64 = (line.to_ticks(host_ns) - self.ticks0) * NS_PER_TICK
        return session_ns

    def _after_the_first(self, host_ns: Int64) -> Int64:
        assert self.clock is not None
        end_ns = np.asarray(self.clock.breaks_host_ns[0], np.int64)
        return self._by(self.clock.lines[0], end_ns) + host_ns - end_ns
