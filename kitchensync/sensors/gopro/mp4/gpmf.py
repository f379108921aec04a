"""Reader of GPMF, the telemetry in GoPro files: key, length, value, big-endian, nested.

A payload is DEVC { DVID, DVNM, STRM { metadata..., data } ... } ...; metadata describe the last key of their STRM,
whose values are divided by SCAL. Malformed data raise `BadGpmf`; memory and time are proportional to the size of the
data.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kitchensync.sensors.errors import BadGpmf

MAX_DEPTH = 8  # cameras nest two deep: DEVC, STRM
ABSURD_STAMP = 2**62  # the difference of two smaller ones still fits in int64
_HEADER = struct.Struct(">4sBBH")
_PADDING_KEY = b"\0\0\0\0"

_NUMBERS = {
    "b": ">i1",
    "B": ">u1",
    "s": ">i2",
    "S": ">u2",
    "l": ">i4",
    "L": ">u4",
    "f": ">f4",
    "d": ">f8",
    "j": ">i8",
    "J": ">u8",
    "q": ">i4",
    "Q": ">i8",
}
_FIXED_POINT = {"q": 2.0**16, "Q": 2.0**32}
_OTHERS = {"c": 1, "F": 4, "G": 16, "U": 16}
_SIZES = {code: np.dtype(kind).itemsize for code, kind in _NUMBERS.items()} | _OTHERS

_METADATA = (
    "STMP TSMP TICK TOCK EMPT STNM SIUN UNIT SCAL ORIN ORIO MTRX TMPC TYPE RMRK TIMO GPSU GPSF GPSP GPSA"
)
METADATA_KEYS = frozenset(_METADATA.split())
"Keys that describe a stream and are never its data."


class Klv(NamedTuple):
    """One key with its value, undecoded."""

    key: str
    kind: str
    "Type character; '\\0' = it contains keys."
    size: int
    "Bytes of one sample."
    repeat: int
    "Number of samples."
    data: memoryview
    offset: int
    "Byte of the key in the payload."


@dataclass
class StreamPart:
    """The part of one stream in one payload."""

    device: str
    "DVNM."
    device_id: str
    "DVID, as text."
    key: str
    "FourCC of the data, e.g. GYRO."
    data: list[Klv] = field(default_factory=list)
    "The data key, which some streams repeat."
    meta: dict[str, Klv] = field(default_factory=dict)
    device_tick_ms: int | None = None
    "TICK of the device (HERO5 and similar), ms; None without it."

    @property
    def count(self) -> int:
        """Number of samples in this payload, over all repeated keys."""
        return sum(klv.repeat for klv in self.data)

    def integer(self, key: str) -> int | None:
        """Return the first value of a metadata key as an integer (STMP us, TSMP, TICK ms).

        None if absent or absurd.
        """
        klv = self.meta.get(key)
        value = first_integer(klv) if klv is not None else None
        return value if value is not None and abs(value) < ABSURD_STAMP else None

    @property
    def tick_ms(self) -> int | None:
        """Timestamp of cameras without STMP: the stream's TICK, else the device's, ms."""
        own_ms = self.integer("TICK")
        return own_ms if own_ms is not None else self.device_tick_ms

    def scaled(self, klv: Klv) -> np.ndarray:
        """Decode one data key to (samples, fields) float64, divided by SCAL, in stored order; text is NaN."""
        type_klv, scale_klv = self.meta.get("TYPE"), self.meta.get("SCAL")
        values = numbers(klv, text(type_klv) if type_klv is not None else None)
        if scale_klv is None or values.size == 0:
            return values
        with np.errstate(all="ignore"):  # damaged data may have any float
            scaled: np.ndarray = values / _divisors(numbers(scale_klv).ravel(), values.shape[1])
        return scaled

    def samples(self) -> np.ndarray:
        """Decode all data keys of this payload to (samples, fields) float64."""
        parts = [self.scaled(klv) for klv in self.data if klv.repeat]
        if len({part.shape[1] for part in parts}) > 1:
            raise BadGpmf(f"{self.key} changes its number of fields", self.data[-1].offset)
        return np.concatenate(parts) if parts else np.empty((0, 0))


def _divisors(scale: np.ndarray, fields: int) -> np.ndarray:
    scale = np.where((scale == 0) | ~np.isfinite(scale), 1.0, scale)
    if len(scale) in (0, 1):
        return scale if len(scale) else np.ones(1)
    return np.concatenate([scale, np.full(max(0, fields - len(scale)), scale[-1])])[:fields]


def read_klvs(data: memoryview | bytes, base: int = 0) -> Iterator[Klv]:
    """List the keys of one nesting level in order; `base` is added to reported offsets.

    Trailing zeros are padding.
    """
    view = memoryview(data)
    at = 0
    while at < len(view):
        if len(view) - at < _HEADER.size:
            if any(view[at:]):
                raise BadGpmf("a key is cut short", base + at)
            return
        name, kind, size, repeat = _HEADER.unpack_from(view, at)
        if name == _PADDING_KEY:
            if any(view[at:]):
                raise BadGpmf("an empty key", base + at)
            return
        if not name.isascii() or not all(32 <= letter < 127 for letter in name):
            raise BadGpmf("a key that is not four letters", base + at)
        start, length = at + _HEADER.size, size * repeat
        if start + length > len(view):
            raise BadGpmf(f"{name.decode()} claims {length} bytes, {len(view) - start} remain", base + at)
        yield Klv(name.decode(), chr(kind), size, repeat, view[start : start + length], base + at)
        at = start + (length + 3) // 4 * 4


def children(klv: Klv) -> Iterator[Klv]:
    """List the keys inside a key."""
    return read_klvs(klv.data, klv.offset + _HEADER.size)


def check_nesting(data: memoryview | bytes) -> int:
    """Check all keys, at most `MAX_DEPTH` deep; return their number."""
    count, stack = 0, [(iter(read_klvs(data)), 1)]
    while stack:
        keys, depth = stack[-1]
        klv = next(keys, None)
        if klv is None:
            stack.pop()
            continue
        count += 1
        if klv.kind == "\0":
            if depth >= MAX_DEPTH:
                raise BadGpmf(f"nested deeper than {MAX_DEPTH}", klv.offset)
            stack.append((iter(children(klv)), depth + 1))
    return count


def text(klv: Klv) -> str:
    """Decode a text value (Latin-1) without padding."""
    return bytes(klv.data).decode("latin-1").rstrip("\0 ")


def first_integer(klv: Klv) -> int | None:
    """Decode the first value as an exact integer; None if it is not an integer."""
    if klv.kind not in _NUMBERS or klv.kind in "fdqQ" or len(klv.data) < _SIZES[klv.kind]:
        return None
    return int(np.frombuffer(klv.data, _NUMBERS[klv.kind], 1)[0])


def numbers(klv: Klv, type_text: str | None = None) -> np.ndarray:
    """Decode a value to (samples, fields) float64, unscaled; fields that are not numbers become NaN."""
    if klv.repeat == 0 or klv.size == 0:
        return np.empty((0, 0))
    if klv.kind == "?":
        return _complex_numbers(klv, type_text)
    if klv.kind not in _SIZES:
        raise BadGpmf(f"{klv.key} has the unknown type {klv.kind!r}", klv.offset)
    if klv.size % _SIZES[klv.kind]:
        raise BadGpmf(f"{klv.key}: samples of {klv.size} bytes of type {klv.kind}", klv.offset)
    fields = klv.size // _SIZES[klv.kind]
    if klv.kind not in _NUMBERS:
        return np.full((klv.repeat, fields), np.nan)
    values = np.frombuffer(klv.data, _NUMBERS[klv.kind]).reshape(klv.repeat, fields)
    return _as_float(values, klv.kind)


def _complex_numbers(klv: Klv, type_text: str | None) -> np.ndarray:
    codes = expand_type(type_text or "", klv)
    if sum(_SIZES[code] for code in codes) != klv.size:
        raise BadGpmf(f"{klv.key}: TYPE {type_text!r} does not make {klv.size} bytes", klv.offset)
    layout = np.dtype([(f"f{i}", _NUMBERS.get(code, f"V{_SIZES[code]}")) for i, code in enumerate(codes)])
    table = np.frombuffer(klv.data, layout)
    columns = [
        _as_float(table[f"f{i}"], code) if code in _NUMBERS else np.full(klv.repeat, np.nan)
        for i, code in enumerate(codes)
    ]
    return np.stack(columns, axis=1) if columns else np.empty((0, 0))


def _as_float(values: np.ndarray, kind: str) -> np.ndarray:
    with np.errstate(all="ignore"):  # a signalling NaN in damaged data must not warn
        return values.astype(np.float64) / _FIXED_POINT.get(kind, 1.0)


def expand_type(type_text: str, klv: Klv) -> str:
    """Expand a TYPE, `f[8]L` to `ffffffffL`, at most to the size of a sample."""
    codes, rest = "", type_text
    while rest:
        code, rest = rest[0], rest[1:]
        times = 1
        if rest.startswith("["):
            inside, closed, rest = rest[1:].partition("]")
            if not closed or not (inside.isascii() and inside.isdigit()) or len(inside) > 3:
                raise BadGpmf(f"{klv.key}: TYPE {type_text!r}", klv.offset)
            times = int(inside)
        if code not in _SIZES or len(codes) + times > 255:
            raise BadGpmf(f"{klv.key}: TYPE {type_text!r}", klv.offset)
        codes += code * times
    return codes


def read_streams(payload: memoryview | bytes) -> list[StreamPart]:
    """Read a payload: one part for each stream with data, over all devices, in file order."""
    check_nesting(payload)
    parts: list[StreamPart] = []
    for device in read_klvs(payload):
        if device.key == "DEVC" and device.kind == "\0":
            parts += _device_parts(device)
    return parts


def _device_parts(device: Klv) -> list[StreamPart]:
    name, device_id, tick_ms, parts = "", "", None, []
    for klv in children(device):
        if klv.key == "DVNM":
            name = text(klv)
        elif klv.key == "DVID":
            device_id = bytes(klv.data).hex()
        elif klv.key == "TICK":
            tick_ms = first_integer(klv)
        elif klv.key == "STRM" and klv.kind == "\0":
            part = _stream_part(list(children(klv)))
            if part is not None:
                parts.append(part)
    for part in parts:
        part.device, part.device_id, part.device_tick_ms = name, device_id, tick_ms
    return parts


def _stream_part(keys: list[Klv]) -> StreamPart | None:
    if not keys or keys[-1].key in METADATA_KEYS or keys[-1].kind == "\0":
        return None
    part = StreamPart("", "", keys[-1].key)
    for klv in keys:
        if klv.key == part.key:
            part.data.append(klv)
        else:
            part.meta[klv.key] = klv
    return part


def split_payloads(data: memoryview | bytes, damage: list[str] | None = None) -> list[memoryview]:
    """Split a bare file into its DEVC blocks; zeros at the end are padding. Raises `BadGpmf` for anything else.

    With `damage`, data after a broken key are skipped and listed there, if at least one complete block came before.
    """
    view = memoryview(data)
    blocks: list[memoryview] = []
    try:
        for klv in read_klvs(view):
            if klv.key != "DEVC" or klv.kind != "\0":
                raise BadGpmf(f"{klv.key} instead of DEVC", klv.offset)
            blocks.append(view[klv.offset : klv.offset + _HEADER.size + len(klv.data)])
    except BadGpmf as error:
        if damage is None or not blocks:
            raise
        damage.append(f"after payload {len(blocks)} the file is {error}")
    if not blocks:
        raise BadGpmf("no DEVC", 0)
    return blocks


def header_texts(data: memoryview | bytes) -> dict[str, str]:
    """Read the texts of a camera's header (DEVC { STRM { ... } }), the first of each key."""
    texts: dict[str, str] = {}
    for device in read_klvs(data):
        for nest in children(device) if device.kind == "\0" else ():
            for klv in children(nest) if nest.kind == "\0" else (nest,):
                if klv.kind == "c":
                    texts.setdefault(klv.key, text(klv))
    return texts
