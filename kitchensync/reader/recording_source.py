"""What the streams of an opened recording read of: its files, clock, alignment, and names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kitchensync.reader.reading_clock import ReadingClock
from kitchensync.sensors.hololens.catalogue import STREAMS, headset_stream
from kitchensync.sensors.hololens.headset_stream import DEPTH
from kitchensync.sensors.hololens.streams import spatial_input
from kitchensync.shell.array_types import Floats, Int64
from kitchensync.storage.consent import Purpose
from kitchensync.storage.ledger_reader import read_notes
from kitchensync.storage.reading.alignments import alignment_files, read_alignment
from kitchensync.storage.reading.records import Records, read_records
from kitchensync.storage.reading.stream_kinds import CAMERA_STREAMS
from kitchensync.storage.reading.worlds import world_frames
from kitchensync.storage.recording import Recording
from kitchensync.storage.timeline.alignment import ALIGNED, CHECK, NOT_ALIGNED, Alignment
from kitchensync.storage.timeline.clock_map import ClockMap

HEAD = tuple(name for name, stream in STREAMS.items() if stream.is_head_pose)
EYES = tuple(name for name, stream in STREAMS.items() if stream.rays_from_own_pose)
BODY = {"head": HEAD, "hands": HEAD, "gaze": EYES + HEAD}
"""What is read of a body, and the streams that tell it, the best first."""
DEPTHS = sorted((n for n, s in STREAMS.items() if s.kind == DEPTH), key=lambda n: -STREAMS[n].farthest_mm)
"""What `depth` stands for: far depth sees the room, near depth the hands."""

PLACES = np.dtype([("position", "<f4", (3,))])
KEPT_OF_HANDS = np.dtype(
    [
        (name, PLACES, (len(spatial_input.JOINTS),))
        if name.endswith("_hand")
        else (name, spatial_input.DTYPE[name])
        for name in spatial_input.DTYPE.names or ()
    ]
)
"""What is kept of spatial input: of the joints of a hand their places, a third of all its bytes."""


class Alignments(dict[str, Alignment]):
    """What `sync` found of each film, by the film's name, and of all together.

    `gyroscopes_within_ms` says how well the motion of two devices fits; `pictures_within_ms` how far the times of
    pictures may be off, with what a camera's latency is assumed to be; `bound_at` adds how far the headset's clock is
    known on the capture computer's.
    """

    def __init__(self, found: list[Alignment]) -> None:
        super().__init__({one.source: one for one in found})

    @property
    def status(self) -> str:
        """The worst verdict of all films: `aligned`, `check`, `not_aligned`; `not_done` before `sync`."""
        worst = [status for status in (NOT_ALIGNED, CHECK, ALIGNED) if status in self.statuses.values()]
        return worst[0] if worst else "not_done"

    @property
    def statuses(self) -> dict[str, str]:
        """The status of each film."""
        return {name: one.status for name, one in self.items()}

    @property
    def gyroscopes_within_ms(self) -> float | None:
        """How far the gyroscopes of any film that was aligned may be off, ms, 95 %; None where it is not known."""
        return max((one.bound95_ms for one in self.values() if one.bound95_ms is not None), default=None)

    @property
    def pictures_within_ms(self) -> float | None:
        """How far the pictures of any film that was aligned may be off, ms, 95 %; None where it is not known."""
        return max((2 * one.total_ms for one in self.values() if one.total_ms is not None), default=None)

    def __repr__(self) -> str:
        return f"<{self.status}{', ' if self.bounds else ''}{self.bounds}: {', '.join(self) or 'no film'}>"

    @property
    def bounds(self) -> str:
        """How far motion and pictures of the least certain film may be off, in words."""
        placed = [one for one in self.values() if one.is_placed]
        return max(placed, key=lambda one: one.total_ms or 0.0).bounds_in_words if placed else ""


class RecordingSource(ABC):
    """What streams read from; `OpenedRecording` adds the streams."""

    def __init__(
        self,
        path: Path,
        *,
        with_pauses: bool = False,
        purpose: Purpose | None = None,
        without_consent: str = "",
    ) -> None:
        """Open a folder; what lies in privacy pauses is left out but `with_pauses`.

        `purpose`: only with the consent for it; `without_consent` is why, where nobody agreed. Raises NotARecording,
        Withdrawn, NotPermitted.
        """
        self.path = path
        self._opened_with: dict[str, Any] = {
            "with_pauses": with_pauses, "purpose": purpose, "without_consent": without_consent
        }  # fmt: skip
        self.stored = Recording(path, **self._opened_with)
        self.timelines: dict[str, Any] = {}
        "Of each camera, kept by `film_streams.timeline_of`."
        self._records: dict[str, Records] = {}

    @abstractmethod
    def __getitem__(self, name: str) -> Any:
        """Return a stream by its full name, or by the name of its attribute. Raises UnknownStream, FilesFreed."""

    @property
    @abstractmethod
    def duration(self) -> float:
        """Session seconds of the last packet of the main headset, else of the longest film, else of any stream."""

    @property
    @abstractmethod
    def step_rows(self) -> list[dict[str, Any]]:
        """The rows of `steps`."""

    @property
    def id(self) -> str:
        """The recording's id, which is also the name of its folder."""
        return self.stored.id

    @cached_property
    def clock(self) -> ReadingClock:
        """Session time of host times and of device ticks, and its bound."""
        return ReadingClock(self.stored)

    @cached_property
    def films(self) -> dict[str, list[Path]]:
        """Files of each camera by its name, in order, those of adopted films too. Raises FilesFreed."""
        return self.stored.films

    @cached_property
    def films_on_films(self) -> dict[str, ClockMap]:
        """Without a headset: the map of each film to the media time of the film it was aligned with."""
        known = [
            one
            for one in map(read_alignment, alignment_files(self.path))
            if one.is_on_camera and one.is_placed
        ]
        return {one.source: one.clock_map for one in known if one.clock_map is not None}

    @cached_property
    def reference_films(self) -> set[str]:
        """Without a headset: the films whose media time is session time, as the others were aligned with them."""
        known = map(read_alignment, alignment_files(self.path))
        return {one.master for one in known if one.is_on_camera and one.is_placed}

    @property
    def film_cameras(self) -> list[str]:
        """Names of the cameras with files."""
        return [camera for camera, files in self.films.items() if files]

    @cached_property
    def bodies(self) -> list[str]:
        """Full names of what is read of the bodies: `hololens/head`, `hololens/hands`, `hololens/gaze`."""
        headsets = [
            name for name, about in self.stored.manifest["devices"].items() if about["kind"] == "hololens"
        ]
        there = set(self.stored.streams)
        return [
            f"{device}/{short}"
            for device in headsets
            for short, wanted in BODY.items()
            if any(f"{device}/{one}" in there for one in wanted)
        ]

    @cached_property
    def streams(self) -> list[str]:
        """Full names of all streams, such as `hololens/pv` and `gopro/video`."""
        cameras = [f"{camera}/{kind}" for camera in self.film_cameras for kind in CAMERA_STREAMS]
        return [*self.stored.streams, *cameras]

    def source_of(self, body: str) -> str:
        """Return the stream of which head, hands or gaze of a body is read, by full names."""
        device, _, short = body.rpartition("/")
        told_by = (f"{device}/{one}" for one in BODY[short])
        return next(one for one in told_by if one in self.stored.streams)

    @cached_property
    def attributes(self) -> dict[str, str]:
        """Full name of each stream that is an attribute."""
        head = self.stored.main_headset
        found = {camera.replace("-", "_"): f"{camera}/video" for camera in self.film_cameras}
        if len(found) == 1:
            found.setdefault("gopro", next(iter(found.values())))
        mine = {
            name.rpartition("/")[2]: name for name in self.stored.streams if name.partition("/")[0] == head
        }
        bodies = {name.rpartition("/")[2]: name for name in self.bodies if name.partition("/")[0] == head}
        depth = next(({"depth": mine[one]} for one in DEPTHS if one in mine), {})
        return found | mine | bodies | depth

    @property
    def alignment(self) -> Alignments:
        """What `sync` found of each film."""
        return Alignments([read_alignment(path) for path in alignment_files(self.path)])

    def utc(self, seconds: npt.ArrayLike) -> Any:
        """Return UTC of session times, datetime64[ns] of their shape, by the capture computer. Raises NotKnown."""
        at_s = np.asarray(seconds, np.float64)
        return self.clock.to_utc(_whole_ns(at_s)).reshape(at_s.shape)[()]

    def utc_bound(self, seconds: npt.ArrayLike) -> Any:
        """How far `utc` may be off the capture computer's clock, seconds, of their shape. Raises NotKnown.

        Around the moment at which that clock was set it is the whole step.
        """
        at_s = np.asarray(seconds, np.float64)
        return (self.clock.utc_bound_ns(_whole_ns(at_s)) / 1e9).reshape(at_s.shape)[()]

    def records(self, name: str) -> Records:
        """Read what head, hands and gaze are made of, once."""
        if name not in self._records:
            has_hands = headset_stream(name.rpartition("/")[2]).record == spatial_input.DTYPE
            self._records[name] = read_records(self.stored[name], KEPT_OF_HANDS if has_hands else None)
        return self._records[name]

    def worlds_of(self, name: str) -> npt.NDArray[np.int32]:
        """Return the world frame of each packet of a stream, (n,): poses of different ones cannot be compared."""
        return world_frames(self.stored[name], read_notes(self.stored.readable).get(name, []))


def _whole_ns(seconds: Floats) -> Int64:
    return np.rint(np.atleast_1d(seconds) * 1e9).astype(np.int64)
