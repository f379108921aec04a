"""The headset's front camera beside the film: picture k is the one taken nearest to picture k of the film."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.shell.array_types import Int64
from kitchensync.storage.exports.film import Progress
from kitchensync.storage.exports.headset_film import HeadsetFilm, write_headset_film
from kitchensync.storage.options.outputs import written
from kitchensync.storage.privacy import in_pauses
from kitchensync.storage.recording import StoredStream
from kitchensync.storage.timeline.device_clock import HostClock


def write_front_film(own: OwnRecording, out: Path, tell: Progress) -> HeadsetFilm | None:
    """Write the front camera's pictures as a film as long as the camera's; None where it saw nothing.

    A picture that was taken in a pause, or further away than two of its pictures lie apart, is black.
    Raises what reading a recording raises, OutputRefused.
    """
    stored = own.recording.stored
    headset = stored.main_headset
    host = own.recording.clock.host_clock(headset) if headset else None
    fronts = (f"{headset}/{short}" for short, stream in STREAMS.items() if stream.is_front_camera)
    name = next((name for name in fronts if name in stored.streams and len(stored[name]) > 1), "")
    if host is None or not name:
        return None
    rows = rows_beside(own, stored[name], host)
    with written(out, force=True, ending=".mp4") as part:
        return write_headset_film(stored[name], rows, own.frames.fps, part, tell=tell)


def rows_beside(own: OwnRecording, stream: StoredStream, host: HostClock) -> Int64:
    """Return the row of a camera's stream that was taken nearest to each picture of the film, -1 for none."""
    index = stream.index[:]
    near_ns = index["host_ns"].astype(np.int64)
    taken_ns = np.maximum.accumulate(
        host.to_host_ns(index["device_ticks"].astype(np.int64), near_host_ns=near_ns)
    )
    wanted_ns = own.frames.capture_ns
    later = np.clip(np.searchsorted(taken_ns, wanted_ns), 1, len(taken_ns) - 1)
    is_earlier = wanted_ns - taken_ns[later - 1] <= taken_ns[later] - wanted_ns
    rows = later - is_earlier
    away_ns = np.abs(taken_ns[rows] - wanted_ns)
    unseen = own.hidden | in_pauses(taken_ns, host.bound_ns, own.pauses)[rows]
    return np.where(unseen | (away_ns > np.median(np.diff(taken_ns))), -1, rows)
