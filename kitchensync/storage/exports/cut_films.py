"""Shortened films: the beginning of a film as its own file, and one picture per second up to its last."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import cv2

from kitchensync.sensors.errors import UnreadableMedia
from kitchensync.sensors.gopro.files.media import open_container
from kitchensync.sensors.shown_picture import shown_array
from kitchensync.storage.exports.film import FASTSTART

_QUALITY = [cv2.IMWRITE_JPEG_QUALITY, 95]


def times_shown(film: Path) -> list[Fraction] | None:
    """Return the time of each picture, s; None if pictures are reordered. Raises UnreadableMedia."""
    times: list[Fraction] = []
    for packet in _video_packets(film):
        if packet.pts is None or (times and packet.pts * packet.time_base <= times[-1]):
            return None
        times.append(packet.pts * packet.time_base)
    return times or None


def write_beginning(film: Path, out: Path, times: Sequence[Fraction], pictures: int) -> None:
    """Copy the first pictures of a film, and the sound until the end of the last one, unchanged.

    `times` are those of `times_shown`; `out` is the temporary file of an output with the suffix `.mp4`. Raises
    OSError, UnreadableMedia.
    """
    import av

    try:
        with open_container(film) as source, av.open(str(out), "w", format="mp4", options=FASTSTART) as clip:
            to = {stream.index: clip.add_stream_from_template(stream) for stream in _kept(source)}
            unfinished = set(to)
            for packet in source.demux(list(_kept(source))):
                if packet.pts is None or packet.time_base is None or packet.stream_index not in unfinished:
                    continue
                if pictures < len(times) and packet.pts * packet.time_base >= times[pictures]:
                    unfinished.remove(packet.stream_index)
                    if not unfinished:
                        break
                    continue
                packet.stream = to[packet.stream_index]
                clip.mux(packet)
    except av.FFmpegError as error:
        raise UnreadableMedia(film, str(error)) from error


def count_pictures(film: Path) -> int:
    """Count the pictures of a film, undecoded. Raises UnreadableMedia."""
    return sum(1 for _ in _video_packets(film))


def each_second(fps: Fraction, pictures: int) -> list[int]:
    """Return the numbers of one picture per second among the first `pictures`, including the last one."""
    return [pictures - 1 - round(second * fps) for second in reversed(range(int((pictures - 1) / fps) + 1))]


def numbered_jpegs(film: Path, wanted: Collection[int]) -> Iterator[tuple[int, bytes]]:
    """Yield (number, JPEG) of the selected pictures of a film. Raises UnreadableMedia."""
    import av

    try:
        with open_container(film) as source:
            source.streams.video[0].thread_type = "AUTO"
            for number, picture in enumerate(islice(source.decode(video=0), max(wanted, default=-1) + 1)):
                if number in wanted:
                    image = shown_array(picture, format="bgr24")
                    yield number, cv2.imencode(".jpg", image, _QUALITY)[1].tobytes()
    except av.FFmpegError as error:
        raise UnreadableMedia(film, str(error)) from error


def _kept(source: Any) -> Iterator[Any]:
    yield source.streams.video[0]
    yield from source.streams.audio[:1]


def _video_packets(film: Path) -> Iterator[Any]:
    import av

    try:
        with open_container(film) as source:
            yield from (packet for packet in source.demux(video=0) if packet.size)
    except (av.FFmpegError, IndexError) as error:
        raise UnreadableMedia(film, str(error)) from error
