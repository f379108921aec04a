"""Find the delay of a clip's telemetry to its pictures by image rotation and gyroscope.

It is used if stamps, counts and edit lists of a film contradict each other (`clip_clues`). One sample of the
telemetry belongs to one picture, so the result is a whole number of pictures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.clip import Clip
from kitchensync.sensors.gopro.files.clip_clues import clip_clues, picture_surplus
from kitchensync.sensors.gopro.files.clue import Clue, disagreements
from kitchensync.sensors.gopro.files.telemetry import ImuTrack
from kitchensync.shell.array_types import Floats
from kitchensync.storage.errors import pass_on_trouble
from kitchensync.sync.errors import BadArrays, one_line
from kitchensync.sync.fit.resample import GyroTrack, make_track
from kitchensync.sync.latency.image_latency import gopro_to_image, measure_latency, wide_search
from kitchensync.sync.latency.image_rotation import LENSES, Tracks, image_turns, track
from kitchensync.sync.recording.camera_latency import grey_pictures

PICTURES = "pictures"
IN_PIECES = ("stamps", "edit lists")
"""Clues that, if contradictory, move a part of the film, which a single shift of the whole cannot correct."""
WINDOW_S = 40.0  # length of the used pictures at the beginning and at the end
SEARCH_S, STEP_S = 5.0, 0.02
RIVAL_SHARE_MOST = 0.9
LATENCY_MOST_S = 0.015
"Maximum latency of pictures to the gyroscope of any camera: the systematic part of every certificate."


@dataclass(frozen=True, slots=True)
class PictureShift:
    """Number of pictures by which the telemetry is late; None if undecided, with the reason."""

    pictures: int | None
    says: str


@dataclass(frozen=True, slots=True)
class Placed:
    """Rotation rates placed by the clues, or by the pictures."""

    track: ImuTrack
    clues: tuple[Clue, ...]  # clues of the files, and of the pictures if they were used
    late_s: float = 0.0
    "Delay of the telemetry by the pictures; already subtracted in `track`."
    is_settled: bool = True  # whether the clues agree, or the pictures decided

    @property
    def contradictions(self) -> tuple[str, ...]:
        """The contradictions of clues, and the result of the pictures."""
        against = tuple(disagreements(self.clues))
        return (*against, *(clue.says for clue in self.clues if clue.name == PICTURES and clue.agrees))


def place_on_pictures(clip: Clip, track: ImuTrack) -> Placed:
    """Place rates by the pictures if stamps, counts and edit lists contradict each other; else without decoding."""
    clues = clip_clues(clip)
    if not disagreements(clues):
        return Placed(track, tuple(clues))
    if any(clue.name in IN_PIECES and clue.agrees is False for clue in clues):
        return Placed(track, tuple(clues), is_settled=False)
    try:
        shift = picture_shift(clip, track, picture_surplus(clip))
    except (SensorError, BadArrays) as error:
        pass_on_trouble(error)
        shift = PictureShift(None, one_line(error, clip.path))
    if shift.pictures is None:
        clues.append(Clue(PICTURES, f"the pictures do not settle it: {shift.says}", False))
        return Placed(track, tuple(clues), is_settled=False)
    clues.append(Clue(PICTURES, f"settled by its pictures: {shift.says}", True))
    late_s = float(shift.pictures / clip.rate)
    return Placed(replace(track, t_s=track.t_s - late_s), tuple(clues), late_s)


def picture_shift(clip: Clip, gyro: ImuTrack, surplus: int) -> PictureShift:
    """Find the number of pictures by which the rotation rates of a clip are late. Raises UnreadableMedia.

    `gyro` is on clip time; `surplus` is the number of pictures by which telemetry is longer than the film
    (`picture_surplus`), one of two search centres. The beginning and the end of the clip must agree.
    """
    if clip.chapters[0].mode.is_stabilised:
        return PictureShift(None, "the pictures are stabilised and do not show how the camera moved")
    rates = make_track(clip.path.name, gyro.t_s, gopro_to_image(gyro.xyz))
    near_s = np.arange(-SEARCH_S, SEARCH_S + STEP_S / 2, STEP_S)
    lags_s = np.unique(np.round(np.concatenate([near_s, near_s + float(surplus / clip.rate)]), 3))
    end_s = float(clip.duration_s)
    spans = [(0.0, WINDOW_S), (end_s - WINDOW_S, end_s)] if end_s > 1.5 * WINDOW_S else [(0.0, end_s)]
    shifts = [_in_span(clip, rates, span, lags_s) for span in spans]
    if undecided := next((shift for shift in shifts if shift.pictures is None), None):
        return undecided
    if len({shift.pictures for shift in shifts}) > 1:
        numbers = " and ".join(f"{shift.pictures:+d}" for shift in shifts)
        return PictureShift(
            None, f"the beginning and the end of the film need different shifts ({numbers} pictures)"
        )
    return shifts[0]


def _in_span(clip: Clip, rates: GyroTrack, span: tuple[float, float], lags_s: Floats) -> PictureShift:
    tracks: list[Tracks] = []
    for start, chapter in zip(map(float, clip.starts_s), clip.chapters, strict=True):
        first_s, last_s = span[0] - start, span[1] - start
        if last_s > 0 and first_s < float(chapter.duration_s):
            pictures = grey_pictures(chapter, first_s, last_s)
            tracks += track((start + t_s, grey) for t_s, grey in pictures)
    if len(tracks) < 2:
        return PictureShift(None, "too few pictures to compare with the gyroscope")
    turns = [image_turns(tracks, lens) for lens in LENSES]
    best, best_turns = max(
        ((wide_search(turn, rates, lags_s), turn) for turn in turns), key=lambda pair: pair[0].r2
    )
    if best.rival > RIVAL_SHARE_MOST:
        return PictureShift(None, "the pictures fit the gyroscope at more than one place")
    exact = measure_latency(best_turns, GyroTrack(rates.t_s - best.lag_s, rates.rad_per_s))
    if exact.refusals:
        return PictureShift(None, exact.refusals[0])
    return _whole_pictures(exact.latency_s + best.lag_s, float(1 / clip.rate))


def _whole_pictures(lag_s: float, period_s: float) -> PictureShift:
    """Return the number of pictures that explains a lag, preferably 0."""
    if abs(lag_s) <= LATENCY_MOST_S:
        return PictureShift(0, "the pictures follow the gyroscope as it lies")
    below = int(lag_s // period_s)
    near = [n for n in range(below - 1, below + 3) if abs(lag_s - n * period_s) <= LATENCY_MOST_S]
    if len(near) != 1:
        fits = " and ".join(f"{number:+d}" for number in near) or "no whole number of"
        return PictureShift(None, f"a lag of {lag_s * 1e3:+.0f} ms fits {fits} pictures")
    return PictureShift(
        near[0], f"the pictures follow the gyroscope {near[0]:+d} pictures from where it lies"
    )
