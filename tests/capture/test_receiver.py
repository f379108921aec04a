"""The thread that receives all streams, over real sockets and a real queue."""

from __future__ import annotations

import os
import select
import signal
import socket
import threading

import pytest
from waiting import until

from kitchensync.capture.produce.receiver import Receiver
from kitchensync.capture.queue.pipe import QueuePipe
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.sensors.errors import StreamClosed
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.sensors.hololens.client import StreamClient
from kitchensync.sensors.hololens.wire import HEADER, HEADER_BYTES

pytestmark = pytest.mark.slow


class Pair(StreamClient):
    """A client whose peer is this test."""

    def __init__(self, short: str, stall_timeout_s: float) -> None:
        super().__init__(headset_stream(short), "pair", b"", stall_timeout_s=stall_timeout_s)
        self._sock, self.device = socket.socketpair()

    def frame(self, ticks: int, size: int) -> bytes:
        return HEADER.pack(ticks, size) + bytes(size + self.spec.pose_bytes)


class Stream:
    """A stream that counts its queued packets."""

    def __init__(self, client, pipe: QueuePipe, name: str) -> None:
        self.writer = QueueWriter(client, "u", name, 7, pipe=pipe)
        self.count = self.seq = 0
        self.lost: list[tuple[int, int]] = []
        self.error: BaseException | None = None

    def packets(self, frames, arrived_ns):
        first, self.seq = self.seq, self.seq + len(frames)
        return [
            QueuedPacket(seq, seq, arrived_ns, 1, frame[HEADER_BYTES:], 0)
            for seq, frame in enumerate(frames, first)
        ]

    def queued(self, packets, lost) -> None:
        self.count += len(packets)
        self.lost += lost

    def silent(self, error) -> None:
        pass

    def receive(self, receiver: Receiver, client: StreamClient) -> None:
        try:
            receiver.receive(client, self)
        except Exception as error:  # noqa: BLE001 (looked at by the test)
            self.error = error


class Clock:
    """A clock that the test moves, so that a busy computer makes no stream silent."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class HeldPoll:
    """Waits as requested, but once like a suspended process: it returns late and without events."""

    def __init__(self, poll: select.epoll, clock: Clock) -> None:
        self._poll, self._clock, self.hold_s = poll, clock, 0.0
        self.is_held, self.goes_on = threading.Event(), threading.Event()

    def __getattr__(self, name: str):
        return getattr(self._poll, name)

    def poll(self, timeout: float):
        hold_s, self.hold_s = self.hold_s, 0.0
        if hold_s:
            self.is_held.set()
            assert self.goes_on.wait(60)
            self._clock.now_s += hold_s
            return []
        return self._poll.poll(timeout)


class WatchedPipe(QueuePipe):
    """A pipe that sets an event when it gets packets."""

    def __init__(self, client) -> None:
        super().__init__(client)
        self.has_packets = threading.Event()

    def begin(self, batches) -> None:
        self.has_packets.set()
        super().begin(batches)


class NotingPoll:
    """Returns no events and keeps the requested waiting times."""

    def __init__(self) -> None:
        self.timeouts_s: list[float] = []

    def poll(self, timeout: float):
        self.timeouts_s.append(timeout)
        return []


def test_while_packets_are_collected_only_the_rest_of_a_partial_packet_wakes_the_receiver(server, client):
    receiver = Receiver(QueuePipe(client))
    receiver._poll = poll = NotingPoll()
    receiver._ready(0.001)
    receiver._waiting[7] = object()
    receiver._ready(0.001)
    receiver._coming.add(8)
    receiver._ready(0.001)
    assert poll.timeouts_s == [0.001, 0.0, 0.001]
    os.close(receiver._wake)


def test_half_a_packet_is_recognized(server, client):
    pipe = QueuePipe(client)
    receiver, end, stream = Receiver(pipe), Pair("gyroscope", 60.0), Stream(client, pipe, "one")
    thread = threading.Thread(target=stream.receive, args=(receiver, end), daemon=True)
    receiver.start()
    thread.start()
    frame = end.frame(0, 100)
    end.device.sendall(frame[:50])
    until(lambda: receiver._coming, "half a packet")
    end.device.sendall(frame[50:])
    until(lambda: stream.count == 1, "the packet")
    assert not receiver._coming
    end.device.sendall(frame[:50])
    until(lambda: receiver._coming, "half a packet")
    end.device.close()
    thread.join(60)
    assert not receiver._coming
    receiver.stop()
    receiver.join(60)
    end.close()
    pipe.close()


def test_no_stream_counts_as_silent_while_we_were_suspended(server, client):
    """The packets of that time are in the socket."""
    pipe, clock = QueuePipe(client), Clock()
    receiver = Receiver(pipe, 0.0, clock)
    receiver._poll = poll = HeldPoll(receiver._poll, clock)
    end, stream = Pair("gyroscope", 1.0), Stream(client, pipe, "one")
    thread = threading.Thread(target=stream.receive, args=(receiver, end), daemon=True)
    receiver.start()
    thread.start()
    end.device.sendall(end.frame(0, 100))
    until(lambda: stream.count == 1, "the first packet")
    poll.hold_s = 2.5
    assert poll.is_held.wait(60)
    for number in range(1, 5):
        end.device.sendall(end.frame(number, 100))
    poll.goes_on.set()
    until(lambda: stream.count == 5 or stream.error is not None, "the packets of that time")
    assert stream.error is None
    assert not receiver.queue_stalls
    end.device.close()
    thread.join(60)
    receiver.stop()
    receiver.join(60)
    end.close()
    pipe.close()


def test_no_stream_counts_as_silent_while_the_queue_blocks_us(server, client):
    """The packets of that time are in the sockets: closing these would lose them."""
    pipe, clock = WatchedPipe(client), Clock()
    receiver = Receiver(pipe, 0.0, clock)
    large, small = Pair("pv", 60.0), Pair("gyroscope", 0.6)
    streams = [Stream(client, pipe, "large"), Stream(client, pipe, "small")]
    threads = [
        threading.Thread(target=stream.receive, args=(receiver, end), daemon=True)
        for stream, end in zip(streams, (large, small), strict=True)
    ]
    receiver.start()
    for thread in threads:
        thread.start()
    small.device.sendall(small.frame(0, 100))
    until(lambda: streams[1].count == 1, "the first packet")
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        pipe.has_packets.clear()
        large.device.sendall(large.frame(0, 900_000))
        assert pipe.has_packets.wait(60)
        for number in range(1, 30):
            small.device.sendall(small.frame(number, 100))
        clock.now_s += 1.5
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    until(
        lambda: [stream.count for stream in streams] == [1, 30] or any(stream.error for stream in streams),
        "the packets of that time",
    )
    assert [stream.error for stream in streams] == [None, None]
    held_s = [(end - start) / 1e9 for start, end in receiver.queue_stalls]
    assert held_s == [pytest.approx(1.5)], "the wait for the queue is known"
    for end in (large, small):
        end.device.close()
    for thread in threads:
        thread.join(60)
    assert all(isinstance(stream.error, StreamClosed) for stream in streams)
    assert [stream.lost for stream in streams] == [[], []]
    receiver.stop()
    receiver.join(60)
    for end in (large, small):
        end.close()
    pipe.close()
