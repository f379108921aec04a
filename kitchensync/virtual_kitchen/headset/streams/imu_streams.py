"""Gyroscope, accelerometer and magnetometer: batches of samples, with the driver's defects.

All samples of a batch have the host tick of the first, and that tick is late by a random delay. The
sensor's own clock is smooth, but its nanoseconds are about 1 % off, as measured on real headsets.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from kitchensync.virtual_kitchen.headset.client_configuration import ConfigurationReader, Rejected
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.stream import Feed, Schedule, SentPacket, Stream
from kitchensync.virtual_kitchen.world.rotations import Floats, matrices
from kitchensync.virtual_kitchen.world.seeds import generator

SAMPLE = np.dtype([("sensor_ns", "<u8"), ("soc_ticks", "<u8"), ("xyz", "<f4", 3), ("temperature_c", "<f4")])
DELAY_MEAN_S = 0.25e-3
LATE_SHARE, LATEST_S = 0.01, 5e-3
_DELAY_BLOCK = 1024

# Mounting: head axes to sensor axes. The gyroscope is turned from the head's axes by 90 degrees and a few more.
GYROSCOPE_FROM_HEAD = np.array(
    [[0.0, -0.998630, 0.052336], [0.999391, -0.001826, -0.034852], [0.034900, 0.052304, 0.998021]]
)
ACCELEROMETER_FROM_HEAD = np.diag([1.0, -1.0, -1.0])
MAGNETOMETER_FROM_HEAD = np.array([[0.0, 0.0, -1.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
WORLD_FIELD = np.array([180.0, -430.0, 205.0])  # magnetic field in the sensor's unit, tenths of a microtesla


@dataclass(frozen=True, slots=True)
class ImuKind:
    """One sensor: a batch spans `host_s` of headset time and `sensor_s` of the sensor's own clock."""

    name: str
    port: int
    samples: int
    host_s: float
    sensor_s: float
    noise: float  # standard deviation of a sample, wire unit


GYROSCOPE = ImuKind("gyroscope", 3807, 315, 47.68e-3, 48.12e-3, 0.12)
ACCELEROMETER = ImuKind("accelerometer", 3806, 93, 85.08e-3, 84.24e-3, 0.03)
MAGNETOMETER = ImuKind("magnetometer", 3808, 11, 220.0e-3, 220.0e-3, 0.6)
Measure = Callable[[Floats], Floats]


@lru_cache(maxsize=16)
def _delays_s(seed: int, name: str, block: int) -> npt.NDArray[np.float64]:
    """Return the delays of the host stamps of one block of batches: exponential with rare long ones."""
    rng = generator(seed, name + " delay", block)
    delays = rng.exponential(DELAY_MEAN_S, _DELAY_BLOCK)
    late = rng.random(_DELAY_BLOCK) < LATE_SHARE
    return delays + np.where(late, rng.uniform(1e-3, LATEST_S, _DELAY_BLOCK), 0.0)


