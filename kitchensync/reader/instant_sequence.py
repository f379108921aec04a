"""One instant of all streams of a recording, and instants at a steady rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import floor
from operator import index as whole
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from kitchensync.reader.film_streams import FilmStream
from kitchensync.reader.headset_streams import PictureStream, PosedStream
from kitchensync.reader.reading_clock import NotKnown
from kitchensync.reader.reading_workers import read_in_workers
from kitchensync.reader.recording_source import RecordingSource
from kitchensync.reader.timed_stream import TimedStream, a_number
from kitchensync.sensors.errors import SensorError
from kitchensync.storage.errors import StorageError

POSE = "world_from_"


class OneInstant:
    """What was at one session time: `instant.pv`, `instant.gyroscope`, `instant.world_from_pv`.

    Pictures, depth and sound are the nearest ones, None where none is near; what can be interpolated is, NaN where
    nobody knows. Nothing is read before it is asked for.
    """

    def __init__(self, recording: RecordingSource, seconds: float) -> None:
        self.recording, self.seconds = recording, a_number(seconds)

    @property
    def pictures(self) -> dict[str, npt.NDArray[np.uint8]]:
        """The picture of each camera of the main headset and of each film that has one near, uint8 RGB, by name."""
        names = {full: short for short, full in reversed(self.recording.attributes.items())}
        cameras = {
            short: self.recording[full] for full, short in names.items() if _is_camera(self.recording[full])
        }
        found = {short: self._of(stream) for short, stream in cameras.items()}
        return {short: picture for short, picture in found.items() if picture is not None}

    @property
    def utc(self) -> np.datetime64:
        """UTC of this time. Raises NotKnown."""
        return self.recording.utc(self.seconds)

    @property
    def indices(self) -> dict[str, int]:
        """Number of the value of each stream that is near, by the stream's full name."""
        found = {}
        for name in self.recording.streams:
            stream = self.recording[name]
            try:
                number = stream.index_near(self.seconds)
            except (IndexError, StorageError, SensorError):
                continue
            if number is not None:
                found[name] = number
        return found

    @property
    def times(self) -> dict[str, float]:
        """Session seconds of the value that each stream has near, by the name of its attribute."""
        names, near = self.recording.attributes, self.indices
        return {
            short: float(self.recording[full].times[near[full]])
            for short, full in names.items()
            if full in near
        }

    def read(self, names: Iterable[str]) -> dict[str, Any]:
        """Return `seconds` and what some streams had, by attribute or full name: plain arrays, None for nothing."""
        return {"seconds": self.seconds} | {
            name: self[self.recording.attributes.get(name, name)] for name in names
        }

    @property
    def steps(self) -> list[str]:
        """What was being done: the text of the steps that had begun and not ended."""
        return [row["step"] for row in self.recording.step_rows if row["start"] <= self.seconds < row["end"]]

    def __getitem__(self, name: str) -> Any:
        """Return what a stream had, by its full name; None where it had nothing. Raises UnknownStream."""
        return self._of(self.recording[name])

    def __getattr__(self, name: str) -> Any:
        short = name.removeprefix(POSE)
        if "recording" not in self.__dict__ or short not in self.recording.attributes:
            raise AttributeError(f"an instant has no {name}")
        stream = self.recording[self.recording.attributes[short]]
        if short == name or short == "head":
            return self._of(stream)
        if not isinstance(stream, PosedStream):
            raise AttributeError(f"{stream.name} carries no poses")
        return stream.sample_pose(self.seconds)[0]

    def _of(self, stream: TimedStream) -> Any:
        try:
            if type(stream).sample is TimedStream.sample:
                return stream.near(self.seconds)
            found = stream.sample(self.seconds)
        except (NotKnown, SensorError):
            return None
        return type(found)(*(one[0] for one in found)) if isinstance(found, tuple) else found[0]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.recording.attributes]

    def __repr__(self) -> str:
        return f"<{self.recording.id} at {self.seconds:.3f} s>"


def _is_camera(stream: TimedStream) -> bool:
    return isinstance(stream, PictureStream | FilmStream)


class InstantSequence:
    """Instants of a recording at a steady rate: with a length and numbers, as data loaders want it.

    With `read`, names of streams, a value is a dictionary of arrays that is read where it is asked for: in the worker
    of a data loader. Without, it is an instant, of which nothing is read until somebody looks.
    """

    def __init__(
        self, recording: RecordingSource, hz: float, start: float, end: float, read: Sequence[str] = ()
    ) -> None:
        if a_number(hz) <= 0:
            raise ValueError(f"{hz} instants a second: a rate is more than 0")
        self.recording, self.hz, self.start, self.end = recording, float(hz), a_number(start), a_number(end)
        self.read = (read,) if isinstance(read, str) else tuple(read)
        for name in self.read:
            _ = recording[name]  # which raises UnknownStream here, not in a worker

    def __len__(self) -> int:
        """Count the instants from `start` to `end`, both included."""
        return max(0, floor((self.end - self.start) * self.hz + 1e-9) + 1)

    @overload
    def __getitem__(self, number: slice) -> list[Any]: ...
    @overload
    def __getitem__(self, number: int) -> Any: ...
    def __getitem__(self, number: int | slice) -> Any:
        """Return an instant or what is read of it; of a slice a list. Raises IndexError."""
        if isinstance(number, slice):
            return [self[which] for which in range(*number.indices(len(self)))]
        which = whole(number)
        if not -len(self) <= which < len(self):
            raise IndexError(f"{len(self)} instants, there is no number {number}")
        instant = OneInstant(self.recording, self.start + which % len(self) / self.hz)
        return instant.read(self.read) if self.read else instant

    def __iter__(self) -> Iterator[Any]:
        """Yield all instants in order."""
        return (self[number] for number in range(len(self)))

    def in_workers(self, workers: int) -> Iterator[Any]:
        """Yield what is read of all instants in order, read by worker processes, a second each at a time.

        No more is read ahead than a second for each worker. A script calls it below `if __name__ == "__main__":`, as
        Python starts the workers by importing it. Raises ValueError without `read`, RuntimeError where workers cannot
        be started, and what reading raises.
        """
        if whole(workers) < 1:
            raise ValueError(f"{workers} workers: one at least")
        if not self.read:
            raise ValueError("workers read streams: name them, as in instants(10, read=['pv', 'gopro'])")

        return read_in_workers(self.__reduce__(), len(self), workers, at_a_time=max(1, round(self.hz)))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return InstantSequence, (self.recording, self.hz, self.start, self.end, self.read)
