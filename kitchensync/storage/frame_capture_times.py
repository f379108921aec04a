"""Capture times of film pictures by `sync`, by an event, or roughly by the shutter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kitchensync.sensors.gopro.files.card_names import group_clips
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.shell.array_types import Floats, Int64
from kitchensync.shell.untrusted_json import load_json
from kitchensync.storage.reading.alignments import FilmClock, film_clocks
from kitchensync.storage.reading.clip_starts import clip_starts, read_media, shutter_host_ns
from kitchensync.storage.timeline.film_times import UNKNOWN, FilmTimes

if TYPE_CHECKING:
    from kitchensync.sensors.gopro.files.clip import Clip
    from kitchensync.storage.recording import Recording
    from kitchensync.storage.timeline.device_clock import HostClock

EVENT_PLACES = Path("sync") / "events.json"
SHUTTER_LATE_NS = 3_000_000_000
"""Maximum delay from the observed start of filming to the first picture."""
DRIFTS = 10_000
"""A camera's clock drifts by less than one part in this number."""


def rough_capture_times(recording: Recording, camera: str, clip: Clip) -> FilmTimes:
    """Return the capture times of a clip's pictures by `sync`, else roughly by the shutter."""
    times = capture_times(recording, camera, clip)
    return times if times.is_placed else _by_shutter(recording, camera, clip) or times


def _by_shutter(recording: Recording, camera: str, clip: Clip) -> FilmTimes | None:
    """Place a clip between the command to open the shutter and the observed start of filming."""
    if camera not in recording.gopro_files:  # an adopted film has no shutter command
        return None
    starts = clip_starts(read_media(recording.path, camera), recording.gopro_files[camera])
    opened = next((start.started for start in starts if clip.path in start.files), None)
    if not all(start.started for start in starts) or opened is None:
        return None
    first_ns, last_ns = int(opened["before_host_ns"]), shutter_host_ns(opened) + SHUTTER_LATE_NS
    media_ns = np.rint(clip.frame_times_s * 1e9).astype(np.int64)
    bound_ns = (last_ns - first_ns) // 2 + media_ns // DRIFTS
    return FilmTimes(clip.rate, (first_ns + last_ns) // 2 + media_ns, bound_ns)


def capture_times(recording: Recording, camera: str, clip: Clip) -> FilmTimes:
    """Return the capture times of a clip's pictures by the alignments of its chapters."""
    total = len(clip.frame_times_s)
    capture_ns, bound_ns = np.full(total, UNKNOWN), np.zeros(total, np.int64)
    clocks, why = film_clocks(recording.path, recording.readable)
    by_file = {clock.file: clock for clock in clocks}
    hosts = {clock.headset: recording.device_clock(clock.headset) for clock in clocks}
    for first, chapter in zip(clip.first_frames, clip.chapters, strict=True):
        clock = by_file.get(chapter.path)
        host = hosts[clock.headset] if clock is not None else None
        bound_s = clock.bound_s(chapter.frame_times_s) if clock is not None else None
        if clock is None or host is None or bound_s is None:
            continue
        chapter_ns = film_host_ns(
            recording, camera, clock, host, chapter.frame_times_s + clock.picture_late_s
        )
        if chapter_ns is None:
            why.append(
                f"{chapter.path.name}: its headset was restarted, and the time of filming is not recorded"
            )
            continue
        rows = slice(first, first + len(chapter.frame_times_s))
        capture_ns[rows] = chapter_ns
        bound_ns[rows] = host.bound_ns + np.rint(bound_s * 1e9).astype(np.int64)
    if not clocks and not recording.main_headset:
        return _by_events(recording, camera, clip) or FilmTimes(
            clip.rate, capture_ns, bound_ns, "no headset was there, and the start of the film is not known"
        )
    return FilmTimes(clip.rate, capture_ns, bound_ns, "; ".join(why))


def film_host_ns(
    recording: Recording, camera: str, clock: FilmClock, host: HostClock, media_s: Floats
) -> Int64 | None:
    """Return host ns (n,) of media seconds (n,) of an aligned file.

    After a restart of the headset its ticks repeat; then the shutter time selects the stretch, and without it the
    result is None.
    """
    ticks = clock.ticks_of(media_s)
    if not host.restarts:
        return host.to_host_ns(ticks)
    starts = clip_starts(read_media(recording.path, camera), recording.gopro_files.get(camera, []))
    start = next((start for start in starts if clock.file in start.files), None)
    if start is None or start.started_host_ns is None:
        return None
    before_s = sum(open_media(path).duration_s for path in start.files[: start.files.index(clock.file)])
    near_ns = start.started_host_ns + np.rint((float(before_s) + media_s) * 1e9).astype(np.int64)
    return host.to_host_ns(ticks, near_host_ns=near_ns)


def _by_events(recording: Recording, camera: str, clip: Clip) -> FilmTimes | None:
    """Place chapters without a headset by events that `sync` placed in their clip; None if there are none."""
    starts = {f"{camera}/{c.path.name}": s for c, s in zip(clip.chapters, clip.starts_s, strict=True)}
    clip_of = {
        f"{camera}/{path.name}": group
        for group in group_clips(c.path for c in clip.chapters)
        for path in group.paths
    }
    capture_ns, bound_ns = (
        np.full(len(clip.frame_times_s), UNKNOWN),
        np.zeros(len(clip.frame_times_s), np.int64),
    )
    media_ns = np.rint(clip.frame_times_s * 1e9).astype(np.int64)
    for host_ns, place in _placed(recording.path, f"{camera}/video"):
        if place["frame"] is None or place.get("file") not in starts:
            continue
        group = clip_of.get(place["file"])
        shown_ns = host_ns + round(place["dt_ms"] * 1e6)
        start_ns = shown_ns - round((place["media_s"] + float(starts[place["file"]])) * 1e9)
        for first, chapter in zip(clip.first_frames, clip.chapters, strict=True):
            rows = slice(first, first + len(chapter.frame_times_s))
            is_of_it = clip_of.get(f"{camera}/{chapter.path.name}") is group
            if is_of_it and (capture_ns[rows] == UNKNOWN).all():
                capture_ns[rows] = start_ns + media_ns[rows]
                bound_ns[rows] = round(place["uncertainty_ms"] * 1e6)
    return FilmTimes(clip.rate, capture_ns, bound_ns) if (capture_ns != UNKNOWN).any() else None


def _placed(recording: Path, video: str) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        content = load_json(recording / EVENT_PLACES)
        yield from (
            (event["host_ns"], event["frames"][video])
            for event in content["events"]
            if video in event["frames"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return
