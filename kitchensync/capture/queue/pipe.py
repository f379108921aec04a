"""The way into the queue: the packets of several streams in one send, every answer read, each packet once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import redis

from kitchensync.capture.queue.refusal import WritesRefused, refusal
from kitchensync.capture.queue.stream_entries import Piece, QueuedPacket, StreamEntries
from kitchensync.shell.host_clock import host_ns

OUTCOME_UNKNOWN = (redis.ConnectionError, redis.TimeoutError)
"""The command may or may not have been done: repeat it."""

RETRY_S = 0.05

PATIENCE_S = 30.0
"""How long a packet waits for room in the queue before its loss is declared."""

SYNC_MARK = "ks:sync"
"""A key for a millisecond: written after the packets, so what is synced up to it holds them."""


@dataclass
class Batch:
    """Packets of one stream in order; the first `done` of them are settled: in the queue, or `holes`."""

    writer: StreamEntries
    packets: list[QueuedPacket]
    done: int = 0
    holes: list[int] = field(default_factory=list)

    @property
    def waiting(self) -> list[QueuedPacket]:
        """The packets that are not settled yet."""
        return self.packets[self.done :] if self.done else self.packets

    def settle(self, stored: Sequence[bool]) -> None:
        """Take the server's answers to all that waited, one a packet.

        A packet that found no room while a later one did cannot follow it (ids only rise): it is lost.
        """
        if all(stored):
            kept, settled = self.waiting, len(stored)
        else:
            settled = len(stored) - stored[::-1].index(True) if any(stored) else 0
            tried = list(zip(self.waiting[:settled], stored, strict=False))
            kept = [packet for packet, is_in in tried if is_in]
            self.holes += [packet.seq for packet, is_in in tried if not is_in]
        self.done += settled
        self.writer.keep(kept)

    def lost(self) -> list[tuple[int, int]]:
        """Return the sequence numbers that are not in the queue, as (first, last) of each run."""
        return _runs([*self.holes, *(packet.seq for packet in self.packets[self.done :])])


def _runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


class QueuePipe:
    """One connection to the queue; belongs to one thread at a time."""

    def __init__(self, client: redis.Redis) -> None:
        """Connect at the first `begin`."""
        self._client = client
        self._connection: Any = None
        self.connections = 0
        """Rises when an outcome is unknown: then nobody may be sure of what the server has."""
        self.vanished_ns = 0
        """When the server had lost a stream that it had been given, 0 for never."""
        self.refusal = ""
        """The server's own words where it refused the last batches, "" where it took them or did not answer."""
        self._batches: Sequence[Batch] = ()
        self._writers: dict[StreamEntries, None] = {}
        """Whoever was served: a stream that is quiet when the server forgets is given again with the others."""
        self._asked: list[tuple[Batch, list[int]]] = []
        """What the server has been given and has not answered yet, and how many packets each entry of it holds."""

    def put(self, batches: Sequence[Batch], give_up: Callable[[], bool]) -> None:
        """Queue every batch in order; what is not settled when `give_up` says so stays undone."""
        self.begin(batches)
        self.finish(give_up)

    def begin(self, batches: Sequence[Batch]) -> None:
        """Give the server batches and let it work; `finish` comes before the next `begin`."""
        self._batches, self.refusal = batches, ""
        self._writers |= dict.fromkeys(batch.writer for batch in batches)
        self._try(self._give)

    def finish(self, give_up: Callable[[], bool]) -> None:
        """Hear what became of the batches; repeat what is not settled until `give_up` says so."""
        while True:
            self._try(self._hear)
            if not any(batch.waiting for batch in self._batches) or give_up():
                break
            time.sleep(RETRY_S)
            self._try(self._give)
        self._batches = ()

    def hold(self, limit_s: float) -> None:
        """Stay until the server has synced what it took, at most so long; give it again when it is killed meanwhile.

        A server that is killed may forget a second of what it had acknowledged: then somebody must still have it.
        """
        end_s = time.monotonic() + limit_s
        for writer in self._writers:
            writer.sure_of = -1  # a stream that is quiet may have vanished unseen
        while self._writers and (left_s := end_s - time.monotonic()) > 0:
            # Nothing new is given, only what a server that came back has forgotten.
            if self._try(self._give) and self._try(partial(self._wait_for_sync, left_s)):
                break
            time.sleep(RETRY_S)

    def _wait_for_sync(self, limit_s: float) -> None:
        if self.connections:
            # WAITAOF counts what its own connection wrote: of what an earlier one wrote this one knows nothing.
            self._connection.send_command("SET", SYNC_MARK, "", "PX", 1)
            if not self._answer():
                raise WritesRefused(self.refusal)
        self._connection.send_command("WAITAOF", 1, 0, round(1000 * limit_s) + 1)
        # A server that keeps no file (a full disk), or is too old to be asked, has nothing to wait for.
        with contextlib.suppress(redis.ResponseError):
            self._connection.read_response()

    def _try(self, step: Callable[[], None]) -> bool:
        """Do one thing with the server; False when nobody knows what became of it."""
        try:
            step()
        except OUTCOME_UNKNOWN as error:
            self.refusal = refusal(error)
            self.connections += 1
            self._disconnect()
            return False
        return True

    def _give(self) -> None:
        for writer in self._writers:
            self._be_sure(writer)
        self._send([batch for batch in self._batches if batch.waiting])

    def _be_sure(self, writer: StreamEntries) -> None:
        """Give a server what it has forgotten of this stream."""
        if writer.sure_of == self.connections and not writer.is_quiet():
            return
        try:
            again = Batch(writer, writer.forgotten())
        except redis.ResponseError as error:
            if refusal(error):
                raise WritesRefused(refusal(error)) from error
            raise
        if again.packets:
            self._send([again])
            self._hear()
            if again.waiting or again.holes:
                raise WritesRefused(self.refusal)
        writer.sure_of = self.connections

    def _send(self, batches: list[Batch]) -> None:
        """Send XADDs in one go."""
        pieces: list[Piece] = []
        asked = [(batch, batch.writer.pack(batch.waiting, pieces)) for batch in batches]
        if self._connection is None:
            self._connection = self._client.connection_pool.get_connection()
        self._asked = asked
        try:
            self._connection.send_packed_command(pieces)
        except BaseException:
            self._disconnect()
            raise

    def _hear(self) -> None:
        """Read every answer to what was sent last."""
        try:
            answers = [[(self._answer(), count) for count in counts] for _, counts in self._asked]
        except BaseException:
            self._disconnect()  # answers may still be on their way
            raise
        for (batch, _), entries in zip(self._asked, answers, strict=True):
            batch.settle([is_in for is_in, count in entries for _ in range(count)])
        self._asked = []

    def _answer(self) -> bool:
        """Read one answer: True when the entry is in the queue, False when the server is not taking any."""
        try:
            answer = self._connection.read_response()
        except redis.ResponseError as error:
            if "equal or smaller" in str(error):
                return True  # the try before had reached the server after all
            if words := refusal(error):
                self.refusal = words
                return False
            raise
        if answer is None:
            self.vanished_ns = host_ns()
            raise redis.ConnectionError("the stream has vanished from the queue")
        return True

    def _disconnect(self) -> None:
        self._asked = []
        if self._connection is not None:
            self._connection.disconnect()

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            self._connection.disconnect()
            self._client.connection_pool.release(self._connection)
            self._connection = None
