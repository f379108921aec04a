"""The sound of a camera's files; each block is timed by its timestamp and the edit list.

Media time is seconds from the first frame of the file. Sound may begin late and have gaps, so times cannot be
computed from the lengths of blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.gopro.files.media import GoProMedia

if TYPE_CHECKING:
    import av

AAC_SAMPLES = 1024
"""Samples of one AAC frame, and the smallest delay of an encoder in samples."""


class SoundBlock(NamedTuple):
    """One decoded block of sound."""

    t_s: float
    "Media seconds of its first sample."
    samples: npt.NDArray[np.float32]
    "(channels, n) within +-1."
    rate_hz: int


def sound_packets(media: GoProMedia) -> Iterator[tuple[Fraction, av.Packet[Any]]]:
    """Yield (media seconds, undecoded packet) of a file's sound. Raises UnreadableMedia."""
    zero_s = _first_picture_s(media)
    with media.container() as container:
        for packet in container.demux(container.streams.audio[0]) if container.streams.audio else ():
            if packet.pts is not None and packet.size:
                yield packet.pts * packet.time_base - zero_s, packet


def sound_blocks(media: GoProMedia, start_s: Fraction = Fraction(0)) -> Iterator[SoundBlock]:
    """Decode a file's sound, one block in memory; `start_s` is added to the times. Raises UnreadableMedia."""
    import av

    at_s, zero_s = Fraction(0), _first_picture_s(media)
    with media.container() as container:
        to_float = av.AudioResampler(format="fltp")
        for frame in container.decode(audio=0) if container.streams.audio else ():
            if frame.pts is not None and frame.time_base is not None:
                at_s = frame.pts * frame.time_base - zero_s
            for block in to_float.resample(frame):
                yield SoundBlock(
                    float(start_s + at_s), np.asarray(block.to_ndarray(), np.float32), block.sample_rate
                )
                at_s += Fraction(block.samples, block.sample_rate)


def sound_bound_s(media: GoProMedia) -> float:
    """Return the largest offset between sound and frames, seconds.

    An edit list rounds a late start to the movie's time scale. Without an edit that skips the start of AAC the delay
    of the encoder, at least one frame, is unknown.
    """
    sound = media.audio
    if sound is None:
        return 0.0
    edits = [edit for track in media.edited_tracks for edit in track.edits]
    trims = [edit for track in media.edited_tracks if track.format == "mp4a" for edit in track.edits]
    rounded_s = 0.5 / media.movie_timescale if any(edit.media_time < 0 for edit in edits) else 0.0
    has_known_delay = sound.codec != "aac" or any(edit.media_time > 0 for edit in trims)
    return rounded_s + (1 if has_known_delay else AAC_SAMPLES) / sound.rate_hz


def _first_picture_s(media: GoProMedia) -> Fraction:
    return int(media.frame_pts[0]) * media.time_base if len(media.frame_pts) else Fraction(0)
