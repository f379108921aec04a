"""One port of the headset; it serves one client at a time."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np

from kitchensync.virtual_kitchen.errors import PortBusy
from kitchensync.virtual_kitchen.faults import DEVICE
from kitchensync.virtual_kitchen.headset.client_configuration import ClientGone, ConfigurationReader, Rejected
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.sending import Sending
from kitchensync.virtual_kitchen.headset.stream import Feed, SentPacket, Stream

RING_S = 1.0
_FAR = 1000  # a mean over many packets, as single due times jitter


class RingFeed(Feed):
    """A feed that repeats the first second of packets of another feed, in whole groups of pictures."""

    def __init__(self, feed: Feed, *, made_first: bool) -> None:
        """With `made_first` make the whole ring now, else each packet when it is due."""
        self._feed = feed
        period_s = (feed.due_s(_FAR) - feed.due_s(0)) / _FAR
        self._group = max(1, feed.first_k(feed.due_s(0) + period_s / 2))
        self._count = max(1, round(RING_S / period_s / self._group)) * self._group
        self._packets: list[SentPacket | None] = [None] * self._count
        self._lap_ticks = 0
        self._last_made = -1
        self._next_k, self._left_out = -1, 0
        if made_first:
            for place in range(self._count):
                self._made(place)

    def load(self, path: Path) -> None:
        """Read the ring from a file that `save` wrote."""
        with np.load(path, allow_pickle=False) as kept:
            table, content = kept["table"], kept["content"].tobytes()
        start = 0
        for place, (ticks, size, pose) in enumerate(table.tolist()):
            payload, end = content[start : start + size], start + size + pose
            self._packets[place] = SentPacket(ticks, payload, content[start + size : end]).with_digest()
            start = end
        self._at(
            self._count
        )  # lap 2 needs the ticks of a lap, which take a frame: make it now, not when it is due

    def save(self, path: Path) -> None:
        """Write the whole ring to a file; reading it is much faster than making it."""
        packets = [self._made(place) for place in range(self._count)]
        self._at(self._count)
        table = np.array([(p.ticks, len(p.payload), len(p.pose)) for p in packets], np.int64)
        content = np.frombuffer(b"".join(p.payload + p.pose for p in packets), np.uint8)
        part = path.with_suffix(f".{os.getpid()}")
        with part.open("wb") as file:
            np.savez(file, table=table, content=content)
        part.replace(path)

    def first_k(self, world_s: float) -> int:
        """Return the first packet for a client that is ready at `world_s`."""
        return self._feed.first_k(world_s)

    def due_s(self, k: int) -> float:
        """Return when packet k leaves the device."""
        return self._feed.due_s(k)

    def packet(self, k: int) -> SentPacket:
        """Return packet k with the ring's payload."""
        if k % self._group == 0:
            self._left_out = 0
        elif 0 <= self._next_k < k:
            self._left_out += k - self._next_k
        self._next_k = k + 1
        packet = self._at(k)
        if not self._left_out:
            return packet
        shown = self._made((k - self._left_out) % self._count)
        return replace(packet, payload=shown.payload, sha256=shown.sha256)

    def _at(self, k: int) -> SentPacket:
        lap, place = divmod(k, self._count)
        packet = self._made(place)
        if lap == 0:
            return packet
        self._lap_ticks = self._lap_ticks or self._feed.packet(self._count).ticks - self._feed.packet(0).ticks
        moved = getattr(self._feed, "moved", None)  # stamps inside the payload
        if moved is not None:
            payload = moved(packet.payload, lap * self._count, lap * self._lap_ticks)
            return SentPacket(packet.ticks + lap * self._lap_ticks, payload, packet.pose)
        return SentPacket(packet.ticks + lap * self._lap_ticks, packet.payload, packet.pose, packet.sha256)

    def _made(self, place: int) -> SentPacket:
        packet = self._packets[place]
        if packet is None:
            # Make a group again that an earlier client left incomplete: its frames depend on each other.
            first = place if place == self._last_made + 1 else place - place % self._group
            for number in range(first, place + 1):
                packet = self._packets[number] = self._feed.packet(number).with_digest()
            self._last_made = place
        assert packet is not None
        return packet


_BACKLOG = 128  # the device lets further clients wait, connected and unanswered
DEFAULT_SET = (
    "pv",
    "depth_ahat",
    "gyroscope",
    "accelerometer",
    "magnetometer",
    "spatial_input",
    "microphone",
)


