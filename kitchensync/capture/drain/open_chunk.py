"""The chunk of one stream that a drainer is filling, and the number of the next packet."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kitchensync.storage.chunks.chunk_reader import Chunk, chunk_paths
from kitchensync.storage.chunks.chunk_writer import Packet, prepare_folder
from kitchensync.storage.disk.durable import LOCAL, Disk
from kitchensync.storage.names import chunk_number

CHUNK_BYTES = 64 << 20
"""A chunk is sealed at this size, or after `Plan.chunk_s`."""


@dataclass
class OpenChunk:
    """The packets of one stream that wait to be sealed."""

    stream: str
    folder: Path
    number: int
    next_seq: int
    packets: list[Packet] = field(default_factory=list)
    bytes: int = 0
    since_s: float = 0.0
    stored: int = 0
    problem: str = ""
    """Why it could not be written last."""
    retry_s: float = 0.0
    """Time of the next attempt to seal it."""

    def hold(self, packets: list[Packet]) -> None:
        """Replace the packets."""
        self.packets, self.bytes = packets, sum(len(packet.payload) for packet in packets)

    def is_due(self, now_s: float, longest_s: float) -> bool:
        """Return whether the chunk is large or old enough to be sealed."""
        return self.bytes >= CHUNK_BYTES or now_s - self.since_s >= longest_s

    def take(self, packets: list[Packet], now_s: float) -> list[Packet]:
        """Add the packets that are new; return the repeated ones."""
        fresh, old = packets, list[Packet]()
        # The queue server refuses a repeated entry, but not a repeated packet in another entry.
        numbers = [self.next_seq - 1, *(packet.seq for packet in packets)]
        if not all(map(operator.lt, numbers, numbers[1:])):
            fresh, next_seq = [], self.next_seq
            for packet in packets:
                (fresh if packet.seq >= next_seq else old).append(packet)
                next_seq = max(next_seq, packet.seq + 1)
        if fresh and not self.packets:
            self.since_s = now_s
        self.packets += fresh
        self.bytes += sum([len(packet.payload) for packet in fresh])
        if fresh:
            self.next_seq = fresh[-1].seq + 1
        return old


def open_chunk(recording: Path, stream: str, disk: Disk = LOCAL) -> OpenChunk:
    """Return the chunk after the last sealed one; incomplete files of a crash are deleted."""
    folder = prepare_folder(recording, stream, disk)
    sealed = chunk_paths(folder)
    number = (chunk_number(sealed[-1]) or 0) if sealed else 0
    return OpenChunk(stream, folder, number + 1, sealed_until(sealed))


def sealed_until(sealed: Sequence[Path]) -> int:
    """Return the number after the last packet in a stream's sealed files. Raises BadChunk."""
    if not sealed:
        return 0
    with Chunk(sealed[-1]) as chunk:
        return int(chunk.attributes["last_seq"]) + 1
