"""The newest pictures of a recording that is being made, small, in colours: a process of its own, which may drop any.

python -P -m kitchensync.capture.monitor.picture_worker RECORDING

It looks at packets that wait in the queue, and takes none, so no recorder waits for it; where nothing waits it reads
the newest file. Lines of stdin name the streams that somebody wants to see. Each picture goes to stdout as one line
of JSON (`stream`, `host_ns`, `bytes`) and a JPEG. It ends when its stdin is closed, or nobody has written there for a
while.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import redis

from kitchensync.capture.errors import BadPlan
from kitchensync.capture.plan import Plan, load_plan
from kitchensync.capture.queue.newest_packets import newest_first
from kitchensync.capture.queue.queue_connection import connect
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.sensors.hololens.headset_stream import DEPTH, FRAMES
from kitchensync.sensors.hololens.video import CODECS
from kitchensync.storage.chunks.chunk_writer import Packet
from kitchensync.storage.chunks.layout import INDEX
from kitchensync.storage.consent import Purpose, require_consent
from kitchensync.storage.errors import StorageError
from kitchensync.storage.names import WORK
from kitchensync.storage.reading.headset_pictures import DepthFrame, is_key
from kitchensync.storage.recording import Recording, StoredStream, open_recording

LOOK_S, UNASKED_S = 0.5, 15.0
WIDTH_PX, QUALITY = 320, 70


def newest_picture(stream: StoredStream) -> tuple[int, bytes] | None:
    """Return arrival (host_ns) and JPEG of the newest picture that may be shown, None where there is none."""
    last = len(stream) - 1
    if last < 0 or stream.hidden[last]:
        return None
    if headset_stream(stream.name.rpartition("/")[2]).kind == DEPTH:
        rgb = next((_false_colours(stream, picture) for picture in stream.depth(last)), None)
    else:
        rgb = next((picture.rgb() for picture in stream.frames(last)), None)
    return None if rgb is None else (int(stream.index["host_ns"][last]), _jpeg(rgb))


def _false_colours(stream: StoredStream, picture: DepthFrame) -> np.ndarray:
    """Near red, far blue, black where it is not known."""
    import cv2

    far_mm = headset_stream(stream.name.rpartition("/")[2]).farthest_mm
    near = 255 - np.clip(picture.depth_mm * (255.0 / far_mm), 0, 255).astype(np.uint8)
    coloured = np.asarray(cv2.applyColorMap(near, cv2.COLORMAP_TURBO)[:, :, ::-1])
    return np.where((picture.depth_mm == 0)[:, :, None], 0, coloured)


def _jpeg(rgb: np.ndarray) -> bytes:
    import cv2

    height = round(rgb.shape[0] * WIDTH_PX / rgb.shape[1])
    small = cv2.resize(
        np.ascontiguousarray(rgb[:, :, ::-1]), (WIDTH_PX, height), interpolation=cv2.INTER_AREA
    )
    return bytes(cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])[1])


class QueuedStream(StoredStream):
    """The newest packets of a stream that are not sealed yet, read like those that are."""

    def __init__(self, sealed: StoredStream, packets: Sequence[Packet]) -> None:
        """Read `packets` in the place of what is sealed of a stream."""
        super().__init__(sealed.name, sealed.folder, sealed.description, sealed.manifest, sealed.hides)
        self._packets = packets

    @cached_property
    def index(self) -> npt.NDArray[np.void]:
        """All packets, (n,) of INDEX; where payloads would lie in a file is not said."""
        rows = [
            (one.seq, one.epoch_ms, one.device_ticks, one.host_ns, 0, len(one.payload), 0, one.connection)
            for one in self._packets
        ]
        return np.array(rows, INDEX)

    def __len__(self) -> int:
        """Count the packets."""
        return len(self._packets)

    def payload(self, row: int) -> bytes:
        """Return one payload."""
        return bytes(self._packets[row].payload)

    def packets(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield (row, payload) of the packets [start, stop)."""
        for row, packet in enumerate(self._packets[start:stop], start):
            yield row, bytes(packet.payload)

    def pose(self, row: int) -> npt.NDArray[np.float32] | None:
        """Return the pose of one packet as sent, (4, 4); None when the stream carries none."""
        pose = np.frombuffer(self._packets[row].pose, np.float32)
        return pose.reshape(4, 4) if pose.size else None


class NewestPictures:
    """Looks at a recording again and again; a stream that has nothing newer gives no picture."""

    def __init__(self, recording: Path) -> None:
        """Look at nothing yet."""
        self._recording = recording
        self._seen: dict[str, int] = {}

    def look(self, wanted: Collection[str]) -> Iterator[tuple[str, int, bytes]]:
        """Yield stream, arrival and JPEG of what is new of the wanted streams. Raises what consent raises."""
        require_consent(self._recording, Purpose.LOOK)
        with open_recording(self._recording) as opened:
            for name in sorted(set(wanted) & set(opened.streams)):
                sensor = opened.sensor(name)
                if sensor is not None and sensor.kind in (FRAMES, DEPTH):
                    picture = self._picture(opened, name)
                    if picture is not None:
                        yield name, *picture

    def _picture(self, opened: Recording, name: str) -> tuple[int, bytes] | None:
        """Return what is new of a stream; where that cannot be read or decoded, nothing."""
        try:
            sealed = opened.newest(name)
            stream = self._queued(sealed) or sealed
            newest_ns = int(stream.index["host_ns"][-1]) if len(stream) else 0
            if newest_ns <= self._seen.get(name, 0):
                return None
            self._seen[name] = newest_ns
            return newest_picture(stream)
        except (StorageError, SensorError, OSError) as error:
            print(f"{name}: no picture now ({error})", file=sys.stderr)
            return None

    def _queued(self, sealed: StoredStream) -> QueuedStream | None:
        """Return the newest packets that wait, from where decoding can begin; None where there are none."""
        if (plan := self._plan) is None:
            return None
        packets: list[Packet] = []
        try:
            for packet in newest_first(self._client, plan.uuid, sealed.name):
                packets.insert(0, packet)
                begin = QueuedStream(sealed, packets)
                if begin.format.get("codec") not in CODECS or is_key(begin, 0):
                    return begin
        except (redis.RedisError, ValueError, TypeError, KeyError, struct.error) as error:
            print(f"{sealed.name}: the queue cannot be looked at ({error})", file=sys.stderr)
        return None

    @cached_property
    def _plan(self) -> Plan | None:
        """Where the queue of the recording is; None for who may not read that."""
        try:
            return load_plan(self._recording.parent / WORK / self._recording.name / "plan.json")
        except (BadPlan, OSError):
            return None

    @cached_property
    def _client(self) -> redis.Redis:
        assert self._plan is not None
        return connect(self._plan.queue_url)


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
        if not wanted:
            return
        for name, host_ns, jpeg in pictures.look(wanted):
            said: dict[str, Any] = {"stream": name, "host_ns": host_ns, "bytes": len(jpeg)}
            sys.stdout.buffer.write(json.dumps(said).encode() + b"\n" + jpeg)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
