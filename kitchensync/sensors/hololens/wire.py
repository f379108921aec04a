"""Wire format of packets (header, payload, pose), and the blocks of configurations."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np

from kitchensync.sensors.errors import BadPacket

HEADER = struct.Struct("<QI")
"device_ticks (100 ns since boot), payload size in bytes (without pose)."

HEADER_BYTES = HEADER.size
SIGNED_HEADER = struct.Struct("<qI")
"The same header with signed numbers, as in the index of a recording."


def split_frame(frame: memoryview | bytes, pose_bytes: int) -> tuple[int, memoryview, memoryview]:
    """Split a complete wire frame into device_ticks, payload and pose (empty without one), without copying."""
    view = memoryview(frame)
    if len(view) < HEADER_BYTES:
        raise BadPacket("frame", f"{len(view)} bytes are too few for a header")
    device_ticks, size = HEADER.unpack_from(view)
    end = HEADER_BYTES + size
    if len(view) != end + pose_bytes:
        raise BadPacket("frame", f"{len(view)} bytes instead of {end + pose_bytes} by the header")
    return device_ticks, view[HEADER_BYTES:end], view[end:]


def join_frame(device_ticks: int, payload: bytes, pose: bytes = b"") -> bytes:
    """Build a wire frame: the inverse of `split_frame`."""
    return HEADER.pack(device_ticks, len(payload)) + payload + pose


def is_tracked(pose: np.ndarray) -> np.ndarray | np.bool_:
    """Return whether poses (..., 4, 4) are tracked; the last element is 0 while tracking is lost."""
    tracked: np.ndarray | np.bool_ = pose[..., 3, 3] != 0
    return tracked


# --- configuration blocks -----------------------------------------------------------------------


def video_format(width: int, height: int, hz: int) -> bytes:
    """VIDEO_FORMAT: u16 width, u16 height, u8 frames per second."""
    return struct.pack("<HHB", width, height, hz)


def video_encoding(profile: int, level: int, bits_per_second: int) -> bytes:
    """VIDEO_ENCODING: u8 profile, u8 level, u32 bit/s (the headset refuses 0, even for raw)."""
    return struct.pack("<BBI", profile, level, bits_per_second)


def encoder_options(options: Mapping[int, int]) -> bytes:
    """ENCODER_OPTIONS: u8 count, then pairs of u64; negative values are sent as two's complement."""
    pairs = b"".join(struct.pack("<QQ", key, value % 2**64) for key, value in options.items())
    return struct.pack("<B", len(options)) + pairs


def audio_encoding(profile: int, level: int) -> bytes:
    """AUDIO_ENCODING: u8 profile, u8 level."""
    return struct.pack("<BB", profile, level)


def mrc_video(global_opacity: float = 0.9) -> bytes:
    """MRC_VIDEO, 27 bytes: the client defaults, a plain camera without holograms.

    Extended video reads the opacity as its source index.
    """
    return struct.pack("<7B3f2I", 0, 1, 0, 0, 0, 0, 0, global_opacity, 0.0, 0.0, 0, 1)
