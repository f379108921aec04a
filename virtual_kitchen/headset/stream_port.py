"""One port of the headset: one client at a time gets the stream's packets when they are due."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from typing import Protocol

from virtual_kitchen.errors import PortBusy
from virtual_kitchen.faults import DEVICE
from virtual_kitchen.headset.client_configuration import ClientGone, ConfigurationReader, Rejected
from virtual_kitchen.headset.device import Headset
from virtual_kitchen.headset.packets import Feed, Packet

_BACKLOG = 128
SOURCE_QUEUE_S = 2.0  # what the device keeps for a slow client before frames are lost at the source


class Stream(Protocol):
    """What a port serves."""

    name: str
    port: int

    def configure(self, reader: ConfigurationReader) -> Feed | None:
        """Read a client's wishes; None when nothing is to be streamed; raise `Rejected` to close."""
        ...


class ListeningPort:
    """A bound socket and the one thread that serves its clients, one after the other."""

    def __init__(self, host: str, port: int, name: str) -> None:
        self.address, self.name = (host, port), name
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._client: socket.socket | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._serve, name=f"{name} port", daemon=True)

    def bind(self) -> None:
        """Take the address without listening yet; raise `PortBusy`."""
        self._or_busy(lambda: self._socket.bind(self.address))

    def listen(self) -> None:
        """Let clients in."""
        self._or_busy(lambda: self._socket.listen(_BACKLOG))
        self._thread.start()

    def _or_busy(self, step: Callable[[], None]) -> None:
        try:
            step()
        except OSError as error:
            raise PortBusy(*self.address, self.name, reason=error.strerror or str(error)) from error

    def refuse(self) -> None:
        """Stop listening: from now on connects are refused."""
        self._closed.set()
        with contextlib.suppress(OSError):  # not listening, or refused before
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def finish(self, timeout_s: float) -> None:
        """Wait for the client being served; cut it off after the timeout."""
        if self._thread.ident is None:
            return
        self._thread.join(timeout_s)
        client = self._client
        if self._thread.is_alive() and client is not None:
            with contextlib.suppress(OSError):  # the client left meanwhile
                client.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def _serve(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._socket.accept()
            except OSError:  # refused from now on
                return
            with client:
                self._client = client
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with contextlib.suppress(
                    ClientGone, Rejected, ConnectionError, TimeoutError
                ):  # answered by closing
                    self.serve(client)
                self._client = None
                _end_politely(client)

    def serve(self, client: socket.socket) -> None:
        """Serve one client to its end."""
        raise NotImplementedError


class StreamPort(ListeningPort):
    """Sends a stream, writes down what it sent, and loses frames only when the client does not read."""

    def __init__(self, headset: Headset, stream: Stream, host: str) -> None:
        super().__init__(host, stream.port, stream.name)
        self._headset, self._stream = headset, stream
        self._truth = headset.kitchen.truth.stream(f"{DEVICE}/{stream.name}")
        self._connections = 0
        self._blocked_s = 0.0  # waited for the client since the stream was last in time

    def serve(self, client: socket.socket) -> None:
        """Read the configuration, start the world if this is the first data connection, and stream."""
        feed = self._stream.configure(ConfigurationReader(client))
        if feed is None:
            return
        self._headset.kitchen.start_world_if_needed(time.monotonic_ns())
        self._blocked_s = 0.0
        connection = self._connections
        self._connections += 1
        try:
            if self._headset.faults.has("never_answer", self._stream.name):
                self._headset.wait_for_end()
            else:
                self._send_all(client, feed, connection)
        finally:
            if self._ended():
                self.refuse()

    def _ended(self) -> bool:
        end_s = self._headset.end_world_s
        return self._headset.stopping.is_set() or (end_s is not None and self._headset.now_s() >= end_s)

    def _send_all(self, client: socket.socket, feed: Feed, connection: int) -> None:
        headset = self._headset
        k = feed.first_k(headset.now_s())
        headset.faults.resumed(self._stream.name, feed.due_s(k))
        while headset.end_world_s is None or feed.due_s(k) <= headset.end_world_s:
            packet = feed.packet(k)
            held_s = headset.faults.stalled_until(self._stream.name, feed.due_s(k))
            if not headset.wait_until(feed.due_s(k) if held_s is None else held_s):
                return
            if headset.faults.drop_due(self._stream.name, feed.due_s(k)):
                return
            self._truth.scheduled += 1
            blocked_s = _send(client, packet)
            self._truth.sent(
                k, packet.ticks, packet.payload, connection, "stall" if held_s is not None else None
            )
            k = self._after(feed, k, blocked_s)
        headset.wait_until(headset.end_world_s)

    def _after(self, feed: Feed, k: int, blocked_s: float) -> int:
        """Return the next packet, or a later one if it was the client that held the device up for too long.

        A device that is late by itself (a busy computer) sends everything, late.
        """
        now_s, speed = self._headset.now_s(), self._headset.kitchen.speed
        late_s = (now_s - feed.due_s(k + 1)) / speed
        self._blocked_s = self._blocked_s + blocked_s if late_s > 0 else 0.0
        if late_s < SOURCE_QUEUE_S or self._blocked_s < late_s / 2:
            return k + 1
        k_next = max(k + 1, feed.first_k(now_s))
        self._truth.scheduled += k_next - (k + 1)
        self._truth.dropped_by_backpressure += k_next - (k + 1)
        self._blocked_s = 0.0
        return k_next


def _end_politely(client: socket.socket) -> None:
    """Say the end and read what the client had sent too much, so that closing does not reset the connection."""
    with contextlib.suppress(OSError):  # the client left first, or has sent nothing more
        client.shutdown(socket.SHUT_WR)
        client.setblocking(False)
        while client.recv(4096):
            pass


def _send(client: socket.socket, packet: Packet) -> float:
    """Send one whole packet; return the seconds the client kept it waiting (0.0 when its buffer took it all)."""
    frame = memoryview(packet.frame())
    try:
        taken = client.send(frame, socket.MSG_DONTWAIT)
    except BlockingIOError:
        taken = 0
    if taken == len(frame):
        return 0.0
    before_ns = time.monotonic_ns()
    client.sendall(frame[taken:])
    return (time.monotonic_ns() - before_ns) / 1e9
