"""Head, eyes and hands as arrays with validity, and sound as arrays with stamps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.sensors.hololens.streams import microphone
from kitchensync.shell.array_types import Floats32
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
        """Return where a part is valid, (n,); bits are constants of the stream's module. Invalid parts are outdated.

        Only for streams whose records have the field `valid`: spatial input and the eye tracker.
        """
        is_valid: npt.NDArray[np.bool_] = (self.values["valid"] & bit) != 0
        return is_valid


def read_records(stream: StoredPackets, kept: np.dtype | None = None) -> Records:
    """Read all packets of spatial input or of the eye tracker, by default all fields. Raises NotOfThisKind."""
    check_kind(stream.name, "records")
    record = headset_stream(stream.name.rpartition("/")[2]).record
    assert record is not None, "every stream of this kind has one"
    hidden, count = stream.hidden, 0
    values, rows = np.empty(len(stream), kept or record), np.empty(len(stream), np.int64)
    for row, payload in stream.packets():
        if hidden[row]:
            continue
        if len(payload) == record.itemsize:
            _copy(np.frombuffer(payload, record), values[count : count + 1])
            rows[count] = row
            count += 1
        else:
            stream.bad[row] = f"{len(payload)} bytes instead of {record.itemsize}"
    ticks = stream.index["device_ticks"].astype(np.int64)[rows[:count]]
    return Records(values[:count], rows[:count], ticks)


def _copy(record: npt.NDArray[np.void], into: npt.NDArray[np.void]) -> None:
    """Copy the fields of `into`, including nested ones."""
    for name in into.dtype.names or ():
        if into.dtype[name].base.names:
            _copy(record[name], into[name])
        else:
            into[name] = record[name]


def read_sound(stream: StoredPackets, start: int, stop: int) -> Iterator[tuple[int, Floats32]]:
    """Return (device_ticks, (channels, samples) float32 in -1..1) of the packets [start, stop), lazily.

    Undecodable packets are left out and entered in `stream.bad`. Raises NotOfThisKind.
    """
    check_kind(stream.name, "sound")
    return _sound(stream, start, stop)


def _sound(stream: StoredPackets, start: int, stop: int) -> Iterator[tuple[int, Floats32]]:
    ticks, hidden = stream.index["device_ticks"], stream.hidden
    decode = _Aac() if stream.format.get("codec") == "aac" else _Pcm(stream.format.get("channels"))
    for row, payload in stream.packets(start, stop):
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
    """AAC with ADTS headers; each reading needs its own decoder, as its state depends on earlier packets."""

    def __init__(self) -> None:
        import av

        self._codec = av.CodecContext.create("aac", "r")

    def __call__(self, payload: bytes) -> list[Floats32]:
        return microphone.decode_aac(self._codec, payload)
