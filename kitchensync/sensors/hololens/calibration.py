"""Constants of the sensors, downloaded from a headset before streaming (mode 2), with units and frames."""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass

import numpy as np

from kitchensync.sensors.errors import NoConstants, StreamRefused, StreamUnreachable
from kitchensync.sensors.hololens.headset_stream import HeadsetStream
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.sensors.hololens.remote import wait_until


@dataclass(frozen=True)
class Constant:
    """One constant of a sensor."""

    name: str
    values: np.ndarray | str
    "float32 as sent, or text."
    unit: str
    frame: str
    "Frame of reference, or conversion between two."
    meaning: str


def question(stream: HeadsetStream, profile: Profile) -> bytes:
    """Return the request for a stream's constants."""
    return stream.device_list or stream.ask_constants(profile)


def parse(stream: HeadsetStream, answer: bytes) -> list[Constant]:
    """Split an answer into its constants, float32. Raises `NoConstants` if its length is wrong."""
    if stream.device_list:
        size = struct.unpack_from("<I", answer)[0] if len(answer) >= 4 else -1
        if size != len(answer) - 4:
            why = f"a device list of {len(answer)} bytes has a wrong size field"
            raise NoConstants(stream.name, why)
        text = answer[4:].decode("utf-16-le", errors="replace")
        return [Constant("device_list", text, "", "", "the devices that this stream could show")]
    if len(answer) != stream.constants_bytes:
        raise NoConstants(stream.name, f"{len(answer)} bytes received instead of {stream.constants_bytes}")
    numbers, at, constants = np.frombuffer(answer, "<f4"), 0, []
    for field in stream.constants:
        count = int(np.prod(field.shape))
        values = numbers[at : at + count].reshape(field.shape)
        constants.append(Constant(field.name, values, field.unit, field.frame, field.meaning))
        at += count
    return constants


def download(stream: HeadsetStream, host: str, profile: Profile, timeout_s: float = 15.0) -> list[Constant]:
    """Download a stream's constants on a separate connection, which the headset closes at the end.

    Call it before the stream is opened, as the port serves one client at a time. The front camera must be on. Raises
    `NoConstants`, `StreamRefused`, `StreamUnreachable`.
    """
    name, port = stream.name, stream.port
    most = stream.constants_bytes or 1 << 20
    answer, until_s = bytearray(), time.monotonic() + timeout_s
    try:
        with socket.create_connection((host, port), timeout_s) as sock:
            sock.sendall(question(stream, profile))
            while len(answer) <= most and (part := sock.recv(1 << 18)):
                answer += part
                wait_until(sock, until_s)
    except ConnectionRefusedError as error:
        raise StreamRefused(host, port, name) from error
    except TimeoutError as error:
        raise NoConstants(name, f"{len(answer)} bytes received in {timeout_s:g} s") from error
    except OSError as error:
        raise StreamUnreachable(host, port, name, (error.strerror or str(error)).lower()) from error
    return parse(stream, bytes(answer))
