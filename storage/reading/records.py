"""Head, eyes and hands as arrays with validity, and sound as arrays with stamps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.array_types import Floats32
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.sensors.hololens.streams import microphone, spatial_input
from kitchensync.storage.reading.stream_kinds import check_kind

if TYPE_CHECKING:
    from kitchensync.storage.chunks.stored_packets import StoredPackets


@dataclass(frozen=True)
class Records:
    """Packets of fixed layout: `values` (n,) of the stream's dtype, `row` and `device_ticks` of each."""

    values: npt.NDArray[np.void]
    row: npt.NDArray[np.int64]
    device_ticks: npt.NDArray[np.int64]

    def has(self, bit: int) -> npt.NDArray[np.bool_]:
        """Return where a part is valid, (n,): bits are constants of the stream's module. Others hold old values.

        Only for streams whose records have the field `valid`: spatial input and the eye tracker.
        """
        found: npt.NDArray[np.bool_] = (self.values["valid"] & bit) != 0
        return found


@dataclass(frozen=True)
class Hand:
    """One hand over time, 26 joints in the order of `spatial_input.JOINTS`; rows without it hold NaN."""

    valid: npt.NDArray[np.bool_]
    "(n,) whether the hand was seen."
    position_m: Floats32
    "(n, 26, 3) in the world frame."
    orientation_xyzw: Floats32
    "(n, 26, 4)."
    radius_m: Floats32
    "(n, 26)."
    is_approximate: npt.NDArray[np.bool_]
    "(n, 26)."


def read_records(stream: StoredPackets) -> Records:
    """Read all packets of spatial input or of the eye tracker. Raises NotOfThisKind."""
    check_kind(stream.name, "records")
    record = headset_stream(stream.name.rpartition("/")[2]).record
    assert record is not None, "every stream of this kind has one"
    hidden, count = stream.hidden, 0
    values, rows = np.empty(len(stream), record), np.empty(len(stream), np.int64)
    for row, payload in enumerate(stream.payloads()):
        if hidden[row]:
            continue
        if len(payload) == record.itemsize:
            values[count], rows[count] = np.frombuffer(payload, record)[0], row
            count += 1
        else:
            stream.bad[row] = f"{len(payload)} bytes instead of {record.itemsize}"
    ticks = stream.index["device_ticks"].astype(np.int64)[rows[:count]]
    return Records(values[:count], rows[:count], ticks)


def hand(records: Records, side: str) -> Hand:
    """Take one hand, "left" or "right", out of spatial input."""
    bit = {"left": spatial_input.LEFT_HAND, "right": spatial_input.RIGHT_HAND}[side]
    valid, joints = records.has(bit), records.values[f"{side}_hand"]

    def known(values: Floats32) -> Floats32:
        there = valid.reshape(-1, *[1] * (values.ndim - 1))
        return np.where(there, values, np.float32(np.nan))

    return Hand(
        valid=valid,
        position_m=known(joints["position"]),
        orientation_xyzw=known(joints["orientation_xyzw"]),
        radius_m=known(joints["radius"]),
        is_approximate=joints["accuracy"] != 0,
    )


def read_sound(stream: StoredPackets, start: int, stop: int) -> Iterator[tuple[int, Floats32]]:
    """Return (device_ticks, (channels, samples) float32 in -1..1) of the packets [start, stop), lazily.

    Packets that do not decode are left out and named in `stream.bad`. Raises NotOfThisKind.
    """
    check_kind(stream.name, "sound")
    return _sound(stream, start, stop)


def _sound(stream: StoredPackets, start: int, stop: int) -> Iterator[tuple[int, Floats32]]:
    ticks, hidden = stream.index["device_ticks"], stream.hidden
    decode = _Aac() if stream.format.get("codec") == "aac" else _Pcm(stream.format.get("channels"))
    for row, payload in enumerate(stream.payloads(start, stop), start):
        try:
            for samples in decode(payload):
                if not hidden[row]:
                    yield int(ticks[row]), samples
        except SensorError as error:
            stream.bad[row] = str(error)


class _Pcm:
    """Raw sound: two channels of 16 bits, or the five microphones as float."""

    def __init__(self, channels: object) -> None:
        self._is_array = channels != 2

    def __call__(self, payload: bytes) -> list[Floats32]:
        if self._is_array:
            return [microphone.decode_array(payload).T]
        return [np.asarray(microphone.decode_pcm(payload).T / 32768, np.float32)]


class _Aac:
    """AAC with ADTS headers: one decoder for a reading, since it remembers the packet before."""

    def __init__(self) -> None:
        import av

        self._codec = av.CodecContext.create("aac", "r")

    def __call__(self, payload: bytes) -> list[Floats32]:
        return microphone.decode_aac(self._codec, payload)
