"""Read packets from the queue as one named consumer; the server deletes them after they are sealed.

Commands are written and answers read directly on one connection: the client library would repeat commands (a repeated
XREADGROUP skips what the first one had taken), and a packet costs microseconds this way.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Sequence
from typing import Any, cast

import redis

from kitchensync.capture.queue.stream_entries import META, make_group, make_stream
from kitchensync.shell.host_clock import host_ns
from kitchensync.storage.chunks.chunk_writer import Packet, Sealed
from kitchensync.storage.names import DRAINERS, files_key, stream_key

IDS_PER_TRANSACTION = 4096
"""Entries deleted in one transaction: more would make the producers wait too long for the server."""

NO_PACKETS = (ValueError, TypeError, struct.error)
"""Errors of decoding entries that are not packets."""

GONE = ("NOGROUP", "UNBLOCKED the")
"""Prefixes of the server's errors if a stream or group does not exist, or vanishes while we wait for it."""

RESEND_NS = 1_000_000_000
"""Time for the producer to recreate a vanished stream: only the producer can send its packets again."""


class QueueReader:
    """Reads the packets of some streams from the queue as one named consumer; used by one thread."""

    def __init__(
        self, client: redis.Redis, recording_uuid: str, streams: Iterable[str], consumer: str
    ) -> None:
        """Prepare the reader without contacting the server; missing consumer groups are created when reading."""
        self._client = client
        self._uuid = recording_uuid
        self._consumer = consumer
        self._stream_of = {stream_key(recording_uuid, stream).encode(): stream for stream in streams}
        self._connection: Any = None
        self.unreadable: dict[str, Exception] = {}
        """Streams with entries that are not packets, and the error; they stay in the queue."""
        self.has_more = False
        """Whether more entries may be queued than were read last."""
        self._fresh_commands: dict[tuple[int, int | None], bytes] = {}
        self._last_ids: dict[bytes, bytes] = {}
        self._is_made = False
        self._missing_ns: dict[bytes, int] = {}
        """Missing streams, with the time since which they are missing."""
        self.vanished_ns = 0
        """When a stream was last found missing, 0 for never."""

    def _create_missing(self, patience_ns: int) -> bool:
        """Create streams that have been missing for `patience_ns`; return whether none is missing now."""
        now_ns = host_ns()
        missing = [key for key in self._stream_of if not make_group(self._client, key)]
        self._missing_ns = {key: self._missing_ns.get(key, now_ns) for key in missing}
        overdue = [key for key in missing if now_ns - self._missing_ns[key] >= patience_ns]
        for key in overdue:
            if make_stream(self._client, key) and key in self._last_ids:
                try:  # a recreated stream goes on with the last id of before, unless its producer was faster
                    self._client.execute_command("XSETID", key, self._last_ids[key])
                except redis.ResponseError as error:
                    if "smaller" not in str(error):
                        raise
        return overdue == missing

    def unfinished(self) -> dict[str, list[Packet]]:
        """Return the packets that an earlier run of this consumer took and did not acknowledge."""
        taken: dict[str, list[Packet]] = {}
        for key, stream in self._stream_of.items():
            after = b"0"
            while entries := self._entries(
                self._command({key: after}, 64, None), is_patient=self._is_made
            ).get(stream):
                taken.setdefault(stream, []).extend(self._packets(stream, entries))
                after = entries[-1][0]
        return self._readable(taken)

    def exclude(self, stream: str) -> None:
        """Read nothing more of a stream; all its packets that are not acknowledged stay in the queue."""
        self._stream_of = {key: name for key, name in self._stream_of.items() if name != stream}
        self._fresh_commands = {}

    def fresh(self, *, count: int, block_ms: int | None) -> dict[str, list[Packet]]:
        """Return new packets by stream, at most `count` entries of each; wait up to `block_ms` for the first.

        None does not wait. An idle server checks its timeouts ten times a second, so a wait of 1 ms would take 100.
        """
        self.has_more = False
        if not self._stream_of:
            time.sleep((block_ms or 0) / 1000)
            return {}
        command = self._fresh_commands.get((count, block_ms))
        if command is None:
            command = self._command(dict.fromkeys(self._stream_of, b">"), count, block_ms)
            self._fresh_commands[count, block_ms] = command
        got = self._entries(command, is_patient=block_ms is not None)
        self.has_more = any(len(entries) >= count for entries in got.values())
        return self._readable({stream: self._packets(stream, entries) for stream, entries in got.items()})

    def _packets(self, stream: str, entries: list[Any]) -> list[Packet]:
        try:
            return packets_of(entries)
        except NO_PACKETS as error:
            self.unreadable[stream] = error
            return []

    def _readable(self, got: dict[str, list[Packet]]) -> dict[str, list[Packet]]:
        if not self.unreadable:
            return got
        for stream in self.unreadable:
            self.exclude(stream)
        return {stream: packets for stream, packets in got.items() if stream not in self.unreadable}

    def _command(self, positions: dict[bytes, bytes], count: int, block_ms: int | None) -> bytes:
        wait = [] if block_ms is None else [b"BLOCK", b"%d" % block_ms]
        group = [b"XREADGROUP", b"GROUP", DRAINERS.encode(), self._consumer.encode(), b"COUNT", b"%d" % count]
        return resp([*group, *wait, b"STREAMS", *positions, *positions.values()])

    def _entries(self, command: bytes, *, is_patient: bool = False) -> dict[str, list[Any]]:
        try:
            (reply,) = self._ask([command], 1)
        except redis.ResponseError as error:
            if not str(error).startswith(GONE):
                raise
            if self._is_made:  # it was deleted, or a killed server has lost it
                self.vanished_ns = host_ns()
            try:
                is_there = self._create_missing(RESEND_NS if is_patient and self._is_made else 0)
            except redis.exceptions.OutOfMemoryError:
                return {}  # memory becomes free as soon as the drainer seals its packets
            return self._entries(command, is_patient=is_patient) if is_there else {}
        self._missing_ns = {}
        self._is_made |= is_patient  # only such commands cover all streams
        pairs = list(reply.items() if isinstance(reply, dict) else reply or [])
        self._last_ids |= {key: entries[-1][0] for key, entries in pairs if entries}
        return {self._stream_of[key]: entries for key, entries in pairs if entries}

    def acknowledge(self, stream: str, packets: Iterable[Packet], sealed: Sealed | None) -> None:
        """Delete sealed packets from the server, and store the hash of the sealed file there."""
        key = stream_key(self._uuid, stream).encode()
        ids = [b"%d-%d" % (packet.epoch_ms, packet.seq) for packet in packets]
        groups = [
            ids[first : first + IDS_PER_TRANSACTION] for first in range(0, len(ids), IDS_PER_TRANSACTION)
        ]
        deletions = [
            [resp([b"XACK", key, DRAINERS.encode(), *group]), resp([b"XDEL", key, *group])]
            for group in groups
        ]
        store_hash = []
        if sealed is not None:
            files = files_key(self._uuid, stream).encode()
            fact = f"{sealed.bytes} {sealed.sha256}".encode()
            store_hash = [resp([b"HSET", files, sealed.path.name.encode(), fact])]
        first = deletions[0] if deletions else []
        try:
            self._transact([*store_hash, *first])
        except redis.exceptions.OutOfMemoryError:  # first delete, which frees memory
            self._transact(first)
            self._transact(store_hash)
        for commands in deletions[1:]:
            self._transact(commands)

    def _transact(self, commands: list[bytes]) -> None:
        if commands:
            self._ask([resp([b"MULTI"]), *commands, resp([b"EXEC"])], len(commands) + 2)

    def _ask(self, commands: list[bytes], answers: int) -> list[Any]:
        """Send commands and read their answers. Raises the first error and closes the connection then."""
        if self._connection is None:
            self._connection = self._client.connection_pool.get_connection()
        try:
            self._connection.send_packed_command([b"".join(commands)])
            return [self._connection.read_response() for _ in range(answers)]
        except BaseException:
            self._connection.disconnect()  # remaining answers would be taken for those to the next commands
            raise

    def waiting(self) -> int:
        """Count the entries in the queue, including those that were read and not acknowledged."""
        pipeline = self._client.pipeline(transaction=False)
        for key in self._stream_of:
            pipeline.xlen(key)
        return sum(pipeline.execute())

    def close(self) -> None:
        """Return the connection to its pool."""
        if self._connection is not None:
            self._connection.disconnect()
            self._client.connection_pool.release(self._connection)
            self._connection = None


