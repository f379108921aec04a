"""The queue between sensors and disk: one Redis stream a sensor, explicit ids, acknowledged after sealing.

An entry's id is `<epoch of the producer>-<sequence of the packet>`. A retry after an unknown outcome is refused
by the server, because the id is there, instead of stored twice.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

import redis

from capture.errors import QueueUnavailable
from storage.chunk import Packet, Sealed
from storage.names import DRAINERS, files_key, stream_key

_META = struct.Struct("<qqII")
"""host_ns, device_ticks, connection, bytes of pose at the end of the body."""

OUTCOME_UNKNOWN = (redis.ConnectionError, redis.TimeoutError)
"""The command may or may not have been done: repeat it."""

QUEUE_FULL = (redis.exceptions.OutOfMemoryError,)
"""The server's memory bound is reached, nothing was stored: wait for the drainers."""

NOT_NOW = ("MISCONF", "LOADING", "OOM")
"""What a server says that cannot store right now (its disk is full, it is starting): wait."""

RETRY_S = 0.05
COPY_BYTES = 16 << 10
"""Up to this size a body is copied into one send; a larger one is sent by itself."""

KEEP_S = 3.0
KEEP_BYTES = 48 << 20
"""How much of the newest packets is kept for a server that forgets: `everysec` may lag two seconds."""


class QueuedPacket(NamedTuple):
    """A packet on its way into the queue; `body` is payload and pose in one piece."""

    seq: int
    device_ticks: int
    host_ns: int
    connection: int
    body: bytes | memoryview
    pose_bytes: int


def connect(url: str) -> redis.Redis:
    """Open a client. `url` is `unix:///path`, `redis://` or `rediss://`."""
    return redis.Redis.from_url(url, decode_responses=False, socket_timeout=10)


def wait_until_ready(client: redis.Redis, where: str, limit_s: float = 15.0) -> None:
    """Wait for the first answer. Raises QueueUnavailable."""
    end = time.monotonic() + limit_s
    while True:
        try:
            client.ping()
        except redis.RedisError as error:
            if time.monotonic() > end:
                raise QueueUnavailable(where, f"does not answer ({error})") from error
            time.sleep(0.02)
        else:
            return


class QueueWriter:
    """Puts the packets of one stream into the queue, each once, several at a time where they wait already.

    The newest packets are kept for some seconds: a server that is killed may forget what it had not synced
    (`appendfsync everysec`), and is then given them again.
    """

    def __init__(
        self,
        client: redis.Redis,
        recording_uuid: str,
        stream: str,
        epoch_ms: int,
        on_loss: Callable[[int, int], None] = lambda first, last: None,
    ) -> None:
        """`epoch_ms` (Unix milliseconds) tells this run of the producer from an earlier one.

        `on_loss(first_seq, last_seq)` is called for what a killed server forgot and we had not kept.
        """
        self._client = client
        self._key = stream_key(recording_uuid, stream)
        self._epoch_ms = epoch_ms
        self._on_loss = on_loss
        self._head = f"*7\r\n$4\r\nXADD\r\n${len(self._key.encode())}\r\n{self._key}\r\n".encode()
        self._connection: Any = None
        self._recent: deque[tuple[float, QueuedPacket]] = deque()
        self._recent_bytes = 0
        self._unsure = False
        self._next_seq = 0

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
        done = 0
        while done < len(packets):
            try:
                if self._unsure:
                    self._catch_up()
                done += self._send(packets[done:])
                if done == len(packets):
                    break
            except OUTCOME_UNKNOWN:
                self._unsure = True
                self._disconnect()
            if give_up():
                break
            time.sleep(RETRY_S)
        self._keep(packets[:done])
        return done

    def _send(self, packets: Sequence[QueuedPacket]) -> int:
        """Send XADDs in one go and read every answer; return how many from the first on are stored."""
        if self._connection is None:
            self._connection = self._client.connection_pool.get_connection()
        self._connection.send_packed_command(self._packed(packets))
        answers = [self._answer() for _ in packets]
        stored = next((n for n, is_stored in enumerate(answers) if not is_stored), len(answers))
        self._next_seq = max(self._next_seq, packets[stored - 1].seq + 1) if stored else self._next_seq
        return stored

    def _packed(self, packets: Sequence[QueuedPacket]) -> list[bytes | memoryview]:
        """Write the commands as the server reads them; large bodies stay apart, so that nobody copies them."""
        pieces: list[bytes | memoryview] = []
        small = bytearray()
        for packet in packets:
            entry_id = b"%d-%d" % (self._epoch_ms, packet.seq)
            meta = _META.pack(packet.host_ns, packet.device_ticks, packet.connection, packet.pose_bytes)
            small += self._head
            small += b"$%d\r\n%b\r\n$1\r\nm\r\n$%d\r\n%b\r\n$1\r\nb\r\n$%d\r\n" % (
                len(entry_id),
                entry_id,
                len(meta),
                meta,
                len(packet.body),
            )
            if len(packet.body) > COPY_BYTES:
                pieces += [bytes(small), packet.body]
                small = bytearray()
            else:
                small += packet.body
            small += b"\r\n"
        return [*pieces, bytes(small)]

    def _answer(self) -> bool:
        """Read one answer: True when the packet is in the queue, False when the server is not taking any."""
        try:
            self._connection.read_response()
        except redis.ResponseError as error:
            if "equal or smaller" in str(error):
                return True  # the try before had reached the server after all
            if isinstance(error, QUEUE_FULL) or str(error).startswith(NOT_NOW):
                return False
            raise
        return True

    def _catch_up(self) -> None:
        """Give a server that came back what it has forgotten; tell of what cannot be given."""
        last = self._last_id()
        kept = [packet for _, packet in self._recent if last is None or (self._epoch_ms, packet.seq) > last]
        known = last[1] + 1 if last else 0
        first_kept = kept[0].seq if kept else self._next_seq
        if first_kept > known:
            self._on_loss(known, first_kept - 1)
        if kept and self._send(kept) < len(kept):
            raise redis.ConnectionError("the queue does not take what it had before")
        self._unsure = False

    def _keep(self, packets: Sequence[QueuedPacket]) -> None:
        now_s = time.monotonic()
        for packet in packets:
            self._recent.append((now_s, packet._replace(body=bytes(packet.body))))
            self._recent_bytes += len(packet.body)
        while self._recent and (self._recent_bytes > KEEP_BYTES or now_s - self._recent[0][0] > KEEP_S):
            self._recent_bytes -= len(self._recent.popleft()[1].body)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.disconnect()

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            self._connection.disconnect()
            self._client.connection_pool.release(self._connection)
            self._connection = None


