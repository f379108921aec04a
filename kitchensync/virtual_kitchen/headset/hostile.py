"""Hostile headsets: each sends one kind of harmful data on a stream's port, then closes the connection.

python -m kitchensync.virtual_kitchen.headset.hostile NETWORK

On each address NETWORK.1, NETWORK.2 .. it answers questions on 3809 and requests for constants in one of these
kinds. It prints {NAME: ADDRESS} as JSON and ends with its input.
"""

import contextlib
import itertools
import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

_HEADER = struct.Struct("<QI")
LASTS_S = 3.0
"""Duration of kinds that do not end by themselves, seconds."""
PAUSE_S = 0.2


@dataclass(frozen=True)
class HostileLink:
    """A client, a whole packet that is due now, and the event that stops the headset."""

    client: socket.socket
    frame: bytes
    stopping: threading.Event


def _half_header(_: HostileLink) -> Iterator[bytes]:
    yield b"\1\2\3\4\5"
    yield from itertools.repeat(b"", round(LASTS_S / PAUSE_S))


def _dripped(connection: HostileLink) -> Iterator[bytes]:
    """One byte at a time with pauses: see `play`."""
    for byte in connection.frame[: round(LASTS_S / PAUSE_S)]:
        yield bytes([byte])


def _empty(connection: HostileLink) -> Iterator[bytes]:
    ticks = _ticks(connection)
    for number in itertools.count(1):
        yield _HEADER.pack(ticks + number, 0) + bytes(64)


def _flood(connection: HostileLink) -> Iterator[bytes]:
    ticks = _ticks(connection)
    for number in itertools.count(1):
        yield struct.pack("<Q", ticks + number) + connection.frame[8:]


def _backwards(connection: HostileLink) -> Iterator[bytes]:
    ticks = _ticks(connection)
    for number in range(300):
        yield struct.pack("<Q", ticks - 10_000 * number) + connection.frame[8:]


def _far_stamps(connection: HostileLink) -> Iterator[bytes]:
    for ticks in (0, 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1):
        yield struct.pack("<Q", ticks) + connection.frame[8:]


def _wrong_kind(connection: HostileLink) -> Iterator[bytes]:
    ticks = _ticks(connection)
    for number in range(300):
        yield _HEADER.pack(ticks + number, number) + os.urandom(number) + connection.frame[-64:]


def _lengths(connection: HostileLink) -> Iterator[bytes]:
    """Payloads as long as the limits of clients; none is valid for its stream."""
    ticks = _ticks(connection)
    for number, size in enumerate((0, 1, 255, 256, 65535, 65536, 1 << 20, (1 << 24) - 1)):
        yield _HEADER.pack(ticks + number, size) + bytes(size) + bytes(64)


def _web(_: HostileLink) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" * 10


def _noise(_: HostileLink) -> Iterator[bytes]:
    while True:
        yield os.urandom(1 << 16)


def _reset(connection: HostileLink) -> Iterator[bytes]:
    yield connection.frame[: len(connection.frame) // 2]
    connection.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _nothing(_: HostileLink) -> Iterable[bytes]:
    return ()


Sends = Callable[[HostileLink], Iterable[bytes]]
HOSTILE: dict[str, tuple[Sends, float]] = {
    "hostile_half_header": (_half_header, PAUSE_S),
    "hostile_drip": (_dripped, PAUSE_S),
    "hostile_empty": (_empty, 0.0),
    "hostile_flood": (_flood, 0.0),
    "hostile_backwards": (_backwards, 0.0),
    "hostile_far_stamps": (_far_stamps, 0.0),
    "hostile_wrong_kind": (_wrong_kind, 0.0),
    "hostile_lengths": (_lengths, 0.0),
    "hostile_web": (_web, 0.0),
    "hostile_noise": (_noise, 0.0),
    "hostile_reset": (_reset, 0.0),
    "hostile_storm": (_nothing, 0.0),
}
"""Name -> what is sent and the pause after each piece."""


def play(name: str, connection: HostileLink) -> None:
    """Send the data of a kind until the client leaves, for `LASTS_S` at most."""
    sends, pause_s = HOSTILE[name]
    end_s = time.monotonic() + LASTS_S
    connection.client.settimeout(LASTS_S)
    with contextlib.suppress(OSError):  # the client closed
        for piece in sends(connection):
            connection.client.sendall(piece)
            if connection.stopping.wait(pause_s) or time.monotonic() > end_s:
                return


def _ticks(connection: HostileLink) -> int:
    return int(struct.unpack_from("<Q", connection.frame)[0])


PORTS = range(3800, 3822)
ANSWERS: dict[str, Sends] = {
    "says nothing": lambda _: itertools.repeat(b""),
    "drips its answers": lambda _: itertools.repeat(b"\1"),
    "stops in the middle": lambda _: iter([b"\1\0\0"]),
    "resets in the middle": lambda link: _reset(HostileLink(link.client, bytes(6), link.stopping)),
    "closes at once": _nothing,
    "answers for ever": lambda _: itertools.repeat(bytes(1 << 16)),
    "answers with numbers beyond all": lambda _: itertools.repeat(b"\xff" * 4096),
    "sends noise": _noise,
    "is a web server": _web,
    "promises a device list of 4 GB": lambda _: iter([b"\xff\xff\xff\xff", bytes(1 << 20)]),
}
"""Name -> the answer on the port of remote configuration, and to a request for constants on a stream's port."""
SLOW = ("says nothing", "drips its answers")


class HostileHeadset:
    """A hostile headset that listens on all ports."""

    def __init__(self, name: str, host: str) -> None:
        self._name, self._stopping = name, threading.Event()
        self._listeners = [socket.create_server((host, port)) for port in PORTS]
        self._threads = [
            threading.Thread(target=self._listen, args=(listener,)) for listener in self._listeners
        ]
        for thread in self._threads:
            thread.start()

    def _listen(self, listener: socket.socket) -> None:
        listener.settimeout(0.1)
        while not self._stopping.is_set():
            with contextlib.suppress(OSError):
                client = listener.accept()[0]
                with client:
                    self._serve(client)

    def _serve(self, client: socket.socket) -> None:
        client.settimeout(LASTS_S)
        if not client.recv(65536):
            return
        pause_s, end_s = PAUSE_S if self._name in SLOW else 0.0, time.monotonic() + 10 * LASTS_S
        for piece in ANSWERS[self._name](HostileLink(client, b"", self._stopping)):
            client.sendall(piece)
            if self._stopping.wait(pause_s) or time.monotonic() > end_s or _has_left(client):
                return

    def close(self) -> None:
        """Close all ports."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        for listener in self._listeners:
            listener.close()


def _has_left(client: socket.socket) -> bool:
    try:
        return client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False


def main() -> None:
    """Serve all kinds until the input ends."""
    places = {name: f"{sys.argv[1]}.{number}" for number, name in enumerate(ANSWERS, 1)}
    headsets = [HostileHeadset(name, place) for name, place in places.items()]
    print(json.dumps(places), flush=True)
    sys.stdin.read()
    for headset in headsets:
        headset.close()


if __name__ == "__main__":
    main()
