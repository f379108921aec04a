"""One instant of all streams of a recording, and instants at a steady rate."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from math import floor
from multiprocessing import get_context
from operator import index as whole
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from kitchensync.reader.film_streams import FilmStream
from kitchensync.reader.headset_streams import PictureStream, PosedStream
from kitchensync.reader.reading_clock import NotKnown
from kitchensync.reader.recording_source import RecordingSource
from kitchensync.reader.timed_stream import TimedStream, as_number
from kitchensync.sensors.errors import SensorError
from kitchensync.storage.errors import StorageError

POSE = "world_from_"
_sequence: list[Any] = []
"""In a worker process: its sequence of instants, opened at the first task."""


class OneInstant:
    """The values of all streams at one session time: `instant.pv`, `instant.gyroscope`, `instant.world_from_pv`.

    Frames, depth and sound are the nearest ones, None if none is near. Samples and poses are interpolated, NaN where
    they cannot be. Values are read when they are accessed.
    """

    def __init__(self, recording: RecordingSource, seconds: float) -> None:
        self.recording, self.seconds = recording, as_number(seconds)

    @property
    def pictures(self) -> dict[str, npt.NDArray[np.uint8]]:
        """Frames at this instant by the name of the camera, uint8 RGB; cameras without a near frame are missing."""
        # Several attributes may name one stream, such as `gopro`: reversed, the first of them is kept.
        names = {full: short for short, full in reversed(self.recording.attributes.items())}
        frames = {}
        for full, short in names.items():
            stream = self.recording[full]
            if isinstance(stream, PictureStream | FilmStream):
                frames[short] = self._value_of(stream)
        return {short: frame for short, frame in frames.items() if frame is not None}

    @property
    def utc(self) -> np.datetime64:
        """UTC of this time. Raises NotKnown."""
        return self.recording.utc(self.seconds)

    @property
    def indices(self) -> dict[str, int]:
        """Number of the value near this instant, by the full name of the stream."""
        numbers = {}
        for name in self.recording.streams:
            stream = self.recording[name]
            try:
                number = stream.index_near(self.seconds)
            except (IndexError, StorageError, SensorError):
                continue
            if number is not None:
                numbers[name] = number
        return numbers

    @property
    def times(self) -> dict[str, float]:
        """Session seconds of the value near this instant, by the attribute name of the stream."""
        numbers = self.indices
        return {
            short: float(self.recording[full].times[numbers[full]])
            for short, full in self.recording.attributes.items()
            if full in numbers
        }

    def read(self, names: Iterable[str]) -> dict[str, Any]:
        """Return `seconds` and the values of some streams, by attribute or full name: arrays, or None."""
        return {"seconds": self.seconds} | {
            name: self[self.recording.attributes.get(name, name)] for name in names
        }

    @property
    def steps(self) -> list[str]:
        """Texts of the steps in progress."""
        return [row["step"] for row in self.recording.step_rows if row["start"] <= self.seconds < row["end"]]

    def __getitem__(self, name: str) -> Any:
        """Return the value of a stream by its full name, None if it has none. Raises UnknownStream."""
        return self._value_of(self.recording[name])

    def __getattr__(self, name: str) -> Any:
        short = name.removeprefix(POSE)
        if "recording" not in self.__dict__ or short not in self.recording.attributes:
            raise AttributeError(f"an instant has no {name}")
        stream = self.recording[self.recording.attributes[short]]
        if short == name or short == "head":
            return self._value_of(stream)
        if not isinstance(stream, PosedStream):
            raise AttributeError(f"{stream.name} has no poses")
        return stream.sample_pose(self.seconds)[0]

    def _value_of(self, stream: TimedStream) -> Any:
        try:
            if type(stream).sample is TimedStream.sample:
                return stream.near(self.seconds)
            sampled = stream.sample(self.seconds)
        except (NotKnown, SensorError):
            return None
        # Hands and gaze are named tuples of arrays.
        if isinstance(sampled, tuple):
            return type(sampled)(*(array[0] for array in sampled))
        return sampled[0]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.recording.attributes]

    def __repr__(self) -> str:
        return f"<{self.recording.id} at {self.seconds:.3f} s>"


class InstantSequence:
    """Instants of a recording at a steady rate: a sequence that can be pickled, for data loaders.

    With `read`, names of streams, a value is a dictionary of arrays, read on access: in the worker of a data loader.
    Without `read` it is a `OneInstant`.
    """

    def __init__(
        self, recording: RecordingSource, hz: float, start: float, end: float, read: Sequence[str] = ()
    ) -> None:
        if as_number(hz) <= 0:
            raise ValueError(f"{hz} instants a second: the rate must be more than 0")
        self.recording, self.hz, self.start, self.end = recording, float(hz), as_number(start), as_number(end)
        self.read = (read,) if isinstance(read, str) else tuple(read)
        for name in self.read:
            _ = recording[name]  # raises UnknownStream here, not in a worker

    def __len__(self) -> int:
        """Count the instants from `start` to `end`, both included."""
        return max(0, floor((self.end - self.start) * self.hz + 1e-9) + 1)

    @overload
    def __getitem__(self, number: slice) -> list[Any]: ...
    @overload
    def __getitem__(self, number: int) -> Any: ...
    def __getitem__(self, number: int | slice) -> Any:
        """Return an instant, or its values with `read`; a list for a slice. Raises IndexError."""
        if isinstance(number, slice):
            return [self[k] for k in range(*number.indices(len(self)))]
        k = whole(number)
        if not -len(self) <= k < len(self):
            raise IndexError(f"{number} is out of range of {len(self)} instants")
        instant = OneInstant(self.recording, self.start + k % len(self) / self.hz)
        return instant.read(self.read) if self.read else instant

    def __iter__(self) -> Iterator[Any]:
        """Yield all instants in order."""
        return (self[number] for number in range(len(self)))

    def in_workers(self, workers: int) -> Iterator[Any]:
        """Yield the values of all instants in order, read by worker processes.

        Each worker reads at most one second ahead. A script must call this below `if __name__ == "__main__":`, since
        Python starts the workers by importing the script. Raises ValueError without `read`, RuntimeError if workers
        cannot be started, and the errors of reading.
        """
        if whole(workers) < 1:
            raise ValueError(f"{workers} workers: at least one is needed")
        if not self.read:
            raise ValueError("workers need the names of streams, as in instants(10, read=['pv', 'gopro'])")
        return read_in_workers(self.__reduce__(), len(self), workers, at_a_time=max(1, round(self.hz)))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return InstantSequence, (self.recording, self.hz, self.start, self.end, self.read)


def read_in_workers(
    reduced: tuple[Callable[..., Any], tuple[Any, ...]], count: int, workers: int, *, at_a_time: int
) -> Iterator[Any]:
    """Yield the values of `count` instants in order; each worker reads at most `at_a_time` instants ahead.

    `reduced` is what `__reduce__` of the sequence of instants returns.

    Raises the errors of reading, and RuntimeError if a worker cannot be started or was killed.
    """
    pool = ProcessPoolExecutor(workers, get_context("spawn"))
    # A recording that cannot be opened while a task is unpickled would break the pool. So the worker gets the
    # arguments for opening it, and an error becomes the result of its task.
    make, (recording, *options) = reduced
    open_recording = recording.__reduce__()
    try:
        ahead: deque[Future[list[Any]]] = deque()
        for first in range(0, count, at_a_time):
            numbers = slice(first, first + at_a_time)
            ahead.append(pool.submit(_read, make, open_recording, options, numbers))
            if len(ahead) > workers:
                yield from ahead.popleft().result()
        for future in ahead:
            yield from future.result()
    except BrokenProcessPool as error:
        guard = 'scripts must call in_workers below `if __name__ == "__main__":`'
        raise RuntimeError(f"a worker process did not start or was killed; {guard}") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _read(make: Callable[..., Any], open_recording: Any, options: list[Any], numbers: slice) -> list[Any]:
    if not _sequence:
        function, arguments = open_recording
        _sequence.append(make(function(*arguments), *options))
    values: list[Any] = _sequence[0][numbers]
    return values