class ImuFeed(Feed):
    """Batches of one sensor for one client."""

    def __init__(self, headset: HeadsetState, kind: ImuKind, measure: Measure, with_pose: bool) -> None:
        seed = headset.kitchen.seed
        rng = generator(seed, kind.name)
        rate_error = rng.uniform(-60e-6, 60e-6)
        self._headset, self._kind, self._measure, self._with_pose = headset, kind, measure, with_pose
        self._step_s = kind.host_s / kind.samples * (1 + rate_error)
        self._sensor_step_ns = kind.sensor_s / kind.samples * 1e9
        self._sensor_epoch_ns = int(rng.integers(10**9, 10**14))
        self._temperature_c = float(rng.uniform(33, 44))
        phase_s = float(rng.uniform(0, kind.host_s))
        period_s = self._step_s * kind.samples
        self._schedule = Schedule(period_s, phase_s, period_s)

    def _delay_s(self, k: int) -> float:
        block, row = divmod(k, _DELAY_BLOCK)
        return float(_delays_s(self._headset.kitchen.seed, self._kind.name, block)[row])

    def due_s(self, k: int) -> float:
        """Return when the batch is complete and sent."""
        return self._schedule.due_s(k) + self._delay_s(k)

    def packet(self, k: int) -> SentPacket:
        """Return batch k; its stamp is the late host tick of its first sample."""
        kind = self._kind
        first = k * kind.samples
        index = np.arange(kind.samples)
        start_s = self._schedule.captured_s(k)
        soc_ticks = self._headset.clock.ticks_at(start_s + self._delay_s(k))
        noise = generator(self._headset.kitchen.seed, kind.name + " noise", k).standard_normal(
            (kind.samples, 3)
        )
        batch = np.zeros(kind.samples, SAMPLE)
        batch["sensor_ns"] = self._sensor_epoch_ns + np.rint(self._sensor_step_ns * (first + index)).astype(
            np.int64
        )
        batch["soc_ticks"] = soc_ticks
        batch["xyz"] = self._measure(start_s + self._step_s * index.astype(np.float64)) + noise * kind.noise
        if kind is not MAGNETOMETER:  # the magnetometer has padding in this field
            batch["temperature_c"] = self._temperature_c
        pose = self._headset.pose(self._headset.clock.world_s_at(soc_ticks)) if self._with_pose else b""
        return SentPacket(soc_ticks, batch.tobytes(), pose)

    def moved(self, payload: bytes, batches: int, ticks: int) -> bytes:
        """Return a batch with the stamps of `batches` later and the same values (for rings)."""
        batch = np.frombuffer(payload, SAMPLE).copy()
        batch["sensor_ns"] += np.uint64(round(self._sensor_step_ns * self._kind.samples * batches))
        batch["soc_ticks"] += np.uint64(ticks)
        return batch.tobytes()


class ImuStream(Stream):
    """The port of one sensor: mode 0 or 1, one byte."""

    def __init__(self, headset: HeadsetState, kind: ImuKind) -> None:
        super().__init__(headset)
        self._kind = kind
        self.name, self.port = kind.name, kind.port

    def configure(self, reader: ConfigurationReader) -> Feed | None:
        """Read the mode; mode 2 downloads rig to sensor, except for the magnetometer."""
        mode = reader.number("B") & 3
        if mode == 2 and self._kind.name in _EXTRINSICS:
            matrix = np.eye(4, dtype="<f4")  # for row vectors
            matrix[:3, :3] = _EXTRINSICS[self._kind.name].T
            reader.answer(matrix.tobytes())
            return None
        if mode > 1:
            raise Rejected(f"mode {mode}")
        return ImuFeed(self._headset, self._kind, _MEASURES[self._kind.name](self._headset), mode == 1)


def _gyroscope(headset: HeadsetState) -> Measure:
    """Measure angular velocity in the wire unit, with a bias of tenths of a degree per second."""
    bias_deg_per_s = generator(headset.kitchen.seed, "gyroscope bias").normal(0, 0.25, 3)
    scale = 1.0 if headset.gyroscope_unit == "deg_per_s" else np.pi / 180

    def measure(t_s: Floats) -> Floats:
        return (
            np.degrees(headset.motion.angular_velocity(t_s) @ GYROSCOPE_FROM_HEAD.T) + bias_deg_per_s
        ) * scale

    return measure


def _accelerometer(headset: HeadsetState) -> Measure:
    """Measure specific force in m/s^2."""
    bias = generator(headset.kitchen.seed, "accelerometer bias").normal(0, 0.04, 3)

    def measure(t_s: Floats) -> Floats:
        return headset.motion.specific_force(t_s) @ ACCELEROMETER_FROM_HEAD.T + bias

    return measure


def _magnetometer(headset: HeadsetState) -> Measure:
    """Measure the field of the earth and of the headset itself."""
    iron = generator(headset.kitchen.seed, "magnetometer iron").normal(0, 120, 3)

    def measure(t_s: Floats) -> Floats:
        field = np.einsum("nij,i->nj", matrices(headset.motion.orientation(t_s)), WORLD_FIELD)
        return field @ MAGNETOMETER_FROM_HEAD.T + iron

    return measure


_EXTRINSICS = {"gyroscope": GYROSCOPE_FROM_HEAD, "accelerometer": ACCELEROMETER_FROM_HEAD}
_MEASURES: dict[str, Callable[[HeadsetState], Measure]] = {
    "gyroscope": _gyroscope,
    "accelerometer": _accelerometer,
    "magnetometer": _magnetometer,
}
