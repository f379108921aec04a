"""Read the packets of a recorded headset, stream by stream, to send them again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.hololens import video
from kitchensync.sensors.hololens.headset_stream import HeadsetStream
from kitchensync.shell.array_types import Int64, Mask
from kitchensync.storage.errors import BadChunk, NothingToReplay
from kitchensync.storage.reading.headset_pictures import RAW, holds_key
from kitchensync.storage.recording import Recording, StoredStream


@dataclass(frozen=True)
class SentStream:
    """One stream: whole packets outside of privacy pauses, each video from a key frame on."""

    name: str
    "Without the device, such as `pv`."
    configuration: bytes
    "Configuration that the recorder requested."
    constants: bytes
    "Constants of the sensor, empty if they were not requested."
    ticks: Int64
    "(n,) stamps."
    arrived_ns: Int64
    "(n,) host_ns."
    begins: Mask
    "(n,) whether decoding can begin at a packet."
    rows: Int64
    "(n,) rows in the stored stream."
    stored: StoredStream

    def packet(self, k: int) -> tuple[bytes, bytes]:
        """Return payload and pose (64 bytes, or none) of a packet."""
        row = int(self.rows[k])
        pose = self.stored.pose(row)
        return self.stored.payload(row), b"" if pose is None else pose.astype("<f4").tobytes()


@dataclass(frozen=True)
class SentByHeadset:
    """All streams of one headset; `ticks_at_first` and `drift_ppm` are of its clock since the first arrival."""

    recording: str
    streams: list[SentStream]
    first_ns: int
    last_ns: int
    ticks_at_first: int
    drift_ppm: float
    is_virtual: bool
    uuid: str
    consent: str
    settings: dict[str, Any]
    "As in a rig file."
    left_out: list[str]
    "Devices that are not served."


def sent_by_headset(recording: Recording) -> SentByHeadset:
    """Read the streams of the first headset of a recording. Raises NothingToReplay, StorageError."""
    devices = recording.manifest["devices"]
    headset = next((name for name, about in devices.items() if about["kind"] == "hololens"), None)
    if headset is None:
        raise NothingToReplay(recording.path)
    streams = [stream for stream in _sent(recording, headset) if len(stream.rows)]
    if not streams:
        raise NothingToReplay(recording.path)
    first_ns = min(int(stream.arrived_ns[0]) for stream in streams)
    last_ns = max(int(stream.arrived_ns[-1]) for stream in streams)
    at_first, drift_ppm = _clock(recording, headset, streams, first_ns)
    return SentByHeadset(
        recording.id,
        streams,
        first_ns,
        last_ns,
        at_first,
        drift_ppm,
        recording.manifest.get("virtual") is True,
        str(recording.manifest.get("uuid", "")),
        str(recording.manifest.get("consent") or "none"),
        (recording.manifest.get("profile") or {}).get(headset, {}),
        [name for name in devices if name != headset],
    )


def _sent(recording: Recording, headset: str) -> Iterator[SentStream]:
    for name in recording.streams:
        sensor = recording.sensor(name)
        if sensor is not None and name.startswith(f"{headset}/"):
            stream = recording[name]
            rows, begins = _whole(stream, sensor)
            yield SentStream(
                sensor.name,
                bytes.fromhex(stream.format.get("configuration", "")),
                _constants(recording, name, sensor),
                stream.index["device_ticks"].astype(np.int64)[rows],
                stream.index["host_ns"].astype(np.int64)[rows],
                begins,
                rows,
                stream,
            )


def _whole(stream: StoredStream, sensor: HeadsetStream) -> tuple[Int64, Mask]:
    """Return the rows that can be sent, and at which of them decoding can begin."""
    codec, hidden = stream.format.get("codec", RAW), stream.hidden
    rows: list[int] = []
    begins: list[bool] = []
    is_broken = is_coded = codec in video.CODECS
    for row, payload in stream.packets():
        is_key = not is_coded or holds_key(codec, sensor, payload)
        is_broken = is_coded and (bool(hidden[row]) or (is_broken and not is_key))
        if not hidden[row] and not is_broken:
            rows.append(row)
            begins.append(is_key)
    return np.array(rows, np.int64), np.array(begins, np.bool_)


def _constants(recording: Recording, name: str, sensor: HeadsetStream) -> bytes:
    """Return the constants as bytes of float32, in the order of the sensor."""
    try:
        constants = recording.calibration(name) if sensor.constants else {}
    except BadChunk:
        return b""
    fields = [constants[constant.name].values for constant in sensor.constants if constant.name in constants]
    return b"".join(np.asarray(values, "<f4").tobytes() for values in fields)


def _clock(recording: Recording, headset: str, streams: list[SentStream], first_ns: int) -> tuple[int, float]:
    """Return the headset's ticks at `first_ns`, and the drift of its clock in ppm."""
    clock = recording.device_clock(headset)
    if clock is None:  # no packet arrives before its stamp
        offsets = [stream.ticks - (stream.arrived_ns - first_ns) // 100 for stream in streams]
        return max(int(offset.max()) for offset in offsets), 0.0
    ends: npt.NDArray[np.int64] = np.array(
        [min(stream.ticks.min() for stream in streams), max(stream.ticks.max() for stream in streams)],
        np.int64,
    )
    host_ns = clock.to_host_ns(ends)
    rate = (int(ends[1]) - int(ends[0])) / max(int(host_ns[1]) - int(host_ns[0]), 1) * 100
    return int(ends[0]) + round((first_ns - int(host_ns[0])) / 100 * rate), (rate - 1) * 1e6
