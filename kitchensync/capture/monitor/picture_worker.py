"""The newest pictures of a recording that is being made, small, in colours: a process of its own, which may drop any.

python -P -m kitchensync.capture.monitor.picture_worker RECORDING

It looks at packets that wait in the queue, and takes none, so no recorder waits for it; where nothing waits it reads
the newest file. Lines of stdin name the streams that somebody wants to see. What is new goes to stdout as one line of
JSON (`pictures`: of each `stream`, `host_ns`, `bytes`), and the JPEGs behind it. It ends when its stdin is closed, or
nobody has written there for a while.
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

LOOK_S, UNASKED_S = 0.15, 15.0
WIDTH_PX, QUALITY = 320, 70

Picture = tuple[int, np.ndarray]
"""Arrival, host_ns, and (height, width, 3) uint8 RGB."""


def _false_colours(sensor: HeadsetStream, depth_mm: np.ndarray) -> np.ndarray:
    """Near red, far blue, black where it is not known."""
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
    """A stream whose packets are decoded as they come, each once."""

    decoder: av.VideoCodecContext | None
    "None for pictures without a video codec."
    last_seq: int = -1
    "Number of the packet that was taken last."


class NewestPictures:
    """Looks at a recording again and again; a stream that has nothing newer gives no picture."""

    def __init__(self, recording: Path) -> None:
        """Look at nothing yet."""
        self._recording = recording
        self._seen_ns: dict[str, int] = {}
        self._following: dict[str, _Following] = {}

    def look(self, wanted: Collection[str]) -> Iterator[tuple[str, int, bytes]]:
        """Yield stream, arrival and JPEG of what is new of the wanted streams. Raises what consent raises."""
        require_consent(self._recording, Purpose.LOOK)
        with open_recording(self._recording) as opened:
            for name in sorted(set(wanted) & set(opened.streams)):
                sensor = opened.sensor(name)
                if sensor is not None and sensor.kind in (FRAMES, DEPTH):
                    picture = self._picture(opened.newest(name), sensor)
                    if picture is not None:
                        self._seen_ns[name] = picture[0]
                        yield name, picture[0], _jpeg(picture[1])

    def _picture(self, stream: StoredStream, sensor: HeadsetStream) -> Picture | None:
        """Return what is new of a stream; where that cannot be read or decoded, nothing."""
        try:
            packets = self._queued(stream, sensor)
            return self._sealed(stream, sensor) if packets is None else self._decoded(stream, sensor, packets)
        except (StorageError, SensorError, av.FFmpegError, OSError) as error:
            self._following.pop(stream.name, None)
            print(f"{stream.name}: no picture now ({error})", file=sys.stderr)
            return None

    def _sealed(self, stream: StoredStream, sensor: HeadsetStream) -> Picture | None:
        """Decode the last picture of the newest file."""
        last = len(stream) - 1
        host_ns = int(stream.index["host_ns"][last]) if last >= 0 else 0
        if host_ns <= self._seen_ns.get(stream.name, 0) or stream.hidden[last]:
            return None
        if sensor.kind == DEPTH:
            return next(((host_ns, _false_colours(sensor, one.depth_mm)) for one in stream.depth(last)), None)
        return next(((host_ns, one.rgb()) for one in stream.frames(last)), None)

    def _decoded(
        self, stream: StoredStream, sensor: HeadsetStream, packets: Sequence[Packet]
    ) -> Picture | None:
        """Decode packets of the queue, and return the last picture that may be shown."""
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
        """Return what came since the last look, or from the newest key frame on; None where that does not wait."""
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
        """Where the queue of the recording is; None for who may not read that, or where another wrote it."""
        place = self._recording.parent / WORK / self._recording.name / "plan.json"
        try:
            return load_plan(place) if is_ours(place) else None
        except (BadPlan, OSError):
            return None

    @cached_property
    def _client(self) -> redis.Redis:
        assert self._plan is not None
        return connect(self._plan.queue_url)


def _is_hidden(stream: StoredStream, packets: Sequence[Packet], host_ns: int) -> bool:
    """Return whether a picture may show a privacy pause; one of an earlier look is not shown either."""
    rows = [
        (one.seq, one.epoch_ms, one.device_ticks, one.host_ns, 0, len(one.payload), 0, one.connection)
        for one in packets
        if one.host_ns == host_ns
    ]
    return not rows or (stream.hides is not None and bool(stream.hides(np.array(rows, INDEX)).any()))


def main(recording: Path) -> None:
    """Send new pictures while somebody asks for them."""
    os.nice(19)
    pictures, asked_s, ended = NewestPictures(recording), {"": time.monotonic()}, threading.Event()

    def hear() -> None:
        for line in sys.stdin.buffer:
            asked_s[line.decode(errors="replace").strip()] = time.monotonic()
        ended.set()

    threading.Thread(target=hear, name="who asks", daemon=True).start()
    while not ended.wait(LOOK_S):
        since_s = time.monotonic() - UNASKED_S
        wanted = {name for name, at_s in list(asked_s.items()) if at_s > since_s}
        for name in {*asked_s} - wanted:
            del asked_s[name]
        if not wanted:
            return
        if found := list(pictures.look(wanted)):
            said: list[dict[str, Any]] = [
                {"stream": name, "host_ns": host_ns, "bytes": len(jpeg)} for name, host_ns, jpeg in found
            ]
            line = json.dumps({"pictures": said}).encode()
            sys.stdout.buffer.write(b"\n".join([line, b"".join(jpeg for *_, jpeg in found)]))
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
