"""The camera's own rotation beside its film, on the capture clock: what a receiver proves the film's times by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kitchensync.dataset.release.headset_frames import Arrays, NothingThere
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.storage.frame_capture_times import film_host_ns
from kitchensync.storage.privacy import in_pauses
from kitchensync.storage.reading.alignments import BOUNDS, FilmClock, film_clocks

if TYPE_CHECKING:
    from kitchensync.sensors.gopro.files.media import GoProMedia


def motion_of(own: OwnRecording) -> Arrays:
    """Return the gyroscope of a camera's film, all aligned chapters one after another; NaN in a pause.

    `sample_motion_s` (n,) is the second of the clip, `sample_capture_ns` (n,), `xyz` (n, 3) rad/s in the camera's
    axes, `gyroscope_bound_ns` (3,) how far `sync` says both gyroscopes may be apart at start, middle and end (95 %).
    Raises NothingThere, UnreadableMedia.
    """
    media_s, taken_ns, values, bounds_ms = [], [], [], []
    for _, start_s, clock in _aligned(own):
        host = own.recording.clock.host_clock(clock.headset)
        track = clock.gyroscope()
        found_ns = film_host_ns(own.recording.stored, own.camera, clock, host, track.t_s) if host else None
        if found_ns is None or host is None or clock.errors is None:
            continue
        xyz = track.xyz.astype(np.float32)
        xyz[in_pauses(found_ns, host.bound_ns, own.pauses)] = np.nan
        media_s.append(track.t_s + start_s)
        taken_ns.append(found_ns)
        values.append(xyz)
        bounds_ms.append([np.nan if bound is None else bound for bound in clock.errors.bound95_ms])
    if not values:
        raise NothingThere(own.frames.why or "no headset was there whose gyroscope it could be compared with")
    stated_ms = [one for one in bounds_ms if len(one) == BOUNDS and np.isfinite(one).all()]
    if not stated_ms:
        raise NothingThere("`sync` states no bound of the gyroscopes")
    worst_ms = np.max(np.array(stated_ms), axis=0)
    return {
        "sample_motion_s": np.concatenate(media_s),
        "sample_capture_ns": np.concatenate(taken_ns),
        "xyz": np.concatenate(values),
        "gyroscope_bound_ns": np.rint(worst_ms * 1e6).astype(np.int64),
        "unit": np.array("rad/s"),
    }


def motion_seconds(own: OwnRecording) -> npt.NDArray[np.float64]:
    """Return where each picture of the film lies in the camera's own motion, (n,) seconds of the clip.

    NaN where its chapter is not aligned.
    """
    found = np.full(len(own.clip.frame_times_s), np.nan)
    for number, start_s, clock in _aligned(own):
        chapter: GoProMedia = own.clip.chapters[number]
        first = own.clip.first_frames[number]
        here = slice(first, first + len(chapter.frame_times_s))
        found[here] = chapter.frame_times_s + clock.picture_late_s + start_s
    return found[own.clip.even_frames]


def _aligned(own: OwnRecording) -> Iterator[tuple[int, float, FilmClock]]:
    """Yield the number, the start in the clip (seconds) and the clock of each aligned chapter of the film."""
    clocks = {
        clock.file: clock for clock in film_clocks(own.recording.path, own.recording.stored.readable)[0]
    }
    for number, (start, chapter) in enumerate(zip(own.clip.starts_s, own.clip.chapters, strict=True)):
        if chapter.path in clocks:
            yield number, float(start), clocks[chapter.path]
