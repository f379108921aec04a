"""Clues in a clip's files to the position of its telemetry relative to its frames, and whether they agree.

A camera writes one SHUT (and CORI) sample per frame, and starts frames and telemetry together. A tool that cuts a
video without encoding keeps whole payloads and whole groups of frames, so that they no longer start together. A
chapter's last payload may be in the file of the next chapter. The clues come from tables and timestamps; nothing is
decoded.
"""

from __future__ import annotations

import numpy as np

from kitchensync.sensors.gopro.files.card_names import card_name
from kitchensync.sensors.gopro.files.clip import Clip
from kitchensync.sensors.gopro.files.clue import Clue
from kitchensync.sensors.gopro.files.media import GoProMedia
from kitchensync.sensors.gopro.files.telemetry import Parts, first_numbers, picture_parts

COUNT_DIFFERS = 1  # the last payload of a real camera has one sample more than there are frames
JUMP_PICTURES = 0.5
"""Deviation of timestamps that counts as a jump, in frame periods."""


def clip_clues(clip: Clip) -> list[Clue]:
    """Return the clues of a clip. Raises UnreadableMedia."""
    stamped = [picture_parts(chapter.stream_parts) for chapter in clip.chapters]
    if not any(stamped):
        why = "the camera writes no timestamps" if clip.payloads else "no telemetry"
        return [Clue("stamps", why, None), _edit_lists(clip)]
    lacking = [chapter.path.name for chapter, parts in zip(clip.chapters, stamped, strict=True) if not parts]
    if lacking:
        says = f"{', '.join(lacking)}: no telemetry with timestamps"
        return [Clue("stamps", says, False), _edit_lists(clip)]
    return [
        _stamps(clip, stamped),
        _payload_times(clip, stamped),
        _edit_lists(clip),
        _counts(clip, stamped),
        _beginning(clip, stamped[0]),
    ]


def picture_surplus(clip: Clip) -> int:
    """Return by how many frames the telemetry ends after the last frame; negative if it ends before."""
    stamped = [picture_parts(chapter.stream_parts) for chapter in clip.chapters]
    return max((_surplus(clip, stamped, run) for run in _runs(clip)), key=abs, default=0)


def _stamps(clip: Clip, stamped: list[Parts]) -> Clue:
    """Compare the timestamps with the number of frames that they count."""
    for chapter, parts in zip(clip.chapters, stamped, strict=True):
        if len(parts) < 2:
            continue
        counted_s = np.diff(first_numbers(parts)) * _sample_s(chapter, parts)
        off_s = np.diff(_us(parts)) / 1e6 - counted_s
        at = int(np.argmax(np.abs(off_s)))
        if abs(off_s[at]) > JUMP_PICTURES * float(chapter.frame_period):
            says = f"{_between(chapter, parts, at)} the timestamps jump by {off_s[at]:+.3f} s against the frame count"
            return Clue("stamps", says, False)
    return Clue("stamps", f"{sum(map(len, stamped))} payloads continue without a jump", True)


def _payload_times(clip: Clip, stamped: list[Parts]) -> Clue:
    """Compare the payloads' times in the file with their timestamps."""
    for chapter, parts in zip(clip.chapters, stamped, strict=True):
        if len(parts) < 2:
            continue
        starts_s = np.array([chapter.payloads[number].start_s for number, _ in parts])
        off_s = np.diff(_us(parts)) / 1e6 - np.diff(starts_s)
        at = int(np.argmax(np.abs(off_s)))
        if abs(off_s[at]) > JUMP_PICTURES * float(chapter.frame_period):
            between = _between(chapter, parts, at)
            says = f"{between} the timestamps advance {off_s[at]:+.3f} s more than the file's times"
            return Clue("payload times", says, False)
    return Clue("payload times", "they follow the timestamps", True)


def _between(chapter: GoProMedia, parts: Parts, at: int) -> str:
    """Return a text for the place between two payloads with timestamps, by their numbers in the file."""
    return f"{chapter.path.name}: between payload {parts[at][0] + 1} and {parts[at + 1][0] + 1}"


