"""Files, clock, alignment and names of a recording, which its streams read from."""

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
from kitchensync.storage.reading.worlds import frames_of
from kitchensync.storage.recording import Recording
from kitchensync.storage.timeline.alignment import ALIGNED, CHECK, NOT_ALIGNED, Alignment
from kitchensync.storage.timeline.clock_map import ClockMap

HEAD = tuple(name for name, stream in STREAMS.items() if stream.is_head_pose)
EYES = tuple(name for name, stream in STREAMS.items() if stream.rays_from_own_pose)
BODY = {"head": HEAD, "hands": HEAD, "gaze": EYES + HEAD}
"""Body stream -> the headset's streams it can be read from, the best first."""
DEPTHS = sorted((n for n, s in STREAMS.items() if s.kind == DEPTH), key=lambda n: -STREAMS[n].farthest_mm)
"""Streams that `depth` may mean, the best first: far depth sees the room, near depth the hands."""

PLACES = np.dtype([("position", "<f4", (3,))])
KEPT_OF_HANDS = np.dtype(
    [
        (name, PLACES, (len(spatial_input.JOINTS),))
        if name.endswith("_hand")
        else (name, spatial_input.DTYPE[name])
        for name in spatial_input.DTYPE.names or ()
    ]
)
"""Fields of spatial input that are kept: of a hand's joints only the positions, a third of all bytes."""


class Alignments(dict[str, Alignment]):
    """The alignment of each video by `sync`, by the video's name, and of all together.

    `gyroscopes_within_ms` is the error bound of the fit between the motion of two devices. `pictures_within_ms`
    bounds the times of frames, with the assumed latency of a camera. `bound_at` adds the error bound of the headset's
    clock on the capture computer's clock.
    """

    def __init__(self, alignments: list[Alignment]) -> None:
        super().__init__({alignment.source: alignment for alignment in alignments})

    @property
    def status(self) -> str:
        """The worst status of all videos: `aligned`, `check`, `not_aligned`; `not_done` before `sync`."""
        worst = [status for status in (NOT_ALIGNED, CHECK, ALIGNED) if status in self.statuses.values()]
        return worst[0] if worst else "not_done"

    @property
    def statuses(self) -> dict[str, str]:
        """The status of each video."""
        return {name: alignment.status for name, alignment in self.items()}

    @property
    def gyroscopes_within_ms(self) -> float | None:
        """Largest error bound of the gyroscopes of an aligned video, ms, 95 %; None if it is unknown."""
        bounds_ms = [alignment.bound95_ms for alignment in self.values()]
        return max((bound_ms for bound_ms in bounds_ms if bound_ms is not None), default=None)

    @property
    def pictures_within_ms(self) -> float | None:
        """Largest error bound of the frames of an aligned video, ms, 95 %; None if it is unknown."""
        totals_ms = [alignment.total_ms for alignment in self.values()]
        return max((2 * total_ms for total_ms in totals_ms if total_ms is not None), default=None)

    def __repr__(self) -> str:
        return f"<{self.status}{', ' if self.bounds else ''}{self.bounds}: {', '.join(self) or 'no video'}>"

    @property
    def bounds(self) -> str:
        """Text with the error bounds of motion and frames of the least certain video."""
        placed = [alignment for alignment in self.values() if alignment.is_placed]
        if not placed:
            return ""
        return max(placed, key=lambda alignment: alignment.total_ms or 0.0).bounds_in_words


