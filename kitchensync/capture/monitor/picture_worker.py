"""Live preview of a running recording: a process that sends its newest frames as small JPEGs, and may skip frames.

python -P -m kitchensync.capture.monitor.picture_worker RECORDING

It reads queued packets without consuming them, so it cannot hold up the recorder; if nothing is queued, it reads the
newest file. Each line on stdin requests a stream. New frames go to stdout as one line of JSON (`pictures`: `stream`,
`host_ns` and `bytes` of each), followed by the JPEGs. It ends when its stdin is closed or requests stop.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import redis

from kitchensync.capture.errors import BadPlan
from kitchensync.capture.plan import Plan, is_ours, load_plan
from kitchensync.capture.queue.newest_packets import newest_first
from kitchensync.capture.queue.queue_connection import connect
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens import video
from kitchensync.sensors.hololens.headset_stream import DEPTH, FRAMES, HeadsetStream, PictureUnit
from kitchensync.storage.chunks.chunk_writer import Packet
from kitchensync.storage.chunks.layout import INDEX
from kitchensync.storage.consent import Purpose, require_consent
from kitchensync.storage.errors import StorageError
from kitchensync.storage.names import WORK
from kitchensync.storage.reading.headset_pictures import RAW, cut_picture, rgb_of
from kitchensync.storage.recording import StoredStream, open_recording

POLL_S, IDLE_LIMIT_S = 0.15, 15.0  # as REQUEST_LASTS_S of the app, which then drops the frames
WIDTH_PX, QUALITY = 320, 70

Picture = tuple[int, np.ndarray]
"""Arrival, host_ns, and (height, width, 3) uint8 RGB."""


def _false_colours(sensor: HeadsetStream, depth_mm: np.ndarray) -> np.ndarray:
    """Return depth (mm) as RGB: near is red, far is blue, unknown is black."""
    near = 255 - np.clip(depth_mm * (255.0 / sensor.farthest_mm), 0, 255).astype(np.uint8)
    coloured = np.asarray(cv2.applyColorMap(near, cv2.COLORMAP_TURBO)[:, :, ::-1])
    return np.where((depth_mm == 0)[:, :, None], 0, coloured)


def _jpeg(rgb: np.ndarray) -> bytes:
    height = round(rgb.shape[0] * WIDTH_PX / rgb.shape[1])
    small = cv2.resize(
        np.ascontiguousarray(rgb[:, :, ::-1]), (WIDTH_PX, height), interpolation=cv2.INTER_AREA
    )
    return bytes(cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])[1])


@dataclass
class _Following:
    """A stream whose packets are decoded continuously."""

    decoder: av.VideoCodecContext | None
    """None for frames without a video codec."""
    last_seq: int = -1
    """Number of the last decoded packet."""


class NewestPictures:
    """Returns each new frame of a running recording once."""

    def __init__(self, recording: Path) -> None:
        self._recording = recording
        self._shown_ns: dict[str, int] = {}
        self._following: dict[str, _Following] = {}

    def new_frames(self, streams: Collection[str]) -> Iterator[tuple[str, int, bytes]]:
        """Yield stream, arrival (host_ns) and JPEG of each new frame. Raises the errors of `require_consent`."""
        require_consent(self._recording, Purpose.LOOK)
        with open_recording(self._recording) as opened:
            for name in sorted(set(streams) & set(opened.streams)):
                sensor = opened.sensor(name)
                if sensor is not None and sensor.kind in (FRAMES, DEPTH):
                    picture = self._picture(opened.newest(name), sensor)
                    if picture is not None:
                        self._shown_ns[name] = picture[0]
                        yield name, picture[0], _jpeg(picture[1])

    def _picture(self, stream: StoredStream, sensor: HeadsetStream) -> Picture | None:
        """Return the newest frame of a stream; None if it is not new or cannot be read or decoded."""
        try:
            packets = self._queued(stream, sensor)
            return self._sealed(stream, sensor) if packets is None else self._decoded(stream, sensor, packets)
        except (StorageError, SensorError, av.FFmpegError, OSError) as error:
            self._following.pop(stream.name, None)
            print(f"{stream.name}: no picture now ({error})", file=sys.stderr)
            return None

    def _sealed(self, stream: StoredStream, sensor: HeadsetStream) -> Picture | None:
        """Decode the last frame of the newest file."""
        last = len(stream) - 1
        host_ns = int(stream.index["host_ns"][last]) if last >= 0 else 0
        if host_ns <= self._shown_ns.get(stream.name, 0) or stream.hidden[last]:
            return None
        if sensor.kind == DEPTH:
            frames = (_false_colours(sensor, frame.depth_mm) for frame in stream.depth(last))
        else:
            frames = (frame.rgb() for frame in stream.frames(last))
        return next(((host_ns, rgb) for rgb in frames), None)

    def _decoded(
        self, stream: StoredStream, sensor: HeadsetStream, packets: Sequence[Packet]
    ) -> Picture | None:
        """Decode queued packets and return the last frame; None if it may show a privacy pause."""
        following = self._following[stream.name]
        shown: tuple[int, PictureUnit, Any] | None = None
        for packet in packets:
            following.last_seq = packet.seq
            unit = cut_picture(sensor, bytes(packet.payload))
            if following.decoder is None:
                shown = packet.host_ns, unit, None
                continue
            coded = av.Packet(bytes(unit.image))
            coded.pts = packet.host_ns
            for picture in following.decoder.decode(coded):
                shown = picture.pts or 0, unit, picture
        if shown is None or _is_hidden(stream, packets, shown[0]):
            return None
        host_ns, unit, picture = shown
        if sensor.kind == DEPTH:
            assert sensor.depth is not None, "every stream of this kind has one"
            return host_ns, _false_colours(sensor, sensor.depth(unit, picture, stream.format)[0])
        assert sensor.raw_picture is not None, "every camera has one"
        return host_ns, rgb_of(sensor.raw_picture(unit) if picture is None else picture)

    def _queued(self, stream: StoredStream, sensor: HeadsetStream) -> list[Packet] | None:
        """Return the queued packets since the last call, or from the newest key frame on; None if they are gone."""
        if (plan := self._plan) is None:
            return None
        codec, following = stream.format.get("codec", RAW), self._following.get(stream.name)
        packets: list[Packet] = []
        try:
            for packet in newest_first(self._client, plan.uuid, stream.name):
                if following is not None and packet.seq <= following.last_seq:
                    return packets
                packets.insert(0, packet)
                if following is not None and packet.seq == following.last_seq + 1:
                    return packets
                is_coded = codec in video.CODECS
                if not is_coded or video.is_key_frame(
                    codec, cut_picture(sensor, bytes(packet.payload)).image
                ):
                    self._following[stream.name] = _Following(video.decoder(codec) if is_coded else None)
                    return packets
        except (redis.RedisError, ValueError, TypeError, KeyError, struct.error) as error:
            print(f"{stream.name}: the queue cannot be looked at ({error})", file=sys.stderr)
        return None

    @cached_property
    def _plan(self) -> Plan | None:
        """The recorder's plan, which has the address of the queue; None if it is not readable or not ours."""
        path = self._recording.parent / WORK / self._recording.name / "plan.json"
        try:
            return load_plan(path) if is_ours(path) else None
        except (BadPlan, OSError):
            return None

    @cached_property
    def _client(self) -> redis.Redis:
        assert self._plan is not None
        return connect(self._plan.queue_url)


