"""The stream client for every state of a port, with a server after the specification."""

from __future__ import annotations

import queue
import random
import resource
import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from waiting import until

from kitchensync.sensors.errors import (
    AbsurdSize,
    ConnectFailed,
    StreamClosed,
    StreamRefused,
    StreamSilent,
    StreamStalled,
    StreamStopped,
    StreamUnreachable,
)
from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.sensors.hololens.client import StreamClient
from kitchensync.shell.host_clock import host_ns

Headset = Callable[[dict[int, Callable[[socket.socket], None]]], AbstractContextManager[str]]
GYRO, SPATIAL, PV, AHAT = (STREAMS[name] for name in ("gyroscope", "spatial_input", "pv", "depth_ahat"))


def packet(ticks: int, payload: bytes, pose: bytes = b"") -> bytes:
    return struct.pack("<Q", ticks) + struct.pack("<I", len(payload)) + payload + pose


def some_packets(count: int, sizes: tuple[int, int], pose_bytes: int = 64, seed: int = 1) -> list[bytes]:
    chance = random.Random(seed)
    return [
        packet(k, chance.randbytes(chance.randint(*sizes)), chance.randbytes(pose_bytes))
        for k in range(count)
    ]


def sender(data: bytes, configuration: bytes = b"\x01") -> Callable[[socket.socket], None]:
    """Check the configuration, send the data, close."""

    def script(sock: socket.socket) -> None:
        assert sock.recv(100) == configuration
        sock.sendall(data)

    return script


def frames(client: StreamClient) -> Iterator[bytes]:
    while True:
        yield bytes(client.read_frame())


def read_to_end(client: StreamClient) -> tuple[list[bytes], StreamClosed]:
    got: list[bytes] = []
    try:
        for frame in frames(client):
            got.append(frame)
    except StreamClosed as ended:
        return got, ended
    raise AssertionError("a stream without an end")


@pytest.mark.parametrize(
    ("spec", "sizes", "count"),
    [
        (GYRO, (0, 96), 3000),
        (GYRO, (10_080, 10_080), 60),
        (PV, (0, 90_000), 100),
        (AHAT, (1_048_592, 1_048_592), 6),
        (PV, (0, 3_000_000), 8),
    ],
    ids=["tiny", "gyroscope", "video", "raw depth", "mixed"],
)
def test_a_complete_stream_arrives_byte_for_byte(
    headset: Headset, spec: object, sizes: tuple[int, int], count: int
) -> None:
    assert isinstance(spec, type(GYRO))
    sent = some_packets(count, sizes)
    with (
        headset({spec.port: sender(b"".join(sent))}) as host,
        StreamClient(spec, host, b"\x01") as client,
    ):
        got, ended = read_to_end(client)
    assert got == sent
    assert ended.at_boundary


def test_a_stream_without_configuration(headset: Headset) -> None:
    sent = some_packets(5, (1936, 1936), pose_bytes=0)
    with (
        headset({SPATIAL.port: lambda sock: sock.sendall(b"".join(sent))}) as host,
        StreamClient(SPATIAL, host, b"") as client,
    ):
        assert read_to_end(client)[0] == sent


@pytest.mark.parametrize("lost", [1, 63, 64, 100, 140, 141, 152, 163])
def test_a_close_inside_a_packet_is_recognized(headset: Headset, lost: int) -> None:
    sent = some_packets(4, (100, 100))
    stream_bytes = b"".join(sent)
    with (
        headset({GYRO.port: sender(stream_bytes[:-lost])}) as host,
        StreamClient(GYRO, host, b"\x01") as client,
    ):
        got, ended = read_to_end(client)
    assert got == sent[:-1]
    assert not ended.at_boundary
    assert ended.lost_bytes == 176 - lost


def test_one_byte_at_a_time(headset: Headset) -> None:
    sent = some_packets(3, (5, 40))

    def drip(sock: socket.socket) -> None:
        assert sock.recv(100) == b"\x01"
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"".join(sent):
            sock.sendall(bytes([byte]))

    with headset({GYRO.port: drip}) as host, StreamClient(GYRO, host, b"\x01") as client:
        got, ended = read_to_end(client)
    assert (got, ended.at_boundary) == (sent, True)


def test_an_absurd_size_is_named_and_takes_no_memory(headset: Headset) -> None:
    good = some_packets(1, (50, 50))[0]
    garbage = struct.pack("<QI", 5, 0xFFFFFFF0) + bytes(1000)
    with headset({GYRO.port: sender(good + garbage)}) as host, StreamClient(GYRO, host, b"\x01") as client:
        assert bytes(client.read_frame()) == good
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(AbsurdSize, match=r"3807 \(gyroscope\): a packet claims 4294967280 bytes"):
            client.read_frame()
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8_000
        assert len(client._buffer) <= 2**20