class QueueReader:
    """Takes the packets of some streams out of the queue, as one named consumer."""

    def __init__(
        self, client: redis.Redis, recording_uuid: str, streams: Iterable[str], consumer: str
    ) -> None:
        """Make the consumer groups where they are not there yet."""
        self._client = client
        self._uuid = recording_uuid
        self._consumer = consumer
        self._stream_of = {stream_key(recording_uuid, stream).encode(): stream for stream in streams}
        self._make_groups()

    def _make_groups(self) -> None:
        for key in self._stream_of:
            try:
                self._client.xgroup_create(key, DRAINERS, id="0", mkstream=True)
            except redis.ResponseError as error:
                if "BUSYGROUP" not in str(error):
                    raise

    def unfinished(self) -> dict[str, list[Packet]]:
        """Return what an earlier run of this consumer took and did not acknowledge."""
        taken: dict[str, list[Packet]] = {}
        for key, stream in self._stream_of.items():
            after = b"0"
            while entries := self._read({key: after}, count=256, block_ms=None).get(stream):
                taken.setdefault(stream, []).extend(_packet(*entry) for entry in entries)
                after = entries[-1][0]
        return taken

    def fresh(self, *, count: int, block_ms: int) -> dict[str, list[Packet]]:
        """Return new packets by stream, at most `count` of each; wait up to `block_ms` for the first."""
        got = self._read(dict.fromkeys(self._stream_of, b">"), count=count, block_ms=block_ms)
        return {stream: [_packet(*entry) for entry in entries] for stream, entries in got.items()}

    def _read(
        self, positions: dict[bytes, bytes], *, count: int, block_ms: int | None
    ) -> dict[str, list[Any]]:
        try:
            reply = self._client.xreadgroup(
                DRAINERS, self._consumer, cast(Any, positions), count=count, block=block_ms
            )
        except redis.ResponseError as error:
            if not str(error).startswith("NOGROUP"):
                raise
            self._make_groups()  # a killed server forgot even this
            return {}
        pairs = reply.items() if isinstance(reply, dict) else reply or []
        found: dict[str, list[Any]] = {}
        for key, entries in pairs:
            flat = entries[0] if entries and isinstance(entries[0], list) else entries
            if flat:
                found[self._stream_of[cast(bytes, key)]] = flat
        return found

    def acknowledge(self, stream: str, packets: Iterable[Packet], sealed: Sealed | None) -> None:
        """Let the server forget packets that are sealed, and remember the sealed file's hash with it."""
        ids = [f"{packet.epoch_ms}-{packet.seq}" for packet in packets]
        key = stream_key(self._uuid, stream)
        pipeline = self._client.pipeline(transaction=True)
        if ids:
            pipeline.xack(key, DRAINERS, *ids)
            pipeline.xdel(key, *ids)
        if sealed is not None:
            pipeline.hset(files_key(self._uuid, stream), sealed.path.name, f"{sealed.bytes} {sealed.sha256}")
        pipeline.execute()

    def waiting(self) -> int:
        """Count the entries still in the queue, those that we hold unacknowledged included."""
        pipeline = self._client.pipeline(transaction=False)
        for key in self._stream_of:
            pipeline.xlen(key)
        return sum(pipeline.execute())


def sealed_files(client: redis.Redis, recording_uuid: str, stream: str) -> dict[str, dict[str, Any]]:
    """Return name -> {bytes, sha256} of the chunks that were sealed."""
    stored = cast(dict[bytes, bytes], client.hgetall(files_key(recording_uuid, stream)))
    files = {}
    for name, value in stored.items():
        size, sha256 = value.decode().split()
        files[name.decode()] = {"bytes": int(size), "sha256": sha256}
    return files


def _packet(entry_id: bytes, fields: Any) -> Packet:
    epoch, seq = entry_id.split(b"-")
    values = fields if isinstance(fields, dict) else dict(zip(fields[::2], fields[1::2], strict=True))
    host_ns, device_ticks, connection, pose_bytes = _META.unpack(values[b"m"])
    body = values[b"b"]
    end = len(body) - pose_bytes
    view = memoryview(body)
    return Packet(int(seq), int(epoch), device_ticks, host_ns, connection, view[:end], view[end:])
