"""What a clip's files say of where its telemetry lies on its pictures, and whether these clues agree.

A camera writes one SHUT (and CORI) sample a picture and begins pictures and telemetry together. A tool that cuts a
film without encoding keeps whole payloads and whole groups of pictures, so that they no longer begin together; a
chapter's last payload may lie in the file of the next. Read from tables and stamps alone, nothing is decoded.
"""

from __future__ import annotations

import numpy as np

from kitchensync.sensors.gopro.files.card_names import card_name
from kitchensync.sensors.gopro.files.clip import Clip
from kitchensync.sensors.gopro.files.clue import Clue
from kitchensync.sensors.gopro.files.media import GoProMedia
from kitchensync.sensors.gopro.files.telemetry import Parts, picture_numbers, picture_parts

COUNT_DIFFERS = 1  # the last payload of a real camera holds one sample more than there are pictures
JUMP_PICTURES = 0.5


def clip_clues(clip: Clip) -> list[Clue]:
    """Return the clues of a clip, each with what it says. Raises UnreadableMedia."""
    stamped = [picture_parts(chapter.stream_parts) for chapter in clip.chapters]
    if not any(stamped):
        none = "the camera writes no stamps" if clip.payloads else "no telemetry"
        return [Clue("stamps", none, None), _edit_lists(clip)]
    silent = [chapter.path.name for chapter, parts in zip(clip.chapters, stamped, strict=True) if not parts]
    if silent:
        return [Clue("stamps", f"{', '.join(silent)}: no telemetry with stamps", False), _edit_lists(clip)]
    return [
        _stamps(clip, stamped),
        _payload_times(clip, stamped),
        _edit_lists(clip),
        _counts(clip, stamped),
        _beginning(clip, stamped[0]),
    ]


def picture_surplus(clip: Clip) -> int:
    """Return how many pictures the telemetry goes on beyond the last picture; negative: it ends earlier."""
    stamped = [picture_parts(chapter.stream_parts) for chapter in clip.chapters]
    return max((_surplus(clip, stamped, run) for run in _runs(clip)), key=abs, default=0)


def _stamps(clip: Clip, stamped: list[Parts]) -> Clue:
    """Stamps against the number of pictures that they count."""
    for chapter, parts in zip(clip.chapters, stamped, strict=True):
        if len(parts) < 2:
            continue
        counted_s = np.diff(picture_numbers(parts)) * _sample_s(chapter, parts)
        off_s = np.diff(_us(parts)) / 1e6 - counted_s
        at = int(np.argmax(np.abs(off_s)))
        if abs(off_s[at]) > JUMP_PICTURES * float(chapter.frame_period):
            says = (
                f"{_between(chapter, parts, at)} the stamps jump by {off_s[at]:+.3f} s against the pictures that"
                " they count"
            )
            return Clue("stamps", says, False)
    return Clue("stamps", f"{sum(map(len, stamped))} payloads count on without a jump", True)


def _payload_times(clip: Clip, stamped: list[Parts]) -> Clue:
    """Times of payloads in the file against their stamps."""
    for chapter, parts in zip(clip.chapters, stamped, strict=True):
        if len(parts) < 2:
            continue
        starts_s = np.array([chapter.payloads[number].start_s for number, _ in parts])
        off_s = np.diff(_us(parts)) / 1e6 - np.diff(starts_s)
        at = int(np.argmax(np.abs(off_s)))
        if abs(off_s[at]) > JUMP_PICTURES * float(chapter.frame_period):
            says = f"{_between(chapter, parts, at)} the stamps go on by {off_s[at]:+.3f} s more than the file's times"
            return Clue("payload times", says, False)
    return Clue("payload times", "they follow the stamps", True)


def _between(chapter: GoProMedia, parts: Parts, at: int) -> str:
    """Name the place between a stamped payload and the next one, as numbers of payloads in the file."""
    return f"{chapter.path.name}: between payload {parts[at][0] + 1} and {parts[at + 1][0] + 1}"


