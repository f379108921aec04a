"""A headset of a few lines: ports that send packets, are closed and opened at will, and 3809 that tells an offset."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable

REMOTE = 3809
PERIOD_S = 0.02
HEADER = struct.Struct("<QI")


class Port:
    """Serves clients, one thread each, until it is closed; may be opened again."""

    def __init__(self, host: str, port: int, serve: Callable[[socket.socket, threading.Event], None]) -> None:
        self._address, self._serve = (host, port), serve
        self._threads: list[threading.Thread] = []
        self.open()

    def open(self) -> None:
        self._closing = threading.Event()
        self._listener = socket.create_server(self._address)
        self._start(self._accept, self._listener, self._closing)

    def close(self) -> None:
        """Refuse from now on and close what is open, after whole packets."""
        self._closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)
        self._threads = []

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket, closing: threading.Event) -> None:
        while not closing.is_set():
            with contextlib.suppress(OSError):
                client, _ = listener.accept()
                self._start(self._one, client, closing)

    def _one(self, client: socket.socket, closing: threading.Event) -> None:
        with client, contextlib.suppress(OSError):
            client.settimeout(0.05)
            self._serve(client, closing)


class FakeHeadset:
    """Streams at `ports` and remote configuration."""

    def __init__(self, host: str, ports: dict[str, int], pose_bytes: int = 64) -> None:
        self.utc_offset, self.is_mute = 5, False
        self._pose_bytes = pose_bytes
        self.ports = {name: Port(host, number, self._stream) for name, number in ports.items()}
        self.remote = Port(host, REMOTE, self._answer)

    def close(self, *names: str) -> None:
        for name in names or [*self.ports, "remote"]:
            (self.remote if name == "remote" else self.ports[name]).close()

    def open(self, *names: str) -> None:
        for name in names or [*self.ports, "remote"]:
            (self.remote if name == "remote" else self.ports[name]).open()

    def _stream(self, client: socket.socket, closing: threading.Event) -> None:
        client.recv(64)  # what is not read would turn the close into a reset
        while not closing.wait(PERIOD_S):
            if not self.is_mute:
                client.sendall(HEADER.pack(time.monotonic_ns() // 100, 8) + bytes(8 + self._pose_bytes))

    def _answer(self, client: socket.socket, closing: threading.Event) -> None:
        while not closing.is_set():
            with contextlib.suppress(TimeoutError):
                command = client.recv(1)
                if not command:
                    return
                client.sendall(struct.pack("<Q", self.utc_offset))
