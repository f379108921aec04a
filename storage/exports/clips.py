"""Films that stop early: the beginning of a film as a file of its own, and one picture a second up to its last."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import cv2

from sensors.errors import UnreadableMedia
from storage.exports.film import FASTSTART

_QUALITY = [cv2.IMWRITE_JPEG_QUALITY, 95]


def can_be_cut(film: Path) -> bool:
    """Tell whether the pictures of a film stand in the order in which they are shown. Raises UnreadableMedia."""
    last = -1
    for packet in _video_packets(film):
        if packet.pts is None or packet.pts <= last:
            return False
        last = packet.pts
    return last >= 0


def write_beginning(film: Path, out: Path, pictures: int) -> None:
    """Write the first pictures of a film, and the sound to the end of the last one, as they are.

    The film is one that `can_be_cut`; `out` ends in `.mp4`: give the part of an output. Raises OSError,
    UnreadableMedia.
    """
    import av

    try:
        with av.open(str(film)) as source, av.open(str(out), "w", format="mp4", options=FASTSTART) as clip:
            video = source.streams.video[0]
            to = {stream.index: clip.add_stream_from_template(stream) for stream in _kept(source)}
            until_s, left = _end_s(film, pictures), pictures
            for packet in source.demux(list(_kept(source))):
                if packet.pts is None or packet.time_base is None:
                    continue
                if packet.stream_index == video.index:
                    if not left:
                        continue
                    left -= 1
                elif packet.pts * packet.time_base >= until_s:
                    continue
                packet.stream = to[packet.stream_index]
                clip.mux(packet)
    except av.FFmpegError as error:
        raise UnreadableMedia(film, str(error)) from error


def count_pictures(film: Path) -> int:
    """Count the pictures of a film, undecoded. Raises UnreadableMedia."""
    return sum(1 for _ in _video_packets(film))


def pictures_each_second(film: Path, fps: Fraction, pictures: int) -> Iterator[tuple[int, bytes]]:
    """Yield (number, JPEG) of one picture a second among the first `pictures`, the last one of them too.

    Raises UnreadableMedia.
    """
    import av

    wanted = {pictures - 1 - round(second * fps) for second in range(int((pictures - 1) / fps) + 1)}
    try:
        with av.open(str(film)) as source:
            for number, picture in enumerate(islice(source.decode(video=0), pictures)):
                if number in wanted:
                    image = picture.to_ndarray(format="bgr24")
                    yield number, cv2.imencode(".jpg", image, _QUALITY)[1].tobytes()
    except av.FFmpegError as error:
        raise UnreadableMedia(film, str(error)) from error


def _kept(source: Any) -> Iterator[Any]:
    yield source.streams.video[0]
    yield from source.streams.audio[:1]


def _video_packets(film: Path) -> Iterator[Any]:
    import av

    try:
        with av.open(str(film)) as source:
            yield from (packet for packet in source.demux(video=0) if packet.size)
    except (av.FFmpegError, IndexError) as error:
        raise UnreadableMedia(film, str(error)) from error


def _end_s(film: Path, pictures: int) -> Fraction:
    """Return when the first picture that is left out would be shown; the film's end where none is."""
    for number, packet in enumerate(_video_packets(film)):
        if number == pictures:
            return Fraction(packet.pts * packet.time_base)
    return Fraction(10**9)
