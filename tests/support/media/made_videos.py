"""Videos made for tests: pictures in, the file of a camera or the units of a headset's stream out."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from kitchensync.sensors.gopro.mp4.boxes import CONTAINERS, boxes, top_boxes
from kitchensync.sensors.gopro.mp4.sample_tables import box
from kitchensync.virtual_kitchen.world.frame_counter import draw_i420

SOUND_HZ = 48000
CODECS = {
    "h264": ("libx264", "x264-params", "aud=1:repeat-headers=1:"),
    "h265": ("libx265", "x265-params", "bframes=0:repeat-headers=1:"),
}


def numbered_planes(number: int, width: int = 640, height: int = 360) -> np.ndarray:
    """Return I420 planes that are grey but for the number of the virtual kitchen."""
    planes = grey_planes(128, width, height)
    draw_i420(planes, number, height)
    return planes


def grey_planes(luma: int, width: int, height: int) -> np.ndarray:
    """Return I420 planes of one brightness."""
    planes = np.full((height * 3 // 2, width), 128, np.uint8)
    planes[:height] = luma
    return planes


def video_units(
    pictures: Iterable[np.ndarray], codec: str = "h264", *, key_every: int = 10, **options: str
) -> list[bytes]:
    """Encode pictures, I420 planes or RGB, as a headset sends them at 30/s: a unit for each."""
    name, key, quiet = CODECS[codec]
    encoder, units = av.CodecContext.create(name, "w"), list[bytes]()
    encoder.pix_fmt, encoder.time_base, encoder.framerate = "yuv420p", Fraction(1, 30), Fraction(30)
    encoder.options = {
        "preset": "ultrafast",
        "tune": "zerolatency",
        "g": str(key_every),
        key: f"{quiet}keyint={key_every}:min-keyint={key_every}:scenecut=0:log-level=none",
        **options,
    }
    for number, picture in enumerate(pictures):
        frame = _frame(picture)
        if not number:
            encoder.width, encoder.height = frame.width, frame.height
        frame.pts = number
        units += [bytes(packet) for packet in encoder.encode(frame)]
    return units


def write_video(
    path: Path,
    pictures: Iterable[np.ndarray],
    rate: Fraction | int,
    sound: np.ndarray | None = None,
    **options: str,
) -> None:
    """Write pictures, I420 planes or RGB, as a file of a camera, with a sound of -1 to 1 at `SOUND_HZ`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as film:
        video = film.add_stream("libx264", rate=rate, options={"preset": "ultrafast", **options})
        heard = None if sound is None else film.add_stream("aac", rate=SOUND_HZ, layout="mono")
        for number, picture in enumerate(pictures):
            frame = _frame(picture)
            if not number:
                video.width, video.height, video.pix_fmt = frame.width, frame.height, "yuv420p"
            frame.pts, frame.time_base = number, 1 / Fraction(rate)
            film.mux(video.encode(frame))
        film.mux(video.encode(None))
        if heard is not None:
            for first in range(0, len(sound) - 1023, 1024):
                block = sound[None, first : first + 1024].astype(np.float32)
                part = av.AudioFrame.from_ndarray(block, format="fltp", layout="mono")
                part.rate, part.pts, part.time_base = SOUND_HZ, first, Fraction(1, SOUND_HZ)
                film.mux(heard.encode(part))
            film.mux(heard.encode(None))


def _frame(picture: np.ndarray) -> av.VideoFrame:
    form = "rgb24" if picture.ndim == 3 else "yuv420p"
    return av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format=form)


def promise_samples(film: Path, samples: int) -> None:
    """Let the index of an MP4 promise so many samples of a byte each, in one chunk."""
    lies = {
        "stsz": struct.pack(">III", 0, 1, samples),
        "stts": struct.pack(">IIII", 0, 1, samples, 512),
        "stsc": struct.pack(">IIIII", 0, 1, 1, samples, 1),
        "stco": struct.pack(">III", 0, 1, 48),
    }
    with film.open("rb") as file:
        tops = list(top_boxes(file, film.stat().st_size))
    content, made = film.read_bytes(), b""
    for top in sorted(tops, key=lambda one: one.kind == "moov"):
        data = content[top.start : top.end]
        made += box(top.kind, _with_tables(memoryview(data), lies) if top.kind == "moov" else data)
    film.write_bytes(made)


def _with_tables(data: memoryview, tables: dict[str, bytes]) -> bytes:
    return b"".join(
        box(
            one.kind,
            _with_tables(one.data, tables) if one.kind in CONTAINERS else tables.get(one.kind, one.data),
        )
        for one in boxes(data)
        if one.kind not in {"ctts", "stss", "sdtp", "sgpd", "sbgp"}
    )
