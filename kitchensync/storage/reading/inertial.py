"""Samples of the inertial sensors with the stamps as sent and as repaired over the whole recording.

`read_samples` takes all of them into memory; long streams are read twice instead: `inertial_clock`, then by blocks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens.streams.inertial_samples import SAMPLE, decode_samples
from kitchensync.storage.reading.stream_kinds import check_kind
from kitchensync.storage.timeline.stamps import BatchStamps, StampRepair

if TYPE_CHECKING:
    from kitchensync.storage.chunks.stored_packets import StoredPackets

BLOCK_PACKETS = 256


@dataclass(frozen=True)
class Samples:
    """Everything that an inertial stream measured; all arrays have n rows, in the order of arrival."""

    vinyl_ns: npt.NDArray[np.int64]
    "The sensor's own clock, as sent."
    soc_ticks: npt.NDArray[np.int64]
    "Device ticks (100 ns) as sent: equal in a batch, by a fault of the driver."
    ticks: npt.NDArray[np.int64]
    "Device ticks repaired by one line through the whole recording."
    xyz: npt.NDArray[np.float32]
    "(n, 3) in the unit that the sensor sends, in the sensor's frame."
    temperature_c: npt.NDArray[np.float32]
    "Padding on the magnetometer."
    row: npt.NDArray[np.int64]
    "Packet that each sample came in."
    repair: StampRepair | None
    "How the stamps were repaired; None without samples."
    bad: dict[int, str]
    "Packets that could not be decoded, by number."


def read_samples(stream: StoredPackets) -> Samples:
    """Read all samples of a gyroscope, accelerometer or magnetometer. Raises NotOfThisKind."""
    check_kind(stream.name, "samples")
    batches, rows, stamps = [], [], BatchStamps()
    for row, payload in stream.packets():
        try:
            batch = decode_samples(stream.name, payload)
        except SensorError as error:
            stream.bad[row] = str(error)
            continue
        if len(batch):
            batches.append(batch)
            stamps.add(batch["vinyl_ns"], batch["soc_ticks"])
            rows.append(row)
    samples = np.concatenate(batches) if batches else np.empty(0, SAMPLE)
    counts = np.array([len(batch) for batch in batches], np.int64)
    repair = stamps.repair()
    vinyl = samples["vinyl_ns"].astype(np.int64)
    packets = np.repeat(np.array(rows, np.int64), counts)
    ticks = repair.ticks(vinyl) if repair else np.empty(0, np.int64)  # a pause takes part in the repair
    shown = ~stream.hidden[packets]
    return Samples(
        vinyl_ns=vinyl[shown],
        soc_ticks=samples["soc_ticks"].astype(np.int64)[shown],
        ticks=ticks[shown],
        xyz=samples["xyz"][shown],
        temperature_c=samples["temperature"][shown],
        row=packets[shown],
        repair=repair,
        bad=dict(stream.bad),
    )


@dataclass(frozen=True, slots=True)
class InertialClock:
    """Repaired clock of one inertial stream; `sha256` is over its payloads in order."""

    repair: StampRepair
    undecodable: int
    sha256: str


def inertial_clock(stream: StoredPackets) -> InertialClock | None:
    """Repair the stamps of a gyroscope, accelerometer or magnetometer; None when it holds no samples."""
    digest, stamps, decoded = hashlib.sha256(), BatchStamps(), 0
    for _, payload in stream.packets():
        digest.update(payload)
        samples = _samples(stream.name, payload)
        if samples is not None:
            stamps.add(samples["vinyl_ns"], samples["soc_ticks"])
            decoded += 1
    repair = stamps.repair()
    return InertialClock(repair, len(stream) - decoded, digest.hexdigest()) if repair is not None else None


def sample_ticks(stream: StoredPackets, clock: InertialClock) -> npt.NDArray[np.int64]:
    """Repaired ticks of every sample of an inertial stream, (n,) int64."""
    blocks, done = [], 0
    for samples in blocks_of_samples(stream):
        blocks.append(clock.repair.ticks(samples["vinyl_ns"], first_sample=done))
        done += len(samples)
    return np.concatenate(blocks) if blocks else np.empty(0, dtype=np.int64)


def packets_of_samples(stream: StoredPackets) -> Iterator[tuple[int, npt.NDArray[np.void]]]:
    """Yield (row, samples of dtype `inertial_samples.SAMPLE`) of the packets that hold any."""
    for row, payload in stream.packets():
        samples = _samples(stream.name, payload)
        if samples is not None:
            yield row, samples


def blocks_of_samples(stream: StoredPackets) -> Iterator[npt.NDArray[np.void]]:
    """Yield the samples of some packets at a time, in order; undecodable packets are left out."""
    held: list[npt.NDArray[np.void]] = []
    for _, samples in packets_of_samples(stream):
        held.append(samples)
        if len(held) >= BLOCK_PACKETS:
            yield np.concatenate(held)
            held = []
    if held:
        yield np.concatenate(held)


def _samples(name: str, payload: bytes) -> npt.NDArray[np.void] | None:
    try:
        samples: npt.NDArray[np.void] = decode_samples(name, payload)
    except SensorError:
        return None
    return samples if len(samples) else None
