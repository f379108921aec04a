"""The headset's other channels as bytes: voice input (3815), Unity (3816) and guest (3820) message queues."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from sensors.errors import BadPacket

VOICE_PORT, UNITY_PORT, GUEST_PORT = 3815, 3816, 3820
VOICE_POLL, VOICE_STOP = b"\x01", b"\x00"
RESERVED_ID = 0xFFFFFFFF
PULL = struct.pack("<I", RESERVED_ID)
"Ask the guest queue for a message."

MESSAGE = struct.Struct("<II")
"id, bytes that follow; id 0xFFFFFFFF with no bytes: nothing waits."

VOICE_RESULT = np.dtype(
    [
        ("phrase", "<u4"),  # index into the registered list
        ("confidence", "<u4"),  # 0 high, 1 medium, 2 low, 3 rejected
        ("duration", "<u8"),  # 100 ns
        ("start_filetime", "<u8"),  # UTC, 100 ns since 1601: not device ticks
        ("raw_confidence", "<f8"),
    ]
)


def voice_phrases(phrases: Sequence[str]) -> bytes:
    """Register phrases: u16 count, then each as u16 bytes and UTF-16 with its mark."""
    encoded = [b"\xff\xfe" + phrase.encode("utf-16-le") for phrase in phrases]
    return struct.pack("<H", len(encoded)) + b"".join(struct.pack("<H", len(e)) + e for e in encoded)


def voice_results(answer: bytes | memoryview) -> np.ndarray:
    """View the answer to a poll as (n,) of `VOICE_RESULT`; `BadPacket` when its length does not fit."""
    count = struct.unpack_from("<I", answer)[0] if len(answer) >= 4 else -1
    if len(answer) != 4 + count * VOICE_RESULT.itemsize:
        raise BadPacket("voice_input", f"{len(answer)} bytes for {count} results")
    return np.frombuffer(answer, VOICE_RESULT, offset=4)


def message(number: int, content: bytes) -> bytes:
    """One message: id, size, content."""
    if number == RESERVED_ID:
        raise ValueError("the message id 0xFFFFFFFF is reserved")
    return MESSAGE.pack(number, len(content)) + content
