"""Small films of a camera's take for players and annotation: constant rate, a key frame each second, sound kept.

Picture k of the small film is picture k of the take, so that a number means the same in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensors.gopro.take import Take

if TYPE_CHECKING:
    import av

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class SmallFilm:
    """What was written: pictures, exact rate, size in pixels."""

    frames: int
    fps: Fraction
    width: int
    height: int


def write_small_film(take: Take, out: Path, *, height: int, tell: Progress | None = None) -> SmallFilm:
    """Write all pictures of a take, `height` pixels high, as H.264 in MP4; return what it holds.

    `out` ends in `.mp4` and is written as it is: give the part of an output. Raises OSError, UnreadableMedia.
    """
    import av

    video = take.chapters[0].video
    assert video is not None
    fps, wide = Fraction(video.rate), 2 * round(video.width * height / video.height / 2)
    total = len(take.frame_times_s)
    with av.open(str(out), "w", format="mp4", options={"movflags": "+faststart"}) as film:
        stream = _video_stream(film, fps, wide, height)
        sound = _SoundCopy(film, take)
        number = -1
        for number, picture in enumerate(_pictures(take)):
            small = picture.reformat(width=wide, height=height, format="yuv420p")
            small.pts, small.time_base = number, 1 / fps
            film.mux(stream.encode(small))
            if tell is not None and number % 100 == 0:
                tell(number, total)
        film.mux(stream.encode(None))
        sound.write()
    if tell is not None:
        tell(total, total)
    return SmallFilm(number + 1, fps, wide, height)


def _video_stream(film: av.container.OutputContainer, fps: Fraction, width: int, height: int) -> Any:
    stream = film.add_stream("libx264", rate=fps)
    stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
    stream.codec_context.time_base = stream.time_base = 1 / fps
    second = str(max(1, round(fps)))
    stream.options = {
        "preset": "veryfast",
        "crf": "23",
        "g": second,
        "keyint_min": second,
        "sc_threshold": "0",
    }
    return stream


def _pictures(take: Take) -> Iterator[av.VideoFrame]:
    for chapter in take.chapters:
        with chapter.container() as source:
            source.streams.video[0].thread_type = "AUTO"
            yield from source.decode(video=0)


class _SoundCopy:
    """The sound of all chapters, packet by packet as the camera wrote it."""

    def __init__(self, film: av.container.OutputContainer, take: Take) -> None:
        self._film, self._take = film, take
        with take.chapters[0].container() as source:
            found = source.streams.audio
            self._stream = film.add_stream_from_template(found[0]) if found else None

    def write(self) -> None:
        """Copy it, each chapter at its start."""
        if self._stream is None:
            return
        for start_s, chapter in zip(self._take.starts_s, self._take.chapters, strict=True):
            with chapter.container() as source:
                for packet in source.demux(source.streams.audio[0]):
                    if packet.dts is None or packet.pts is None:
                        continue
                    later = int(start_s / packet.time_base)
                    packet.pts, packet.dts = packet.pts + later, packet.dts + later
                    packet.stream = self._stream
                    self._film.mux(packet)
