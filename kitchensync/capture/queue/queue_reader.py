"""The way out of the queue: packets as one named consumer takes them, forgotten by the server once they are sealed.

Commands are written and answers read on one connection without a layer in between: nothing is repeated behind our
back (a repeated XREADGROUP would skip what the first one had taken), and a packet costs microseconds.
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

IDS_AT_ONCE = 4096
"""Entries forgotten in one transaction: more would keep the server from the producers for too long."""

NO_PACKETS = (ValueError, TypeError, struct.error)
"""What reading raises of entries that are none of ours."""

GONE = ("NOGROUP", "UNBLOCKED the")
"""How a server's refusal begins that has no stream or group of that name, or loses it while we wait for it."""

GIVEN_AGAIN_NS = 1_000_000_000
"""So long a stream that vanished is left to its producer: one that makes it anew knows what to give again."""


class QueueReader:
    """Takes the packets of some streams out of the queue, as one named consumer; belongs to one thread."""

    def __init__(
        self, client: redis.Redis, recording_uuid: str, streams: Iterable[str], consumer: str
    ) -> None:
        """Ask nothing of the server yet; the consumer groups are made when it knows none."""
        self._client = client
        self._uuid = recording_uuid
        self._consumer = consumer
        self._stream_of = {stream_key(recording_uuid, stream).encode(): stream for stream in streams}
        self._connection: Any = None
        self.unreadable: dict[str, Exception] = {}
        """Streams whose entries are not what we queue, and why: nobody takes them out."""
        self.left_more = False
        """Whether more may wait than the last reading took."""
        self._fresh_commands: dict[tuple[int, int | None], bytes] = {}
        self._last_ids: dict[bytes, bytes] = {}
        self._is_made = False
        self._missing_ns: dict[bytes, int] = {}
        """Streams that are not there, and since when we know."""
        self.vanished_ns = 0
        """When a stream was found missing last, 0 for never."""

    def _make_missing(self, patience_ns: int) -> bool:
        """Make what has been missing for so long; return whether nothing is missing now.

        Each stream waits by itself: the producer of one that vanished later has not had its time yet.
        """
        now_ns = host_ns()
        missing = [key for key in self._stream_of if not make_group(self._client, key)]
        self._missing_ns = {key: self._missing_ns.get(key, now_ns) for key in missing}
        overdue = [key for key in missing if now_ns - self._missing_ns[key] >= patience_ns]
        for key in overdue:
            if make_stream(self._client, key) and key in self._last_ids:
                self._go_on_counting(key)
        return overdue == missing

    def _go_on_counting(self, key: bytes) -> None:
        """Let the producer go on where the vanished stream was, unless it has given it again meanwhile."""
        try:
            self._client.execute_command("XSETID", key, self._last_ids[key])
        except redis.ResponseError as error:
            if "smaller" not in str(error):
                raise

    def unfinished(self) -> dict[str, list[Packet]]:
        """Return what an earlier run of this consumer took and did not acknowledge."""
        taken: dict[str, list[Packet]] = {}
        for key, stream in self._stream_of.items():
            after = b"0"
            while entries := self._entries(
                self._command({key: after}, 64, None), is_patient=self._is_made
            ).get(stream):
                taken.setdefault(stream, []).extend(self._packets(stream, entries))
                after = entries[-1][0]
        return self._readable(taken)

    def leave_out(self, stream: str) -> None:
        """Take nothing more of a stream; what was taken and not acknowledged stays in the queue as well."""
        self._stream_of = {key: name for key, name in self._stream_of.items() if name != stream}
        self._fresh_commands = {}

    def fresh(self, *, count: int, block_ms: int | None) -> dict[str, list[Packet]]:
        """Return new packets by stream, at most `count` entries of each; wait up to `block_ms` for the first.

        None does not wait: an idle server looks at its clock ten times a second, so a wait of 1 ms takes 100.
        """
        self.left_more = False
        if not self._stream_of:
            time.sleep((block_ms or 0) / 1000)
            return {}
        command = self._fresh_commands.get((count, block_ms))
        if command is None:
            command = self._command(dict.fromkeys(self._stream_of, b">"), count, block_ms)
            self._fresh_commands[count, block_ms] = command
        got = self._entries(command, is_patient=block_ms is not None)
        self.left_more = any(len(entries) >= count for entries in got.values())
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
            self.leave_out(stream)
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
            if self._is_made:  # somebody deleted it, or a killed server forgot even this
                self.vanished_ns = host_ns()
            try:
                is_there = self._make_missing(GIVEN_AGAIN_NS if is_patient and self._is_made else 0)
            except redis.exceptions.OutOfMemoryError:
                return {}  # what we hold can be sealed meanwhile
            return self._entries(command, is_patient=is_patient) if is_there else {}
        self._missing_ns = {}
        self._is_made |= is_patient  # then all of them were asked for
        pairs = list(reply.items() if isinstance(reply, dict) else reply or [])
        self._last_ids |= {key: entries[-1][0] for key, entries in pairs if entries}
        return {self._stream_of[key]: entries for key, entries in pairs if entries}

    def acknowledge(self, stream: str, packets: Iterable[Packet], sealed: Sealed | None) -> None:
        """Let the server forget packets that are sealed, and remember the sealed file's hash with it.

        A server without any memory left forgets first and remembers then.
        """
        key = stream_key(self._uuid, stream).encode()
        ids = [b"%d-%d" % (packet.epoch_ms, packet.seq) for packet in packets]
        groups = [ids[first : first + IDS_AT_ONCE] for first in range(0, len(ids), IDS_AT_ONCE)]
        forget = [
            [resp([b"XACK", key, DRAINERS.encode(), *some]), resp([b"XDEL", key, *some])] for some in groups
        ]
        remember = []
        if sealed is not None:
            files = files_key(self._uuid, stream).encode()
            fact = f"{sealed.bytes} {sealed.sha256}".encode()
            remember = [resp([b"HSET", files, sealed.path.name.encode(), fact])]
        first = forget[0] if forget else []
        try:
            self._transact([*remember, *first])
        except redis.exceptions.OutOfMemoryError:
            self._transact(first)
            self._transact(remember)
        for commands in forget[1:]:
            self._transact(commands)

    def _transact(self, commands: list[bytes]) -> None:
        if commands:
            self._ask([resp([b"MULTI"]), *commands, resp([b"EXEC"])], len(commands) + 2)

    def _ask(self, commands: list[bytes], answers: int) -> list[Any]:
        """Send commands and read their answers. Raises the first error; the connection is then a new one."""
        if self._connection is None:
            self._connection = self._client.connection_pool.get_connection()
        try:
            self._connection.send_packed_command([b"".join(commands)])
            return [self._connection.read_response() for _ in range(answers)]
        except BaseException:
            self._connection.disconnect()  # answers may still be on their way
            raise

    def waiting(self) -> int:
        """Count the entries still in the queue, those that we hold unacknowledged included."""
        pipeline = self._client.pipeline(transaction=False)
        for key in self._stream_of:
            pipeline.xlen(key)
        return sum(pipeline.execute())

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            self._connection.disconnect()
            self._client.connection_pool.release(self._connection)
            self._connection = None