def sealed_files(client: redis.Redis, recording_uuid: str, stream: str) -> dict[str, dict[str, Any]]:
    """Return name -> {bytes, sha256} of the sealed chunks of a stream."""
    stored = cast(dict[bytes, bytes], client.hgetall(files_key(recording_uuid, stream)))
    files = {}
    for name, value in stored.items():
        size, sha256 = value.decode().split()
        files[name.decode()] = {"bytes": int(size), "sha256": sha256}
    return files


def resp(arguments: Sequence[bytes]) -> bytes:
    """Return a command in the Redis protocol (RESP)."""
    bulks = [b"$%d\r\n%b\r\n" % (len(argument), argument) for argument in arguments]
    return b"*%d\r\n" % len(arguments) + b"".join(bulks)


def packets_of(entries: Sequence[Any]) -> list[Packet]:
    """Decode entries of XREADGROUP. Raises `NO_PACKETS`."""
    packets = []
    for entry_id, (_, meta, _, body) in entries:
        epoch, _, last = entry_id.partition(b"-")
        facts = list(META.iter_unpack(meta))
        epoch_ms, seq, view, start = int(epoch), int(last) + 1 - len(facts), memoryview(body), 0
        for arrived_ns, device_ticks, connection, pose_bytes, size in facts:
            end = start + size
            payload, pose = view[start : end - pose_bytes], view[end - pose_bytes : end]
            packets.append(Packet(seq, epoch_ms, device_ticks, arrived_ns, connection, payload, pose))
            seq, start = seq + 1, end
        if start != len(body) or not facts:
            raise ValueError(f"entry {entry_id!r} does not have the length that it states")
    return packets
