"""Write GPMF, the key-length-value format of GoPro sensor data.

An entry is a FourCC, a type character, the bytes of one element (u8), the number of elements (u16, big-endian) and
the data, padded to four bytes. Type 0 nests. Source: the public gpmf-parser description of the format.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

BIG_ENDIAN = {"b": "i1", "B": "u1", "s": ">i2", "S": ">u2", "l": ">i4", "L": ">u4", "J": ">u8", "f": ">f4"}
MIXED = "?"


def entry(key: str, kind: str, element_bytes: int, count: int, data: bytes) -> bytes:
    """Return one entry, padded to four bytes."""
    if element_bytes * count != len(data):
        raise ValueError(f"{key}: {count} elements of {element_bytes} bytes are not {len(data)} bytes")
    head = struct.pack(">4scBH", key.encode("latin-1"), kind.encode("latin-1"), element_bytes, count)
    return head + data + bytes(-len(data) % 4)


def nest(key: str, entries: Iterable[bytes]) -> bytes:
    """Return entries nested in one of type 0; above 65535 bytes the element grows so that the count still fits."""
    data = b"".join(entries)
    element_bytes = 1 if len(data) < 65536 else 4
    head = struct.pack(">4sBBH", key.encode("latin-1"), 0, element_bytes, len(data) // element_bytes)
    return head + data


def numbers(key: str, kind: str, values: Sequence[float] | np.ndarray) -> bytes:
    """Return numbers of one kind: one element per row; an array with one axis has one value per row."""
    array = np.asarray(values).astype(BIG_ENDIAN[kind])
    rows = array.reshape(array.shape[0], -1) if array.ndim else array.reshape(1, 1)
    return entry(key, kind, rows.shape[1] * array.dtype.itemsize, rows.shape[0], rows.tobytes())


def text(key: str, value: str, *, element_is_text: bool = True) -> bytes:
    """Return Latin-1 text, as one element of its length or as single-byte elements."""
    data = value.encode("latin-1")
    if element_is_text:
        return entry(key, "c", len(data), 1, data)
    return entry(key, "c", 1, len(data), data)


@dataclass(frozen=True)
class SensorBlock:
    """The samples of one stream in one payload.

    `first_us` is the camera clock at the first sample, `total` the samples since the start, including these.
    A kind of several letters makes samples of mixed fields: `values` then has one column per letter.
    """

    key: str
    kind: str
    title: str
    first_us: int
    total: int
    values: np.ndarray
    unit: str | None = None
    scale: int | Sequence[int] | None = None
    axes: str | None = None
    temperature_c: float | None = None
    more: tuple[bytes, ...] = ()


def mixed(key: str, kinds: str, values: np.ndarray) -> bytes:
    """Return samples of mixed fields, (n, one column per letter of `kinds`); their TYPE is a separate entry."""
    layout = np.dtype([(f"f{i}", BIG_ENDIAN[kind]) for i, kind in enumerate(kinds)])
    table = np.zeros(len(values), layout)
    for i in range(len(kinds)):
        table[f"f{i}"] = values[:, i]
    return entry(key, MIXED, layout.itemsize, len(values), table.tobytes())


def stream(block: SensorBlock) -> bytes:
    """Return a STRM in the order of a HERO11 or HERO12: stamps, names, scale, and the data last."""
    entries = [
        numbers("STMP", "J", [block.first_us]),
        numbers("TSMP", "L", [block.total]),
        text("STNM", block.title),
    ]
    if block.axes is not None:
        entries.append(text("ORIN", block.axes))
    if block.unit is not None:
        entries.append(text("SIUN", block.unit))
    if block.scale is not None:
        kind = "s" if isinstance(block.scale, int) else "l"
        entries.append(numbers("SCAL", kind, [block.scale] if isinstance(block.scale, int) else block.scale))
    if block.temperature_c is not None:
        entries.append(numbers("TMPC", "f", [block.temperature_c]))
    entries += block.more
    if len(block.kind) > 1:
        entries += [text("TYPE", block.kind), mixed(block.key, block.kind, block.values)]
    else:
        entries.append(numbers(block.key, block.kind, block.values))
    return nest("STRM", entries)


def payload(device: str, blocks: Iterable[SensorBlock]) -> bytes:
    """Return the DEVC of one payload, about a second of every stream; the last may lack samples of slow streams."""
    head = [numbers("DVID", "L", [1]), text("DVNM", device)]
    return nest("DEVC", head + [stream(block) for block in blocks if len(block.values)])


def global_settings(
    device: dict[str, str],
    video: dict[str, str],
    clock: dict[str, int],
    read_out_ms: float,
    hilights_ms: Sequence[int] = (),
) -> bytes:
    """Return the header block of a file (moov/udta/GPMF), padded to 25600 bytes as cameras do."""
    settings = [text(key, value, element_is_text=False) for key, value in {**device, **video}.items()]
    settings.append(numbers("CDAT", "J", [clock["CDAT"]]))
    settings.append(numbers("TZON", "s", [clock["TZON"]]))
    settings.append(numbers("SROT", "f", [read_out_ms]))
    head = [numbers("DVID", "L", [1]), text("DVNM", "Global Settings", element_is_text=False)]
    head.append(entry("VERS", "B", 1, 3, bytes([8, 3, 2])))
    highlights = [
        entry("DVID", "F", 4, 1, b"HLMT"),
        text("DVNM", "Highlights", element_is_text=False),
        nest("STRM", [numbers("TSMP", "L", [len(hilights_ms)]), *_hilights(hilights_ms)]),
    ]
    data = nest("DEVC", head + settings) + nest("DEVC", highlights)
    return data + bytes(max(0, 25600 - len(data)))


def _hilights(hilights_ms: Sequence[int]) -> list[bytes]:
    """Return HLMT: time, in, out ms, two of location, location, type, confidence, score."""
    if not hilights_ms:
        return []
    times = np.array(hilights_ms, np.float64)
    table = np.zeros((len(times), 9))
    table[:, 0] = table[:, 1] = table[:, 2] = times
    table[:, 6], table[:, 7] = 1, 1.0
    return [text("TYPE", "LLLllfLff"), mixed("HLMT", "LLLllfLff", table)]
