"""Thousands of mutated packets of every stream give an error of this package or a frame, within time and memory.

KITCHENSYNC_FUZZ_PACKETS sets how many of each kind. `make fuzz` decodes far more of them, without the socket.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import socket
import struct
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from sampled_packets import read_all_of, sample

from kitchensync.sensors.errors import AbsurdSize, SensorError, StreamClosed
from kitchensync.sensors.hololens import video, wire
from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.sensors.hololens.client import StreamClient

PACKETS = int(os.environ.get("KITCHENSYNC_FUZZ_PACKETS", "300"))
A_CONNECTION = 50
pytestmark = pytest.mark.timeout(900)


def mutated(frame: bytes, rng: random.Random) -> bytes:
    """Return a frame with changed bits, sizes or lengths, or unchanged."""
    data = bytearray(frame)
    for _ in range(rng.choice((0, 1, 1, 2, 8))):
        kind = rng.randrange(6)
        at = rng.randrange(len(data)) if data else 0
        if kind == 0 and data:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at:]
        elif kind == 2:
            data[at:at] = rng.randbytes(rng.randrange(40))
        elif kind == 3 and len(data) >= 12:
            data[8:12] = struct.pack("<I", rng.choice((0, 1, len(data), rng.randrange(2**32), 2**32 - 1)))
        elif kind == 4:
            data += data[at:]
        elif kind == 5:
            data[at : at + 8] = rng.choice((b"\xff" * 8, b"\0" * 8))
    return bytes(data[: 1 << 20])


def limit_of(name: str) -> int:
    return STREAMS[name].max_payload_bytes


class Peer(threading.Thread):
    """Sends each batch on its own connection, and closes it."""

    def __init__(self, batches: list[bytes]) -> None:
        super().__init__()
        self._batches = batches
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def run(self) -> None:
        with self._listener:
            for batch in self._batches:
                connection, _ = self._listener.accept()
                with connection, contextlib.suppress(OSError):  # the client saw enough
                    connection.sendall(batch)


def fuzz(name: str, packets: int, seed: int = 1) -> SimpleNamespace:
    rng = random.Random(f"{seed} {name}")
    spec = STREAMS[name]
    pose = bytes(spec.pose_bytes)
    broken = [mutated(wire.join_frame(k, sample(name, rng), pose), rng) for k in range(packets)]
    framed = [
        wire.join_frame(k, mutated(sample(name, rng), rng)[: limit_of(name)], pose) for k in range(packets)
    ]
    frames = broken + framed
    batches = [b"".join(frames[i : i + A_CONNECTION]) for i in range(0, len(frames), A_CONNECTION)]
    peer = Peer(batches)
    peer.start()
    here = replace(spec, port=peer.port)
    counts = SimpleNamespace(frames=0, absurd=0, unreadable=0, largest=0)
    for _ in batches:
        with StreamClient(here, "127.0.0.1", b"", 5, 20, 20) as client:
            try:
                while True:
                    _, payload, _ = wire.split_frame(client.read_frame(), spec.pose_bytes)
                    counts.frames += 1
                    try:
                        read_all_of(name, payload)
                    except SensorError:
                        counts.unreadable += 1
            except AbsurdSize:
                counts.absurd += 1
            except StreamClosed:
                pass
            counts.largest = max(counts.largest, len(client._buffer))
    peer.join()
    return counts


@pytest.mark.parametrize("name", list(STREAMS))
def test_mutated_packets(name: str) -> None:
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    counts = fuzz(name, PACKETS)
    limit = STREAMS[name].max_payload_bytes + 12 + STREAMS[name].pose_bytes
    assert counts.largest <= max(limit, 64 * 1024), "more memory than the largest packet"
    assert counts.frames >= PACKETS, "every complete frame is read"
    assert counts.absurd > 0
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib) / 1024
    assert grown_mib < 64 + 20 * PACKETS * 2000 / 2**20, f"{grown_mib:.0f} MiB more"
    print(
        f"{name}: {PACKETS} packets, {counts.frames} frames, {counts.absurd} absurd, {counts.unreadable} unreadable"
    )


def test_other_streams_are_not_affected() -> None:
    rng = random.Random(3)
    good = [wire.join_frame(k, sample("gyroscope", rng), bytes(64)) for k in range(300)]
    peer = Peer([b"".join(good)])
    peer.start()
    noise = threading.Thread(target=fuzz, args=("pv", PACKETS, 9))
    noise.start()
    spec = STREAMS["gyroscope"]
    here = replace(spec, port=peer.port)
    got = []
    with StreamClient(here, "127.0.0.1", b"", 5, 20, 20) as client, contextlib.suppress(StreamClosed):
        while True:
            got.append(bytes(client.read_frame()))
    noise.join()
    peer.join()
    assert got == good


def test_garbage_frames_are_named_and_the_rest_is_decoded() -> None:
    rng = random.Random(4)
    reported: list[int] = []
    units = [rng.randbytes(rng.randrange(1, 2000)) for _ in range(min(PACKETS, 2000))]
    for codec in ("h264", "h265"):
        assert list(video.decode_units(codec, units, lambda index, _: reported.append(index))) == []
    assert sorted(reported) == sorted([*range(len(units))] * 2)
