"""When the pictures of a recording's films were taken, as far as `sync`, an event or the shutter tells."""

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
from kitchensync.storage.reading.shutter_openings import clip_openings, read_media, shutter_host_ns
from kitchensync.storage.timeline.film_times import UNKNOWN, FilmTimes

if TYPE_CHECKING:
    from kitchensync.sensors.gopro.files.clip import Clip
    from kitchensync.storage.recording import Recording
    from kitchensync.storage.timeline.device_clock import HostClock

EVENT_PLACES = Path("sync") / "events.json"
SHUTTER_LATE_NS = 3_000_000_000
"""A camera films so long after it was seen to have begun, at the latest."""
DRIFTS = 10_000
"""A camera's clock is off by less than one part in so many."""


def rough_capture_times(recording: Recording, camera: str, clip: Clip) -> FilmTimes:
    """Report when the pictures of a clip were taken: as `sync` placed them, else roughly, by the shutter."""
    times = capture_times(recording, camera, clip)
    return times if times.is_placed else _by_shutter(recording, camera, clip) or times


def _by_shutter(recording: Recording, camera: str, clip: Clip) -> FilmTimes | None:
    """Place a clip of a camera by when its shutter was asked to open and seen to have done so."""
    if camera not in recording.gopro_files:  # an adopted film: nobody saw it begin
        return None
    openings = clip_openings(read_media(recording.path, camera), recording.gopro_files[camera])
    opened = next((one.opened for one in openings if clip.path in one.files), None)
    if not all(one.opened for one in openings) or opened is None:
        return None
    first_ns, last_ns = int(opened["before_host_ns"]), shutter_host_ns(opened) + SHUTTER_LATE_NS
    media_ns = np.rint(clip.frame_times_s * 1e9).astype(np.int64)
    bound_ns = (last_ns - first_ns) // 2 + media_ns // DRIFTS
    return FilmTimes(clip.rate, (first_ns + last_ns) // 2 + media_ns, bound_ns)


def capture_times(recording: Recording, camera: str, clip: Clip) -> FilmTimes:
    """Report for each picture of a clip when it was taken, chapter by chapter, as `sync` aligned them."""
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
        found_ns = film_host_ns(recording, camera, clock, host, chapter.frame_times_s + clock.picture_late_s)
        if found_ns is None:
            why.append(
                f"{chapter.path.name}: its headset was started anew, and nobody noted when it was filmed"
            )
            continue
        here = slice(first, first + len(chapter.frame_times_s))
        capture_ns[here] = found_ns
        bound_ns[here] = host.bound_ns + np.rint(bound_s * 1e9).astype(np.int64)
    if not clocks and not recording.main_headset:
        return _by_events(recording, camera, clip) or FilmTimes(
            clip.rate, capture_ns, bound_ns, "no headset was there, and the start of the film is not known"
        )
    return FilmTimes(clip.rate, capture_ns, bound_ns, "; ".join(why))


def film_host_ns(
    recording: Recording, camera: str, clock: FilmClock, host: HostClock, media_s: Floats
) -> Int64 | None:
    """Return host ns (n,) of media seconds (n,) of an aligned file.

    The ticks of a headset that was started anew repeat: then the shutter tells which of its clocks is meant, and
    None is the answer where nobody noted that.
    """
    ticks = clock.ticks_of(media_s)
    if not host.restarts:
        return host.to_host_ns(ticks)
    openings = clip_openings(read_media(recording.path, camera), recording.gopro_files.get(camera, []))
    mine = next((one for one in openings if clock.file in one.files), None)
    if mine is None or mine.opened_host_ns is None:
        return None
    before_s = sum(open_media(path).duration_s for path in mine.files[: mine.files.index(clock.file)])
    near_ns = mine.opened_host_ns + np.rint((float(before_s) + media_s) * 1e9).astype(np.int64)
    return host.to_host_ns(ticks, near_host_ns=near_ns)


def _by_events(recording: Recording, camera: str, clip: Clip) -> FilmTimes | None:
    """Place the chapters of an event's own clip by where `sync` put it, without a headset; None where it put none."""
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
            here = slice(first, first + len(chapter.frame_times_s))
            is_of_it = clip_of.get(f"{camera}/{chapter.path.name}") is group
            if is_of_it and (capture_ns[here] == UNKNOWN).all():
                capture_ns[here] = start_ns + media_ns[here]
                bound_ns[here] = round(place["uncertainty_ms"] * 1e6)
    return FilmTimes(clip.rate, capture_ns, bound_ns) if (capture_ns != UNKNOWN).any() else None


def _placed(recording: Path, video: str) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        content = load_json(recording / EVENT_PLACES)
        yield from (
            (one["host_ns"], one["frames"][video]) for one in content["events"] if video in one["frames"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return