class ListeningPort:
    """A bound socket and one thread that serves its clients one after the other."""

    def __init__(self, host: str, port: int, name: str) -> None:
        self.address, self.name = (host, port), name
        self._socket, self._thread = self._fresh()
        self._client: socket.socket | None = None
        self._left_ns = 0
        self._closed = threading.Event()

    @property
    def client_seen_ns(self) -> int:
        """Return when a client was last connected (host_ns): now while one is connected, 0 before the first."""
        return time.monotonic_ns() if self._client is not None else self._left_ns

    def bind(self) -> None:
        """Bind the address without listening yet. Raises PortBusy."""
        self._or_busy(lambda: self._socket.bind(self.address))

    def listen(self) -> None:
        """Accept clients."""
        self._or_busy(lambda: self._socket.listen(_BACKLOG))
        self._thread.start()

    def _or_busy(self, step: Callable[[], None]) -> None:
        try:
            step()
        except OSError as error:
            raise PortBusy(*self.address, self.name, reason=error.strerror or str(error)) from error

    def resume(self) -> None:
        """Listen again after `refuse`. Raises PortBusy."""
        self._socket, self._thread = self._fresh()
        self._closed.clear()
        self.bind()
        self.listen()

    def _fresh(self) -> tuple[socket.socket, threading.Thread]:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return sock, threading.Thread(target=self._serve, name=f"{self.name} port", daemon=True)

    def refuse(self) -> None:
        """Stop listening and refuse new connections."""
        self._closed.set()
        with contextlib.suppress(OSError):  # not listening, or refused before
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def finish(self, timeout_s: float) -> None:
        """Wait for the current client; disconnect it after the timeout."""
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
                self._left_ns = time.monotonic_ns()
                self._client = None
                _close_without_reset(client)

    def serve(self, client: socket.socket) -> None:
        """Serve one client to its end."""
        raise NotImplementedError


class StreamPort(ListeningPort):
    """Sends a stream and records what it sent; drops frames only if the client does not read."""

    def __init__(self, headset: HeadsetState, stream: Stream, host: str) -> None:
        super().__init__(host, stream.port, stream.name)
        self._headset, self._stream = headset, stream
        self._truth_name = f"{DEVICE}/{stream.name}"
        if stream.name in DEFAULT_SET:  # other streams are listed in the truth once a client opens them
            headset.kitchen.truth.stream(self._truth_name)
        self._connections = 0
        self._next_s = 0.0
        self._kept: tuple[tuple[object, ...], RingFeed] | None = None
        self.was_served = False
        self._sent_before: int | None = None
        self.has_ended = False

    @property
    def has_sent(self) -> bool | None:
        """Return whether the client was sent a packet; None without a client or if a fault keeps it waiting."""
        before = self._sent_before
        return (
            None if before is None else self._headset.kitchen.truth.stream(self._truth_name).packets > before
        )

    def serve(self, client: socket.socket) -> None:
        """Read the configuration, start the world if this is the first data connection, and stream."""
        try:
            reader = ConfigurationReader(client)
            feed = self._stream.configure(reader)
            if feed is not None:
                self.was_served = True
                with self._headset.start:
                    feed = self._ring(feed, reader.taken) if self._headset.has_rings else feed
                self._headset.start.wait()
                self._serve_feed(client, feed)
        finally:
            self._stream.release()

    def _ring(self, feed: Feed, configuration: bytes) -> RingFeed:
        """Return the previous client's ring if the configuration is the same and nothing has changed since."""
        key = (configuration, self._headset.restarts, astuple(self._headset.camera))
        if self._kept is None or self._kept[0] != key:
            store = self._headset.ring_store
            made_first = self._headset.is_unthrottled and store is None
            self._kept = key, RingFeed(feed, made_first=made_first)
            if store is not None:
                self._fill(self._kept[1], store, key)
        return self._kept[1]

    def _fill(self, ring: RingFeed, store: Path, key: tuple[object, ...]) -> None:
        """Read a ring from the store of earlier runs, or make it now and save it there."""
        facts = (self.name, self._headset.kitchen.seed, self._headset.gyroscope_unit, RING_S, key)
        path = store / f"{self.name}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}.npz"
        if path.exists():
            ring.load(path)
        else:
            ring.save(path)

    def _serve_feed(self, client: socket.socket, feed: Feed) -> None:
        headset = self._headset
        headset.kitchen.start_world_if_needed(headset.kitchen.clock.now_ns())
        truth = headset.kitchen.truth.stream(self._truth_name)
        sending = Sending(headset, self._stream.name, truth, client, self._connections)
        self._connections += 1
        try:
            if headset.faults.has("never_answer", self._stream.name):
                headset.wait_for_end()
            else:
                self._sent_before = truth.packets
                sending.run(feed, self._next_s if headset.is_unthrottled else headset.now_s())
        finally:
            self._sent_before = None
            self._next_s = sending.next_s
            if sending.killed or self._ended():
                self.has_ended = True
                self.refuse()

    def _ended(self) -> bool:
        end_s = self._headset.end_world_s
        now_s = self._next_s if self._headset.is_unthrottled else self._headset.now_s()
        return self._headset.stopping.is_set() or (end_s is not None and now_s >= end_s)


def _close_without_reset(client: socket.socket) -> None:
    """Shut down sending and read what is left, so that closing does not reset the connection."""
    with contextlib.suppress(OSError):  # the client closed first, or has sent nothing more
        client.shutdown(socket.SHUT_WR)
        client.setblocking(False)
        while client.recv(4096):
            pass
