"""One stream's entries in the queue: how packets become one, and the newest ones for a server that forgets.

An entry holds one packet, or small ones whose numbers follow each other: a command costs more than a packet.
Its id is `<epoch of the producer>-<sequence of its last packet>`. A retry after an unknown outcome is refused by the
server, because the id is there, instead of stored twice.
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
"""Of each packet: host_ns, device_ticks, connection, bytes of pose at the end of its body, bytes of its body."""

ENTRY_BYTES, ENTRY_PACKETS = 64 << 10, 64
"""The most that is put into one entry and copied into one send; a larger packet is an entry and sent by itself."""

KEEP_S = 3.0
KEEP_BYTES = 48 << 20
"""How much of the newest packets is kept for a server that forgets: `everysec` may lag two seconds."""

QUIET_S = 0.5
"""A stream that vanished is made anew by its drainer after a second: who has put nothing for so long looks first.

A pipe looks once in that time at a stream that stays quiet."""

Piece = bytes | bytearray | memoryview


class QueuedPacket(NamedTuple):
    """A packet on its way into the queue; `body` is payload and pose in one piece, and stays as it is."""

    seq: int
    device_ticks: int
    host_ns: int
    connection: int
    body: bytes | memoryview
    pose_bytes: int


def make_stream(client: redis.Redis, key: str | bytes) -> bool:
    """Make a stream and the group of its drainers; False when they are there."""
    try:
        client.xgroup_create(key, DRAINERS, id="0", mkstream=True)
    except redis.ResponseError as error:
        if "BUSYGROUP" not in str(error):
            raise
        return False
    return True


def make_group(client: redis.Redis, key: str | bytes) -> bool:
    """Make the group of a stream's drainers where it is missing; False when there is no such stream."""
    try:
        client.xgroup_create(key, DRAINERS, id="0")
    except redis.ResponseError as error:
        if "requires the key to exist" in str(error):
            return False
        if "BUSYGROUP" not in str(error):
            raise
    return True


def _entries_of(packets: Sequence[QueuedPacket], most: int) -> Iterator[tuple[Sequence[QueuedPacket], int]]:
    """Part packets into entries, each with its bytes, always in the same way: what is sent again has the same ids."""
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
    """The key of one stream, what was sent last, and the newest packets.

    A server that is killed may forget what it had not synced (`appendfsync everysec`), and somebody may delete the
    stream: then it is given them again. XADD makes no stream anew, so that we learn that it is gone.
    """

    def __init__(
        self,
        client: redis.Redis,
        recording_uuid: str,
        stream: str,
        epoch_ms: int,
        on_loss: Callable[[int, int], None],
        together: int,
    ) -> None:
        """`epoch_ms` (Unix milliseconds) tells this run of the producer from an earlier one.

        `on_loss(first_seq, last_seq)` is called for what a server forgot and we had not kept; so many packets at most
        are put `together` into an entry.
        """
        self._together = together
        self._client = client
        self._key = stream_key(recording_uuid, stream)
        self._epoch_ms = epoch_ms
        self._on_loss = on_loss
        key = self._key.encode()
        self._head = b"*8\r\n$4\r\nXADD\r\n$%d\r\n%b\r\n$10\r\nNOMKSTREAM\r\n$" % (len(key), key)
        self._recent: deque[tuple[float, int, list[QueuedPacket]]] = deque()
        self._recent_bytes = 0
        self._next_seq = self._told_seq = 0
        self._seen_s = 0.0
        """When the stream was there for certain."""
        self.sure_of = -1
        """The connection since which we know what the server has; -1: we do not."""

    def pack(self, packets: Sequence[QueuedPacket], pieces: list[Piece]) -> list[int]:
        """Append the commands as the server reads them; return how many packets each of them holds.

        Large bodies stay apart, so that nobody copies them.
        """
        small = pieces[-1] if pieces and isinstance(pieces[-1], bytearray) else None
        counts = []
        for entry, size in _entries_of(packets, self._together):
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
        """Return whether nothing was put or asked for a while, so that the stream may have vanished unseen."""
        return bool(self._recent) and time.monotonic() - self._seen_s > QUIET_S

    def forgotten(self) -> list[QueuedPacket]:
        """Return what a server has forgotten and is to be given; tell once of what cannot be given."""
        self._seen_s = time.monotonic()
        last = self._last_id()
        if last is None:
            make_stream(self._client, self._key)
        # What was given again is kept a second time, behind later ones.
        recent = {packet.seq: packet for _, _, packets in self._recent for packet in packets}
        kept = [recent[seq] for seq in sorted(recent) if last is None or (self._epoch_ms, seq) > last]
        known = max(last[1] + 1 if last else 0, self._told_seq)
        first_kept = kept[0].seq if kept else self._next_seq
        if first_kept > known:
            self._told_seq = first_kept
            self._on_loss(known, first_kept - 1)
        return kept

    def keep(self, packets: list[QueuedPacket]) -> None:
        """Keep packets that the server has taken, for some seconds; their bodies must stay as they are."""
        if not packets:
            return
        self._seen_s = now_s = time.monotonic()
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
