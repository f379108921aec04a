"""One thread that receives all streams of a headset: every socket in one wait, what came into the queue together.

A wake-up costs more than a packet. The kernel stamps packets as they arrive, and they gather for some milliseconds,
so that all streams' share one wake-up of ours, one send, one wake-up of the queue server, and one of the drainers.
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
"""This much is sent at once."""

SETTLE_S = 0.1
"""What the queue says of one send is heard before the next, so that it works while we receive; this late at most."""

LOOK_S = 0.5
"""How often silence is looked for."""

HELD_S = 1.0
"""So late a wait ends only for a process that was held; so long the queue takes packets only when it is held."""


@dataclass
class _Connection:
    client: StreamClient
    stream: StreamRecorder
    heard_s: float
    waiting: list[QueuedPacket] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None


class Receiver(threading.Thread):
    """Receives until `stop`; `receive` is called by the thread of each stream for each of its connections."""

    def __init__(
        self, pipe: QueuePipe, linger_s: float = LINGER_MS / 1e3, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """`linger_s` 0 sends every packet as it comes; silence is told by the clock `now_s`."""
        super().__init__(name="receiver", daemon=True)
        self._pipe = pipe
        self._linger_s = linger_s
        self._now_s = now_s
        self._poll = select.epoll()
        self._connections: dict[int, _Connection] = {}
        self._waiting: dict[int, _Connection] = {}
        self._coming: set[int] = set()
        """Where more is there now or soon: who has much to send must not wait for us."""
        self._waiting_packets = 0
        self._waiting_bytes = 0
        self._send_at_s = 0.0
        self._sent: list[tuple[_Connection, Batch]] = []
        self._settle_at_s = 0.0
        self._patient_until_s = 0.0
        self._ending = False
        self.held_by_queue: deque[tuple[int, int]] = deque()
        """When nobody received because the queue did not take what had come: (start, end) in host_ns."""
        self._wake = os.eventfd(0)
        self._poll.register(self._wake, select.EPOLLIN)

    def receive(self, client: StreamClient, stream: StreamRecorder) -> None:
        """Queue what a connected client receives until it is over; then raise what the client raised."""
        connection = _Connection(client, stream, self._now_s())
        number = client.fileno()
        self._connections[number] = connection
        self._poll.register(number, select.EPOLLIN)
        connection.over.wait()
        assert connection.error is not None
        raise connection.error

    def stop(self) -> None:
        """End once all connections are over, at once where they are."""
        self._ending = True
        with contextlib.suppress(OSError):  # it has ended by itself
            os.eventfd_write(self._wake, 1)

    def run(self) -> None:
        """Receive and send until the end."""
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
        look_s = looked_s + LOOK_S
        while not (self._ending and not self._connections):
            now_s = self._now_s()
            if now_s - looked_s > HELD_S:
                self.held_by_queue.append((round(looked_s * 1e9), round(now_s * 1e9)))
            until_s = min(look_s, self._send_at_s) if self._waiting else look_s
            until_s = min(until_s, self._settle_at_s) if self._sent else until_s
            ready = self._ready(max(until_s - now_s, 0.0))
            looked_s = self._now_s()  # who is silent is judged by this look: sending may take long
            if looked_s > max(until_s, now_s) + HELD_S:
                look_s = looked_s + LOOK_S  # we were held: what came meanwhile is seen first
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
                look_s = looked_s + LOOK_S

    def _ready(self, wait_s: float) -> list[tuple[int, int]]:
        """Wait for what comes; while packets gather only for time to pass, and take what came together."""
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
            self._over(number, connection, error)
            return
        connection.heard_s = self._now_s()
        together = max(len(packets), 1) if self._linger_s else 1
        for first in range(0, len(packets), together):
            self._gather(number, connection, packets[first : first + together])
        (self._coming.add if client.expects_more else self._coming.discard)(number)
        try:
            client.check()
        except AbsurdSize as error:
            self._over(number, connection, error)

    def _gather(self, number: int, connection: _Connection, packets: list[QueuedPacket]) -> None:
        if not self._waiting:
            self._send_at_s = connection.heard_s + self._linger_s
        connection.waiting += packets
        self._waiting[number] = connection
        self._waiting_packets += len(packets)
        self._waiting_bytes += sum([len(packet.body) for packet in packets])
        is_enough = self._waiting_bytes >= SEND_BYTES or self._waiting_packets >= SEND_PACKETS
        if is_enough or not self._linger_s:
            self._send()

    def _send(self) -> None:
        """Give the queue all that waits, in one go, once it has answered to what it was given before."""
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
        """Hear what became of what was sent; what finds no room for too long is declared lost."""
        sent, self._sent = self._sent, []
        if sent:
            self._pipe.finish(lambda: self._now_s() > self._patient_until_s)
        for connection, batch in sent:
            connection.stream.queued(batch.packets, batch.lost())

    def _look_for_silence(self, now_s: float) -> None:
        for number, connection in list(self._connections.items()):
            if now_s - connection.heard_s < connection.client.timeout_s:
                continue
            error = connection.client.silence()
            if isinstance(error, StreamStalled):
                self._over(number, connection, error)
            else:
                connection.heard_s = now_s
                connection.stream.silent(error)

    def _over(self, number: int, connection: _Connection, error: BaseException) -> None:
        """Let the stream's own thread go on, once everything that came is in the queue."""
        if connection.waiting:
            self._send()
        self._settle()
        self._poll.unregister(number)
        self._coming.discard(number)
        del self._connections[number]
        connection.error = error
        connection.over.set()
