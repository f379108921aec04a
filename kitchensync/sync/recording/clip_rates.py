"""The rotation rates of a clip, placed on its pictures, with the clues in its files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.card_names import card_name
from kitchensync.sensors.gopro.files.clip import Clip
from kitchensync.sensors.gopro.files.clue import Clue
from kitchensync.sensors.gopro.files.pace import pace_of
from kitchensync.sensors.gopro.files.telemetry import ImuTrack
from kitchensync.sensors.mask_runs import marked_runs
from kitchensync.storage.errors import pass_on_trouble
from kitchensync.storage.verify.suitable_uses import spans_in_words
from kitchensync.sync.errors import one_line
from kitchensync.sync.recording.picture_shift import place_on_pictures

MOST_SPANS = 3  # maximum number of listed spans with a constant value
STILL_S = 1.0  # shortest span that counts as still, seconds


@dataclass(frozen=True, slots=True)
class ClipRates:
    """One track over all chapters on clip time; None with the reason in `problem`."""

    starts_s: list[float]  # clip time of each chapter's first picture
    loose: list[bool]  # whether a chapter of unknown start is placed right after the one before
    track: ImuTrack | None = None
    problem: str = ""
    late_s: tuple[float, ...] = ()
    "Delay of each chapter's own telemetry to its pictures."
    clues: tuple[Clue, ...] = ()
    doubts: tuple[str, ...] = ()  # contradictory clues that the pictures do not decide
    noted: tuple[str, ...] = ()  # notes for the certificate
    is_wrong_pace: bool = False
    "Whether it is not in real time (see `problem`), so that it cannot be aligned."

    @property
    def report(self) -> dict[str, object]:
        """The facts of the track for the alignment file."""
        if (track := self.track) is None:
            return {}
        return {"rate_hz": round(track.rate_hz, 4), "samples": len(track.t_s), "stamp": track.method}


def clip_rates(clip: Clip) -> ClipRates:
    """Read the gyroscope of a clip; pictures are only decoded if its clues contradict each other."""
    starts_s, loose = _chapter_starts(clip)
    pace = next((pace for pace in map(pace_of, clip.chapters) if pace is not None), None)
    if pace is not None and pace.is_wrong:
        return ClipRates(starts_s, loose, problem=f"{clip.path.name}: {pace.message}", is_wrong_pace=True)
    track, problem, still = _rates(clip, starts_s, is_loose=any(loose))
    if track is None:
        noted = () if pace is None else (f"{clip.path.name}: {pace.message}",)
        return ClipRates(starts_s, loose, problem=problem, noted=noted)
    placed = place_on_pictures(clip, track)
    settled = placed.contradictions if placed.is_settled else ()
    if still:
        words = spans_in_words(still, MOST_SPANS)
        settled = (f"the camera's gyroscope repeats one value {words}: left out", *settled)
    return ClipRates(
        starts_s,
        loose,
        placed.track,
        late_s=tuple(placed.late_s + late for late in clip.telemetry_late_s),
        clues=placed.clues,
        doubts=() if placed.is_settled else placed.contradictions,
        noted=settled,
    )


def _chapter_starts(clip: Clip) -> tuple[list[float], list[bool]]:
    """Return the clip time of each chapter, and whether it is only assumed to follow the one before."""
    try:
        stamped = clip.telemetry_starts_s
    except SensorError as error:
        pass_on_trouble(error)
        stamped = None
    if stamped is not None:
        return stamped, [False] * len(stamped)
    names = [card_name(media.path.name) for media in clip.chapters]
    loose = [a is None or b is None or b.chapter != a.chapter + 1 for a, b in pairwise(names)]
    return [float(start) for start in clip.starts_s], [False, *loose]


def _rates(
    clip: Clip, starts_s: list[float], *, is_loose: bool
) -> tuple[ImuTrack | None, str, list[tuple[float, float]]]:
    """Return one track over all chapters, or the problem; and the omitted spans with a constant value."""
    name = clip.path.name
    try:
        if not clip.payloads:
            return None, f"{name}: no telemetry", []
        is_continuous = not is_loose and (clip.telemetry_starts_s is not None or not clip.has_stamps)
        if is_continuous:
            track = clip.gyroscope()
        else:  # without continuous stamps each chapter's track is placed at its pictures
            tracks = [chapter.gyroscope() for chapter in clip.chapters]
            times = np.concatenate([part.t_s + at for part, at in zip(tracks, starts_s, strict=True)])
            longest = max(tracks, key=lambda track: len(track.t_s))
            track = replace(longest, t_s=times, xyz=np.concatenate([part.xyz for part in tracks]))
    except SensorError as error:
        pass_on_trouble(error)
        return None, one_line(error, clip.path), []
    still = still_spans(track.t_s, track.xyz)
    moves = ~np.any([(track.t_s >= first) & (track.t_s <= last) for first, last in still], axis=0)
    if still and moves.sum() < 2:
        return None, f"{name}: the gyroscope repeats one value {spans_in_words(still, MOST_SPANS)}", still
    if len(track.t_s) < 2:
        return None, f"{name}: fewer than two gyroscope samples", still
    return (replace(track, t_s=track.t_s[moves], xyz=track.xyz[moves]) if still else track), "", still


def still_spans(
    t_s: npt.NDArray[np.floating], values: npt.NDArray[np.generic], least_s: float = STILL_S
) -> list[tuple[float, float]]:
    """Return (first, last) seconds of each run of bit-identical rows that lasts at least `least_s`.

    `t_s` (n,) in increasing order, `values` (n, fields). A gap in the times does not end a run.
    """
    if len(values) < 2:
        return []
    same = np.all(values[1:] == values[:-1], axis=1)
    runs = [(float(t_s[first]), float(t_s[last])) for first, last in marked_runs(same)]
    return [(first, last) for first, last in runs if last - first >= least_s]
