"""What every sensor of the virtual headset is: a stream that reads a client's wishes, and a feed of its packets."""

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
    sha256: str = ""  # of the payload, where it is known already

    def with_digest(self) -> SentPacket:
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


class Feed(ABC):
    """One client's packets on a schedule. Asked for rising k; a k depends on nothing that was sent before it."""

    _schedule: Schedule

    def first_k(self, world_s: float) -> int:
        """Return the first packet a client gets who is ready at `world_s`; of a video the next key frame."""
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
        """Read a client's wishes; None when nothing is to be streamed; raise `Rejected` to close."""

    def release(self) -> None:  # noqa: B027 (most streams hold nothing)
        """Do what is to be done when the client has gone."""