def _edit_lists(clip: Clip) -> Clue:
    """What edit lists move and hide."""
    told = []
    for chapter in clip.chapters:
        name = chapter.path.name
        shown = [edit for track in chapter.edited_tracks for edit in [track.edits] if _parts_shown(edit) > 1]
        if shown:
            return Clue("edit lists", f"{name}: an edit list of several parts is not followed", False)
        if chapter.hidden_frames:
            told.append(f"{name}: {chapter.hidden_frames} stored pictures are not shown")
        if chapter.payloads and abs(start_s := chapter.payloads[0].start_s) > 1e-6:
            told.append(f"{name}: telemetry begins {start_s:+.3f} s from the first picture")
    return Clue("edit lists", "; ".join(told) or "they move nothing", True if told else None)


def _parts_shown(edits: tuple[tuple[int, int], ...]) -> int:
    return sum(media_time >= 0 for _, media_time in edits)


def _counts(clip: Clip, stamped: list[Parts]) -> Clue:
    """Number of pictures against that of their samples, chapters together where none is missing."""
    said, agrees = [], True
    for run in _runs(clip):
        surplus = _surplus(clip, stamped, run)
        pictures = sum(len(clip.chapters[k].frame_pts) for k in run)
        name = clip.chapters[run[0]].path.name
        if abs(surplus) > COUNT_DIFFERS * _ratio(clip, stamped, run):
            agrees = False
            ends = "after" if surplus > 0 else "before"
            said.append(
                f"{name}: telemetry ends {abs(surplus)} pictures {ends} the last of {pictures} pictures"
            )
        elif agrees:
            said.append(f"{name}: telemetry for all {pictures} pictures")
    return Clue("counts", "; ".join(said), agrees)


def _beginning(clip: Clip, parts: Parts) -> Clue:
    """Whether the telemetry begins with the recording; a film cut elsewhere need not begin with both."""
    first, name = clip.chapters[0], card_name(clip.path.name)
    before = first.frames_before
    if before is None:
        return Clue("beginning", "the stamps do not tell how many pictures came before", None)
    if before == 0:
        return Clue("beginning", "telemetry begins with the recording", True)
    if name is not None and name.chapter > 1:
        return Clue("beginning", f"{before} pictures lie in chapters before {first.path.name}", None)
    says = f"{first.path.name}: telemetry begins {before} pictures after the recording: the film was trimmed"
    if first.telemetry_is_placed:
        return Clue("beginning", f"{says}, and an edit list places it", True)
    return Clue("beginning", f"{says}, and nothing places it on the pictures", False)


def _runs(clip: Clip) -> list[list[int]]:
    """Group the chapters between which nothing is missing."""
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
    numbers = picture_numbers(parts)
    samples = int(numbers[-1] - numbers[0]) + parts[-1][1].count
    pictures = sum(len(clip.chapters[k].frame_pts) for k in run)
    return begins + samples * _ratio(clip, stamped, run) - pictures


def _ratio(clip: Clip, stamped: list[Parts], run: list[int]) -> int:
    """Pictures for each sample: 1, but 2 for cameras that write one for every second picture."""
    chapter, parts = clip.chapters[run[0]], stamped[run[0]]
    return max(1, round(_sample_s(chapter, parts) / float(chapter.frame_period)))


def _sample_s(chapter: GoProMedia, parts: Parts) -> float:
    """Seconds from one sample to the next, a whole number of picture periods."""
    period_s = float(chapter.frame_period)
    if len(parts) < 2:
        return period_s
    by_stamps_s = float(np.median(np.diff(_us(parts)) / np.maximum(np.diff(picture_numbers(parts)), 1))) / 1e6
    return max(1, round(by_stamps_s / period_s)) * period_s


def _us(parts: Parts) -> np.ndarray:
    return np.array([part.integer("STMP") or 0 for _, part in parts], np.int64)
