"""The film of a camera, all its clips and chapters as one, with its motion and its sound, on session time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kitchensync.reader.motion_streams import MotionStream
from kitchensync.reader.reading_clock import NotKnown
from kitchensync.reader.timed_stream import TimedStream, Unreadable
from kitchensync.sensors.array_types import Floats, Floats32, Int64
from kitchensync.sensors.gopro.files.clip import Clip, ClipPictures
from kitchensync.sensors.gopro.files.media import GoProMedia
from kitchensync.storage.capture_times import capture_times, rough_capture_times
from kitchensync.storage.exports.hidden_films import hidden_in_film
from kitchensync.storage.privacy import in_pauses
from kitchensync.storage.reading.alignments import FilmClock, alignment_files, film_clocks, read_alignment
from kitchensync.storage.reading.camera_streams import CameraStream, film_of
from kitchensync.storage.reading.stream_kinds import CAMERA_STREAMS
from kitchensync.storage.timeline.film_times import UNKNOWN, FilmTimes

if TYPE_CHECKING:
    from kitchensync.reader.opened_recording import OpenedRecording


class FilmTimeline:
    """When what a camera's files hold was, on session time: as `sync` found it, and by nothing else."""

    def __init__(self, recording: OpenedRecording, camera: str) -> None:
        self.recording, self.camera = recording, camera
        self.clip: Clip = film_of(recording.stored.path, camera, recording.films[camera])

    @cached_property
    def pictures(self) -> FilmTimes:
        """When each picture was taken, on the capture clock."""
        return capture_times(self.recording.stored, self.camera, self.clip)

    @cached_property
    def _clocks(self) -> dict[Path, FilmClock]:
        found, _ = film_clocks(self.recording.path, self.recording.stored.readable)
        return {clock.file: clock for clock in found}

    @cached_property
    def hidden(self) -> npt.NDArray[np.bool_]:
        """Which pictures may show a privacy pause, (n,): all where nobody can tell."""
        pauses = self.recording.stored.pauses
        if not pauses:
            return np.zeros(len(self.clip.frame_times_s), np.bool_)
        times = rough_capture_times(self.recording.stored, self.camera, self.clip)
        return in_pauses(times.capture_ns, times.bound_ns, pauses)

    def telemetry_late_s(self, chapter: GoProMedia) -> float:
        """By how much `sync` found the telemetry of a file to lie later than on its pictures."""
        clock = self._clocks.get(chapter.path)
        return clock.telemetry_late_s if clock is not None else 0.0

    def session_ns(self, chapter: GoProMedia, media_s: Floats) -> Int64:
        """Return session ns (n,) of media seconds (n,) of one file. Raises NotKnown."""
        clock, stored = self._clocks.get(chapter.path), self.recording.stored
        host = stored.device_clock(clock.headset) if clock is not None else None
        if clock is not None and host is not None:
            ticks = clock.ticks_of(media_s)
            return self.recording.clock.of_ticks(clock.headset, ticks, host.to_host_ns(ticks))
        if self.pictures.is_placed and clock is None and not stored.main_headset:
            first = self.clip.first_frames[self.clip.chapters.index(chapter)]
            begun_ns = int(self.pictures.capture_ns[first])
            return self.recording.clock.of_host(begun_ns + np.rint(media_s * 1e9).astype(np.int64))
        return self._beside_another_film(chapter, media_s)

    def _beside_another_film(self, chapter: GoProMedia, media_s: Floats) -> Int64:
        """Without a headset: media time of the film that all others were aligned with."""
        name = f"{self.camera}/{chapter.path.name}"
        known = [one for one in map(read_alignment, alignment_files(self.recording.path)) if one.is_on_camera]
        if not self.recording.stored.main_headset:
            if not known and len(self.recording.film_files) == 1:
                return np.rint(media_s * 1e9).astype(np.int64)
            if any(one.master == name for one in known):
                return np.rint(media_s * 1e9).astype(np.int64)
            mine = next((one.clock_map for one in known if one.source == name), None)
            if mine is not None:
                return mine.to_ticks(media_s) * 100
        why = self.pictures.why or "run `kitchensync sync` first"
        raise NotKnown(f"{self.recording.id}: nothing tells when {name} was filmed: {why}")


