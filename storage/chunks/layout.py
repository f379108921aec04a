"""How the payloads of a stream lie in its files: as plain bytes, as typed records, or as compressed pictures.

Whatever the layout, the bytes of every payload come back exactly as the sensor sent them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from sensors.clock_probe import PROBE
from sensors.hololens.catalogue import STREAMS
from sensors.stream import record_of
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


@cache
def layout_of(stream: str, form: str = "{}") -> Layout:
    """Choose the layout of a stream by what its sensor says of its payloads; `form` is its description as JSON.

    A chunk whose payloads do not fit is stored as a blob all the same: nothing is refused for its size.
    """
    device, _, short = stream.partition("/")
    if device == CLOCK_STREAMS:
        return RecordLayout(PROBE)
    description = json.loads(form)
    # What is described and names no module is a plug-in's, whatever its name.
    known = STREAMS.get(short) if not description or "module" in description else None
    if known is not None and known.picture_parts is not None:
        return Frames(*known.picture_parts)
    record = known.record if known is not None else record_of(description)
    return Blob() if record is None else RecordLayout(record)


def fitting(layout: Layout, sizes: Sequence[int]) -> Layout:
    """Return the layout if payloads of these sizes fit into it, else a blob."""
    return layout if isinstance(layout, Blob) or layout.fits(sizes) else Blob()
