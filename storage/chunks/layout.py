"""How the payloads of a stream lie in its files: as plain bytes, as typed records, or as compressed pictures.

Whatever the layout, the bytes of every payload come back exactly as the sensor sent them.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from sensors.clock_probe import PROBE
from sensors.errors import UnknownSensorStream
from sensors.hololens import depth_ahat
from sensors.hololens.catalogue import stream_spec
from storage.names import CLOCK_STREAMS

BLOB, RECORDS, FRAMES = "blob", "records", "frames"
"""Names of the layouts, as the attribute `layout` of a file says them."""


@dataclass(frozen=True)
class Blob:
    """Payloads of any size, one after another in `data`, uint8."""

    name = BLOB


@dataclass(frozen=True)
class RecordLayout:
    """Every payload is a whole number of records: `records` holds them all, typed, in order."""

    record: np.dtype
    name = RECORDS

    def fits(self, sizes: Sequence[int]) -> bool:
        """Tell whether payloads of these sizes can be laid out so."""
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
        """Tell whether payloads of these sizes can be laid out so."""
        return bool(sizes) and all(size == self.itemsize for size in sizes)


Layout = Blob | RecordLayout | Frames

RAW_AHAT = Frames(
    head=np.dtype([("size_z", "<u4"), ("size_ab", "<u4")]),
    frame=np.dtype(("<u2", (2, depth_ahat.AHAT_HEIGHT, depth_ahat.AHAT_WIDTH))),
    tail=np.dtype([("sensor_ticks", "<u8")]),
)
"""Depth in mm and brightness as they come over a wire: the only pictures that arrive without compression."""


@cache
def layout_of(stream: str) -> Layout:
    """Choose the layout of a stream by what its sensor module says of its payloads (`DTYPE`).

    A chunk whose payloads do not fit is stored as a blob all the same: nothing is refused for its size.
    """
    device, _, short = stream.partition("/")
    if device == CLOCK_STREAMS:
        return RecordLayout(PROBE)
    if short == depth_ahat.NAME:
        return RAW_AHAT
    try:
        module = importlib.import_module(stream_spec(short).module)
    except UnknownSensorStream:
        return Blob()
    record = getattr(module, "DTYPE", None)
    return RecordLayout(record) if isinstance(record, np.dtype) else Blob()


def fitting(layout: Layout, sizes: Sequence[int]) -> Layout:
    """Return the layout if payloads of these sizes fit into it, else a blob."""
    return layout if isinstance(layout, Blob) or layout.fits(sizes) else Blob()
