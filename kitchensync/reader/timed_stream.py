"""What every stream of an opened recording offers: a length, values by number, and values by time."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from math import isnan
from numbers import Real
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
"""Nothing is interpolated over a longer gap: nobody knows what was there."""
LARGEST_SLICE_BYTES = 2 << 30


class Unreadable(StorageError, ValueError):
    """A value that was lost or does not decode, with the reason."""


class NotOfThisStream(TypeError, AttributeError):
    """What a stream of this kind cannot do; `hasattr` answers no."""


class OutsideSpan(UserWarning):
    """A time was asked for at which a stream has no values."""


class TimedStream(ABC):
    """One stream: `len(s)`, `s[i]`, `s[a:b]` (one array), `s.at(seconds)`, `s.times`.

    `unreadable` names the values that could not be read so far.
    """

    kind = "values"
    "What it holds, in words."

    def __init__(self, recording: RecordingSource, name: str) -> None:
        """`name` is the full one, such as `hololens/pv`."""
        self.recording, self.name = recording, name
        self.unreadable: dict[int, str] = {}

    def close(self) -> None:  # noqa: B027 - most hold nothing open
        """Close the files that are open."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _value(self, number: int) -> Any:
        """Return the value of a number in range. Raises what reading raises."""

    @property
    @abstractmethod
    def session_ns(self) -> Int64:
        """Session time of each value, (n,) int64 ns, the least int64 where it is not known. Raises NotKnown."""

    @cached_property
    def times(self) -> Floats:
        """Session seconds of each value, (n,) float64, NaN in a file that is not aligned. Raises NotKnown."""
        return np.where(self.session_ns == UNKNOWN, np.nan, self.session_ns / 1e9)

    @property
    def times_ns(self) -> Int64:
        """CLOCK_MONOTONIC ns of the capture computer of each value, (n,) int64, the least int64 where `times` is NaN.

        Raises NotKnown.
        """
        known = self.session_ns != UNKNOWN
        return np.where(known, self.recording.clock.to_host(np.where(known, self.session_ns, 0)), UNKNOWN)

    @property
    def utc(self) -> npt.NDArray[np.datetime64]:
        """UTC of each value, (n,) datetime64[ns], NaT where `times` is NaN. Raises NotKnown."""
        known = self.session_ns != UNKNOWN
        found = self.recording.clock.to_utc(np.where(known, self.session_ns, 0))
        return np.where(known, found, np.datetime64("NaT", "ns"))

    def bound_at(self, seconds: float) -> float:
        """How far `times` may be off around an instant, seconds (95 % for films). Raises NotKnown."""
        return self.recording.clock.bound_of_s(self.name.partition("/")[0], a_number(seconds))

    def __getitem__(self, which: int | slice | npt.NDArray[np.integer[Any]]) -> Any:
        """Return a value; of a slice or an array of numbers one array. Raises IndexError, TypeError, Unreadable."""
        if isinstance(which, slice):
            return self._several(np.arange(*which.indices(len(self))))
        if isinstance(which, np.ndarray) and which.ndim == 1 and which.dtype.kind in "iu":
            return self._several(np.arange(len(self))[which])
        try:
            number = whole(which)
        except TypeError:
            words = f"{self.name} is read by number, a slice of numbers, or .at(seconds), not by {which!r}"
            raise TypeError(words) from None
        if not -len(self) <= number < len(self):
            raise IndexError(f"{self.name} has {len(self)} {self.kind}, there is no number {number}")
        return self.read(number % len(self))

    def read(self, number: int) -> Any:
        """Return the value of a number in range. Raises Unreadable, which `unreadable` keeps."""
        try:
            return self._value(number)
        except Unreadable as error:
            self.unreadable[number] = str(error)
            raise
        except SensorError as error:
            self.unreadable[number] = str(error)
            raise Unreadable(f"{self.name} number {number}: {error}") from error

    def _several(self, numbers: Int64) -> Any:
        """Return several values as one array; as a list where they are no arrays: bytes of a plug-in, say."""
        if not len(numbers):
            return np.empty((0,), np.float32)
        first = self.read(int(numbers[0]))
        if not isinstance(first, np.ndarray | np.generic | float | int):
            return [first, *(self.read(number) for number in numbers[1:].tolist())]
        first = np.asarray(first)
        if first.nbytes * len(numbers) > LARGEST_SLICE_BYTES:
            gigabytes = first.nbytes * len(numbers) / 1e9
            raise MemoryError(
                f"{self.name}: {gigabytes:.0f} GB in one array; go over .between(start, end) instead"
            )
        found = np.empty((len(numbers), *first.shape), first.dtype)
        found[0] = first
        for place, number in enumerate(numbers[1:].tolist(), start=1):
            found[place] = self.read(number)
        return found

    def __iter__(self) -> Iterator[Any]:
        """Yield all values in order, one in memory. Raises Unreadable; `between` leaves those out."""
        return (self.read(number) for number in range(len(self)))

    @cached_property
    def _in_time(self) -> Int64:
        """Numbers in the order of their times, those without a time left out."""
        order = np.argsort(self.times, kind="stable")
        return order[np.isfinite(self.times[order])]

    @cached_property
    def _sorted_times(self) -> Floats:
        return self.times[self._in_time]

    def index_at(self, seconds: float) -> int:
        """Return the number of the value nearest to a session time, with a warning outside the stream's span.

        Raises IndexError without any value.
        """
        number = self._nearest(seconds)
        first_s, last_s = float(self._sorted_times[0]), float(self._sorted_times[-1])
        if not first_s - self.reach_s <= seconds <= last_s + self.reach_s:
            span = f"{self.name} has values from {first_s:.3f} to {last_s:.3f} s"
            warnings.warn(f"{span}, not at {seconds:g} s; the nearest is given", OutsideSpan, stacklevel=2)
        return number

    def _nearest(self, seconds: float) -> int:
        order = self._in_time
        if not len(order):
            raise IndexError(f"{self.name} holds no {self.kind} with a time")
        after = int(np.searchsorted(self._sorted_times, a_number(seconds)))
        near = order[max(after - 1, 0) : after + 1]
        return int(near[np.argmin(np.abs(self.times[near] - seconds))])

    def at(self, seconds: float) -> Any:
        """Return the value nearest to a session time, with a warning outside the stream's span.

        `near` is None there. Raises IndexError, Unreadable.
        """
        return self[self.index_at(seconds)]

    @cached_property
    def reach_s(self) -> float:
        """How far away the nearest value of an instant may be to stand for it: two usual steps, 50 ms at least."""
        steps = np.diff(self._sorted_times)
        return max(0.05, 2 * float(np.median(steps))) if len(steps) else 0.05

    def index_near(self, seconds: float) -> int | None:
        """Return the number of the value of an instant, None where none is near enough. Raises IndexError."""
        number = self._nearest(seconds)
        return number if abs(self.times[number] - seconds) <= self.reach_s else None

    def near(self, seconds: float) -> Any:
        """Return the value of an instant; None where none is near enough or it cannot be read."""
        try:
            number = self.index_near(seconds)
            return None if number is None else self[number]
        except (IndexError, Unreadable):
            return None

    def span(self, start: float, end: float) -> Int64:
        """Return the numbers from one session time up to another, which is left out, in order of time."""
        first, last = np.searchsorted(self._sorted_times, [a_number(start), a_number(end)])
        return self._in_time[first:last]

    def between(self, start: float, end: float) -> Iterator[tuple[float, Any]]:
        """Yield (session seconds, value) of `span`, one in memory; what cannot be read is left out.

        `unreadable` names it afterwards.
        """
        for number in self.span(start, end).tolist():
            try:
                yield float(self.times[number]), self.read(number)
            except Unreadable:
                continue

    def sample(self, times: npt.ArrayLike) -> Any:
        """Return values interpolated at session times. Raises NotOfThisStream where nothing lies between two."""
        raise NotOfThisStream(
            f"{self.name} holds {self.kind}: nothing lies between two; .at(seconds) gives the nearest"
        )

    def __repr__(self) -> str:
        count = f"{self.name}: {len(self)} {self.kind}"
        try:
            known = self._sorted_times
        except StorageError as error:
            return f"<{count}; {error}>"
        if len(known) < 2:
            return f"<{count}>"
        rate = (len(known) - 1) / max(known[-1] - known[0], 1e-9)
        return f"<{count}, {known[0]:.2f} to {known[-1]:.2f} s, {rate:.1f} a second>"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _stream_of, (self.recording, self.name)

    if not TYPE_CHECKING:  # hidden from type checkers, which then report names that a stream lacks

        def __getattr__(self, name: str) -> NoReturn:
            if name == "project":
                words = "only cameras project points"
                raise NotOfThisStream(f"{self.name} holds {self.kind}: {words}")
            if name in ("points", "points_at", "grey", "rate_hz", "values", "joints", "to_pandas"):
                raise NotOfThisStream(f"{self.name} holds {self.kind}: it has no {name}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class SoundBlocks(TimedStream):
    """Blocks of sound, float32 (channels, samples) within -1 and 1; several are joined to one piece of sound."""

    kind = "blocks of sound"

    def _several(self, numbers: Int64) -> Floats32:
        blocks = [self.read(number) for number in numbers.tolist()]
        return np.concatenate(blocks, axis=1) if blocks else np.empty((0, 0), np.float32)


def _stream_of(recording: RecordingSource, name: str) -> TimedStream:
    return recording[name]


def a_number(seconds: Any) -> float:
    """Take a session time or a rate. Raises TypeError or, for NaN, ValueError, in words."""
    if isinstance(seconds, Real) and not isinstance(seconds, bool):
        if isnan(seconds):
            raise ValueError("a number of seconds is wanted, not NaN")
        return float(seconds)
    raise TypeError(f"a number of seconds is wanted, not {seconds!r}")


def interpolated(
    own_s: Floats, values: npt.NDArray[Any], times: npt.ArrayLike, longest_gap_s: float = LONGEST_GAP_S
) -> Floats:
    """Interpolate values (n, k) at rising times (n,) linearly, (m, k) float64; NaN outside and over long gaps."""
    when = np.atleast_1d(np.asarray(times, np.float64))
    out = np.full((len(when), values.shape[1]), np.nan)
    if len(when):  # of a long stream only what lies around
        around = np.searchsorted(own_s, [np.nanmin(when) - longest_gap_s, np.nanmax(when) + longest_gap_s])
        own_s, values = own_s[slice(*around)], values[slice(*around)]
    if len(own_s):
        right = np.searchsorted(own_s, when).clip(0, len(own_s) - 1)
        left = np.where(own_s[right] == when, right, (right - 1).clip(0))
        inside = (when >= own_s[0]) & (when <= own_s[-1]) & (own_s[right] - own_s[left] <= longest_gap_s)
        for axis in range(values.shape[1]):
            out[inside, axis] = np.interp(when[inside], own_s, values[:, axis])
    return out


def the_pandas() -> Any:
    """Import pandas, which reading alone does without. Raises ImportError with what to do."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("tables need pandas: pip install 'kitchensync[data]'") from error
    return pandas
