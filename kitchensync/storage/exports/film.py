"""Write films: H.264 in MP4 for players and browsers, each picture at its own time.

Pictures are not reordered: the k-th picture of a film is the k-th one that was written, at its given time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.errors import UnreadableMedia
from kitchensync.sensors.gopro.files.clip import Clip
from kitchensync.sensors.gopro.files.film_sound import sound_packets
from kitchensync.sensors.gopro.files.media import GoProMedia, open_container
from kitchensync.sensors.shown_picture import BT709, LIMITED, even_width, shown_frame, shown_size
from kitchensync.shell.array_types import UInt8

if TYPE_CHECKING:
    import av

TIMESCALE = 90_000  # a frame at 30000/1001 Hz is exactly 3003 units
TICKS_PER_S = 10_000_000
FASTSTART = {"movflags": "+faststart"}
"""Put the index first, so that a film plays while it is downloaded."""
Progress = Callable[[int, int], None]


class FilmWriter(AbstractContextManager["FilmWriter"]):
    """Write pictures to an MP4, with one in memory at a time; all have the size of the first one."""

    def __init__(
        self, out: Path, time_base: Fraction = Fraction(1, TIMESCALE), *, key_every: int | None = None,
        crf: int = 23, made_of: str = "",
    ) -> None:  # fmt: skip
        """Open `out`, the temporary file of an output; every `key_every`-th picture is a key picture.

        `made_of` is stored in the film, for `made_of_film`. Raises OSError.
        """
        import av

        self.film = av.open(str(out), "w", format="mp4", options=FASTSTART)
        self.film.metadata["comment"] = made_of
        self._time_base, self._key_every, self._crf = time_base, key_every, crf
        self._stream: Any = None
        self.pictures = 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write buffered pictures and close the file; after an error only close it."""
        try:
            if kind is None and self._stream is not None:
                self.film.mux(self._stream.encode(None))
        finally:
            self.film.close()

    def open(self, width: int, height: int) -> None:
        """Set the size of the pictures before other streams are added."""
        rate = Fraction(30) if self._key_every is None else 1 / self._time_base
        stream: Any = self.film.add_stream("libx264", rate=rate)
        stream.width, stream.height, stream.pix_fmt = width // 2 * 2, height // 2 * 2, "yuv420p"
        context = stream.codec_context
        context.color_range, context.colorspace = LIMITED, BT709
        context.color_primaries = context.color_trc = BT709
        stream.time_base = stream.codec_context.time_base = self._time_base
        stream.options = {"preset": "veryfast", "crf": str(self._crf), "bf": "0"}
        if self._key_every is not None:
            often = str(self._key_every)
            stream.options |= {"g": often, "keyint_min": often, "sc_threshold": "0"}
        self._stream = stream

    def write(self, picture: av.VideoFrame | UInt8, at: int) -> None:
        """Add a picture (`av.VideoFrame`, or RGB uint8), `at` units of the time base after the film's start."""
        import av
        from av.video.frame import PictureType

        frame = av.VideoFrame.from_ndarray(picture, "rgb24") if isinstance(picture, np.ndarray) else picture
        if self._stream is None:
            self.open(*shown_size(frame.width, frame.height, frame.rotation))
        frame = shown_frame(frame, width=self._stream.width, height=self._stream.height)
        frame.pts, frame.time_base = at, self._time_base
        # The encoder chooses key pictures, not the source film.
        frame.pict_type = PictureType.NONE
        self.film.mux(self._stream.encode(frame))
        self.pictures += 1


def units_of_ticks(ticks: int) -> int:
    """Return device ticks (100 ns) as units of 1/90000 s, rounded once."""
    return round(Fraction(ticks * TIMESCALE, TICKS_PER_S))


@dataclass(frozen=True, slots=True)
class SmallFilm:
    """Facts of a written film: pictures, exact rate, size in pixels, and the numbers of undecodable pictures."""

    frames: int
    fps: Fraction
    width: int
    height: int
    missing: tuple[int, ...] = ()


