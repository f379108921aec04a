"""The headset's gyroscope on its repaired clock, thinned while it is read. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sensors.array_types import Floats, Int64
from storage.timeline.stamps import TICKS_PER_S, StampRepair
from sync.fit.resample import DECIMATED_HZ, GyroTrack, decimate

GYROSCOPE = "gyroscope"
HEAD_POSE = "head_pose"
BLOCK_SAMPLES = 1 << 16


@dataclass(frozen=True, slots=True)
class HeadsetGyro:
    """Headset gyroscope on its repaired clock, seconds since `epoch_ticks`, thinned to about 400 Hz."""

    epoch_ticks: int
    track: GyroTrack
    repair: StampRepair
    source: str = GYROSCOPE


def headset_gyro(
    blocks: Iterator[tuple[Int64, npt.NDArray[np.floating]]], repair: StampRepair
) -> HeadsetGyro:
    """Stamp and thin the headset's gyroscope; `blocks` yields vinyl_ns (n,) and rates (n, 3) in order."""
    epoch: int | None = None
    done = 0

    def stamped() -> Iterator[tuple[Floats, npt.NDArray[np.floating]]]:
        nonlocal epoch, done
        for vinyl_ns, rates in blocks:
            ticks = repair.ticks(vinyl_ns, first_sample=done)
            done += len(vinyl_ns)
            epoch = int(ticks[0]) if epoch is None else epoch
            yield (ticks - epoch).astype(np.float64) / TICKS_PER_S, rates

    factor = max(1, round(repair.rate_hz / DECIMATED_HZ))
    track = decimate(stamped(), factor)
    assert epoch is not None
    return HeadsetGyro(epoch, track, repair)


def in_blocks(
    vinyl_ns: Int64, rates: npt.NDArray[np.floating]
) -> Iterator[tuple[Int64, npt.NDArray[np.floating]]]:
    """Cut whole arrays into blocks, so that nothing of full length is built."""
    for start in range(0, len(vinyl_ns), BLOCK_SAMPLES):
        piece = slice(start, start + BLOCK_SAMPLES)
        yield vinyl_ns[piece], rates[piece]