def sealed_files(client: redis.Redis, recording_uuid: str, stream: str) -> dict[str, dict[str, Any]]:
    """Return name -> {bytes, sha256} of the chunks that were sealed."""
    stored = cast(dict[bytes, bytes], client.hgetall(files_key(recording_uuid, stream)))
    files = {}
    for name, value in stored.items():
        size, sha256 = value.decode().split()
        files[name.decode()] = {"bytes": int(size), "sha256": sha256}
    return files


def resp(arguments: Sequence[bytes]) -> bytes:
    """Write a command as the server reads it."""
    return b"*%d\r\n" % len(arguments) + b"".join([b"$%d\r\n%b\r\n" % (len(one), one) for one in arguments])


def packets_of(entries: Sequence[Any]) -> list[Packet]:
    """Read entries as the server gives them. Raises `NO_PACKETS`."""
    found = []
    for entry_id, (_, meta, _, body) in entries:
        epoch, _, last = entry_id.partition(b"-")
        facts = list(META.iter_unpack(meta))
        epoch_ms, seq, view, start = int(epoch), int(last) + 1 - len(facts), memoryview(body), 0
        for arrived_ns, device_ticks, connection, pose_bytes, size in facts:
            end = start + size
            payload, pose = view[start : end - pose_bytes], view[end - pose_bytes : end]
            found.append(Packet(seq, epoch_ms, device_ticks, arrived_ns, connection, payload, pose))
            seq, start = seq + 1, end
        if start != len(body) or not facts:
            raise ValueError(f"entry {entry_id!r} is not as long as it says")
    return found