def test_the_buffer_is_limited_by_the_kind(headset: Headset) -> None:
    sent = some_packets(3, (PV.max_payload_bytes, PV.max_payload_bytes))
    with headset({PV.port: sender(b"".join(sent))}) as host, StreamClient(PV, host, b"\x01") as client:
        assert [len(client.read_frame()) for _ in sent] == [len(frame) for frame in sent]
        assert len(client._buffer) == PV.max_payload_bytes + 12 + 64


def test_a_refused_port(loopback_host: str) -> None:
    with pytest.raises(StreamRefused, match=r"3807 \(gyroscope\): connection refused; start") as refused:
        StreamClient(GYRO, loopback_host, b"\x01").connect()
    assert isinstance(refused.value, ConnectFailed)
    assert "\n" not in str(refused.value)


def test_an_unknown_host() -> None:
    with pytest.raises(StreamUnreachable, match="check the address"):
        StreamClient(GYRO, "no-such-host.invalid", b"\x01").connect()


def test_a_silent_port(headset: Headset) -> None:
    release = threading.Event()
    with headset({GYRO.port: lambda sock: (release.wait(60), None)[1]}) as host:
        with (
            StreamClient(GYRO, host, b"\x01", first_packet_timeout_s=0.2) as client,
            pytest.raises(StreamSilent, match="connected but silent for 0.2 s"),
        ):
            client.read_frame()
        release.set()


def read_through_stalls(client: StreamClient) -> list[bytes]:
    """Read to the end; a busy computer may stall once more."""
    got = []
    while True:
        try:
            got.append(bytes(client.read_frame()))
        except StreamStalled:
            continue
        except StreamClosed:
            return got


def test_nothing_is_lost_after_a_stall(headset: Headset) -> None:
    sent = some_packets(2, (100, 100))
    stream_bytes = b"".join(sent)
    release = threading.Event()

    def stall(sock: socket.socket) -> None:
        assert sock.recv(100) == b"\x01"
        sock.sendall(stream_bytes[:200])
        release.wait(60)
        sock.sendall(stream_bytes[200:])

    with (
        headset({GYRO.port: stall}) as host,
        StreamClient(GYRO, host, b"\x01", stall_timeout_s=0.2) as client,
    ):
        assert bytes(client.read_frame()) == sent[0]
        with pytest.raises(StreamStalled, match="stalled: no byte for 0.2 s"):
            client.read_frame()
        release.set()
        assert read_through_stalls(client) == sent[1:]


def test_stop_wakes_a_blocked_read(headset: Headset) -> None:
    release = threading.Event()
    good = some_packets(1, (50, 50))[0]

    def once(sock: socket.socket) -> None:
        sock.sendall(good)
        release.wait(60)

    errors: list[Exception] = []
    reading = threading.Event()

    def read(client: StreamClient) -> None:
        try:
            client.read_frame()
            reading.set()
            client.read_frame()
        except StreamStopped as error:
            errors.append(error)

    with headset({GYRO.port: once}) as host, StreamClient(GYRO, host, b"\x01") as client:
        thread = threading.Thread(target=read, args=(client,))
        thread.start()
        assert reading.wait(60)
        until(lambda: "client.py" in sys._current_frames()[thread.ident].f_code.co_filename, "the next read")
        client.stop()
        thread.join(timeout=60)
        assert not thread.is_alive()
        release.set()
    assert len(errors) == 1
    assert isinstance(errors[0], StreamStopped)
    assert errors[0].at_boundary


def test_stop_before_connect(loopback_host: str) -> None:
    client = StreamClient(GYRO, loopback_host, b"\x01")
    client.stop()
    with pytest.raises(StreamStopped):
        client.connect()


def test_a_reset_is_a_close(headset: Headset) -> None:
    def reset(sock: socket.socket) -> None:
        assert sock.recv(100) == b"\x01"
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with headset({GYRO.port: reset}) as host, StreamClient(GYRO, host, b"\x01") as client:
        got, ended = read_to_end(client)
    assert (got, ended.at_boundary) == ([], True)


def test_mutated_streams_end_in_our_own_errors(headset: Headset) -> None:
    """With flipped bits every connection ends in an error of this package, within the memory of the kind."""
    chance = random.Random(7)
    stream_bytes = b"".join(some_packets(30, (0, 200)))

    def mutated(sock: socket.socket) -> None:
        assert sock.recv(100) == b"\x01"
        data = bytearray(stream_bytes)
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        sock.sendall(data)

    ends: set[type] = set()
    with headset({GYRO.port: mutated}) as host:
        for _ in range(150):
            with StreamClient(GYRO, host, b"\x01") as client:
                try:
                    for _frame in frames(client):
                        pass
                except (StreamClosed, AbsurdSize) as error:
                    ends.add(type(error))
                assert len(client._buffer) <= GYRO.max_payload_bytes + 76
    assert ends == {StreamClosed, AbsurdSize}


