"""Layouts of payloads in the files of a stream: plain bytes, typed records, or compressed pictures.

With every layout the bytes of a payload are read exactly as the sensor sent them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.sensors.stream import record_of
from kitchensync.shell.host_clock import PROBE
from kitchensync.storage.names import CLOCK_STREAMS

SCHEMA = "chunk/2"

CHUNK, ARCHIVE = "chunk", "archive"
"""Attribute `kind`: some seconds of a stream, or the whole stream."""

INDEX = np.dtype(
    [
        ("seq", "<u8"),  # the producer's number of the packet, from 0, without gaps except declared losses
        ("epoch_ms", "<u8"),  # run of the producer (Unix milliseconds of its start)
        ("device_ticks", "<i8"),  # the sensor's stamp, 100 ns ticks of the device's clock, as sent
        ("host_ns", "<i8"),  # arrival, CLOCK_MONOTONIC of the capture computer
        ("offset", "<u8"),  # first byte of the payload in the concatenated payloads of the file
        ("size", "<u4"),  # bytes of the payload
        ("crc32", "<u4"),  # of the payload
        ("connection", "<u4"),  # number of its connection in this run, from 1
    ]
)
"""One row per packet, in order of arrival."""

BLOCKS = np.dtype(
    [
        ("number", "<u4"),  # of the chunk, from 1
        ("first_row", "<u8"),  # its first packet in `index`
        ("rows", "<u8"),  # number of its packets
        ("file_bytes", "<u8"),  # size of its file
        ("file_sha256", "S64"),  # of its sealed file
        ("payload_sha256", "S64"),  # of its concatenated payloads
    ]
)
"""In an archive: one row per packed chunk."""

POSE_FLOATS = 16  # hl2ss sends a 4 x 4 float32 matrix after the payload
DEVICE_TICK_HZ = 10_000_000  # hl2ss scales all stamps to 100 ns
HOST_CLOCK = "CLOCK_MONOTONIC, ns"


BLOB, RECORDS, FRAMES = "blob", "records", "frames"
"""Names of the layouts in the attribute `layout` of a file."""


@dataclass(frozen=True)
class Blob:
    """Payloads of any size, concatenated in `data`, uint8."""

    name = BLOB


@dataclass(frozen=True)
class RecordLayout:
    """Every payload is a whole number of records: `records` has all of them, typed, in order."""

    record: np.dtype
    name = RECORDS

    def fits(self, sizes: Sequence[int]) -> bool:
        """Return whether payloads of these sizes fit."""
        return sum(sizes) > 0 and all(size % self.record.itemsize == 0 for size in sizes)


@dataclass(frozen=True)
class Frames:
    """Every payload is a head, a picture and a tail of fixed sizes: datasets `head`, `frames`, `tail`."""

    head: np.dtype
    frame: np.dtype
    "A subarray dtype, such as 2 x 512 x 512 of uint16."
    tail: np.dtype
    name = FRAMES

    @property
    def itemsize(self) -> int:
        """Bytes of one payload."""
        return self.head.itemsize + self.frame.itemsize + self.tail.itemsize

    def fits(self, sizes: Sequence[int]) -> bool:
        """Return whether payloads of these sizes fit."""
        return bool(sizes) and all(size == self.itemsize for size in sizes)


Layout = Blob | RecordLayout | Frames


@cache
def layout_of(stream: str, form: str = "{}") -> Layout:
    """Choose the layout of a stream by its sensor; `form` is the description of its payloads as JSON.

    A chunk with payloads of other sizes is stored as a blob, so that no payload is refused.
    """
    device, _, short = stream.partition("/")
    if device == CLOCK_STREAMS:
        return RecordLayout(PROBE)
    description = json.loads(form)
    # A stream with a description but no module is a plug-in's, whatever its name.
    sensor = STREAMS.get(short) if not description or "module" in description else None
    if sensor is not None and sensor.picture_parts is not None:
        return Frames(*sensor.picture_parts)
    record = sensor.record if sensor is not None else record_of(description)
    return Blob() if record is None else RecordLayout(record)


def fitting(layout: Layout, sizes: Sequence[int]) -> Layout:
    """Return the layout if payloads of these sizes fit into it, else a blob."""
    return layout if isinstance(layout, Blob) or layout.fits(sizes) else Blob()