def _is_hidden(stream: StoredStream, packets: Sequence[Packet], host_ns: int) -> bool:
    """Return whether the frame that arrived at `host_ns` may show a privacy pause, or is not among `packets`."""
    rows = [
        (p.seq, p.epoch_ms, p.device_ticks, p.host_ns, 0, len(p.payload), 0, p.connection)
        for p in packets
        if p.host_ns == host_ns
    ]
    return not rows or (stream.hides is not None and bool(stream.hides(np.array(rows, INDEX)).any()))


def main(recording: Path) -> None:
    """Send new frames of the requested streams while requests come."""
    os.nice(19)
    pictures, requested_s, ended = NewestPictures(recording), {"": time.monotonic()}, threading.Event()

    def read_requests() -> None:
        for line in sys.stdin.buffer:
            requested_s[line.decode(errors="replace").strip()] = time.monotonic()
        ended.set()

    threading.Thread(target=read_requests, name="requests", daemon=True).start()
    while not ended.wait(POLL_S):
        since_s = time.monotonic() - IDLE_LIMIT_S
        streams = {name for name, at_s in list(requested_s.items()) if at_s > since_s}
        for name in {*requested_s} - streams:
            del requested_s[name]
        if not streams:
            return
        if frames := list(pictures.new_frames(streams)):
            header: list[dict[str, Any]] = [
                {"stream": name, "host_ns": host_ns, "bytes": len(jpeg)} for name, host_ns, jpeg in frames
            ]
            line = json.dumps({"pictures": header}).encode()
            sys.stdout.buffer.write(b"\n".join([line, b"".join(jpeg for *_, jpeg in frames)]))
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