def _edit_lists(clip: Clip) -> Clue:
    """Describe the effects of the edit lists."""
    effects = []
    for chapter in clip.chapters:
        name = chapter.path.name
        if any(sum(edit.media_time >= 0 for edit in track.edits) > 1 for track in chapter.edited_tracks):
            return Clue("edit lists", f"{name}: an edit list of several parts is not supported", False)
        if chapter.hidden_frames:
            effects.append(f"{name}: {chapter.hidden_frames} stored frames are not shown")
        if chapter.payloads and abs(start_s := chapter.payloads[0].start_s) > 1e-6:
            effects.append(f"{name}: telemetry begins {start_s:+.3f} s from the first frame")
    return Clue("edit lists", "; ".join(effects) or "they move nothing", True if effects else None)


def _counts(clip: Clip, stamped: list[Parts]) -> Clue:
    """Compare the number of frames with that of their samples, together for chapters without a gap."""
    statements, agrees = [], True
    for run in _runs(clip):
        surplus = _surplus(clip, stamped, run)
        frames = sum(len(clip.chapters[k].frame_pts) for k in run)
        name = clip.chapters[run[0]].path.name
        if abs(surplus) > COUNT_DIFFERS * _ratio(clip, stamped, run):
            agrees = False
            ends = "after" if surplus > 0 else "before"
            statements.append(
                f"{name}: telemetry ends {abs(surplus)} frames {ends} the last of {frames} frames"
            )
        elif agrees:
            statements.append(f"{name}: telemetry for all {frames} frames")
    return Clue("counts", "; ".join(statements), agrees)


def _beginning(clip: Clip, parts: Parts) -> Clue:
    """Check whether the telemetry begins with the recording, which a trimmed video does not."""
    first, name = clip.chapters[0], card_name(clip.path.name)
    before = first.frames_before
    if before is None:
        return Clue("beginning", "the number of frames before the first one is unknown", None)
    if before == 0:
        return Clue("beginning", "telemetry begins with the recording", True)
    if name is not None and name.chapter > 1:
        return Clue("beginning", f"{before} frames are in chapters before {first.path.name}", None)
    says = f"{first.path.name}: telemetry begins {before} frames after the recording: the video was trimmed"
    if first.telemetry_is_placed:
        return Clue("beginning", f"{says}, and an edit list has its position", True)
    return Clue("beginning", f"{says}, and its position on the frames is unknown", False)


def _runs(clip: Clip) -> list[list[int]]:
    """Group chapters that have no gap between them."""
    lost = clip.lost_before_s or [0.0] * len(clip.chapters)
    runs: list[list[int]] = []
    for number, lost_s in enumerate(lost):
        if number == 0 or lost_s:
            runs.append([])
        runs[-1].append(number)
    return runs


def _surplus(clip: Clip, stamped: list[Parts], run: list[int]) -> int:
    parts = [part for number in run for part in stamped[number]]
    first = clip.chapters[run[0]]
    if not parts or not first.payloads:
        return 0
    begins = round(first.payloads[0].start_s / float(first.frame_period))
    numbers = first_numbers(parts)
    samples = int(numbers[-1] - numbers[0]) + parts[-1][1].count
    pictures = sum(len(clip.chapters[k].frame_pts) for k in run)
    return begins + samples * _ratio(clip, stamped, run) - pictures


def _ratio(clip: Clip, stamped: list[Parts], run: list[int]) -> int:
    """Return the frames per sample: 1, or 2 for cameras that write one sample for every second frame."""
    chapter, parts = clip.chapters[run[0]], stamped[run[0]]
    return max(1, round(_sample_s(chapter, parts) / float(chapter.frame_period)))


def _sample_s(chapter: GoProMedia, parts: Parts) -> float:
    """Return the sample period, seconds, as a whole number of frame periods."""
    period_s = float(chapter.frame_period)
    if len(parts) < 2:
        return period_s
    by_stamps_s = float(np.median(np.diff(_us(parts)) / np.maximum(np.diff(first_numbers(parts)), 1))) / 1e6
    return max(1, round(by_stamps_s / period_s)) * period_s


def _us(parts: Parts) -> np.ndarray:
    return np.array([part.integer("STMP") or 0 for _, part in parts], np.int64)
