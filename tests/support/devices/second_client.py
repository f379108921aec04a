"""A second client of the headset's protocol: only the standard library, written from the specification alone.

It imports nothing of the project, so that the virtual headset is judged by somebody else's reading.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

POSE_PORTS = {*range(3800, 3809), 3810, 3817, 3819, 3821}
MRC_VIDEO = struct.pack("<7B3f2I", 0, 1, 0, 0, 0, 0, 0, 0.9, 0.0, 0.0, 0, 1)


def options(**keys: int) -> bytes:
    known = {
        "gop": 10,
        "factor": 2**64 - 1,
        "shift": 2**64 - 2,
        "realtime": 2**64 - 3,
        "mask": 2**64 - 4,
        "media": 2**64 - 5,
    }
    pairs = [struct.pack("<QQ", known[key], value % 2**64) for key, value in keys.items()]
    return bytes([len(pairs)]) + b"".join(pairs)


def video(profile: int, bits: int = 1_000_000, level: int = 255) -> bytes:
    return struct.pack("<BBI", profile, level, bits)


class Wire:
    """One connection."""

    def __init__(self, host: str, port: int, sent: bytes = b"", timeout: float = 60.0) -> None:
        self.port = port
        self.socket = socket.create_connection((host, port), timeout=timeout)
        self.socket.sendall(sent)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def exactly(self, count: int) -> bytes:
        got = b""
        while len(got) < count:
            part = self.socket.recv(count - len(got))
            if not part:
                raise EOFError(f"{len(got)} of {count} bytes")
            got += part
        return got

    def rest(self) -> bytes:
        got = bytearray()
        while part := self.socket.recv(1 << 20):
            got += part
        return bytes(got)

    def packet(self, has_pose: bool | None = None) -> tuple[int, bytes, bytes]:
        ticks, size = struct.unpack("<QI", self.exactly(12))
        payload = self.exactly(size)
        has_pose = self.port in POSE_PORTS if has_pose is None else has_pose
        return ticks, payload, self.exactly(64) if has_pose else b""

    def packets(self, count: int, has_pose: bool | None = None) -> Iterator[tuple[int, bytes, bytes]]:
        for _ in range(count):
            yield self.packet(has_pose)


def ask(host: str, command: bytes, answer: int) -> bytes:
    with Wire(host, 3809, command) as wire:
        return wire.exactly(answer)


def start_camera(host: str) -> None:
    with Wire(host, 3810, b"\x07" + MRC_VIDEO) as wire:
        assert wire.rest() == b""
    while ask(host, b"\x03", 1) != b"\x01":
        pass


def stop_camera(host: str) -> None:
    with Wire(host, 3810, b"\x0b") as wire:
        assert wire.rest() == b""
