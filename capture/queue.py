"""The queue between sensors and disk: one Redis stream a sensor, explicit ids, acknowledged after sealing.

An entry's id is `<epoch of the producer>-<sequence of the packet>`. A retry after an unknown outcome is refused
by the server, because the id is there, instead of stored twice.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable
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
    """Puts the packets of one stream into the queue, each once."""

    def __init__(self, client: redis.Redis, recording_uuid: str, stream: str, epoch_ms: int) -> None:
        """`epoch_ms` (Unix milliseconds) tells this run of the producer from an earlier one."""
        self._client = client
        self._key = stream_key(recording_uuid, stream)
        self._epoch_ms = epoch_ms
        self.retries = 0

    def next_sequence(self) -> int:
        """Return the number after the last one that an earlier run of the producer queued, else 0."""
        try:
            last = self._client.xinfo_stream(self._key)["last-generated-id"]
        except redis.ResponseError:
            return 0
        last_id = last.decode() if isinstance(last, bytes) else str(last)
        return int(last_id.split("-")[1]) + 1 if last_id != "0-0" else 0

    def put(self, packet: QueuedPacket, give_up: Callable[[], bool]) -> bool:
        """Queue one packet; return False when it could not be queued before `give_up` said so."""
        meta = _META.pack(packet.host_ns, packet.device_ticks, packet.connection, packet.pose_bytes)
        fields: dict[Any, Any] = {b"m": meta, b"b": packet.body}
        entry_id = f"{self._epoch_ms}-{packet.seq}"
        while True:
            try:
                self._client.xadd(self._key, fields, id=entry_id)
            except OUTCOME_UNKNOWN + QUEUE_FULL:
                self.retries += 1
                if give_up():
                    return False
                time.sleep(0.05)
            except redis.ResponseError as error:
                if "equal or smaller" in str(error):
                    return True  # the try before had reached the server after all
                if not str(error).startswith(("MISCONF", "LOADING")):
                    raise
                self.retries += 1
                if give_up():
                    return False
                time.sleep(0.05)
            else:
                return True


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
        for key in self._stream_of:
            try:
                client.xgroup_create(key, DRAINERS, id="0", mkstream=True)
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
        reply = self._client.xreadgroup(
            DRAINERS, self._consumer, cast(Any, positions), count=count, block=block_ms
        )
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
