"""Reading from a hostile headset ends or continues within the memory of its largest packet."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kitchensync.sensors.errors import AbsurdSize, StreamClosed, StreamSilent, StreamStalled
from kitchensync.sensors.hololens import wire
from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.sensors.hololens.client import SMALL_BUFFER_BYTES, StreamClient
from kitchensync.virtual_kitchen.headset import hostile


@contextlib.contextmanager
def headset(kind: str, is_read: threading.Event) -> Iterator[int]:
    """Serve one connection: a complete packet and, once that is read, what this kind sends."""
    stopping = threading.Event()
    frame = wire.join_frame(10**9, bytes(32 * 11), bytes(64))
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            client, _ = listener.accept()
            with client:
                client.sendall(frame)
                is_read.wait(60)
                hostile.play(kind, hostile.HostileLink(client, frame, stopping))

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        stopping.set()
        thread.join()


@pytest.mark.parametrize("kind", hostile.HOSTILE)
def test_reading_ends_within_the_memory_of_the_largest_packet(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hostile, "LASTS_S", 0.4)
    monkeypatch.setitem(hostile.HOSTILE, "hostile_half_header", (hostile._half_header, 0.2))
    stream = STREAMS["gyroscope"]
    frames, largest, is_read = 0, 0, threading.Event()
    with headset(kind, is_read) as port:
        client = StreamClient(replace(stream, port=port), "127.0.0.1", b"", 5, 20, 20)
        with client, contextlib.suppress(StreamClosed, AbsurdSize, StreamSilent, StreamStalled):
            while True:
                assert len(client.read_frame()) <= 76 + stream.max_payload_bytes
                frames += 1
                is_read.set()
                largest = max(largest, len(client._buffer))
    assert frames >= 1, "what came before is read"
    assert largest <= max(SMALL_BUFFER_BYTES, 76 + stream.max_payload_bytes)
