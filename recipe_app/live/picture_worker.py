"""The newest pictures of a recording that is being made, small, in colours: a process of its own, which may drop any.

python -P -m kitchensync.recipe_app.live.picture_worker RECORDING

It reads sealed files alone, so no recorder waits for it. Each picture goes to stdout as one line of JSON (`stream`,
`host_ns`, `bytes`) and a JPEG. It ends when its stdin is closed, or nobody has written there for a while.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.sensors.hololens.headset_stream import DEPTH, FRAMES
from kitchensync.storage.consent import Purpose, require_consent
from kitchensync.storage.errors import StorageError
from kitchensync.storage.reading.headset_pictures import DepthFrame
from kitchensync.storage.recording import StoredStream, open_recording

LOOK_S, UNASKED_S = 1.0, 15.0
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


class NewestPictures:
    """Looks at a recording again and again; a stream whose newest file is the same has nothing new."""

    def __init__(self, recording: Path) -> None:
        """Look at nothing yet."""
        self._recording = recording
        self._seen: dict[str, int] = {}

    def look(self) -> Iterator[tuple[str, int, bytes]]:
        """Yield stream, arrival and JPEG of what is new. Raises NotARecording, Withdrawn, NotPermitted."""
        require_consent(self._recording, Purpose.LOOK)
        with open_recording(self._recording) as opened:
            for name in opened.streams:
                sensor = opened.sensor(name)
                if sensor is not None and sensor.kind in (FRAMES, DEPTH):
                    picture = self._picture(opened.newest(name))
                    if picture is not None:
                        yield name, *picture

    def _picture(self, stream: StoredStream) -> tuple[int, bytes] | None:
        """Return what is new of a stream; where that cannot be read or decoded, nothing."""
        try:
            newest_ns = int(stream.index["host_ns"][-1]) if len(stream) else 0
            if newest_ns == self._seen.get(stream.name, 0):
                return None
            self._seen[stream.name] = newest_ns
            return newest_picture(stream)
        except (StorageError, SensorError, OSError) as error:
            print(f"{stream.name}: no picture now ({error})", file=sys.stderr)
            return None


def main(recording: Path) -> None:
    """Send new pictures while somebody asks for them."""
    os.nice(19)
    pictures, asked_s = NewestPictures(recording), time.monotonic()
    while time.monotonic() - asked_s < UNASKED_S:
        for name, host_ns, jpeg in pictures.look():
            said: dict[str, Any] = {"stream": name, "host_ns": host_ns, "bytes": len(jpeg)}
            sys.stdout.buffer.write(json.dumps(said).encode() + b"\n" + jpeg)
            sys.stdout.buffer.flush()
        if select.select([0], [], [], LOOK_S)[0]:
            if not os.read(0, 4096):
                return
            asked_s = time.monotonic()
            time.sleep(LOOK_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
