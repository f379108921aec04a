"""The session time of a recording for drawing it: the main headset's, and the camera files that are on its clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kitchensync.reader.cameras.recorded import alignments
from kitchensync.shell.array_types import Int64
from kitchensync.storage.geometry.errors import NotAligned, Refused
from kitchensync.storage.reading.alignments import FilmClock
from kitchensync.storage.recording import Recording
from kitchensync.storage.timeline.device_clock import constant_clock
from kitchensync.storage.timeline.session_time import SessionTime


@dataclass(frozen=True)
class DrawnTime:
    """What is drawn when: session time, the headset that gives it, and the camera files on its clock."""

    headset: str
    session: SessionTime
    cameras: tuple[FilmClock, ...]
    "Aligned camera files that ride with this headset."
    unplaced: str
    "Why no camera is on this clock; empty when one is."

    def of_media(self, camera: FilmClock, media_s: npt.ArrayLike) -> Int64:
        """Return session ns of media seconds (n,) of a camera's file."""
        return self.session.of_ticks(camera.ticks_of(np.asarray(media_s, np.float64)))


def drawn_time(recording: Recording) -> DrawnTime:
    """Return the times of a recording's first headset that sent anything, else by arrival. Raises Refused."""
    session = recording.session_time or _by_arrival(recording)
    headset = recording.main_headset
    try:
        cameras, why = [file for file in alignments(recording) if file.headset == headset], ""
    except NotAligned as error:
        cameras, why = [], str(error)
    return DrawnTime(headset, session, tuple(cameras), why)


def _by_arrival(recording: Recording) -> SessionTime:
    """Without a headset: time since the recording was started. Raises Refused when there is nothing to show."""
    started_ns = (recording.manifest.get("started") or {}).get("host_ns")
    if started_ns is None or not any(len(recording[name]) for name in recording.streams):
        raise Refused(f"{recording.id} holds no packet of a headset: there is no clock to put things on")
    return SessionTime(0, constant_clock(0, int(started_ns), 0))
