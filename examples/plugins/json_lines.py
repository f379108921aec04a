"""A plug-in sensor: a TCP server that writes one JSON object a line, such as a scale or a thermometer.

    [sensor.scale]                 # in rig.toml
    kind = "json_lines"
    address = "192.168.1.70:5000"
    ticks_key = "t_ms"             # the sensor's own milliseconds; leave out to stamp arrivals
    nominal_hz = 10

Announce it in your package:  [project.entry-points."kitchensync.sensors"]  json_lines = "json_lines:JsonLines"
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.plugin import SensorPacket, SensorStream
from kitchensync.shell.host_clock import host_ns

LONGEST_LINE = 64 * 1024


class JsonLines:
    """One stream, `lines`: the payload is the line as it came, without its end."""

    def __init__(self, settings: dict[str, Any]) -> None:
        host, _, port = str(settings["address"]).rpartition(":")
        self._address = host, int(port)
        self._ticks_key = settings.get("ticks_key")
        self._nominal_hz = float(settings.get("nominal_hz", 0))
        self._socket: socket.socket | None = None

    def streams(self) -> list[SensorStream]:
        form = {"codec": "json", "ticks_key": self._ticks_key}
        return [SensorStream("lines", self._nominal_hz, LONGEST_LINE, format=form)]

    def packets(self, stream: str) -> Iterator[SensorPacket]:
        with socket.create_connection(self._address, timeout=5) as self._socket:
            self._socket.settimeout(None)
            waiting = b""
            while part := self._socket.recv(4096):
                *lines, waiting = (waiting + part).split(b"\n")
                for line in lines:
                    yield SensorPacket(self._ticks(line), line)
                if len(waiting) > LONGEST_LINE:
                    raise SensorError(f"{self._address[0]}: a line of more than {LONGEST_LINE} bytes")

    def _ticks(self, line: bytes) -> int:
        if self._ticks_key is None:
            return host_ns() // 100
        return round(json.loads(line)[self._ticks_key] * 10_000)

    def close(self) -> None:
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # closed already
