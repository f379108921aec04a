"""Take place and serial number out of a joined file: what must not leave the house with a shared video.

Telemetry keeps its size and place; a removed stream leaves zeros at the payload's end, which readers take as padding.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from kitchensync.sensors.errors import BadGpmf, CannotJoin
from kitchensync.sensors.gopro.mp4 import gpmf
from kitchensync.sensors.gopro.mp4.boxes import boxes, find, top_boxes
from kitchensync.sensors.gopro.mp4.sample_tables import SampleTables, box

LOCATION_KEYS = frozenset({"GPS5", "GPS9", "GPSU", "GPSF", "GPSP", "GPSA", "GPRI", "GLPI"})
IDENTITY_KEYS = frozenset({"CASN", "LINF", "MUID", "GUMI", "BCID", "CAME"})
"Keys of the camera's header that name the very device or file."
SHAREABLE = frozenset({"FIRM", "SETT", "HMMT", "GPMF"})
"Boxes of moov/udta that say nothing of place or owner."
SERIAL_TAIL = 8
SEARCH_BYTES = 16 << 20


class SamplePlaces(NamedTuple):
    """Where things lie in the new file."""

    telemetry: list[SampleTables]
    kept: list[SampleTables]


def header_text(moov: memoryview, key: str) -> str | None:
    """Read a text of the camera's own header (udta GPMF), None when it is not there or not readable."""
    header = find(moov, "udta", "GPMF")
    if header is None:
        return None
    try:
        return gpmf.header_texts(header).get(key)
    except BadGpmf:
        return None


def strip_data(out: BinaryIO, samples: SamplePlaces) -> list[str]:
    """Rewrite telemetry without places, and put zeros over all that no track uses; return what was taken out."""
    end = out.tell()
    taken: set[str] = set()
    for tables in samples.telemetry:
        for offset, size in zip(tables.offsets.tolist(), tables.sizes.tolist(), strict=True):
            out.seek(offset)
            data = out.read(size)
            try:
                clean, keys = without_location(data)
            except BadGpmf as error:
                raise CannotJoin(Path(out.name).name, f"telemetry at byte {offset} is {error}") from error
            if keys:
                taken |= keys
                out.seek(offset)
                out.write(clean)
    if _blank_gaps(out, samples.kept, end):
        taken.add("unused bytes")
    out.seek(end)
    return sorted(taken | {"serial number"})


def without_location(payload: bytes) -> tuple[bytes, set[str]]:
    """Return a payload of the same length without streams that tell a place, and the keys that went."""
    gone: set[str] = set()
    devices = []
    for klv in gpmf.read_klvs(payload):
        if klv.kind != "\0":
            devices.append(_raw(payload, klv))
            continue
        kept = []
        for inner in gpmf.children(klv):
            found = {k.key for k in gpmf.children(inner)} & LOCATION_KEYS if inner.kind == "\0" else set()
            found |= {inner.key} & LOCATION_KEYS
            gone |= found
            kept += [] if found else [_raw(payload, inner)]
        devices.append(_nest(klv.key, b"".join(kept)))
    return b"".join(devices).ljust(len(payload), b"\0") if gone else payload, gone


def _raw(payload: bytes | memoryview, klv: gpmf.Klv) -> bytes:
    length = 8 + (len(klv.data) + 3) // 4 * 4
    return bytes(payload[klv.offset : klv.offset + length])


def _nest(key: str, data: bytes) -> bytes:
    element = 1 if len(data) < 65536 else 4
    return struct.pack(">4sBBH", key.encode(), 0, element, len(data) // element) + data


def _blank_gaps(out: BinaryIO, kept: list[SampleTables], end: int) -> int:
    """Write zeros over every byte of the data that belongs to no sample; return how many."""
    out.seek(0)
    start = next(top.start for top in top_boxes(out, end) if top.kind == "mdat")
    offsets = np.concatenate([tables.offsets for tables in kept])
    sizes = np.concatenate([tables.sizes for tables in kept])
    order = np.argsort(offsets, kind="stable")
    begins = np.append(offsets[order], end)
    ends = np.maximum.accumulate(np.concatenate([[start], (offsets + sizes)[order]]))
    blanked = 0
    for at in np.flatnonzero(begins > ends):
        left = int(begins[at] - ends[at])
        out.seek(int(ends[at]))
        blanked += left
        while left:
            out.write(bytes(min(left, SEARCH_BYTES)))
            left -= min(left, SEARCH_BYTES)
    return blanked


def stripped_user_data(udta: memoryview) -> bytes:
    """Make moov/udta anew with what may be shared: firmware, settings, hilight times, the header without its ids."""
    made = []
    for part in boxes(udta):
        if part.kind == "GPMF":
            made.append(box("GPMF", _clean_header(bytes(part.data))))
        elif part.kind in SHAREABLE:
            made.append(box(part.kind, part.data))
    return box("udta", *made)


def _clean_header(data: bytes) -> bytes:
    """Drop the ids and the hilights with their places (their times stay in HMMT); same length."""
    made = []
    for device in gpmf.read_klvs(data):
        keys = list(gpmf.children(device)) if device.kind == "\0" else []
        if any(klv.key == "DVID" and bytes(klv.data) == b"HLMT" for klv in keys):
            continue
        drop = IDENTITY_KEYS | LOCATION_KEYS
        made.append(_nest(device.key, b"".join(_raw(data, klv) for klv in keys if klv.key not in drop)))
    return b"".join(made).ljust(len(data), b"\0")


def check_gone(out: BinaryIO, moovs: list[memoryview], target: Path) -> None:
    """Search the whole new file for the cameras' serial numbers; `CannotJoin` when one is left."""
    serials = {serial for moov in moovs if (serial := header_text(moov, "CASN"))}
    wanted = {serial[-length:].encode() for serial in serials for length in (len(serial), SERIAL_TAIL)}
    wanted = {text for text in wanted if len(text) >= SERIAL_TAIL}
    if not wanted:
        return
    out.seek(0)
    tail = b""
    while block := out.read(SEARCH_BYTES):
        if any(text in tail + block for text in wanted):
            raise CannotJoin(target.name, "the camera's serial number is still in it; it was not written")
        tail = block[-64:]