class RecordingSource(ABC):
    """A recording without its streams, which `OpenedRecording` adds."""

    def __init__(
        self,
        path: Path,
        *,
        with_pauses: bool = False,
        purpose: Purpose | None = None,
        without_consent: str = "",
    ) -> None:
        """Open a folder; data in privacy pauses is left out unless `with_pauses` is set.

        With `purpose` the recording needs consent for it, or `without_consent`, the reason why none is needed. Raises
        NotARecording, Withdrawn, NotPermitted.
        """
        self.path = path
        self._opened_with: dict[str, Any] = {
            "with_pauses": with_pauses, "purpose": purpose, "without_consent": without_consent
        }  # fmt: skip
        self.stored = Recording(path, **self._opened_with)
        self.timelines: dict[str, Any] = {}
        "Camera -> its timeline, filled by `film_streams.timeline_of`."
        self._records: dict[str, Records] = {}

    @abstractmethod
    def __getitem__(self, name: str) -> Any:
        """Return a stream by its full name or its attribute name. Raises UnknownStream, FilesFreed."""

    @property
    @abstractmethod
    def duration(self) -> float:
        """Session seconds of the last packet of the main headset, else of the longest video, else of any stream."""

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
        """Clock that converts host times and device ticks to session time."""
        return ReadingClock(self.stored)

    @cached_property
    def films(self) -> dict[str, list[Path]]:
        """Files of each camera by its name, in order, with those of adopted videos. Raises FilesFreed."""
        return self.stored.films

    @cached_property
    def films_on_films(self) -> dict[str, ClockMap]:
        """Without a headset: the map of each video to the media time of the video it was aligned with."""
        pairs = self._aligned_on_cameras
        return {pair.source: pair.clock_map for pair in pairs if pair.clock_map is not None}

    @cached_property
    def reference_films(self) -> set[str]:
        """Without a headset: the videos that others were aligned with; their media time is session time."""
        return {pair.master for pair in self._aligned_on_cameras}

    @cached_property
    def _aligned_on_cameras(self) -> list[Alignment]:
        pairs = [read_alignment(path) for path in alignment_files(self.path)]
        return [pair for pair in pairs if pair.is_on_camera and pair.is_placed]

    @property
    def film_cameras(self) -> list[str]:
        """Names of the cameras with files."""
        return [camera for camera, files in self.films.items() if files]

    @cached_property
    def bodies(self) -> list[str]:
        """Full names of the body streams: `hololens/head`, `hololens/hands`, `hololens/gaze`."""
        headsets = [
            name for name, about in self.stored.manifest["devices"].items() if about["kind"] == "hololens"
        ]
        stored = set(self.stored.streams)
        return [
            f"{device}/{short}"
            for device in headsets
            for short, sources in BODY.items()
            if any(f"{device}/{source}" in stored for source in sources)
        ]

    @cached_property
    def streams(self) -> list[str]:
        """Full names of all streams, such as `hololens/pv` and `gopro/video`."""
        cameras = [f"{camera}/{kind}" for camera in self.film_cameras for kind in CAMERA_STREAMS]
        return [*self.stored.streams, *cameras]

    def source_of(self, body: str) -> str:
        """Return the full name of the stream that a body stream is read from."""
        device, _, short = body.rpartition("/")
        sources = (f"{device}/{source}" for source in BODY[short])
        return next(source for source in sources if source in self.stored.streams)

    @cached_property
    def attributes(self) -> dict[str, str]:
        """Full name of each stream that is an attribute."""
        head = self.stored.main_headset
        videos = {camera.replace("-", "_"): f"{camera}/video" for camera in self.film_cameras}
        if len(videos) == 1:
            videos.setdefault("gopro", next(iter(videos.values())))
        own = {
            name.rpartition("/")[2]: name for name in self.stored.streams if name.partition("/")[0] == head
        }
        bodies = {name.rpartition("/")[2]: name for name in self.bodies if name.partition("/")[0] == head}
        depth = next(({"depth": own[name]} for name in DEPTHS if name in own), {})
        return videos | own | bodies | depth

    @property
    def alignment(self) -> Alignments:
        """The alignment of each video by `sync`."""
        return Alignments([read_alignment(path) for path in alignment_files(self.path)])

    def utc(self, seconds: npt.ArrayLike) -> Any:
        """Return UTC of session times, datetime64[ns] of their shape, by the capture computer. Raises NotKnown."""
        at_s = np.asarray(seconds, np.float64)
        return self.clock.to_utc(_whole_ns(at_s)).reshape(at_s.shape)[()]

    def utc_bound(self, seconds: npt.ArrayLike) -> Any:
        """Return the error bound of `utc` on the capture computer's clock, seconds, of their shape. Raises NotKnown.

        Around the moment when that clock was set it is the whole step.
        """
        at_s = np.asarray(seconds, np.float64)
        return (self.clock.utc_bound_ns(_whole_ns(at_s)) / 1e9).reshape(at_s.shape)[()]

    def records(self, name: str) -> Records:
        """Return the records of head, hands and gaze; a stream is read once."""
        if name not in self._records:
            has_hands = headset_stream(name.rpartition("/")[2]).record == spatial_input.DTYPE
            self._records[name] = read_records(self.stored[name], KEPT_OF_HANDS if has_hands else None)
        return self._records[name]

    def worlds_of(self, name: str) -> npt.NDArray[np.int32]:
        """Return the world frame of each packet of a stream, (n,): poses of different frames cannot be compared."""
        return frames_of(self.stored[name].index, read_notes(self.stored.readable).get(name, []))


def _whole_ns(seconds: Floats) -> Int64:
    return np.rint(np.atleast_1d(seconds) * 1e9).astype(np.int64)
