"""Remove location and serial number from a joined file, so that the video can be shared.

Telemetry keeps its size and offset; a removed stream leaves zeros at the payload's end, which readers take as
padding.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np

from kitchensync.sensors.errors import BadGpmf, CannotJoin
from kitchensync.sensors.gopro.mp4 import gpmf
from kitchensync.sensors.gopro.mp4.boxes import boxes, find, top_boxes
from kitchensync.sensors.gopro.mp4.sample_tables import SampleTables, box

LOCATION_KEYS = frozenset({"GPS5", "GPS9", "GPSU", "GPSF", "GPSP", "GPSA", "GPRI", "GLPI"})
IDENTITY_KEYS = frozenset({"CASN", "LINF", "MUID", "GUMI", "BCID", "CAME"})
"Keys of the camera's header that identify the device or the file."
SHAREABLE = frozenset({"FIRM", "SETT", "HMMT", "GPMF"})
"Boxes of moov/udta that reveal neither location nor owner."
SERIAL_TAIL = 8
SEARCH_BYTES = 16 << 20


def header_text(moov: memoryview, key: str) -> str | None:
    """Read a text of the camera's header (udta GPMF); None if it is missing or unreadable."""
    header = find(moov, "udta", "GPMF")
    if header is None:
        return None
    try:
        return gpmf.header_texts(header).get(key)
    except BadGpmf:
        return None


def strip_data(out: BinaryIO, telemetry: list[SampleTables], kept: list[SampleTables]) -> list[str]:
    """Remove locations from telemetry, and overwrite all bytes outside of the kept samples with zeros.

    Return the names of what was removed.
    """
    end = out.tell()
    removed: set[str] = set()
    for tables in telemetry:
        for offset, size in zip(tables.offsets.tolist(), tables.sizes.tolist(), strict=True):
            out.seek(offset)
            data = out.read(size)
            try:
                clean, keys = without_location(data)
            except BadGpmf as error:
                raise CannotJoin(Path(out.name).name, f"telemetry at byte {offset} is {error}") from error
            if keys:
                removed |= keys
                out.seek(offset)
                out.write(clean)
    if _blank_gaps(out, kept, end):
        removed.add("unused bytes")
    out.seek(end)
    return sorted(removed | {"serial number"})


def without_location(payload: bytes) -> tuple[bytes, set[str]]:
    """Return a payload of the same length without location streams, and the removed keys."""
    removed: set[str] = set()
    devices = []
    for klv in gpmf.read_klvs(payload):
        if klv.kind != "\0":
            devices.append(_raw(payload, klv))
            continue
        kept = []
        for stream in gpmf.children(klv):
            keys = {stream.key} | ({k.key for k in gpmf.children(stream)} if stream.kind == "\0" else set())
            if location_keys := keys & LOCATION_KEYS:
                removed |= location_keys
            else:
                kept.append(_raw(payload, stream))
        devices.append(_nest(klv.key, b"".join(kept)))
    return b"".join(devices).ljust(len(payload), b"\0") if removed else payload, removed


def _raw(payload: bytes | memoryview, klv: gpmf.Klv) -> bytes:
    length = 8 + (len(klv.data) + 3) // 4 * 4
    return bytes(payload[klv.offset : klv.offset + length])


def _nest(key: str, data: bytes) -> bytes:
    element = 1 if len(data) < 65536 else 4
    return struct.pack(">4sBBH", key.encode(), 0, element, len(data) // element) + data


def _blank_gaps(out: BinaryIO, kept: list[SampleTables], end: int) -> int:
    """Overwrite every byte of `mdat` outside of the kept samples with zeros; return their number."""
    out.seek(0)
    start = next(top.start for top in top_boxes(out, end) if top.kind == "mdat")
    offsets = np.concatenate([tables.offsets for tables in kept])
    sizes = np.concatenate([tables.sizes for tables in kept])
    order = np.argsort(offsets, kind="stable")
    begins = np.append(offsets[order], end)
    ends = np.maximum.accumulate(np.concatenate([[start], (offsets + sizes)[order]]))
    blanked = 0
    for at in np.flatnonzero(begins > ends):
        remaining = int(begins[at] - ends[at])
        out.seek(int(ends[at]))
        blanked += remaining
        while remaining:
            out.write(bytes(min(remaining, SEARCH_BYTES)))
            remaining -= min(remaining, SEARCH_BYTES)
    return blanked


def stripped_user_data(udta: memoryview) -> bytes:
    """Return moov/udta with only what may be shared: firmware, settings, HiLight times, header without ids."""
    parts = []
    for part in boxes(udta):
        if part.kind == "GPMF":
            parts.append(box("GPMF", _clean_header(bytes(part.data))))
        elif part.kind in SHAREABLE:
            parts.append(box(part.kind, part.data))
    return box("udta", *parts)


def _clean_header(data: bytes) -> bytes:
    """Drop ids, and HiLights with their locations (their times are in HMMT); the length is kept."""
    devices = []
    for device in gpmf.read_klvs(data):
        keys = list(gpmf.children(device)) if device.kind == "\0" else []
        if any(klv.key == "DVID" and bytes(klv.data) == b"HLMT" for klv in keys):
            continue
        drop = IDENTITY_KEYS | LOCATION_KEYS
        devices.append(_nest(device.key, b"".join(_raw(data, klv) for klv in keys if klv.key not in drop)))
    return b"".join(devices).ljust(len(data), b"\0")


def check_no_serial(out: BinaryIO, moovs: list[memoryview], target: Path) -> None:
    """Search the whole new file for the cameras' serial numbers. Raises `CannotJoin` if it has one."""
    serials = {serial for moov in moovs if (serial := header_text(moov, "CASN"))}
    texts = {serial[-length:].encode() for serial in serials for length in (len(serial), SERIAL_TAIL)}
    texts = {text for text in texts if len(text) >= SERIAL_TAIL}
    if not texts:
        return
    out.seek(0)
    tail = b""
    while block := out.read(SEARCH_BYTES):
        if any(text in tail + block for text in texts):
            raise CannotJoin(target.name, "the camera's serial number is still in it; it was not written")
        # A serial number may lie across two blocks.
        tail = block[-64:]