def write_small_film(
    clip: Clip,
    out: Path,
    *,
    height: int,
    hidden: npt.NDArray[np.bool_] | None = None,
    made_of: str = "",
    tell: Progress | None = None,
) -> SmallFilm:
    """Write a clip at a constant rate, with a key picture each second, sound kept.

    Picture k is shown at k / fps and is picture `even_frames[k]` of the clip. Undecodable ones are black and in
    `missing`. Those `hidden` (n,) are black and without sound. `out` is the temporary file of an output with the
    suffix `.mp4`. Raises OSError, UnreadableMedia.
    """
    video = clip.chapters[0].video
    if video is None:
        raise UnreadableMedia(clip.path, "it has no pictures")
    fps, total = clip.rate, len(clip.even_frames)
    across, up = video.shown_size
    wide, height = even_width(across, up, height), height // 2 * 2
    missing: list[int] = []
    with FilmWriter(out, 1 / fps, key_every=max(1, round(fps)), made_of=made_of) as film:
        film.open(wide, height)
        sound = SoundCopy(film.film, clip, _heard(clip, np.zeros(total, bool) if hidden is None else hidden))
        for number, picture in numbered_pictures(clip):
            for gap in range(film.pictures, number):
                film.write(black(wide, height), gap)
                missing.append(gap)
            is_shown = hidden is None or not hidden[number]
            small = shown_frame(picture, width=wide, height=height) if is_shown else None
            film.write(small or black(wide, height), number)
            sound.write_until(number / fps)
            if tell is not None and number % 100 == 0:
                tell(number, total)
        for gap in range(film.pictures, total):
            film.write(black(wide, height), gap)
            missing.append(gap)
        sound.write_until(None)
    if tell is not None:
        tell(total, total)
    return SmallFilm(total, fps, wide, height, tuple(missing))


def made_of_film(path: Path) -> str:
    """Return `made_of` of a film; empty if the film or the value is missing."""
    import av

    try:
        with open_container(path) as film:
            return film.metadata.get("comment", "")
    except (OSError, av.FFmpegError):
        return ""


def black(width: int, height: int) -> av.VideoFrame:
    """Return a black picture."""
    import av

    planes = np.full((height * 3 // 2, width), 128, np.uint8)
    planes[:height] = 16
    picture = av.VideoFrame.from_ndarray(planes, format="yuv420p")
    picture.color_range = LIMITED
    return picture


def numbered_pictures(clip: Clip) -> Iterator[tuple[int, av.VideoFrame]]:
    """Yield (number in a film of constant rate, picture) of all decodable pictures, in order."""
    shown = clip.even_frames
    for first, chapter in zip(clip.first_frames, clip.chapters, strict=True):
        numbers = {int(pts): first + k for k, pts in enumerate(chapter.frame_pts)}
        last = first - 1
        for picture in _pictures(chapter):
            number = numbers.get(-1 if picture.pts is None else picture.pts, -1)
            if number > last:
                begin, end = np.searchsorted(shown, [number, number + 1]).tolist()
                yield from ((place, picture) for place in range(begin, end))
                last = number


def _pictures(chapter: GoProMedia) -> Iterator[av.VideoFrame]:
    """Decode pictures, skipping damaged packets."""
    import av

    with chapter.container() as source:
        stream = source.streams.video[0]
        stream.thread_type = "AUTO"
        for packet in source.demux(stream):
            try:
                yield from stream.decode(packet)
            except av.error.InvalidDataError:
                continue


class SoundCopy:
    """Copy the sound packets of a camera to a film, slightly ahead of the pictures."""

    def __init__(
        self, film: av.container.OutputContainer, clip: Clip, heard: Iterator[tuple[Fraction, av.Packet]]
    ) -> None:
        """Add the stream if the clip has sound; `heard` yields seconds in the film with packets."""
        self._film, self._heard, self._last = film, heard, -(1 << 62)
        with clip.chapters[0].container() as source:
            streams = source.streams.audio
            self._stream: Any = film.add_stream_from_template(streams[0]) if streams else None
        self._next = next(heard, None) if streams else None

    def write_until(self, film_s: Fraction | None) -> None:
        """Copy packets up to a second after a time of the film; None for all."""
        while self._next is not None and (film_s is None or self._next[0] <= film_s + 1):
            at_s, packet = self._next
            at = round(at_s / packet.time_base)
            if at > self._last:  # the sound of chapters may overlap
                packet.pts = packet.dts = self._last = at
                packet.stream = self._stream
                self._film.mux(packet)
            self._next = next(self._heard, None)


def _heard(clip: Clip, hidden: npt.NDArray[np.bool_]) -> Iterator[tuple[Fraction, av.Packet]]:
    """Yield (seconds in the film, packet) of the sound, without that at hidden pictures.

    One packet before the start is included, as decoders need it.
    """
    for start_s, chapter in zip(clip.starts_s, clip.chapters, strict=True):
        for own_s, packet in sound_packets(chapter):
            at_s, lasts_s = start_s + own_s, (packet.duration or 0) * packet.time_base
            first, last = floor(at_s * clip.rate), floor((at_s + lasts_s) * clip.rate)
            if at_s >= -lasts_s and not hidden[max(first, 0) : last + 1].any():
                yield at_s, packet
