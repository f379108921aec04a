"""UTC of host times by a recording's anchors: simultaneous readings of both clocks of the recording computer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Int64
from kitchensync.storage.timeline.device_clock import WANDER

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import Manifest

STEP_NS = 100_000_000
"""A larger step between two anchors means that the clock was set."""
HELD_NS = 1_000_000
"""A smaller change between two anchors is reading noise."""
SLEW = 5e-4
"""Maximum rate of a gradual correction of a computer's clock."""
SOON_NS = 60_000_000_000
"""Maximum distance of anchors to report the time of a step; earlier versions stored only the first and the last."""


@dataclass(frozen=True, slots=True)
class UtcStep:
    """The computer's clock was set by `by_ns`, between two anchors."""

    before_host_ns: int
    after_host_ns: int
    by_ns: int

    @property
    def fact(self) -> str:
        """Describe the step."""
        return f"the computer's clock was set by {self.by_ns / 1e9:+.1f} s"

    def words(self, after: str) -> str:
        """Describe the step and its time; `after` is the second anchor's time in words."""
        if self.after_host_ns - self.before_host_ns <= SOON_NS:
            return f"{self.fact} at {after}"
        return f"{self.fact} before {after}, unless the computer slept"


class UtcTimes:
    """UTC of host times (CLOCK_MONOTONIC ns), each by the trusted anchor nearest to it.

    Trusted anchors were read while the computer's clock was synchronized; without any, all are trusted. Host time
    stands still while the computer sleeps; the total sleep is that of the nearest anchor, trusted or not.
    """

    def __init__(self, anchors: Iterable[Mapping[str, Any]]) -> None:
        """Take at least one anchor: `host_ns`, `utc_ns`, and if known `bound_ns`, `slept_ns`, `synchronized`."""
        kept = sorted(anchors, key=lambda anchor: int(anchor["host_ns"]))
        self.host_ns = np.array([anchor["host_ns"] for anchor in kept], np.int64)
        slept_ns = np.array([anchor.get("slept_ns", 0) for anchor in kept], np.int64)
        clock_ns = np.array([anchor["utc_ns"] for anchor in kept], np.int64) - self.host_ns - slept_ns
        self._slept_ns, self._clock_ns = _held(slept_ns), _held(clock_ns)
        off_ns = np.abs(slept_ns + clock_ns - self._slept_ns - self._clock_ns)
        self._read_within_ns = off_ns + np.array([anchor.get("bound_ns", 0) for anchor in kept], np.int64)
        trusted = np.flatnonzero([bool(anchor.get("synchronized")) for anchor in kept])
        self._trusted = trusted if len(trusted) else np.arange(len(kept))

    def to_utc(self, host_ns: npt.ArrayLike) -> Int64:
        """Return UTC ns (n,) of host times (n,)."""
        at = np.asarray(host_ns, np.int64)
        slept_ns: Int64 = self._slept_ns[_nearest(self.host_ns, at)]
        return at + slept_ns + self._clock_ns[self._by(at)]

    def bound_ns(self, host_ns: npt.ArrayLike) -> Int64:
        """Return the maximum error of `to_utc` to the computer's clock, ns (n,), at host times (n,).

        It includes a step or sleep between the two anchors around a time, because its exact time is unknown.
        """
        at = np.asarray(host_ns, np.int64)
        by = self._by(at)
        jumps_ns = np.abs(np.diff(self.to_utc(self.host_ns) - self.host_ns))
        place = np.searchsorted(self.host_ns, at)
        jump_ns = np.concatenate(([0], jumps_ns, [0]))[place]
        wander_ns = np.ceil(WANDER * np.abs(at - self.host_ns[by])).astype(np.int64)
        bound_ns: Int64 = self._read_within_ns[by] + wander_ns + jump_ns
        return bound_ns

    def readings(self, host_ns: int | None) -> list[int]:
        """Return UTC ns of a host time by each setting of the computer's clock; empty for an unknown time."""
        if host_ns is None:
            return []
        slept_ns = int(self._slept_ns[_nearest(self.host_ns, np.asarray(host_ns))])
        return [host_ns + slept_ns + clock_ns for clock_ns in self._settings()]

    def host_times(self, utc_ns: int) -> list[int]:
        """Return the host times of a UTC by each setting of the computer's clock."""
        awake_and_asleep_ns = self.host_ns + self._slept_ns
        moments = [utc_ns - clock_ns for clock_ns in self._settings()]
        return [at - int(self._slept_ns[_nearest(awake_and_asleep_ns, np.asarray(at))]) for at in moments]

    def steps(self) -> list[UtcStep]:
        """Return the steps at which the computer's clock was set."""
        by_ns, apart_ns = np.diff(self._clock_ns), np.diff(self.host_ns)
        places = np.flatnonzero(np.abs(by_ns) > STEP_NS + SLEW * apart_ns)
        return [UtcStep(int(self.host_ns[k]), int(self.host_ns[k + 1]), int(by_ns[k])) for k in places]

    def pairs(self) -> list[list[int]]:
        """Return host ns and UTC ns by `to_utc` of each anchor, for readers without this software."""
        return [
            list(pair) for pair in zip(self.host_ns.tolist(), self.to_utc(self.host_ns).tolist(), strict=True)
        ]

    def bounds_ns(self) -> list[int]:
        """Return the maximum error of `to_utc` between each anchor and the one before it, ns."""
        middle = self.host_ns - np.diff(self.host_ns, prepend=self.host_ns[0]) // 2
        either: Int64 = np.maximum(self.bound_ns(middle), self.bound_ns(self.host_ns))
        return [int(bound_ns) for bound_ns in either]

    def where_set(self) -> list[dict[str, int]]:
        """Return the first anchor, the last, and those on both sides of each step, in the form of a manifest."""
        around = [at for step in self.steps() for at in (step.before_host_ns, step.after_host_ns)]
        times = sorted({int(self.host_ns[0]), *around, int(self.host_ns[-1])})
        return [{"host_ns": at, "utc_ns": int(self.to_utc(at))} for at in times]

    def _by(self, at: Int64) -> Int64:
        return self._trusted[_nearest(self.host_ns[self._trusted], at)]

    def _settings(self) -> list[int]:
        starts = [
            self._clock_ns[0],
            *(self._clock_ns[self.host_ns == step.after_host_ns][0] for step in self.steps()),
        ]
        return list(dict.fromkeys(int(clock_ns) for clock_ns in starts))


