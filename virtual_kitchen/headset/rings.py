"""A second of packets made once and sent round and round: cheap to serve, for benchmarks.

Packet k of a ring carries the payload of packet k mod n with its own stamp, so that it still depends on k alone.
Only within a group of pictures, where packets were left out, the next one of the group follows: they hang together.
Video in a ring has the bit rate that the client asked for, since it is encoded only once.
"""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from virtual_kitchen.headset.packets import SentPacket
from virtual_kitchen.headset.stream import Feed

RING_S = 1.0
_FAR = 1000


class RingFeed(Feed):
    """A feed that repeats the first packets of another; `n` is a multiple of its group of pictures."""

    def __init__(self, feed: Feed, *, made_first: bool) -> None:
        """`made_first` makes the whole ring before the first packet leaves, else each packet when it is due."""
        self._feed = feed
        period_s = (feed.due_s(_FAR) - feed.due_s(0)) / _FAR
        self._group = max(1, feed.first_k(feed.due_s(0) + period_s / 2))
        self._count = max(1, round(RING_S / period_s / self._group)) * self._group
        self._packets: list[SentPacket | None] = [None] * self._count
        self._lap_ticks = 0
        self._last_made = -1
        self._next_k, self._left_out = -1, 0
        if made_first:
            for place in range(self._count):
                self._made(place)

    def load(self, path: Path) -> None:
        """Take the ring from a file that `save` wrote."""
        with np.load(path, allow_pickle=False) as kept:
            table, content = kept["table"], kept["content"].tobytes()
        start = 0
        for place, (ticks, size, pose) in enumerate(table.tolist()):
            payload, end = content[start : start + size], start + size + pose
            self._packets[place] = SentPacket(ticks, payload, content[start + size : end]).with_digest()
            start = end
        self._at(self._count)  # what the second lap wants to know takes a picture: not when it is due

    def save(self, path: Path) -> None:
        """Write the whole ring to a file: making it takes much longer than reading it."""
        packets = [self._made(place) for place in range(self._count)]
        self._at(self._count)
        table = np.array([(p.ticks, len(p.payload), len(p.pose)) for p in packets], np.int64)
        content = np.frombuffer(b"".join(p.payload + p.pose for p in packets), np.uint8)
        part = path.with_suffix(f".{os.getpid()}")
        with part.open("wb") as file:
            np.savez(file, table=table, content=content)
        part.replace(path)

    def first_k(self, world_s: float) -> int:
        """Return the first packet a client gets who is ready at `world_s`."""
        return self._feed.first_k(world_s)

    def due_s(self, k: int) -> float:
        """Return when packet k leaves the device."""
        return self._feed.due_s(k)

    def packet(self, k: int) -> SentPacket:
        """Return packet k with the ring's payload."""
        if k % self._group == 0:
            self._left_out = 0
        elif 0 <= self._next_k < k:
            self._left_out += k - self._next_k
        self._next_k = k + 1
        packet = self._at(k)
        if not self._left_out:
            return packet
        shown = self._made((k - self._left_out) % self._count)
        return replace(packet, payload=shown.payload, sha256=shown.sha256)

    def _at(self, k: int) -> SentPacket:
        lap, place = divmod(k, self._count)
        packet = self._made(place)
        if lap == 0:
            return packet
        self._lap_ticks = self._lap_ticks or self._feed.packet(self._count).ticks - self._feed.packet(0).ticks
        moved = getattr(self._feed, "moved", None)  # stamps inside the payload
        if moved is not None:
            payload = moved(packet.payload, lap * self._count, lap * self._lap_ticks)
            return SentPacket(packet.ticks + lap * self._lap_ticks, payload, packet.pose)
        return SentPacket(packet.ticks + lap * self._lap_ticks, packet.payload, packet.pose, packet.sha256)

    def _made(self, place: int) -> SentPacket:
        packet = self._packets[place]
        if packet is None:
            # A group that an earlier client left half made is made again: its pictures hang together.
            first = place if place == self._last_made + 1 else place - place % self._group
            for one in range(first, place + 1):
                packet = self._packets[one] = self._feed.packet(one).with_digest()
            self._last_made = place
        assert packet is not None
        return packet
