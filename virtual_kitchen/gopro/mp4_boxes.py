"""Build the boxes of an MP4: the general ones, media headers and sample descriptions."""

from __future__ import annotations

import struct


def box(kind: bytes, *parts: bytes) -> bytes:
    """Return a box with its 32-bit size."""
    return struct.pack(">I4s", 8 + sum(map(len, parts)), kind) + b"".join(parts)


def full(kind: bytes, flags: int, *parts: bytes) -> bytes:
    """Return a box that begins with version 0 and 24 bits of flags."""
    return box(kind, struct.pack(">I", flags), *parts)


def video_header() -> bytes:
    """Return vmhd."""
    return full(b"vmhd", 1, bytes(8))


def sound_header() -> bytes:
    """Return smhd."""
    return full(b"smhd", 0, bytes(4))


def timecode_header() -> bytes:
    """Return gmhd of a timecode track: white Helvetica of ten points."""
    info = struct.pack(">HHHH", 21, 0, 10, 0) + bytes(6) + b"\xff" * 6 + b"\x09Helvetica"
    mode = struct.pack(">HHHHHH", 0x40, 0x8000, 0x8000, 0x8000, 0, 0)
    return box(b"gmhd", full(b"gmin", 0, mode), box(b"tmcd", full(b"tcmi", 1, info)))


def metadata_header() -> bytes:
    """Return gmhd of a GPMF track."""
    return box(b"gmhd", full(b"gmin", 0, bytes(12)), full(b"gpmd", 0))


def video_entry(codec: bytes, width: int, height: int, compressor: str, configuration: bytes) -> bytes:
    """Return the sample description hvc1 or avc1 with its configuration box (hvcC or avcC)."""
    name = compressor.encode("latin-1")
    body = bytes(6) + struct.pack(">H", 1) + bytes(16) + struct.pack(">HH", width, height)
    body += struct.pack(">IIIH", 0x480000, 0x480000, 0, 1)
    body += bytes([len(name)]) + name.ljust(31, b"\0") + struct.pack(">Hh", 24, -1)
    return box(codec, body, box(b"hvcC" if codec == b"hvc1" else b"avcC", configuration))


def aac_entry(channels: int, rate_hz: int, bits_per_s: int, configuration: bytes) -> bytes:
    """Return the sample description mp4a with an elementary stream descriptor."""
    specific = _descriptor(5, configuration)
    decoder = _descriptor(
        4, bytes([0x40, 0x15, 0, 0x20, 0]), struct.pack(">II", bits_per_s, bits_per_s), specific
    )
    stream = _descriptor(3, struct.pack(">HB", 0, 0), decoder, _descriptor(6, b"\x02"))
    body = (
        bytes(6) + struct.pack(">H", 1) + bytes(8) + struct.pack(">HHhHI", channels, 16, 0, 0, rate_hz << 16)
    )
    return box(b"mp4a", body, full(b"esds", 0, stream))


def _descriptor(tag: int, *parts: bytes) -> bytes:
    data = b"".join(parts)
    return bytes([tag, 0x80, 0x80, 0x80, len(data)]) + data


def timecode_entry(timescale: int, frame_duration: int, frames_per_s: int, *, is_drop_frame: bool) -> bytes:
    """Return the sample description tmcd: 24-hour wrap, frames counted since midnight."""
    flags = 3 if is_drop_frame else 2
    body = bytes(6) + struct.pack(">HIIIIBB", 1, 0, flags, timescale, frame_duration, frames_per_s, 0)
    return box(b"tmcd", body)


def gpmf_entry() -> bytes:
    """Return the sample description gpmd."""
    return box(b"gpmd", bytes(6), struct.pack(">HI", 1, 0))
