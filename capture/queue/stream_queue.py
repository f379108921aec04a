"""The queue between sensors and disk: one Redis stream a sensor, explicit ids, acknowledged after sealing.

An entry's id is `<epoch of the producer>-<sequence of the packet>`. A retry after an unknown outcome is refused
by the server, because the id is there, instead of stored twice.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import redis

from capture.errors import QueueUnavailable
from capture.queue.pipe import LACKS_ROOM, OUTCOME_UNKNOWN, Batch, Piece, QueuedPacket, QueuePipe
from capture.queue.reader import META, QueueReader
from storage.names import files_key, stream_key

__all__ = [
    "OUTCOME_UNKNOWN",
    "QueuePipe",
    "QueueReader",
    "QueueWriter",
    "QueuedPacket",
    "connect",
    "lacks_room",
    "reached",
    "sealed_files",
    "share_of_memory",
    "wait_until_ready",
]

COPY_BYTES = 64 << 10
"""Up to this size a body is copied into one send; a larger one is sent by itself."""

LOADING_S = 120.0
"""A server that was killed reads its append-only file before it answers."""

KEEP_S = 3.0
KEEP_BYTES = 48 << 20
"""How much of the newest packets is kept for a server that forgets: `everysec` may lag two seconds."""


def connect(url: str) -> redis.Redis:
    """Open a client. `url` is `unix:///path`, `redis://` or `rediss://`."""
    return redis.Redis.from_url(url, decode_responses=False, socket_timeout=10)


@contextlib.contextmanager
def reached(url: str) -> Iterator[redis.Redis]:
    """Open a client for a block. Raises QueueUnavailable when the server does not do what it is asked there."""
    try:
        with connect(url) as client:
            yield client
    except redis.RedisError as error:
        raise QueueUnavailable(url, f"does not answer ({error})") from error


def lacks_room(error: redis.RedisError) -> bool:
    """Tell whether the server refuses because its disk is full: then it does not even hand packets out."""
    return str(error).startswith(LACKS_ROOM)


def share_of_memory(client: redis.Redis) -> float:
    """Return how much of its memory the server has used, 0 to 1; 0 where it knows no bound."""
    memory = client.info("memory")
    return float(memory["used_memory"]) / memory["maxmemory"] if memory["maxmemory"] else 0.0


def wait_until_ready(client: redis.Redis, where: str, limit_s: float = 15.0) -> None:
    """Wait for the first answer; a server that reads its file again is given more time. Raises QueueUnavailable."""
    end = time.monotonic() + limit_s
    last = end + LOADING_S
    while True:
        try:
            client.ping()
        except redis.RedisError as error:
            if isinstance(error, redis.BusyLoadingError):
                end = min(time.monotonic() + limit_s, last)
            if time.monotonic() > end:
                raise QueueUnavailable(where, f"does not answer ({error})") from error
            time.sleep(0.02)
        else:
            return


class QueueWriter:
    """Numbers its way: the key of one stream, what was sent last, and the newest packets for a forgetful server.

    A server that is killed may forget what it had not synced (`appendfsync everysec`), and is then given it again.
    """

    def __init__(
        self,
        client: redis.Redis,
        recording_uuid: str,
        stream: str,
        epoch_ms: int,
        on_loss: Callable[[int, int], None] = lambda first, last: None,
        pipe: QueuePipe | None = None,
    ) -> None:
        """`epoch_ms` (Unix milliseconds) tells this run of the producer from an earlier one.

        `on_loss(first_seq, last_seq)` is called for what a killed server forgot and we had not kept. Writers that
        share a `pipe` share its connection; else each has its own.
        """
        self._client = client
        self._key = stream_key(recording_uuid, stream)
        self._epoch_ms = epoch_ms
        self._on_loss = on_loss
        self._pipe = pipe or QueuePipe(client)
        self._head = b"*7\r\n$4\r\nXADD\r\n$%d\r\n%b\r\n$" % (len(self._key.encode()), self._key.encode())
        self._recent: deque[tuple[float, int, list[QueuedPacket]]] = deque()
        self._recent_bytes = 0
        self._next_seq = 0
        self.sure_of = self._pipe.connections
        """The connection since which we know what the server has."""

    def next_sequence(self) -> int:
        """Return the number after the last one that an earlier run of the producer queued, else 0.

        Waits for a server that is just being started again. Raises QueueUnavailable when it does not come.
        """
        wait_until_ready(self._client, self._key)
        last = self._last_id()
        self._next_seq = last[1] + 1 if last else 0
        if last and self._epoch_ms <= last[0]:
            self._epoch_ms = last[0] + 1  # the wall clock was set back: the server takes rising ids only
        return self._next_seq

    def _last_id(self) -> tuple[int, int] | None:
        try:
            last = self._client.xinfo_stream(self._key)["last-generated-id"]
        except redis.ResponseError as error:
            if "no such key" not in str(error):
                raise
            return None
        epoch, _, seq = (last.decode() if isinstance(last, bytes) else str(last)).partition("-")
        return (int(epoch), int(seq)) if (epoch, seq) != ("0", "0") else None

    def put(self, packets: Sequence[QueuedPacket], give_up: Callable[[], bool]) -> int:
        """Queue packets in order; return how many, fewer than given when `give_up` said so before."""
        batch = Batch(self, list(packets))
        self._pipe.put([batch], give_up)
        return batch.done

    def pack(self, packets: Sequence[QueuedPacket], pieces: list[Piece]) -> None:
        """Append the commands as the server reads them; large bodies stay apart, so that nobody copies them."""
        small = pieces[-1] if pieces and isinstance(pieces[-1], bytearray) else None
        for seq, device_ticks, host_ns, connection, body, pose_bytes in packets:
            if small is None:
                small = bytearray()
                pieces.append(small)
            entry_id = b"%d-%d" % (self._epoch_ms, seq)
            small += self._head
            small += b"%d\r\n%b\r\n$1\r\nm\r\n$24\r\n%b\r\n$1\r\nb\r\n$%d\r\n" % (
                len(entry_id),
                entry_id,
                META.pack(host_ns, device_ticks, connection, pose_bytes),
                len(body),
            )
            if len(body) > COPY_BYTES:
                small = bytearray(b"\r\n")
                pieces += [body, small]
            else:
                small += body
                small += b"\r\n"

    def forgotten(self) -> list[QueuedPacket]:
        """Return what a server that came back has forgotten and is to be given; tell of what cannot be given."""
        last = self._last_id()
        kept = [
            packet
            for _, _, packets in self._recent
            for packet in packets
            if last is None or (self._epoch_ms, packet.seq) > last
        ]
        known = last[1] + 1 if last else 0
        first_kept = kept[0].seq if kept else self._next_seq
        if first_kept > known:
            self._on_loss(known, first_kept - 1)
        return kept

    def keep(self, packets: list[QueuedPacket]) -> None:
        """Keep packets that the server has taken, for some seconds; their bodies must stay as they are."""
        if not packets:
            return
        now_s = time.monotonic()
        size = sum([len(packet.body) for packet in packets])
        self._next_seq = max(self._next_seq, packets[-1].seq + 1)
        self._recent.append((now_s, size, packets))
        self._recent_bytes += size
        while self._recent and (self._recent_bytes > KEEP_BYTES or now_s - self._recent[0][0] > KEEP_S):
            self._recent_bytes -= self._recent.popleft()[1]

    def hold(self, limit_s: float) -> None:
        """Stay until the server has synced what it took, at most so long; see `QueuePipe.hold`."""
        self._pipe.hold(limit_s)

    def close(self) -> None:
        """Give the connection back."""
        self._pipe.close()


def sealed_files(client: redis.Redis, recording_uuid: str, stream: str) -> dict[str, dict[str, Any]]:
    """Return name -> {bytes, sha256} of the chunks that were sealed."""
    stored = cast(dict[bytes, bytes], client.hgetall(files_key(recording_uuid, stream)))
    files = {}
    for name, value in stored.items():
        size, sha256 = value.decode().split()
        files[name.decode()] = {"bytes": int(size), "sha256": sha256}
    return files
