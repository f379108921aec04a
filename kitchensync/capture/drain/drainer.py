"""The drainer: a process that reads packets of some streams from the queue and seals them into chunk files.

A packet is acknowledged only after its chunk is synced under its final name. A drainer that dies is restarted under
the same name and gets all packets again that it had taken and not sealed. A stream that cannot be sealed is set
aside: its packets stay in the queue, and the other streams go on.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import redis

from kitchensync.capture.drain.open_chunk import OpenChunk, open_chunk
from kitchensync.capture.drain.withheld import Withheld
from kitchensync.capture.plan import Plan, has_own_queue
from kitchensync.capture.process.health import HealthSender
from kitchensync.capture.process.log import log_event, log_warning
from kitchensync.capture.process.outcome import NO_SPACE
from kitchensync.capture.queue.pipe import OUTCOME_UNKNOWN
from kitchensync.capture.queue.queue_connection import connect, lacks_room
from kitchensync.capture.queue.queue_reader import QueueReader
from kitchensync.capture.queue.refusal import refusal
from kitchensync.storage.chunks.chunk_writer import Packet, Sealed, seal
from kitchensync.storage.disk.durable import LOCAL, Disk
from kitchensync.storage.manifest import read_manifest
from kitchensync.storage.names import MANIFEST

QUEUE_BYTES = 64 << 20
"""Total size of the open chunks of all drainers at which chunks are sealed, largest first, so that a raw depth camera
does not cut every other stream into small files."""

LINGER_S, LONG_LINGER_S, LITTLE_BYTES = 0.05, 0.2, 1 << 20
"""Pause between two readings, and the longer one after a reading smaller than LITTLE_BYTES: a wake-up costs more than
a packet. There is no pause while more packets are queued than one reading takes."""

READ_COUNT = 128
READ_BYTES = 8 << 20
MIN_COUNT = 8
"""Entries of each stream per reading: up to READ_COUNT, but of large packets only as many as fit in READ_BYTES."""

BACKLOG_READINGS = 4
"""Number of consecutive full readings that shows a growing backlog; then frames are not compressed."""

BLOCK_MS = 100
"""An idle server checks its timeouts ten times a second, so a shorter time would not return sooner."""
HEALTH_PERIOD_S = 0.25  # far below NO_NEWS_S, after which a process counts as silent
RETRY_S = 1.0  # each try writes the whole chunk again
QUEUE_RETRY_S = 0.1  # below HEALTH_PERIOD_S: while it retries, this loop sends the health

T = TypeVar("T")


def constants_of(recording: Path, streams: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the constant attributes of each stream's chunks: the manifest's `format` as JSON."""
    described = read_manifest(recording)["streams"] if (recording / MANIFEST).exists() else {}
    formats = {stream: described.get(stream, {}).get("format") for stream in streams}
    return {
        stream: {} if form is None else {"format": json.dumps(form, sort_keys=True)}
        for stream, form in formats.items()
    }