class FilmStream(TimedStream):
    """Pictures of a camera's film, upright, uint8 RGB (h, w, 3)."""

    kind = "pictures"

    def __init__(self, recording: OpenedRecording, name: str) -> None:
        super().__init__(recording, name)
        self.timeline = recording.timeline(name.rpartition("/")[0])
        self._stack = ExitStack()

    @cached_property
    def rows(self) -> Int64:
        """Number in the film of each picture that is not of a privacy pause, (n,)."""
        return np.flatnonzero(~self.timeline.hidden)

    def __len__(self) -> int:
        """Count the pictures."""
        return len(self.rows)

    @property
    def media_times(self) -> Floats:
        """Seconds since the film's first picture, (n,): what a player shows."""
        return self.timeline.clip.frame_times_s[self.rows]

    @cached_property
    def session_ns(self) -> Int64:
        """Session time of each picture, (n,) int64 ns, as `sync` aligned it. Raises NotKnown."""
        times = self.timeline.pictures
        if times.is_placed:
            found = np.full(len(times), UNKNOWN)
            known = times.capture_ns != UNKNOWN
            found[known] = self.recording.clock.of_host(times.capture_ns[known])
            return found[self.rows]
        chapters = self.timeline.clip.chapters
        parts = [self.timeline.session_ns(one, one.frame_times_s) for one in chapters]
        return np.concatenate(parts)[self.rows]

    @cached_property
    def times(self) -> Floats:
        """Session seconds of each picture, (n,) float64, NaN in a chapter that is not aligned. Raises NotKnown."""
        return np.where(self.session_ns == UNKNOWN, np.nan, self.session_ns / 1e9)

    @property
    def bounds_s(self) -> Floats:
        """How far each of `times` may be off, (n,) seconds, 95 %; NaN where nobody knows."""
        times = self.timeline.pictures
        return np.where(times.capture_ns == UNKNOWN, np.nan, times.bound_ns / 1e9)[self.rows]

    def bound_at(self, seconds: float) -> float:
        """How far `times` may be off at an instant, seconds, 95 %. Raises NotKnown."""
        bound_s = float(self.bounds_s[self.index_at(seconds)])
        if np.isnan(bound_s):
            raise NotKnown(f"{self.name}: {self.timeline.pictures.why or 'run `kitchensync sync` first'}")
        return bound_s

    @cached_property
    def _pictures(self) -> ClipPictures:
        return self._stack.enter_context(self.timeline.clip.pictures())

    def _value(self, number: int) -> npt.NDArray[np.uint8]:
        return self._pictures.number(int(self.rows[number])).rgb

    def small(self, number: int, width: int) -> npt.NDArray[np.uint8]:
        """Return a picture scaled to so many pixels across. Raises Unreadable."""
        return self._pictures.number(int(self.rows[number]), width).rgb

    def close(self) -> None:
        """Close the files that are open."""
        self._stack.close()
        self.__dict__.pop("_pictures", None)


class CameraMotion(MotionStream):
    """An inertial sensor of a camera over its whole film: X left, Y out of the screen, Z up."""

    def __init__(self, recording: OpenedRecording, name: str) -> None:
        super().__init__(recording, name)
        self.timeline = recording.timeline(name.rpartition("/")[0])

    @property
    def unit(self) -> str:
        """Unit of the values, `rad/s` or `m/s^2`."""
        return CAMERA_STREAMS[self.name.rpartition("/")[2]].unit

    @cached_property
    def _parts(self) -> list[tuple[GoProMedia, Floats, Floats32]]:
        """File, media seconds and values, what may lie in a pause left out."""
        read = CAMERA_STREAMS[self.name.rpartition("/")[2]].imu
        assert read is not None, "it is of this kind"
        parts: list[tuple[GoProMedia, Floats, Floats32]] = []
        for chapter in self.timeline.clip.chapters:
            track = read(Clip([chapter]))
            media_s = track.t_s - self.timeline.telemetry_late_s(chapter)
            shown = ~hidden_in_film(self.recording.stored, chapter.path, media_s)
            parts.append((chapter, media_s[shown], np.asarray(track.xyz[shown], np.float32)))
        return parts

    @cached_property
    def values(self) -> Floats32:
        """All samples, (n, 3) float32 in `unit`."""
        return np.concatenate([values for _, _, values in self._parts])

    @cached_property
    def session_ns(self) -> Int64:
        """Session time of each sample, (n,) int64 ns. Raises NotKnown."""
        return np.concatenate([self.timeline.session_ns(file, media_s) for file, media_s, _ in self._parts])


class CameraSound(TimedStream):
    """Blocks of a camera's sound, float32 (channels, samples) within -1 and 1."""

    kind = "blocks of sound"

    def __init__(self, recording: OpenedRecording, name: str) -> None:
        super().__init__(recording, name)
        self.timeline = recording.timeline(name.rpartition("/")[0])
        self._blocks: Iterator[Any] = iter(())
        self._next = 0

    def _read(self) -> Iterator[tuple[GoProMedia, float, int, Floats32]]:
        """Decode on: file, media seconds of the block, samples a second, samples; without those of a pause."""
        for chapter in self.timeline.clip.chapters:
            blocks = CameraStream(self.name, Clip([chapter])).sound()
            for block in blocks:
                ends_s = np.array([block.t_s, block.t_s + block.samples.shape[1] / block.rate_hz])
                if not hidden_in_film(self.recording.stored, chapter.path, ends_s).any():
                    yield chapter, block.t_s, block.rate_hz, block.samples

    @cached_property
    def _places(self) -> list[tuple[GoProMedia, float, int]]:
        return [place for *place, _ in self._read()]  # type: ignore[misc]

    @property
    def rate_hz(self) -> int:
        """Samples a second."""
        return self._places[0][2]

    def __len__(self) -> int:
        """Count the blocks."""
        return len(self._places)

    @cached_property
    def session_ns(self) -> Int64:
        """Session time of the first sample of each block, (n,) int64 ns. Raises NotKnown."""
        parts = [
            self.timeline.session_ns(file, np.array([t_s for _, t_s, _ in blocks]))
            for file, blocks in groupby(self._places, key=lambda place: place[0])
        ]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _value(self, number: int) -> Floats32:
        if number < self._next or self._next == 0:
            self._blocks, self._next = self._read(), 0
        for *_, samples in self._blocks:
            self._next += 1
            if self._next > number:
                return np.asarray(samples, np.float32)
        raise Unreadable(f"{self.name}: block {number} cannot be decoded")
