"""Write packets of several streams into the queue in one send, each exactly once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import redis

from kitchensync.capture.queue.refusal import WritesRefused, refusal
from kitchensync.capture.queue.stream_entries import Piece, QueuedPacket, StreamEntries
from kitchensync.shell.host_clock import host_ns

OUTCOME_UNKNOWN = (redis.ConnectionError, redis.TimeoutError)
"""Errors after which the command may or may not have been executed: it is repeated."""

RETRY_S = 0.05

PATIENCE_S = 30.0
"""Time for which a packet waits for room in the queue before its loss is declared."""

SYNC_MARK = "ks:sync"
"""A key that expires after a millisecond; it is written after the packets, so a sync that covers it covers them."""


@dataclass
class Batch:
    """Packets of one stream in order; the first `done` of them are settled: queued, or lost and in `holes`."""

    writer: StreamEntries
    packets: list[QueuedPacket]
    done: int = 0
    holes: list[int] = field(default_factory=list)

    @property
    def waiting(self) -> list[QueuedPacket]:
        """The packets that are not settled yet."""
        return self.packets[self.done :] if self.done else self.packets

    def settle(self, stored: Sequence[bool]) -> None:
        """Process the server's answers to all waiting packets, one for each packet.

        A packet that found no room while a later one did is lost: the server accepts only rising ids.
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
        """Return the ranges (first, last) of sequence numbers that are not in the queue."""
        runs: list[tuple[int, int]] = []
        for number in [*self.holes, *(packet.seq for packet in self.packets[self.done :])]:
            if runs and number == runs[-1][1] + 1:
                runs[-1] = (runs[-1][0], number)
            else:
                runs.append((number, number))
        return runs


class QueuePipe:
    """One connection to the queue; used by one thread at a time."""

    def __init__(self, client: redis.Redis) -> None:
        """Store the client; the connection is opened by the first `begin`."""
        self._client = client
        self._connection: Any = None
        self.connections = 0
        """Incremented after an unknown outcome; then the server's state has to be read again."""
        self.vanished_ns = 0
        """When the server was found to have lost a stream, 0 for never."""
        self.refusal = ""
        """Error message of the server if it refused the last batches, else ""."""
        self._batches: Sequence[Batch] = ()
        self._writers: dict[StreamEntries, None] = {}
        """All streams that were written: a server that lost data gets the packets of quiet streams again too."""
        self._unanswered: list[tuple[Batch, list[int]]] = []
        """Sent batches without an answer, each with the numbers of packets in its entries."""

    def put(self, batches: Sequence[Batch], give_up: Callable[[], bool]) -> None:
        """Queue every batch in order, retrying until `give_up` returns True."""
        self.begin(batches)
        self.finish(give_up)

    def begin(self, batches: Sequence[Batch]) -> None:
        """Send batches without waiting for the answers; call `finish` before the next `begin`."""
        self._batches, self.refusal = batches, ""
        self._writers |= dict.fromkeys(batch.writer for batch in batches)
        self._try(self._send_all)

    def finish(self, give_up: Callable[[], bool]) -> None:
        """Read the answers to the batches; repeat packets that are not settled until `give_up` returns True."""
        while True:
            self._try(self._read_answers)
            if not any(batch.waiting for batch in self._batches) or give_up():
                break
            time.sleep(RETRY_S)
            self._try(self._send_all)
        self._batches = ()

    def wait_for_sync(self, limit_s: float) -> None:
        """Wait until the server has synced all packets to its disk, at most `limit_s`.

        A server that is killed loses up to a second of what it had acknowledged; if that happens meanwhile, the lost
        packets are sent again.
        """
        end_s = time.monotonic() + limit_s
        for writer in self._writers:
            writer.sure_of = -1  # a quiet stream may have vanished unnoticed
        while self._writers and (remaining_s := end_s - time.monotonic()) > 0:
            # There is no batch now, so this sends only what a restarted server has lost.
            if self._try(self._send_all) and self._try(partial(self._sync, remaining_s)):
                break
            time.sleep(RETRY_S)

    def _sync(self, limit_s: float) -> None:
        if self.connections:
            # WAITAOF only covers writes of its own connection, and the packets were written by an earlier one.
            self._connection.send_command("SET", SYNC_MARK, "", "PX", 1)
            if not self._answer():
                raise WritesRefused(self.refusal)
        self._connection.send_command("WAITAOF", 1, 0, round(1000 * limit_s) + 1)
        # A server without a file (on a full disk), or too old for WAITAOF, answers with an error.
        with contextlib.suppress(redis.ResponseError):
            self._connection.read_response()

    def _try(self, step: Callable[[], None]) -> bool:
        """Run one exchange with the server; return False if its outcome is unknown."""
        try:
            step()
        except OUTCOME_UNKNOWN as error:
            self.refusal = refusal(error)
            self.connections += 1
            self._disconnect()
            return False
        return True

    def _send_all(self) -> None:
        for writer in self._writers:
            if writer.sure_of == self.connections and not writer.is_quiet():
                continue
            try:
                again = Batch(writer, writer.forgotten())  # packets that the server has lost
            except redis.ResponseError as error:
                if refusal(error):
                    raise WritesRefused(refusal(error)) from error
                raise
            if again.packets:
                self._send([again])
                self._read_answers()
                if again.waiting or again.holes:
                    raise WritesRefused(self.refusal)
            writer.sure_of = self.connections
        self._send([batch for batch in self._batches if batch.waiting])

    def _send(self, batches: list[Batch]) -> None:
        """Send the XADD commands of all batches together."""
        pieces: list[Piece] = []
        sent = [(batch, batch.writer.pack(batch.waiting, pieces)) for batch in batches]
        if self._connection is None:
            self._connection = self._client.connection_pool.get_connection()
        self._unanswered = sent
        try:
            self._connection.send_packed_command(pieces)
        except BaseException:
            self._disconnect()
            raise

    def _read_answers(self) -> None:
        """Read the answers to all sent batches."""
        try:
            answers = [[(self._answer(), count) for count in counts] for _, counts in self._unanswered]
        except BaseException:
            self._disconnect()  # remaining answers would be taken for those to the next commands
            raise
        for (batch, _), entries in zip(self._unanswered, answers, strict=True):
            batch.settle([is_in for is_in, count in entries for _ in range(count)])
        self._unanswered = []

    def _answer(self) -> bool:
        """Read one answer; return True if the entry is in the queue, False if the server refuses writes."""
        try:
            answer = self._connection.read_response()
        except redis.ResponseError as error:
            if "equal or smaller" in str(error):
                return True  # the previous attempt had succeeded
            if message := refusal(error):
                self.refusal = message
                return False
            raise
        if answer is None:
            self.vanished_ns = host_ns()
            raise redis.ConnectionError("the stream has vanished from the queue")
        return True

    def _disconnect(self) -> None:
        self._unanswered = []
        if self._connection is not None:
            self._connection.disconnect()

    def close(self) -> None:
        """Return the connection to its pool."""
        if self._connection is not None:
            self._connection.disconnect()
            self._client.connection_pool.release(self._connection)
            self._connection = None
