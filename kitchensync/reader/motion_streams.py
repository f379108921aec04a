"""Motion of a headset and of a camera: rotation, acceleration and magnetic field in SI units."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kitchensync.reader.reading_clock import NotKnown
from kitchensync.reader.recording_source import RecordingSource
from kitchensync.reader.timed_stream import TimedStream, import_pandas, interpolated
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.shell.array_types import Floats, Floats32, Int64
from kitchensync.storage.reading.inertial import Samples, inertial_clock, packets_of_samples, read_samples

if TYPE_CHECKING:
    import pandas


AXES = ("x", "y", "z")
BLOCK_PACKETS = 32  # some 10,000 samples of the headset's gyroscope at a time in memory


class MotionStream(TimedStream):
    """Samples of an inertial sensor, float32 (3,) in `unit`, in the sensor's own axes."""

    kind = "samples"

    @property
    @abstractmethod
    def unit(self) -> str:
        """Unit of the values: `rad/s`, `m/s^2`; magnetometer values are not converted."""

    @property
    @abstractmethod
    def values(self) -> Floats32:
        """All samples, (n, 3) float32 in `unit`. Raises NotKnown if the unit is unknown."""

    def __len__(self) -> int:
        """Count the samples."""
        return len(self.values)

    def _value(self, number: int) -> Floats32:
        return self.values[number]

    def _several(self, numbers: Int64) -> Floats32:
        return self.values[numbers]

    def sample(self, times: npt.ArrayLike) -> Floats:
        """Interpolate at session times (m,), (m, 3) float64; NaN outside and over gaps of 0.1 s."""
        return interpolated(self._sorted_times, self._sorted_values, times)

    @cached_property
    def _sorted_values(self) -> Floats32:
        order = self._in_time
        is_sorted = len(order) == len(self.values) and bool((np.diff(order) == 1).all())
        return self.values if is_sorted else self.values[order]

    def blocks(
        self, packets: int = BLOCK_PACKETS, *, or_as_sent: bool = False
    ) -> Iterator[tuple[Int64, Floats32]]:
        """Yield session ns (m,) and values (m, 3) of some samples at a time, in the order of the stream.

        With `or_as_sent` values of an unknown unit are not converted.
        """
        yield self.session_ns, self.values

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table: columns x, y, z in `unit`, index session seconds. Needs pandas."""
        pandas = import_pandas()
        index = pandas.Index(self.times, name="session_s")
        columns = [f"{axis} ({self.unit})" for axis in AXES]
        return pandas.DataFrame(self.values, index=index, columns=columns)


class HeadsetMotion(MotionStream):
    """An inertial sensor of a headset; its timestamps are repaired over the whole recording."""

    def __init__(self, recording: RecordingSource, name: str) -> None:
        super().__init__(recording, name)
        self.stored = recording.stored[name]
        self._sensor = headset_stream(name.rpartition("/")[2])

    @property
    def unit(self) -> str:
        """Unit of the values: `rad/s`, `m/s^2`; magnetometer values are not converted."""
        return "rad/s" if self._sensor.is_gyroscope else str(self._sensor.details(Profile())["unit"])

    @cached_property
    def _samples(self) -> Samples:
        return read_samples(self.stored)

    @cached_property
    def values(self) -> Floats32:
        """All samples, (n, 3) float32 in `unit`. Raises NotKnown if the unit is unknown."""
        return self._samples.xyz * self._scale

    @cached_property
    def _scale(self) -> np.float32:
        scale = self.recording.stored.si_scale(self.name)
        if scale is None and not self._sensor.is_gyroscope:
            scale = 1.0
        if scale is None:
            remedy = "run `kitchensync sync`; for later recordings set gyroscope_unit in rig.toml"
            if not self.recording.film_cameras:
                remedy = f"add a camera's video with `kitchensync gopro import`, then {remedy}"
            raise NotKnown(f"{self.recording.id}: {self.name}: its unit is unknown; {remedy}")
        return np.float32(scale)

    def blocks(
        self, packets: int = BLOCK_PACKETS, *, or_as_sent: bool = False
    ) -> Iterator[tuple[Int64, Floats32]]:
        """Yield session ns (m,) and values (m, 3) of some packets at a time.

        The stream is read twice and never held in memory: repairing the timestamps needs all of them.
        With `or_as_sent` values of an unknown unit are not converted.
        """
        clock, done = inertial_clock(self.stored), 0
        if clock is None:
            return
        as_sent = or_as_sent and self.recording.stored.si_scale(self.name) is None
        scale = np.float32(1) if as_sent else self._scale
        hidden, device = self.stored.hidden, self.name.partition("/")[0]
        arrived_ns = self.stored.index["host_ns"].astype(np.int64)
        block: list[tuple[Int64, Int64, Floats32]] = []
        for row, samples in packets_of_samples(self.stored):
            ticks = clock.repair.ticks(samples["vinyl_ns"].astype(np.int64), first_sample=done)
            done += len(samples)
            if not hidden[row]:
                block.append((ticks, np.full(len(ticks), arrived_ns[row]), samples["xyz"] * scale))
            if len(block) >= packets:
                yield self._on_session_time(device, block)
                block = []
        if block:
            yield self._on_session_time(device, block)

    def _on_session_time(
        self, device: str, block: list[tuple[Int64, Int64, Floats32]]
    ) -> tuple[Int64, Floats32]:
        ticks, near_ns, values = (np.concatenate(part) for part in zip(*block, strict=True))
        return self.recording.clock.of_ticks(device, ticks, near_ns), values

    def __len__(self) -> int:
        """Count the samples."""
        return len(self._samples.xyz)

    @cached_property
    def session_ns(self) -> Int64:
        """Session time of each sample, (n,) int64 ns. Raises NotKnown."""
        samples, device = self._samples, self.name.partition("/")[0]
        arrived_ns = self.stored.index["host_ns"][samples.row].astype(np.int64)
        return self.recording.clock.of_ticks(device, samples.ticks, arrived_ns)
