"""A second headset: only the standard library, written from the wire specification alone.

Every stream port answers its configuration with made-up packets of the right form, for as long as it is told to; what
it sent is kept, payload by payload. It imports nothing of the project.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import socket
import struct
import threading
import time
from typing import ClassVar

POSE = struct.pack("<16f", 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0.5, 1.25, -2, 1)
MRC_BYTES = 27
ADTS = bytes.fromhex("fff14c80")


def _video_tail(has_format: bool, has_divisor: bool = True):
    def read(wire: _Reader) -> None:
        if has_format:
            wire.take(5)
        if has_divisor:
            wire.take(1)
        wire.take(6)
        wire.take(16 * wire.take(1)[0])

    return read


class _Reader:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def take(self, count: int) -> bytes:
        got = b""
        while len(got) < count:
            part = self.sock.recv(count - len(got))
            if not part:
                raise EOFError
            got += part
        return got


class SecondServer:
    """Serves one loopback address until `seconds` after the first stream; then the stream ports refuse."""

    STREAMS: ClassVar[dict[str, tuple[int, float]]] = {
        "pv": (3810, 30.0),
        "vlc_leftfront": (3800, 30.0),
        "depth_ahat": (3804, 45.0),
        "depth_longthrow": (3805, 5.0),
        "accelerometer": (3806, 11.8),
        "gyroscope": (3807, 21.0),
        "magnetometer": (3808, 4.5),
        "microphone": (3811, 46.9),
        "spatial_input": (3812, 30.0),
        "eye_tracking": (3817, 30.0),
    }

    def __init__(self, host: str, seconds: float, seed: int = 1) -> None:
        self.host, self.seconds, self.seed = host, seconds, seed
        self.sent: dict[str, list[bytes]] = {name: [] for name in self.STREAMS}
        self.errors: list[Exception] = []
        self._pv_on = False
        self._begin: float | None = None
        self._boot = time.monotonic() - 12_345.678
        self._listeners = {name: self._listen(port) for name, (port, _) in self.STREAMS.items()}
        self._remote = self._listen(3809)
        self._threads = [
            threading.Thread(target=self._accept, args=(listener, name))
            for name, listener in [*self._listeners.items(), ("remote", self._remote)]
        ]
        for thread in self._threads:
            thread.start()

    def _listen(self, port: int) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((self.host, port))
        listener.listen(16)
        return listener

    def close(self) -> None:
        self._end(self._remote)
        for listener in self._listeners.values():
            self._end(listener)
        for thread in self._threads:
            thread.join(20)

    def _end(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # closed already
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()

    def digest(self, name: str) -> str:
        return hashlib.sha256(b"".join(self.sent[name])).hexdigest()

    def _accept(self, listener: socket.socket, name: str) -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with sock:
                sock.settimeout(30)
                try:
                    self._serve_remote(sock) if name == "remote" else self._serve(sock, name, listener)
                except (EOFError, OSError):
                    continue
                except Exception as error:  # noqa: BLE001 (told by the test)
                    self.errors.append(error)

    def _ticks(self) -> int:
        return int((time.monotonic() - self._boot) * 1e7)

    def _serve_remote(self, sock: socket.socket) -> None:
        wire = _Reader(sock)
        lengths = {4: 20, 8: 8, 0x0A: 8, 0x13: 20, 0x14: 8, 0x19: 8, 0x22: 8}
        while True:
            command = wire.take(1)[0]
            if command == 0:
                sock.sendall(struct.pack("<4H", 1, 0, 37, 0))
            elif command == 1:
                sock.sendall(struct.pack("<Q", 133875715436816907))
            elif command == 3:
                sock.sendall(bytes([self._pv_on]))
            elif command == 0x18:
                (source,) = struct.unpack("<I", wire.take(4))
                sock.sendall(struct.pack("<Q", self._ticks() + (133875715436816907 if source else 0)))
            else:
                wire.take(lengths.get(command, 4))

    def _configure(self, wire: _Reader, name: str) -> bool:
        """Read what the client sends first; return whether packets with poses are wanted, or raise to close."""
        if name == "spatial_input":
            return False
        if name == "microphone":
            wire.take(2)
            return False
        mode = wire.take(1)[0]
        if name == "eye_tracking":
            return True
        if name == "pv" and mode & 4:
            wire.take(MRC_BYTES)
            self._pv_on = True
        if name == "pv" and mode & 8:
            self._pv_on = False
        if mode & 3 == 3:
            raise EOFError
        if mode & 3 == 2:
            self._constants(wire, name)
            raise EOFError
        if name in ("pv", "vlc_leftfront"):
            _video_tail(name == "pv")(wire)
        elif name == "depth_ahat":
            wire.take(2)
            _video_tail(False, False)(wire)
        elif name == "depth_longthrow":
            wire.take(5)
        return bool(mode & 1)

    def _constants(self, wire: _Reader, name: str) -> None:
        counts = {
            "pv": 52, "accelerometer": 16, "gyroscope": 16, "magnetometer": 0,
            "vlc_leftfront": 4 * 480 * 640 + 20, "depth_ahat": 4 * 512 * 512 + 22,
            "depth_longthrow": 4 * 288 * 320 + 21,
        }  # fmt: skip
        if name == "pv":
            wire.take(5)
        wire.sock.sendall(struct.pack("<f", 0.25) * counts[name])

    def _payload(self, name: str, k: int, ticks: int) -> bytes:
        rng = random.Random(f"{self.seed} {name} {k}")
        if name == "pv":
            return rng.randbytes(rng.randrange(2000, 40_000)) + bytes(76) + struct.pack("<HH", 640, 360)
        if name == "vlc_leftfront":
            return rng.randbytes(3000) + struct.pack("<QQII", ticks * 100, 5_990_000, 24, 0)
        if name == "depth_ahat":
            image = rng.randbytes(rng.randrange(20_000, 80_000))
            return struct.pack("<II", 0, len(image)) + image + struct.pack("<Q", k * 1_385_454)
        if name == "depth_longthrow":
            return b"\x89PNG\r\n\x1a\n" + rng.randbytes(150_000) + struct.pack("<Q", k * 12_595_200)
        if name in ("accelerometer", "gyroscope", "magnetometer"):
            count = {"accelerometer": 93, "gyroscope": 315, "magnetometer": 11}[name]
            return b"".join(struct.pack("<QQ4f", k * 10**7 + i, ticks, 0, 1, 2, 36.5) for i in range(count))
        if name == "microphone":
            size = rng.randrange(300, 700)
            head = ADTS[:3] + bytes([0x80 | size >> 11, size >> 3 & 255, (size & 7) << 5 | 31, 0xFC])
            return head + rng.randbytes(size - 7)
        if name == "eye_tracking":
            return bytes(88) + struct.pack("<I", 15)
        return struct.pack("<I", 3) + rng.randbytes(1932)

    def _serve(self, sock: socket.socket, name: str, listener: socket.socket) -> None:
        with_pose = self._configure(_Reader(sock), name)
        if name == "pv" and not self._pv_on:
            return
        self._begin = self._begin or time.monotonic()
        period, k = 1 / self.STREAMS[name][1], 0
        begin = time.monotonic()
        while time.monotonic() < self._begin + self.seconds:
            ticks = self._ticks()
            payload = self._payload(name, k, ticks)
            pose = POSE if with_pose else b""
            sock.sendall(struct.pack("<QI", ticks, len(payload)) + payload + pose)
            self.sent[name].append(payload)
            k += 1
            time.sleep(max(0.0, begin + k * period - time.monotonic()))
        self._end(listener)
