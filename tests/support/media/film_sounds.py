"""Films with a tone and a flash at every full second, stored as other programs do; independent readers of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from made_videos import SOUND_HZ

TICKS_PER_S = 90_000
SECONDS = 12
SLOW_S = (4, 8)
"""Between these seconds the camera takes half as many pictures, as a phone does in the dark."""
LATE_S = Fraction(1, 2)
HOLE_S = (4.2, 4.7)
HEARD, SEEN = 0.1, 200
"""A sample above, and a brightness above, are of a tone and of a flash."""


def picture_stamps() -> list[int]:
    """Stamps of all pictures in 1/90000 s: 30 a second, 15 in the slow part."""
    stamps, at = [], 0
    while at < SECONDS * TICKS_PER_S:
        stamps.append(at)
        at += 6000 if SLOW_S[0] <= at / TICKS_PER_S < SLOW_S[1] else 3000
    return stamps


def write_uneven(path: Path) -> Path:
    """Write the film of `picture_stamps`; a tone of 50 ms begins, and one picture is bright, at each full second."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as film:
        video = film.add_stream("libx264", rate=30, options={"bf": "0", "g": "30", "preset": "ultrafast"})
        video.width, video.height, video.pix_fmt = 320, 180, "yuv420p"
        video.time_base = video.codec_context.time_base = Fraction(1, TICKS_PER_S)
        sound = film.add_stream("aac", rate=SOUND_HZ, layout="mono")
        for number, at in enumerate(picture_stamps()):
            frame = av.VideoFrame.from_ndarray(_picture(number, at), "rgb24")
            frame.pts, frame.time_base = at, Fraction(1, TICKS_PER_S)
            film.mux(video.encode(frame))
        film.mux(video.encode(None))
        for block in _tones():
            film.mux(sound.encode(block))
        film.mux(sound.encode(None))
    return path


def _picture(number: int, at: int) -> np.ndarray:
    image = np.full((180, 320, 3), 40, np.uint8)
    for bit in range(12):
        if number >> bit & 1:
            image[20:60, 10 + bit * 25 : 30 + bit * 25] = 230
    if number and at % TICKS_PER_S == 0:
        image[100:170] = 255
    return image


def number_of(image: np.ndarray) -> int:
    """Return the number that `write_uneven` drew into a picture (180 lines)."""
    return sum(1 << bit for bit in range(12) if image[30:50, 15 + bit * 25 : 25 + bit * 25].mean() > 135)


def _tones() -> Iterator[av.AudioFrame]:
    at_s = np.arange(SECONDS * SOUND_HZ) / SOUND_HZ
    wave = 0.8 * np.sin(2 * np.pi * 1000 * at_s).astype(np.float32)
    wave[(at_s % 1 >= 0.05) | (at_s < 1)] = 0
    for first in range(0, len(wave), 1024):
        block = av.AudioFrame.from_ndarray(wave[None, first : first + 1024].copy(), "fltp", "mono")
        block.sample_rate, block.pts, block.time_base = SOUND_HZ, first, Fraction(1, SOUND_HZ)
        yield block


def stored_again(
    film: Path, out: Path, *, late_s: Fraction = Fraction(0), hole_s: tuple[float, float] | None = None
) -> Path:
    """Copy a film packet by packet: its sound later (earlier where negative), or without what is in a hole."""
    packets: list[tuple[float, Any]] = []
    with av.open(str(film)) as source, av.open(str(out), "w") as copy:
        to = [copy.add_stream_from_template(one) for one in source.streams]
        for packet in source.demux():
            if not packet.size:
                continue
            if packet.stream.type == "audio":
                if hole_s is not None and hole_s[0] <= packet.pts * packet.time_base < hole_s[1]:
                    continue
                later = int(late_s / packet.time_base)
                packet.pts, packet.dts = packet.pts + later, packet.dts + later
            packets.append((float(packet.dts * packet.time_base), packet))
        for _, packet in sorted(packets, key=lambda one: one[0]):
            packet.stream = to[packet.stream.index]
            copy.mux(packet)
    return out


def onsets(blocks: Iterable[tuple[float, np.ndarray, int]]) -> np.ndarray:
    """Return when tones begin, seconds, of blocks of sound (time of the first sample, samples (n,), rate)."""
    found: list[float] = []
    for at_s, samples, rate_hz in blocks:
        loud = np.flatnonzero(np.abs(samples) > HEARD)
        if len(loud) and (not found or at_s + loud[0] / rate_hz > found[-1] + 0.5):
            found.append(at_s + loud[0] / rate_hz)
    return np.array(found)


def tones_of_file(path: Path) -> np.ndarray:
    """Return when tones begin as libav plays a file, seconds."""
    with av.open(str(path)) as film:
        frames = film.decode(audio=0)
        return onsets((float(f.pts * f.time_base), f.to_ndarray()[0], f.sample_rate) for f in frames)


def end_of_sound(path: Path) -> float:
    """Return when the sound ends as libav plays a file, seconds."""
    with av.open(str(path)) as film:
        return max(float(f.pts * f.time_base) + f.samples / f.sample_rate for f in film.decode(audio=0))


def pictures_of_file(path: Path) -> list[tuple[float, np.ndarray]]:
    """Return time and pixels, 180 lines, of each picture of a file."""
    with av.open(str(path)) as film:
        return [
            (float(f.pts * f.time_base), f.reformat(320, 180, "rgb24").to_ndarray())
            for f in film.decode(video=0)
        ]


def flashes(pictures: Iterable[tuple[float, np.ndarray]]) -> np.ndarray:
    """Return when bright pictures begin to be shown, seconds."""
    found: list[float] = []
    for at_s, image in pictures:
        if image[110:160].mean() > SEEN and (not found or at_s > found[-1] + 0.5):
            found.append(at_s)
    return np.array(found)
