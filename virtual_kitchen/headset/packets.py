"""Packets of the virtual headset, and their schedule in world time."""

import hashlib
import struct
from dataclasses import dataclass, replace
from math import ceil

_HEADER = struct.Struct("<QI")


@dataclass(frozen=True, slots=True)
class SentPacket:
    """One packet before framing: `ticks` of the headset's QPC, `pose` 64 bytes or none."""

    ticks: int
    payload: bytes
    pose: bytes = b""
    sha256: str = ""  # of the payload, where it is known already

    def with_digest(self) -> "SentPacket":
        """Return it with its payload's hash, for a packet that is sent often."""
        return replace(self, sha256=hashlib.sha256(self.payload).hexdigest())

    def frame(self) -> bytes:
        """Return header, payload and pose as they travel."""
        return _HEADER.pack(self.ticks, len(self.payload)) + self.payload + self.pose


@dataclass(frozen=True, slots=True)
class Schedule:
    """Regular packets: k is captured at phase_s + k * period_s and leaves latency_s later."""

    period_s: float
    phase_s: float
    latency_s: float
    group: int = 1  # a client starts at a multiple of this: a video's key frame

    def captured_s(self, k: int) -> float:
        """Return the world time packet k belongs to."""
        return self.phase_s + k * self.period_s

    def due_s(self, k: int) -> float:
        """Return when packet k leaves the device."""
        return self.captured_s(k) + self.latency_s

    def first_k(self, world_s: float) -> int:
        """Return the first start of a group that has not left yet."""
        first = max(0, ceil((world_s - self.latency_s - self.phase_s) / self.period_s))
        return ceil(first / self.group) * self.group
