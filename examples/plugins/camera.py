"""A plug-in sensor: a webcam, or any camera that PyAV opens (RTSP, HTTP, a file), without decoding a picture.

    [sensor.ceiling]               # in rig.toml
    kind = "camera"
    url = "rtsp://192.168.1.80/stream"      # or "/dev/video0" with format = "v4l2"
    nominal_hz = 25

Announce it in your package:  [project.entry-points."kitchensync.sensors"]  camera = "camera:Camera"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import av

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.plugin import SensorPacket, SensorStream
from kitchensync.shell.host_clock import host_ns


class Camera:
    """One stream, `video`: the payload is one packet of the camera's own codec, stamped by the camera's clock."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._url = str(settings["url"])
        self._input_format = settings.get("format")
        self._options = {str(key): str(value) for key, value in settings.get("options", {}).items()}
        self._stamps_arrivals = bool(settings.get("stamp_arrivals", False))
        self._nominal_hz = float(settings.get("nominal_hz", 0))
        self._is_closing = False

    def streams(self) -> list[SensorStream]:
        form = {"codec": "as the camera sends", "url": self._url}
        return [SensorStream("video", self._nominal_hz, 32 << 20, format=form)]

    def packets(self, stream: str) -> Iterator[SensorPacket]:
        try:
            with av.open(
                self._url, format=self._input_format, options=self._options, timeout=(10, 10)
            ) as container:
                video = container.streams.video[0]
                first = host_ns() // 100
                for packet in container.demux(video):
                    if self._is_closing:
                        return
                    if packet.pts is not None and packet.size:
                        seconds = packet.pts * packet.time_base
                        ticks = (
                            host_ns() // 100 if self._stamps_arrivals else first + round(seconds * 10_000_000)
                        )
                        yield SensorPacket(ticks, bytes(packet))
        except (av.FFmpegError, IndexError) as error:
            raise SensorError(f"{self._url}: {error}") from error

    def close(self) -> None:
        self._is_closing = True  # the camera's next packet ends the loop
