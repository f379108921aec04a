"""Entries of one stream in the queue, and copies of the newest packets in case the server loses them.

An entry holds one packet, or several small ones with consecutive numbers, because a command costs more than a packet.
Its id is `<epoch of the producer>-<sequence of its last packet>`: if an entry is sent again after an unknown outcome,
the server refuses the id instead of storing the packets twice.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import redis

from kitchensync.storage.names import DRAINERS, stream_key

META = struct.Struct("<qqIII")
"""Metadata of a packet: host_ns, device_ticks, connection, bytes of the pose at the end of the body, bytes of the
body."""

ENTRY_BYTES, ENTRY_PACKETS = 64 << 10, 64
"""Limits of one entry; a larger packet is an entry of its own and is sent without copying."""

KEEP_S = 3.0
KEEP_BYTES = 48 << 20
"""Age and size of the newest packets that are kept: with `everysec` a server may lose two seconds."""

QUIET_S = 0.5
"""Time without a write after which a stream is checked before the next one.

It is shorter than the second after which a drainer recreates a vanished stream."""

Piece = bytes | bytearray | memoryview


class QueuedPacket(NamedTuple):
    """A packet to be queued; `body` is payload and pose in one piece and must not change."""

    seq: int
    device_ticks: int
    host_ns: int
    connection: int
    body: bytes | memoryview
    pose_bytes: int


def make_stream(client: redis.Redis, key: str | bytes) -> bool:
    """Create a stream and its consumer group; return False if they exist."""
    try:
        client.xgroup_create(key, DRAINERS, id="0", mkstream=True)
    except redis.ResponseError as error:
        if "BUSYGROUP" not in str(error):
            raise
        return False
    return True


def make_group(client: redis.Redis, key: str | bytes) -> bool:
    """Create the consumer group of a stream if it is missing; return False if the stream does not exist."""
    try:
        client.xgroup_create(key, DRAINERS, id="0")
    except redis.ResponseError as error:
        if "requires the key to exist" in str(error):
            return False
        if "BUSYGROUP" not in str(error):
            raise
    return True


def _entries_of(packets: Sequence[QueuedPacket], most: int) -> Iterator[tuple[Sequence[QueuedPacket], int]]:
    """Divide packets into entries and yield each with its size; deterministic, so resent entries keep their ids."""
    first = size = 0
    for at, packet in enumerate(packets):
        length = len(packet.body)
        is_next = at > first and packet.seq == packets[at - 1].seq + 1
        if at > first and (not is_next or size + length > ENTRY_BYTES or at - first == most):
            yield packets[first:at], size
            first, size = at, 0
        size += length
    if packets:
        yield packets[first:], size


class StreamEntries:
    """The key of one stream, its last sequence number, and its newest packets.

    A server that is killed loses what it had not synced (`appendfsync everysec`), and another program may delete the
    stream: then the newest packets are sent again. XADD uses NOMKSTREAM, so that a missing stream is noticed.
    """

    def __init__(
        self,
        client: redis.Redis,
        recording_uuid: str,
        stream: str,
        epoch_ms: int,
        on_loss: Callable[[int, int], None],
        entry_packets: int,
    ) -> None:
        """Prepare the stream; `epoch_ms` (Unix milliseconds) identifies this run of the producer.

        `on_loss(first_seq, last_seq)` is called for packets that the server lost and that are not kept here.
        `entry_packets` is the largest number of packets in an entry.
        """
        self._entry_packets = entry_packets
        self._client = client
        self._key = stream_key(recording_uuid, stream)
        self._epoch_ms = epoch_ms
        self._on_loss = on_loss
        key = self._key.encode()
        self._head = b"*8\r\n$4\r\nXADD\r\n$%d\r\n%b\r\n$10\r\nNOMKSTREAM\r\n$" % (len(key), key)
        self._recent: deque[tuple[float, int, list[QueuedPacket]]] = deque()
        self._recent_bytes = 0
        self._next_seq = self._reported_seq = 0
        self._checked_s = 0.0
        """When the stream was last known to exist."""
        self.sure_of = -1
        """Number of the pipe's connection since which the server's state is known, -1 if it is not."""

    def pack(self, packets: Sequence[QueuedPacket], pieces: list[Piece]) -> list[int]:
        """Append the commands in the Redis protocol; return the number of packets in each of them.

        Large bodies become pieces of their own, so that they are not copied.
        """
        small = pieces[-1] if pieces and isinstance(pieces[-1], bytearray) else None
        counts = []
        for entry, size in _entries_of(packets, self._entry_packets):
            if small is None:
                small = bytearray()
                pieces.append(small)
            counts.append(len(entry))
            entry_id = b"%d-%d" % (self._epoch_ms, entry[-1].seq)
            facts = [
                META.pack(host_ns, device_ticks, connection, pose_bytes, len(body))
                for _, device_ticks, host_ns, connection, body, pose_bytes in entry
            ]
            meta = b"".join(facts)
            small += self._head
            small += b"%d\r\n%b\r\n$1\r\nn\r\n$%d\r\n%b\r\n$1\r\nb\r\n$%d\r\n" % (
                len(entry_id), entry_id, len(meta), meta, size
            )  # fmt: skip
            if size > ENTRY_BYTES:
                small = bytearray(b"\r\n")
                pieces += [entry[0].body, small]
            else:
                for packet in entry:
                    small += packet.body
                small += b"\r\n"
        return counts

    def is_quiet(self) -> bool:
        """Return whether nothing was written or checked for a while, so that the stream may have vanished."""
        return bool(self._recent) and time.monotonic() - self._checked_s > QUIET_S

    def forgotten(self) -> list[QueuedPacket]:
        """Return kept packets that the server has lost; call `on_loss` once for those that are not kept."""
        self._checked_s = time.monotonic()
        last = self._last_id()
        if last is None:
            make_stream(self._client, self._key)
        # Packets that were sent again are kept a second time, after later ones.
        recent = {packet.seq: packet for _, _, packets in self._recent for packet in packets}
        kept = [recent[seq] for seq in sorted(recent) if last is None or (self._epoch_ms, seq) > last]
        known = max(last[1] + 1 if last else 0, self._reported_seq)
        first_kept = kept[0].seq if kept else self._next_seq
        if first_kept > known:
            self._reported_seq = first_kept
            self._on_loss(known, first_kept - 1)
        return kept

    def keep(self, packets: list[QueuedPacket]) -> None:
        """Keep packets that the server has accepted for some seconds; their bodies must not change."""
        if not packets:
            return
        self._checked_s = now_s = time.monotonic()
        size = sum([len(packet.body) for packet in packets])
        self._next_seq = max(self._next_seq, packets[-1].seq + 1)
        self._recent.append((now_s, size, packets))
        self._recent_bytes += size
        while self._recent and (self._recent_bytes > KEEP_BYTES or now_s - self._recent[0][0] > KEEP_S):
            self._recent_bytes -= self._recent.popleft()[1]

    def _last_id(self) -> tuple[int, int] | None:
        try:
            last = self._client.xinfo_stream(self._key)["last-generated-id"]
        except redis.ResponseError as error:
            if "no such key" not in str(error):
                raise
            return None
        epoch, _, seq = (last.decode() if isinstance(last, bytes) else str(last)).partition("-")
        return (int(epoch), int(seq)) if (epoch, seq) != ("0", "0") else None
