"""A client of the headset's protocol, written from its specification alone, and kitchens to talk to."""

from __future__ import annotations

import json
import queue
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

START_CAMERA = b"\x07\x00\x01\x00\x00\x00\x00\x00" + struct.pack("<3f2I", 0.9, 0.0, 0.0, 0, 1)


def gop(frames: int) -> bytes:
    return b"\x01" + struct.pack("<QQ", 10, frames)


def pv_configuration(
    profile: int = 3, width: int = 640, height: int = 360, hz: int = 30, key: int = 15
) -> bytes:
    bits = width * height * hz * 12 // 150
    return struct.pack("<BHHBBBBI", 1, width, height, hz, 1, profile, 255, bits) + gop(key)


def ahat_configuration(profile: int = 3, key: int = 15) -> bytes:
    return struct.pack("<BBBBBI", 1, 1, 0, profile, 255, 15_099_488) + gop(key)


PORTS = {
    "pv": 3810,
    "depth_ahat": 3804,
    "gyroscope": 3807,
    "accelerometer": 3806,
    "magnetometer": 3808,
    "spatial_input": 3812,
    "microphone": 3811,
}
CONFIGURATIONS = {
    "pv": pv_configuration(),
    "depth_ahat": ahat_configuration(),
    "gyroscope": b"\x01",
    "accelerometer": b"\x01",
    "magnetometer": b"\x01",
    "spatial_input": b"",
    "microphone": b"\x03\x29",
}
POSE_BYTES = {"spatial_input": 0, "microphone": 0}
IDLE_PORT = 3817
"""Eye tracking: no test here opens it, so that asking whether it refuses disturbs none."""


@dataclass(frozen=True)
class Received:
    ticks: int
    payload: bytes
    pose: bytes


class Connection:
    """One TCP connection; `packet` returns None at a clean end."""

    def __init__(self, host: str, port: int, sent: bytes = b"", pose_bytes: int = 64) -> None:
        self._socket = socket.create_connection((host, port), timeout=60)
        self._pose_bytes = pose_bytes
        self._socket.sendall(sent)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def read(self, count: int) -> bytes:
        got = bytearray()
        while len(got) < count:
            more = self._socket.recv(count - len(got))
            if not more:
                break
            got += more
        return bytes(got)

    def packet(self) -> Received | None:
        header = self.read(12)
        if not header:
            return None
        ticks, size = struct.unpack("<QI", header)
        body = self.read(size + self._pose_bytes)
        assert len(body) == size + self._pose_bytes, "the stream ended inside a packet"
        return Received(ticks, body[:size], body[size:])

    def packets(self) -> list[Received]:
        got = []
        while (packet := self.packet()) is not None:
            got.append(packet)
        return got

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class KitchenProcess:
    """A running `simulate`."""

    def __init__(self, host: str, out: Path, *options: str, alone_s: float | None = None) -> None:
        self.host, self.out = host, out
        code = "from kitchensync.virtual_kitchen.cli import simulate; simulate()"
        if alone_s is not None:
            code = (
                f"from kitchensync.virtual_kitchen import simulation; simulation.ALONE_S = {alone_s}; {code}"
            )
        address = ("--hololens-host", host, "--gopro-host", host, "--gopro-port", "0", "--out", str(out))
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *address, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.ready = self.process.stdout.readline().strip()
        if not self.ready.startswith("ready gopro="):
            _, errors = self.process.communicate(timeout=60)
            raise AssertionError(f"not ready: {self.ready!r} {errors}")

    def type(self, *lines: str) -> None:
        """Write lines to its standard input: `fault NAME:ARGS` plays a fault at once."""
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{line}\n" for line in lines))
        self.process.stdin.flush()

    def open(self, stream: str, sent: bytes | None = None) -> Connection:
        configuration = CONFIGURATIONS[stream] if sent is None else sent
        return Connection(self.host, PORTS[stream], configuration, POSE_BYTES.get(stream, 64))

    def remote(self) -> Connection:
        return Connection(self.host, 3809)

    def start_camera(self) -> None:
        with Connection(self.host, 3810, START_CAMERA) as start:
            assert start.read(1) == b""
        with self.remote() as remote:
            while True:
                remote.send(b"\x03")
                if remote.read(1) == b"\x01":
                    return

    def refuses(self, port: int) -> bool:
        try:
            socket.create_connection((self.host, port), timeout=60).close()
        except (ConnectionRefusedError, ConnectionResetError):  # reset: closed while we were let in
            return True
        return False

    def record_all(self, streams: tuple[str, ...] = tuple(PORTS)) -> dict[str, list[Received]]:
        """Receive every stream, each in a thread, until the kitchen ends them."""
        found: queue.Queue[tuple[str, list[Received]]] = queue.Queue()

        def receive(stream: str) -> None:
            with self.open(stream) as connection:
                found.put((stream, connection.packets()))

        threads = [threading.Thread(target=receive, args=(stream,)) for stream in streams]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return dict(found.get_nowait() for _ in range(found.qsize()))

    def truth(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.out / "truth.json").read_text())
        return loaded

    def lines(self, stream: str) -> list[dict[str, Any]]:
        text = (self.out / "truth" / "hololens" / f"{stream}.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def wait(self) -> int:
        """Wait until its streams have ended, then end it."""
        while not self.refuses(IDLE_PORT):
            time.sleep(0.05)
        return self.interrupt()

    def interrupt(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)
        return self.process.returncode

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def _free_host() -> str:
    return f"127.{random.randint(2, 254)}.{random.randint(1, 254)}.{random.randint(2, 254)}"


@pytest.fixture(scope="module")
def start_kitchen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., KitchenProcess]]:
    """Start kitchens on addresses of their own; whatever still runs at the end of the module is ended."""
    started: list[KitchenProcess] = []

    def start(*options: str, host: str | None = None, alone_s: float | None = None) -> KitchenProcess:
        out = tmp_path_factory.mktemp("sim")
        kitchen = KitchenProcess(host or _free_host(), out, *options, alone_s=alone_s)
        started.append(kitchen)
        return kitchen

    yield start
    for kitchen in started:
        kitchen.kill()
