"""One thread that receives all streams of a headset and queues their packets in batches.

A wake-up costs more than a packet. The kernel timestamps packets on arrival, and they are gathered for some
milliseconds, so that all streams share one wake-up of this thread, one send, and one wake-up of the queue server and
of the drainers.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kitchensync.capture.plan import LINGER_MS
from kitchensync.capture.queue.pipe import PATIENCE_S, Batch, QueuePipe
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.sensors.errors import AbsurdSize, StreamStalled
from kitchensync.sensors.hololens.client import StreamClient

if TYPE_CHECKING:
    from kitchensync.capture.produce.stream_recorder import StreamRecorder

SEND_BYTES = 512 << 10
SEND_PACKETS = 512
"""Size of a batch from which on it is sent without waiting for more."""

SETTLE_S = 0.1
"""Longest time until the queue's answer to a batch is read; usually that is just before the next batch."""

SILENCE_CHECK_S = 0.5
"""Period of the checks for silent connections."""

STALL_S = 1.0
"""A wait that ends this late shows that the process was stopped, a send that takes this long that the queue was."""


@dataclass
class _Connection:
    client: StreamClient
    stream: StreamRecorder
    received_s: float
    waiting: list[QueuedPacket] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None


class Receiver(threading.Thread):
    """Receiving thread; the thread of each stream calls `receive` for each of its connections."""

    def __init__(
        self, pipe: QueuePipe, linger_s: float = LINGER_MS / 1e3, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """`linger_s` 0 sends every packet on arrival; `now_s` is the clock that measures silence."""
        super().__init__(name="receiver", daemon=True)
        self._pipe = pipe
        self._linger_s = linger_s
        self._now_s = now_s
        self._poll = select.epoll()
        self._connections: dict[int, _Connection] = {}
        self._waiting: dict[int, _Connection] = {}
        self._coming: set[int] = set()
        """Connections with more data pending: a large packet must not wait for the linger time."""
        self._waiting_packets = 0
        self._waiting_bytes = 0
        self._send_at_s = 0.0
        self._sent: list[tuple[_Connection, Batch]] = []
        self._settle_at_s = 0.0
        self._patient_until_s = 0.0
        self._ending = False
        self.queue_stalls: deque[tuple[int, int]] = deque()
        """Times in which nothing was received because the queue accepted nothing: (start, end) in host_ns."""
        self._wake = os.eventfd(0)
        self._poll.register(self._wake, select.EPOLLIN)

    def receive(self, client: StreamClient, stream: StreamRecorder) -> None:
        """Queue the packets of a connected client until its connection ends; then raise the client's error."""
        connection = _Connection(client, stream, self._now_s())
        number = client.fileno()
        self._connections[number] = connection
        self._poll.register(number, select.EPOLLIN)
        connection.over.wait()
        assert connection.error is not None
        raise connection.error

    def stop(self) -> None:
        """End as soon as all connections have ended."""
        self._ending = True
        with contextlib.suppress(OSError):  # the thread has already ended
            os.eventfd_write(self._wake, 1)

    def run(self) -> None:
        """Receive and send until stopped."""
        try:
            self._loop()
        except BaseException as error:
            for connection in list(self._connections.values()):
                connection.error = error
                connection.over.set()
            raise
        finally:
            self._poll.close()
            os.close(self._wake)

    def _loop(self) -> None:
        looked_s = self._now_s()
        look_s = looked_s + SILENCE_CHECK_S
        while not (self._ending and not self._connections):
            now_s = self._now_s()
            if now_s - looked_s > STALL_S:
                self.queue_stalls.append((round(looked_s * 1e9), round(now_s * 1e9)))
            until_s = min(look_s, self._send_at_s) if self._waiting else look_s
            until_s = min(until_s, self._settle_at_s) if self._sent else until_s
            ready = self._ready(max(until_s - now_s, 0.0))
            looked_s = self._now_s()  # silence is measured up to here, because sending may take long
            if looked_s > max(until_s, now_s) + STALL_S:
                # This process was suspended: first read what arrived meanwhile.
                look_s = looked_s + SILENCE_CHECK_S
            for number, _ in ready:
                if number == self._wake:
                    os.eventfd_read(self._wake)
                else:
                    self._take(number)
            now_s = self._now_s()
            if self._waiting and now_s >= self._send_at_s:
                self._send()
            elif self._sent and now_s >= self._settle_at_s:
                self._settle()
            if looked_s >= look_s:
                self._look_for_silence(looked_s)
                look_s = looked_s + SILENCE_CHECK_S

    def _ready(self, wait_s: float) -> list[tuple[int, int]]:
        """Return the readable sockets; while packets are gathered, first sleep until they are due."""
        if self._waiting and not self._coming:
            time.sleep(wait_s)
            wait_s = 0.0
        return self._poll.poll(wait_s)

    def _take(self, number: int) -> None:
        connection = self._connections[number]
        client = connection.client
        try:
            frames = client.take()
            packets = connection.stream.packets(frames, client.arrived_ns) if frames else []
        except Exception as error:  # noqa: BLE001 (raised again in the stream's own thread)
            self._finish(number, connection, error)
            return
        connection.received_s = self._now_s()
        together = max(len(packets), 1) if self._linger_s else 1
        for first in range(0, len(packets), together):
            self._gather(number, connection, packets[first : first + together])
        (self._coming.add if client.expects_more else self._coming.discard)(number)
        try:
            client.check()
        except AbsurdSize as error:
            self._finish(number, connection, error)

    def _gather(self, number: int, connection: _Connection, packets: list[QueuedPacket]) -> None:
        if not self._waiting:
            self._send_at_s = connection.received_s + self._linger_s
        connection.waiting += packets
        self._waiting[number] = connection
        self._waiting_packets += len(packets)
        self._waiting_bytes += sum([len(packet.body) for packet in packets])
        is_enough = self._waiting_bytes >= SEND_BYTES or self._waiting_packets >= SEND_PACKETS
        if is_enough or not self._linger_s:
            self._send()

    def _send(self) -> None:
        """Send all waiting packets as one batch, after the queue has answered the previous one."""
        self._settle()
        connections = list(self._waiting.values())
        self._waiting = {}
        self._waiting_packets = self._waiting_bytes = 0
        for connection in connections:
            self._sent.append((connection, Batch(connection.stream.writer, connection.waiting)))
            connection.waiting = []
        now_s = self._now_s()
        self._settle_at_s, self._patient_until_s = now_s + SETTLE_S, now_s + PATIENCE_S
        self._pipe.begin([batch for _, batch in self._sent])
        if not self._linger_s:
            self._settle()

    def _settle(self) -> None:
        """Read the queue's answers; packets that find no room for too long are declared lost."""
        sent, self._sent = self._sent, []
        if sent:
            self._pipe.finish(lambda: self._now_s() > self._patient_until_s)
        for connection, batch in sent:
            connection.stream.queued(batch.packets, batch.lost())

    def _look_for_silence(self, now_s: float) -> None:
        for number, connection in list(self._connections.items()):
            if now_s - connection.received_s < connection.client.timeout_s:
                continue
            error = connection.client.silence()
            if isinstance(error, StreamStalled):
                self._finish(number, connection, error)
            else:
                connection.received_s = now_s
                connection.stream.silent(error)

    def _finish(self, number: int, connection: _Connection, error: BaseException) -> None:
        """Queue everything received from a connection, then wake the stream's own thread."""
        if connection.waiting:
            self._send()
        self._settle()
        self._poll.unregister(number)
        self._coming.discard(number)
        del self._connections[number]
        connection.error = error
        connection.over.set()
