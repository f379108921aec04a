"""Streams that replay a real recording: the same ports and configurations, the recorded packets."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Protocol

from kitchensync.virtual_kitchen.headset.client_configuration import ConfigurationReader, Rejected
from kitchensync.virtual_kitchen.headset.stream import Feed, SentPacket, Stream


class Sent(Protocol):
    """One recorded stream; arrays are (n,), times are host_ns of the recording."""

    name: str
    configuration: bytes
    constants: bytes
    ticks: Any
    arrived_ns: Any
    begins: Any

    def packet(self, k: int) -> tuple[bytes, bytes]:
        """Return payload and pose."""


class ReplayedFeed(Feed):
    """The recorded packets at their recorded times."""

    def __init__(self, sent: Sent, begin_ns: int, end_s: float) -> None:
        """Take `begin_ns` of the recording as world time 0."""
        self._sent, self._end_s = sent, end_s
        self._due_s: Sequence[float] = ((sent.arrived_ns - begin_ns) / 1e9).tolist()

    def first_k(self, world_s: float) -> int:
        """Return the first packet that is not yet sent and that a client can start with."""
        first = bisect_left(self._due_s, world_s)
        return next((k for k in range(first, len(self._due_s)) if self._sent.begins[k]), len(self._due_s))

    def due_s(self, k: int) -> float:
        """Return when packet k is due; past the last packet, a time after the end."""
        return self._due_s[k] if k < len(self._due_s) else self._end_s + 1

    def packet(self, k: int) -> SentPacket:
        """Return packet k."""
        return SentPacket(int(self._sent.ticks[k]), *self._sent.packet(k))


class ReplayedStream(Stream):
    """A port that accepts what the virtual stream accepts and sends what was recorded."""

    def __init__(self, made: Stream, sent: Sent, begin_ns: int, end_s: float) -> None:
        super().__init__(made._headset)
        self.name, self.port = made.name, made.port
        self._made, self._sent = made, sent
        self._feed = ReplayedFeed(sent, begin_ns, end_s)

    def configure(self, reader: ConfigurationReader) -> Feed | None:
        """Accept the recorder's configuration; send the constants of the recording."""
        reader.constants = self._sent.constants
        if self._made.configure(reader) is None:
            return None
        if not reader.taken.endswith(self._sent.configuration):
            print(
                f"{self.name}: requested with another configuration than recorded; refused", file=sys.stderr
            )
            raise Rejected("another form than the recording's")
        return self._feed

    def release(self) -> None:
        """Release the virtual stream when the client has left."""
        self._made.release()
