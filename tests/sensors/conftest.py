"""A minimal headset after the wire specification: threads, one script per port."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

Script = Callable[[socket.socket], None]


def free_address(ports: list[int]) -> str:
    """Return a loopback address on which all these ports are free."""
    for _ in range(100):
        host = f"127.{random.randint(2, 254)}.{random.randint(1, 254)}.{random.randint(2, 254)}"
        try:
            for port in ports:
                with socket.socket() as probe:
                    probe.bind((host, port))
        except OSError:
            continue
        return host
    raise RuntimeError("no free loopback address")


class Port:
    """A listener that runs `script` on one connection after the other, and closes each."""

    def __init__(self, host: str, port: int, script: Script) -> None:
        self.errors: list[Exception] = []
        self.accepted = 0
        self._script = script
        self._listener = socket.create_server((host, port))
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            self._open.append(sock)
            with sock:
                try:
                    self._script(sock)
                except (BrokenPipeError, ConnectionResetError):
                    continue
                except Exception as error:  # noqa: BLE001 (raised when the port closes)
                    self.errors.append(error)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in self._open:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        self._thread.join(timeout=60)
        assert not self._thread.is_alive()
        assert not self.errors, self.errors


@contextmanager
def serve(scripts: dict[int, Script]) -> Iterator[str]:
    host = free_address(list(scripts))
    ports = [Port(host, number, script) for number, script in scripts.items()]
    try:
        yield host
    finally:
        for port in ports:
            port.close()


@pytest.fixture
def headset() -> Callable[[dict[int, Script]], AbstractContextManager[str]]:
    """Serve scripts on ports of an unused loopback address: `with headset({3807: script}) as host`."""
    return serve