def taken_to_end(client: StreamClient) -> tuple[list[memoryview], Exception]:
    """Take available frames repeatedly and keep every view, like the receiver of many streams."""
    got: list[memoryview] = []
    while True:
        select.select([client], [], [], 10)
        try:
            got += client.take()
        except (StreamClosed, AbsurdSize, StreamStopped) as ended:
            return got, ended


@pytest.mark.parametrize(
    ("spec", "sizes", "count"),
    [(GYRO, (0, 40_000), 300), (AHAT, (900_000, 1_300_000), 12), (PV, (0, 9), 5000)],
)
def test_frames_do_not_change_after_they_are_read(headset: Headset, spec, sizes, count):
    """Views of all frames are compared at the end, when their buffers might have been reused."""
    sent = some_packets(count, sizes, spec.pose_bytes)
    with headset({spec.port: sender(b"".join(sent))}) as host:
        client = StreamClient(spec, host, b"\x01")
        client.connect()
        got, ended = taken_to_end(client)
        client.close()
    assert [bytes(view) for view in got] == sent
    assert isinstance(ended, StreamClosed)
    assert ended.at_boundary


def test_complete_frames_are_read_before_an_absurd_one_is_refused(headset: Headset):
    sent = some_packets(5, (10, 2000))
    garbage = struct.pack("<QI", 1, 0xFFFF_FFF0) + bytes(5000)
    with headset({GYRO.port: sender(b"".join(sent) + garbage)}) as host:
        client = StreamClient(GYRO, host, b"\x01")
        client.connect()
        got, ended = taken_to_end(client)
        client.close()
    assert [bytes(view) for view in got] == sent
    assert isinstance(ended, AbsurdSize)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel does not say when bytes came")
def test_frames_that_are_read_late_have_their_arrival_times(headset: Headset, monkeypatch):
    """The kernel gives times only for packets some time after they are enabled, so the first may lack them."""
    requests = queue.SimpleQueue()

    def script(sock: socket.socket) -> None:
        while requests.get(timeout=60):
            sock.sendall(packet(1, bytes(500), bytes(GYRO.pose_bytes)))

    with headset({GYRO.port: script}) as host:
        client = StreamClient(GYRO, host, b"\x01")
        client.connect()

        def is_known() -> bool:
            before_ns = host_ns()
            requests.put(True)
            select.select([client], [], [], 60)
            here_ns = host_ns()
            until(lambda: host_ns() > here_ns + 20_000_000, "a late look")
            assert client.take()
            assert before_ns <= client.arrived_ns
            return client.arrived_ns <= here_ns

        until(is_known, "a packet that came when it was sent")
        right = time.time_ns
        for step_ns in (3600 * 10**9, -3600 * 10**9):
            monkeypatch.setattr(time, "time_ns", lambda step_ns=step_ns: right() + step_ns)
            requests.put(True)
            select.select([client], [], [], 60)
            looked_ns = host_ns()
            assert client.take()
            assert client.arrived_ns >= looked_ns, "UTC was set meanwhile"
        requests.put(False)
        client.close()


class Scripted(StreamClient):
    """A client whose data all arrived when it was created, more than a socket can hold."""

    def __init__(self, data: bytes) -> None:
        super().__init__(GYRO, "nowhere", b"")
        self.unread, self.since_ns, self.since_utc_ns = data, host_ns(), time.time_ns()

    def _receive_some(self, space: memoryview, flags: int) -> bool:
        if not self.unread:
            raise BlockingIOError
        part, self.unread = self.unread[: len(space)], self.unread[len(space) :]
        space[: len(part)] = part
        self._end += len(part)
        self._arrived_utc_ns = self.since_utc_ns
        return len(part) < len(space)


def test_data_beyond_the_buffer_are_expected_with_their_arrival_times():
    sent = some_packets(40, (60_000, 60_000), GYRO.pose_bytes)
    client, got = Scripted(b"".join(sent)), []
    until(lambda: host_ns() > client.since_ns + 300_000_000, "a late look")
    while client.unread:
        looked_ns = host_ns()
        got += client.take()
        assert client.since_ns <= client.arrived_ns < looked_ns
        assert client.expects_more == bool(client.unread or client._end > client._start)
    assert [bytes(view) for view in got] == sent
    assert client.take() == []


def test_more_is_expected_after_a_frame_that_filled_its_buffer():
    """A raw grey image needs its own slab, so a full read does not show whether more data follow."""
    vlc = STREAMS["vlc_leftfront"]
    ours, theirs = socket.socketpair()
    client = StreamClient(vlc, "nowhere", b"")
    client._sock = ours
    frame = packet(1, bytes(640 * 480), bytes(vlc.pose_bytes))
    thread = threading.Thread(target=theirs.sendall, args=(frame + frame,))
    thread.start()
    got: list[memoryview] = []
    while not got:
        select.select([client], [], [], 60)
        got += client.take()
    assert client.expects_more
    while len(got) < 2:
        select.select([client], [], [], 60)
        got += client.take()
    thread.join(60)
    theirs.close()
    client.close()
