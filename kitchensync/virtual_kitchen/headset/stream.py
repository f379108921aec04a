"""Base classes of the headset's sensors: a stream reads a client's configuration, a feed makes its packets."""

from __future__ import annotations

import hashlib
import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from math import ceil

from kitchensync.virtual_kitchen.headset.client_configuration import ConfigurationReader
from kitchensync.virtual_kitchen.headset.device import HeadsetState

_HEADER = struct.Struct("<QI")


@dataclass(frozen=True, slots=True)
class SentPacket:
    """One packet before framing: `ticks` of the headset's QPC, `pose` 64 bytes or none."""

    ticks: int
    payload: bytes
    pose: bytes = b""
    sha256: str = ""  # of the payload, if known

    def with_digest(self) -> SentPacket:
        """Return it with the hash of its payload, for a packet that is sent often."""
        return replace(self, sha256=hashlib.sha256(self.payload).hexdigest())

    def frame(self) -> bytes:
        """Return header, payload and pose as sent."""
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
        """Return the first packet of the next group that has not left yet."""
        first = max(0, ceil((world_s - self.latency_s - self.phase_s) / self.period_s))
        return ceil(first / self.group) * self.group


class Feed(ABC):
    """The packets of one client on a schedule, requested in rising k; each depends on k alone."""

    _schedule: Schedule

    def first_k(self, world_s: float) -> int:
        """Return the first packet for a client that is ready at `world_s`; for video the next key frame."""
        return self._schedule.first_k(world_s)

    def due_s(self, k: int) -> float:
        """Return the world time at which packet k leaves the device."""
        return self._schedule.due_s(k)

    @abstractmethod
    def packet(self, k: int) -> SentPacket:
        """Return packet k."""


class Stream(ABC):
    """The port's side of one sensor."""

    name: str
    port: int

    def __init__(self, headset: HeadsetState) -> None:
        self._headset = headset

    @abstractmethod
    def configure(self, reader: ConfigurationReader) -> Feed | None:
        """Read a client's configuration; return None if nothing is streamed. Raises Rejected to close."""

    def release(self) -> None:  # noqa: B027 (most streams hold nothing)
        """Clean up after the client has left."""
