"""Base of all streams of an opened recording: a length, values by number, and values by time."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from math import isnan
from numbers import Real
from operator import getitem
from operator import index as whole
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from kitchensync.reader.recording_source import RecordingSource
from kitchensync.sensors.errors import SensorError
from kitchensync.shell.array_types import Floats, Floats32, Int64
from kitchensync.storage.errors import StorageError
from kitchensync.storage.timeline.film_times import UNKNOWN

LONGEST_GAP_S = 0.1
"""Longest gap that is interpolated, seconds; longer gaps give NaN."""
LARGEST_SLICE_BYTES = 2 << 30
"""Largest array that a slice may become; iterate over `between` for more."""


class Unreadable(StorageError, ValueError):
    """A value is lost or cannot be decoded; the message has the reason."""


class NotOfThisStream(TypeError, AttributeError):
    """A stream of this kind lacks this method; an AttributeError, so that `hasattr` returns False."""


class OutsideSpan(UserWarning):
    """The requested time is outside the span of a stream."""


class TimedStream(ABC):
    """One stream: `len(s)`, `s[i]`, `s[a:b]` (one array), `s.at(seconds)`, `s.times`.

    `unreadable` maps the numbers of values that could not be read so far to the reasons.
    """

    kind = "values"
    "Plural noun for the values, used in messages."

    def __init__(self, recording: RecordingSource, name: str) -> None:
        """`name` is the full name, such as `hololens/pv`."""
        self.recording, self.name = recording, name
        self.unreadable: dict[int, str] = {}

    def close(self) -> None:  # noqa: B027 - most hold nothing open
        """Close the files that are open."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _value(self, number: int) -> Any:
        """Return the value of a number in range. Raises Unreadable, SensorError."""

    @property
    @abstractmethod
    def session_ns(self) -> Int64:
        """Session time of each value, (n,) int64 ns, the smallest int64 where it is unknown. Raises NotKnown."""

    @cached_property
    def times(self) -> Floats:
        """Session seconds of each value, (n,) float64, NaN in a file that is not aligned. Raises NotKnown."""
        return np.where(self.session_ns == UNKNOWN, np.nan, self.session_ns / 1e9)

    @property
    def times_ns(self) -> Int64:
        """Time of each value on the capture computer, CLOCK_MONOTONIC, (n,) int64 ns.

        The smallest int64 where `times` is NaN. Raises NotKnown.
        """
        has_time = self.session_ns != UNKNOWN
        host_ns = self.recording.clock.to_host(np.where(has_time, self.session_ns, 0))
        return np.where(has_time, host_ns, UNKNOWN)

    @property
    def utc(self) -> npt.NDArray[np.datetime64]:
        """UTC of each value, (n,) datetime64[ns], NaT where `times` is NaN. Raises NotKnown."""
        has_time = self.session_ns != UNKNOWN
        utc = self.recording.clock.to_utc(np.where(has_time, self.session_ns, 0))
        return np.where(has_time, utc, np.datetime64("NaT", "ns"))

    def bound_at(self, seconds: float) -> float:
        """Error bound of `times` around an instant, seconds (95 % for videos). Raises NotKnown."""
        return self.recording.clock.bound_of_s(self.name.partition("/")[0], as_number(seconds))

    def __getitem__(self, which: int | slice | npt.NDArray[np.integer[Any]]) -> Any:
        """Return a value, or one array for a slice or an array of numbers.

        Raises IndexError, TypeError, Unreadable.
        """
        if isinstance(which, slice):
            return self._several(np.arange(*which.indices(len(self))))
        if isinstance(which, np.ndarray) and which.ndim == 1 and which.dtype.kind in "iu":
            return self._several(np.arange(len(self))[which])
        try:
            number = whole(which)
        except TypeError:
            allowed = "index it by a number, a slice or an array of numbers, or call .at(seconds)"
            raise TypeError(f"{self.name}: {which!r} is not an index; {allowed}") from None
        if not -len(self) <= number < len(self):
            raise IndexError(f"{self.name} has {len(self)} {self.kind}; {number} is out of range")
        return self.read(number % len(self))

    def read(self, number: int) -> Any:
        """Return the value of a number in range; `unreadable` records failures. Raises Unreadable."""
        try:
            return self._value(number)
        except Unreadable as error:
            self.unreadable[number] = str(error)
            raise
        except SensorError as error:
            self.unreadable[number] = str(error)
            raise Unreadable(f"{self.name} number {number}: {error}") from error

    def _several(self, numbers: Int64) -> Any:
        """Return several values as one array, or as a list if they are not arrays (bytes of a plug-in, say)."""
        if not len(numbers):
            return np.empty((0,), np.float32)
        first = self.read(int(numbers[0]))
        if not isinstance(first, np.ndarray | np.generic | float | int):
            return [first, *(self.read(number) for number in numbers[1:].tolist())]
        first = np.asarray(first)
        if first.nbytes * len(numbers) > LARGEST_SLICE_BYTES:
            gigabytes = first.nbytes * len(numbers) / 1e9
            raise MemoryError(
                f"{self.name}: {gigabytes:.0f} GB in one array; iterate over .between(start, end) instead"
            )
        values = np.empty((len(numbers), *first.shape), first.dtype)
        values[0] = first
        for place, number in enumerate(numbers[1:].tolist(), start=1):
            values[place] = self.read(number)
        return values

    def __iter__(self) -> Iterator[Any]:
        """Yield all values in order, one in memory at a time. Raises Unreadable; `between` skips those values."""
        return (self.read(number) for number in range(len(self)))

    @cached_property
    def _in_time(self) -> Int64:
        """Numbers of the values that have a time, in order of time."""
        order = np.argsort(self.times, kind="stable")
        return order[np.isfinite(self.times[order])]

    @cached_property
    def _sorted_times(self) -> Floats:
        return self.times[self._in_time]

    def index_at(self, seconds: float) -> int:
        """Return the number of the value nearest to a session time; warn outside the stream's span.

        Raises IndexError if no value has a time.
        """
        number = self._nearest(seconds)
        first_s, last_s = float(self._sorted_times[0]), float(self._sorted_times[-1])
        if not first_s - self.reach_s <= seconds <= last_s + self.reach_s:
            span = f"{self.name} has values from {first_s:.3f} to {last_s:.3f} s"
            warnings.warn(f"{span}, not at {seconds:g} s; using the nearest value", OutsideSpan, stacklevel=2)
        return number

    def _nearest(self, seconds: float) -> int:
        order = self._in_time
        if not len(order):
            raise IndexError(f"{self.name} has no {self.kind} with a time")
        after = int(np.searchsorted(self._sorted_times, as_number(seconds)))
        near = order[max(after - 1, 0) : after + 1]
        return int(near[np.argmin(np.abs(self.times[near] - seconds))])

    def at(self, seconds: float) -> Any:
        """Return the value nearest to a session time; warn outside the stream's span, where `near` returns None.

        Raises IndexError, Unreadable.
        """
        return self[self.index_at(seconds)]

    @cached_property
    def reach_s(self) -> float:
        """Largest distance of a value from an instant that it may represent: two median steps, at least 50 ms."""
        steps = np.diff(self._sorted_times)
        return max(0.05, 2 * float(np.median(steps))) if len(steps) else 0.05

    def index_near(self, seconds: float) -> int | None:
        """Return the number of the value nearest to an instant, None if it is not within `reach_s`.

        Raises IndexError if no value has a time.
        """
        number = self._nearest(seconds)
        return number if abs(self.times[number] - seconds) <= self.reach_s else None

    def near(self, seconds: float) -> Any:
        """Return the value nearest to an instant; None if none is within `reach_s` or it cannot be read."""
        try:
            number = self.index_near(seconds)
            return None if number is None else self[number]
        except (IndexError, Unreadable):
            return None

    def span(self, start: float, end: float) -> Int64:
        """Return the numbers of the values in the session times [start, end), in order of time."""
        first, last = np.searchsorted(self._sorted_times, [as_number(start), as_number(end)])
        return self._in_time[first:last]

    def between(self, start: float, end: float) -> Iterator[tuple[float, Any]]:
        """Yield (session seconds, value) of `span`, one in memory at a time.

        Values that cannot be read are skipped; `unreadable` lists them afterwards.
        """
        for number in self.span(start, end).tolist():
            try:
                yield float(self.times[number]), self.read(number)
            except Unreadable:
                continue

    def sample(self, times: npt.ArrayLike) -> Any:
        """Interpolate values at session times. Raises NotOfThisStream if the values cannot be interpolated."""
        raise NotOfThisStream(
            f"{self.name}: {self.kind} cannot be interpolated; .at(seconds) returns the nearest value"
        )

    def __repr__(self) -> str:
        count = f"{self.name}: {len(self)} {self.kind}"
        try:
            times = self._sorted_times
        except StorageError as error:
            return f"<{count}; {error}>"
        if len(times) < 2:
            return f"<{count}>"
        rate = (len(times) - 1) / max(times[-1] - times[0], 1e-9)
        return f"<{count}, {times[0]:.2f} to {times[-1]:.2f} s, {rate:.1f} a second>"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return getitem, (self.recording, self.name)

    # Hidden from type checkers, so that they report names that a stream lacks.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            if name in ("project", "points", "points_at", "grey", "rate_hz", "values", "joints", "to_pandas"):
                raise NotOfThisStream(f"{self.name}: streams of {self.kind} have no {name}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class SoundBlocks(TimedStream):
    """Blocks of sound, float32 (channels, samples) within -1 and 1; a slice joins its blocks."""

    kind = "blocks of sound"

    def _several(self, numbers: Int64) -> Floats32:
        blocks = [self.read(number) for number in numbers.tolist()]
        return np.concatenate(blocks, axis=1) if blocks else np.empty((0, 0), np.float32)


def as_number(seconds: Any) -> float:
    """Return a session time or a rate as a float. Raises TypeError, and ValueError for NaN."""
    if isinstance(seconds, Real) and not isinstance(seconds, bool):
        if isnan(seconds):
            raise ValueError("expected a number of seconds, not NaN")
        return float(seconds)
    raise TypeError(f"expected a number of seconds, not {seconds!r}")


def interpolated(
    own_s: Floats, values: npt.NDArray[Any], times: npt.ArrayLike, longest_gap_s: float = LONGEST_GAP_S
) -> Floats:
    """Interpolate values (n, k) of rising times (n,) linearly at `times` (m,), (m, k) float64.

    NaN outside of the span and over gaps longer than `longest_gap_s`.
    """
    when = np.atleast_1d(np.asarray(times, np.float64))
    out = np.full((len(when), values.shape[1]), np.nan)
    if len(when):
        # np.interp would read all values: of a long stream only those around the times are needed.
        around = np.searchsorted(own_s, [np.nanmin(when) - longest_gap_s, np.nanmax(when) + longest_gap_s])
        own_s, values = own_s[slice(*around)], values[slice(*around)]
    if len(own_s):
        right = np.searchsorted(own_s, when).clip(0, len(own_s) - 1)
        left = np.where(own_s[right] == when, right, (right - 1).clip(0))
        inside = (when >= own_s[0]) & (when <= own_s[-1]) & (own_s[right] - own_s[left] <= longest_gap_s)
        for axis in range(values.shape[1]):
            out[inside, axis] = np.interp(when[inside], own_s, values[:, axis])
    return out


def import_pandas() -> Any:
    """Import pandas, which only tables need. Raises ImportError with the command that installs it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("tables need pandas: pip install 'kitchensync[data]'") from error
    return pandas