class Drainer:
    """Empties its share of the streams."""

    def __init__(self, plan: Plan, number: int, disk: Disk = LOCAL) -> None:
        """Find the sealed chunks of its streams; the queue is contacted by `run`."""
        self._plan = plan
        self._disk = disk
        lock = Path(plan.work) / f"drainer-{number}.lock"
        self._lock = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)  # a process of a killed recorder may still drain them
        self._ending = threading.Event()
        self._health = HealthSender(plan.health, f"drainer {number}")
        self._client = connect(plan.queue_url)
        share = plan.share(number)
        self._reader = QueueReader(self._client, plan.uuid, share, f"drainer-{number}")
        self._chunks: dict[str, OpenChunk] = {}
        self._aside: dict[str, str] = {}
        for stream in share:
            self._open(stream)
        self._constants = constants_of(Path(plan.path), share)
        self._withheld = Withheld(Path(plan.path), share) if plan.pause == "drop" else None
        self._largest_bytes = READ_BYTES // MIN_COUNT
        self._full_readings = 0
        self._problem = self._refused = ""
        self._sent_s = 0.0

    def _open(self, stream: str) -> None:
        try:
            self._chunks[stream] = open_chunk(Path(self._plan.path), stream, self._disk)
        except Exception as error:
            if _lacks_room(error):
                raise
            self._set_aside(stream, error)

    def _set_aside(self, stream: str, error: Exception) -> None:
        """Leave a stream in the queue, from where a repaired version can store it."""
        why = f"{type(error).__name__}: {error}"
        log_warning("stream is set aside", stream=stream, error="".join(traceback.format_exception(error)))
        self._aside[stream] = why
        self._chunks.pop(stream, None)
        self._reader.exclude(stream)
        self._sent_s = 0.0  # report it immediately

    def end(self) -> None:
        """End after the queue is empty and everything is sealed."""
        self._ending.set()

    def run(self) -> None:
        """Drain until `end` was called and the queue is empty."""
        try:
            self._drain()
        finally:
            self._health.close()
            self._reader.close()
            self._client.close()
            os.close(self._lock)

    def _drain(self) -> None:
        self._take(self._unfinished())
        while True:
            last_round = self._ending.is_set()
            count = min(READ_COUNT, max(MIN_COUNT, READ_BYTES // self._largest_bytes))  # of each stream
            received = self._fresh(None if last_round else BLOCK_MS, count)
            is_full = self._reader.has_more
            self._full_readings = self._full_readings + 1 if is_full else 0
            self._take(received)
            self._seal_due(everything=last_round and not received)
            self._send_health()
            waits = any(chunk.packets for chunk in self._chunks.values())
            if last_round and not received and not waits:
                break
            if last_round:
                time.sleep(LINGER_S if waits and not received else 0)
            elif not is_full:
                size = sum(len(packet.payload) for packets in received.values() for packet in packets)
                self._ending.wait(LONG_LINGER_S if size < LITTLE_BYTES else LINGER_S)
        self._send_health(done=True)

    def _fresh(self, block_ms: int | None, count: int) -> dict[str, list[Packet]]:
        while True:
            try:
                return self._retry(lambda: self._reader.fresh(count=count, block_ms=block_ms))
            except OUTCOME_UNKNOWN:
                # The server may have assigned entries to us that did not arrive.
                if unfinished := self._unfinished():
                    return unfinished

    def _unfinished(self) -> dict[str, list[Packet]]:
        return self._retry(self._reader.unfinished, OUTCOME_UNKNOWN)

    def _take(self, received: dict[str, list[Packet]]) -> None:
        now_s = time.monotonic()
        for stream, error in self._reader.unreadable.items():
            if stream not in self._aside:
                self._set_aside(stream, error)
        if received:
            largest = max(len(packets[-1].payload) for packets in received.values())
            self._largest_bytes = max(largest, self._largest_bytes // 2, 1)
        for stream, packets in received.items():
            old = self._chunks[stream].take(packets, now_s)
            if old:
                waiting = {packet.seq for packet in self._chunks[stream].packets}
                self._acknowledge(stream, [packet for packet in old if packet.seq not in waiting], None)

    def _seal_due(self, *, everything: bool) -> None:
        now_s, most = time.monotonic(), QUEUE_BYTES // self._plan.drainers
        held = sum(chunk.bytes for chunk in self._chunks.values())
        cut = self._withheld.streams if self._withheld is not None and self._withheld.refresh() else ()
        for chunk in sorted(self._chunks.values(), key=lambda chunk: -chunk.bytes):
            if not chunk.packets or now_s < chunk.retry_s:
                continue
            if everything or held >= most or chunk.is_due(now_s, self._plan.chunk_s) or chunk.stream in cut:
                held -= chunk.bytes
                self._seal_parts(chunk)

    def _seal_parts(self, chunk: OpenChunk) -> None:
        """Seal a chunk in parts, without the packets that a privacy pause withholds."""
        if self._withheld is None:
            self._seal(chunk)
            return
        rest = list(self._withheld.parts(chunk.stream, chunk.packets))
        while rest:
            is_hidden, packets = rest.pop(0)
            chunk.hold(packets)
            (self._drop if is_hidden else self._seal)(chunk)
            if chunk.packets:  # it could not be sealed: retry with the remaining parts
                chunk.hold([*packets, *(packet for _, later in rest for packet in later)])
                return

    def _drop(self, chunk: OpenChunk) -> None:
        """Discard the packets of a privacy pause after noting them in the manifest."""
        assert self._withheld is not None
        try:
            self._withheld.note(chunk.stream, chunk.packets)
        except OSError as error:
            self._postpone(chunk, error)
            return
        self._acknowledge(chunk.stream, chunk.packets, None)
        log_event("not stored", stream=chunk.stream, packets=len(chunk.packets), why="privacy pause")
        chunk.hold([])

    def _postpone(self, chunk: OpenChunk, error: Exception) -> None:
        """Retry a chunk later; its packets stay here and in the queue."""
        chunk.problem = NO_SPACE if _lacks_room(error) else f"{chunk.stream}: {error}"
        chunk.retry_s = time.monotonic() + RETRY_S
        self._send_health()

    def _seal(self, chunk: OpenChunk) -> None:
        """Seal a chunk; with a growing backlog its frames are not compressed."""
        attributes = {"recording": self._plan.uuid, "stream": chunk.stream, **self._constants[chunk.stream]}
        disk, hurried = self._disk, self._full_readings >= BACKLOG_READINGS
        try:
            sealed = seal(chunk.folder, chunk.number, chunk.packets, attributes, disk, hurried=hurried)
        except (OSError, MemoryError) as error:
            self._postpone(chunk, error)
            return
        except Exception as error:  # noqa: BLE001 (the other streams go on after any error)
            self._set_aside(chunk.stream, error)
            return
        chunk.problem = ""
        self._acknowledge(chunk.stream, chunk.packets, sealed)
        log_event(
            "sealed", stream=chunk.stream, file=sealed.path.name, packets=sealed.count, bytes=sealed.bytes
        )
        chunk.number += 1
        chunk.stored += len(chunk.packets)
        chunk.packets, chunk.bytes = [], 0

    def _acknowledge(self, stream: str, packets: list[Packet], sealed: Sealed | None) -> None:
        always = (*OUTCOME_UNKNOWN, redis.ResponseError)
        self._retry(lambda: self._reader.acknowledge(stream, packets, sealed), always)

    def _retry(self, request: Callable[[], T], also: tuple[type[Exception], ...] = ()) -> T:
        """Repeat a request to the queue while it is refused or fails with one of the errors `also`; report why.

        Nothing is lost meanwhile: packets that were read stay here and in the queue.
        """
        while True:
            try:
                answer = request()
            except redis.RedisError as error:
                message = refusal(error)
                if not message and not isinstance(error, also):
                    raise
                if lacks_room(message) and has_own_queue(self._plan):
                    self._problem = NO_SPACE
                else:
                    self._refused, self._problem = message, "" if message else f"queue: {error}"
                self._send_health()
                time.sleep(QUEUE_RETRY_S)
            else:
                self._problem = self._refused = ""
                return answer

    def _send_health(self, *, done: bool = False) -> None:
        now_s = time.monotonic()
        if not done and now_s - self._sent_s < HEALTH_PERIOD_S:
            return
        self._sent_s = now_s
        streams = {
            chunk.stream: {"stored": chunk.stored, "held": len(chunk.packets)}
            for chunk in self._chunks.values()
        }
        problems = {chunk.problem for chunk in self._chunks.values()} | {self._problem}
        worst = NO_SPACE if NO_SPACE in problems else max(problems)
        vanished_ns = self._reader.vanished_ns
        self._health.send(
            streams=streams,
            problem=worst,
            refused=self._refused,
            aside=self._aside,
            vanished_ns=vanished_ns,
            done=done,
        )


def _lacks_room(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