def _held(values: Int64) -> Int64:
    """Return values (n,) with changes smaller than the reading noise removed."""
    steady = values.copy()
    for k in range(1, len(steady)):
        if abs(int(steady[k] - steady[k - 1])) <= HELD_NS:
            steady[k] = steady[k - 1]
    return steady


def _nearest(rising: Int64, at: Int64) -> Int64:
    """Return the indices of the nearest of rising values, the earlier one of two equally near."""
    between = rising[:-1] + np.diff(rising) // 2
    return np.searchsorted(between, at)


def utc_times(manifest: Manifest) -> UtcTimes | None:
    """Return the UTC times of a manifest, or None. Earlier versions stored only its start and end."""
    started, stopped = manifest.get("started") or {}, manifest.get("stopped") or {}
    if not started.get("host_ns") or not started.get("utc_ns"):
        return None
    is_later = bool(stopped.get("utc_ns")) and (stopped.get("host_ns") or 0) > started["host_ns"]
    return UtcTimes(manifest.get("utc_anchors") or ([started, stopped] if is_later else [started]))


def moment_utc_ns(manifest: Manifest, which: Literal["started", "stopped"] = "started") -> int | None:
    """Return UTC ns of a recording's start or stop by the nearest trusted anchor; None if unknown."""
    moment, times = manifest.get(which) or {}, utc_times(manifest)
    if times is None or not moment.get("host_ns"):
        return moment.get("utc_ns")
    return int(times.to_utc(moment["host_ns"]))
