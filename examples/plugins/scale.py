"""A plug-in sensor in one file: a kitchen scale that sends lines over TCP, grams and then 1 once it lies still.

    [sensor.scale]                 # in rig.toml
    kind = "scale"
    address = "192.168.1.71:5000"

Announce it in your package:  [project.entry-points."kitchensync.sensors"]  scale = "scale:Scale"

`RECORD` makes its weights a typed table on disk, columns such as `rec["scale/weight"]["grams"]`, and lines in
`kitchensync view`, also where this file is not installed. With `check`, `kitchensync verify` names what is no weight.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import numpy as np

from kitchensync.sensors.errors import BadPacket
from kitchensync.sensors.plugin import SensorPacket, SensorStream
from kitchensync.shell.host_clock import host_ns

RECORD = np.dtype([("grams", "<f4"), ("is_still", "u1")])


def check(payload: bytes, form: dict[str, Any]) -> None:
    """Refuse what is no weight."""
    if np.isnan(np.frombuffer(payload, RECORD)["grams"]).any():
        raise BadPacket("weight", "no weight")


class Scale:
    """One stream, `weight`: a record a packet."""

    def __init__(self, settings: dict[str, Any]) -> None:
        host, _, port = str(settings["address"]).rpartition(":")
        self._address = host, int(port)
        self._socket: socket.socket | None = None

    def streams(self) -> list[SensorStream]:
        form = {"codec": "weights", "unit": "g"}
        return [SensorStream("weight", nominal_hz=50.0, format=form, record=RECORD, check=check)]

    def packets(self, stream: str) -> Iterator[SensorPacket]:
        with socket.create_connection(self._address, timeout=5) as self._socket:
            self._socket.settimeout(None)
            for line in self._socket.makefile():
                grams, is_still = line.split()
                payload = np.array([(float(grams), int(is_still))], RECORD).tobytes()
                yield SensorPacket(host_ns() // 100, payload)

    def close(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):  # it was closed already
                self._socket.shutdown(socket.SHUT_RDWR)
