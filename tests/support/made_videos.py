"""Videos made for tests: pictures in, the file of a camera or the units of a headset's stream out."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

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
