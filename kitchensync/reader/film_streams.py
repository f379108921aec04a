"""The film of a camera, all its clips and chapters as one, with its motion and its sound, on session time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kitchensync.reader.motion_streams import MotionStream
from kitchensync.reader.reading_clock import NotKnown
from kitchensync.reader.recording_source import RecordingSource
from kitchensync.reader.timed_stream import SoundBlocks, TimedStream, Unreadable
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.card_names import group_clips
from kitchensync.sensors.gopro.files.clip import Clip, ClipPictures
from kitchensync.sensors.gopro.files.film_sound import SoundBlock, sound_bound_s, sound_packets
from kitchensync.sensors.gopro.files.media import GoProMedia
from kitchensync.sensors.shown_picture import shown_pixels
from kitchensync.shell.array_types import Floats, Floats32, Int64
from kitchensync.shell.forked_child import reopens_in_child
from kitchensync.storage.exports.hidden_films import hidden_in_film
from kitchensync.storage.frame_capture_times import capture_times, film_host_ns
from kitchensync.storage.geometry.errors import Refused
from kitchensync.storage.geometry.visibility import pixels_in_picture
from kitchensync.storage.reading.alignments import FilmClock, film_clocks
from kitchensync.storage.reading.camera_streams import CameraStream, film_of
from kitchensync.storage.reading.stream_kinds import CAMERA_STREAMS
from kitchensync.storage.timeline.film_times import UNKNOWN, FilmTimes

if TYPE_CHECKING:
    from av import Packet

    from kitchensync.reader.cameras.eyes import GoPro, View


class FilmUnreadable(NotKnown):
    """A film of which a chapter is missing or damaged."""


class FilmTimeline:
    """When what a camera's files hold was, on session time: as `sync` found it, and by nothing else."""

    def __init__(self, recording: RecordingSource, camera: str) -> None:
        self.recording, self.camera = recording, camera

    @cached_property
    def clip(self) -> Clip:
        """All that the camera filmed, as one film. Raises FilmUnreadable."""
        try:
            return film_of(self.recording.path, self.camera, self.recording.films[self.camera])
        except SensorError as error:
            raise FilmUnreadable(f"{self.recording.id}: {error}") from error

    @cached_property
    def pictures(self) -> FilmTimes:
        """When each picture was taken, on the capture clock."""
        return capture_times(self.recording.stored, self.camera, self.clip)

    @cached_property
    def clocks(self) -> dict[Path, FilmClock]:
        """The clock of each file that is aligned with a headset."""
        found, _ = film_clocks(self.recording.path, self.recording.stored.readable)
        return {clock.file: clock for clock in found}

    @cached_property
    def hidden(self) -> npt.NDArray[np.bool_]:
        """Which pictures may show a privacy pause, (n,): all where nobody can tell."""
        stored, chapters = self.recording.stored, self.clip.chapters
        return np.concatenate([hidden_in_film(stored, one.path, one.frame_times_s) for one in chapters])

    @property
    def bounds_s(self) -> Floats:
        """How far the time of each picture may be off, (n,) seconds, 95 %; NaN where nobody knows."""
        times = self.pictures
        return np.where(times.capture_ns == UNKNOWN, np.nan, times.bound_ns / 1e9)

    def bound_at_picture(self, number: int) -> float:
        """How far the time of a picture may be off, seconds, 95 %. Raises NotKnown."""
        bound_s = float(self.bounds_s[number])
        if np.isnan(bound_s):
            untried = "run `kitchensync sync` first"
            raise NotKnown(f"{self.recording.id}: {self.camera}: {self.pictures.why or untried}")
        return bound_s

    def telemetry_late_s(self, chapter: GoProMedia) -> float:
        """By how much `sync` found the telemetry of a file to lie later than on its pictures."""
        clock = self.clocks.get(chapter.path)
        return clock.telemetry_late_s if clock is not None else 0.0

    def session_ns(self, parts: list[tuple[GoProMedia, Floats]], *, of_pictures: bool = False) -> Int64:
        """Return session ns of the media seconds of some files, one after another; UNKNOWN where one is not aligned.

        Raises NotKnown where none is.
        """
        found = [self._of_file(file, media_s, of_pictures=of_pictures) for file, media_s in parts]
        if parts and all(one is None for one in found):
            untried = "run `kitchensync sync` first"
            words = f"nothing tells when {self.camera}'s film was made: {self.pictures.why or untried}"
            raise NotKnown(f"{self.recording.id}: {words}")
        known = [
            np.full(len(media_s), UNKNOWN) if one is None else one
            for one, (_, media_s) in zip(found, parts, strict=True)
        ]
        return np.concatenate(known) if known else np.empty(0, np.int64)

    def _of_file(self, file: GoProMedia, media_s: Floats, *, of_pictures: bool) -> Int64 | None:
        clock, stored, place = self.clocks.get(file.path), self.recording.stored, self.recording.clock
        if clock is None:
            return None if stored.main_headset else self._without_headset(file, media_s)
        at_s, host = media_s + (clock.picture_late_s if of_pictures else 0.0), place.host_clock(clock.headset)
        if host is None:  # its ticks are session time where it is the main headset
            ticks = clock.ticks_of(at_s)
            return (
                place.of_ticks(clock.headset, ticks, 100 * ticks)
                if clock.headset == place.main_headset
                else None
            )
        found = film_host_ns(stored, self.camera, clock, host, at_s)
        return None if found is None else place.of_ticks(clock.headset, clock.ticks_of(at_s), found)

    def _without_headset(self, file: GoProMedia, media_s: Floats) -> Int64 | None:
        """By where an event lies in the film, else on the film's own time, or that of the film beside it."""
        media_ns = np.rint(media_s * 1e9).astype(np.int64)
        if self.pictures.is_placed:
            first = self.clip.first_frames[self.clip.chapters.index(file)]
            begun_ns = int(self.pictures.capture_ns[first])
            return None if begun_ns == UNKNOWN else self.recording.clock.of_host(begun_ns + media_ns)
        if self.recording.clock.has_host:
            return None
        placed = self.recording.films_on_films.get(self._name(file))
        if placed is not None:
            return placed.to_ticks(media_s) * 100
        zero_s = self._reference_zero_s(file)
        begins_s = self.clip.starts_s[self.clip.chapters.index(file)]
        return None if zero_s is None else media_ns + round((begins_s - zero_s) * 10**9)

    def _name(self, file: GoProMedia) -> str:
        return f"{self.camera}/{file.path.name}"

    def _reference_zero_s(self, file: GoProMedia) -> Fraction | None:
        """Where in the film the clip of a file begins that others were aligned with, or that is the only one."""
        groups = [group.paths for group in group_clips(one.path for one in self.clip.chapters)]
        mine = next((paths for paths in groups if file.path in paths), (file.path,))
        starts_s = {one.path: at for one, at in zip(self.clip.chapters, self.clip.starts_s, strict=True)}
        references = self.recording.reference_films
        if not references:
            is_only = len(self.recording.film_cameras) == 1 and len(groups) <= 1
            return starts_s[mine[0]] if is_only else None
        first = next((path for path in mine if f"{self.camera}/{path.name}" in references), None)
        return starts_s[first] if first is not None else None


def timeline_of(recording: RecordingSource, camera: str) -> FilmTimeline:
    """Return the times of all pictures of a camera's film, on the capture clock."""
    if camera not in recording.timelines:
        recording.timelines[camera] = FilmTimeline(recording, camera)
    timeline: FilmTimeline = recording.timelines[camera]
    return timeline


class FilmStream(TimedStream):
    """Pictures of a camera's film, upright, uint8 RGB (h, w, 3)."""

    kind = "pictures"

    def __init__(self, recording: RecordingSource, name: str) -> None:
        super().__init__(recording, name)
        self.timeline = timeline_of(recording, name.rpartition("/")[0])
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
        parts = [(one, one.frame_times_s) for one in self.timeline.clip.chapters]
        return self.timeline.session_ns(parts, of_pictures=True)[self.rows]

    @property
    def bounds_s(self) -> Floats:
        """How far each of `times` may be off, (n,) seconds, 95 %; NaN where nobody knows."""
        return self.timeline.bounds_s[self.rows]

    def bound_at(self, seconds: float) -> float:
        """How far `times` may be off at an instant, seconds, 95 %; NaN where no picture is near. Raises NotKnown."""
        number = self.index_near(seconds)
        return float("nan") if number is None else self.timeline.bound_at_picture(int(self.rows[number]))

    @cached_property
    def _pictures(self) -> ClipPictures:
        return self._stack.enter_context(self.timeline.clip.pictures())

    def _value(self, number: int) -> npt.NDArray[np.uint8]:
        return self._pictures.number(int(self.rows[number])).rgb

    def small(self, number: int, width: int) -> npt.NDArray[np.uint8]:
        """Return a picture scaled to so many pixels across. Raises Unreadable."""
        return self._pictures.number(int(self.rows[number]), width).rgb

    def project(self, number: int, points: npt.ArrayLike) -> Floats:
        """Return where points of the world, (..., 3) metres, are in picture `number`: pixels (..., 2), x and y.

        NaN outside of the picture, behind the camera, for points that are NaN, and where nothing tells where the head
        was. By the lens and mount that `calibrate gopro` and `calibrate rig` found, which lie beside the recording.
        Raises Refused where one is missing.
        """
        view = self.view(number)
        if view is None:
            return np.full((*np.shape(points)[:-1], 2), np.nan)
        chapter, _ = self._in_file(number)
        assert chapter.video is not None, "it has a view"
        pixels = pixels_in_picture(view.camera, view.camera_from_world, points)
        size, turns = (view.camera.width, view.camera.height), self._eyes[chapter.path].turns
        return shown_pixels(pixels, size, turns, chapter.video.shown_size)

    def view(self, number: int) -> View | None:
        """Return lens and pose of the camera at picture `number`, as it is stored; None where the head was lost.

        Raises Refused where lens or mount are not calibrated.
        """
        chapter, frame = self._in_file(number)
        if chapter.path not in self._eyes or chapter.video is None:
            raise Refused(f"{self.name}: {chapter.path.name} is not aligned with a headset")
        view, _ = next(self._eyes[chapter.path].views([frame]))
        return view

    def _in_file(self, number: int) -> tuple[GoProMedia, int]:
        clip = self.timeline.clip
        place = clip.locate(int(self.rows[number]))
        return clip.chapters[place.chapter], place.frame

    @cached_property
    def _eyes(self) -> dict[Path, GoPro]:
        """Lens, mount and clock of each file that is aligned. Raises Refused."""
        from kitchensync.reader.cameras.eyes import GoPro

        clocks = self.timeline.clocks
        paths = [one.path for one in self.timeline.clip.chapters if one.path in clocks]
        return {path: GoPro(self.recording, clocks[path]) for path in paths}

    def close(self) -> None:
        """Close the files that are open."""
        self._stack.close()
        self.__dict__.pop("_pictures", None)


class CameraMotion(MotionStream):
    """An inertial sensor of a camera over its whole film: X left, Y out of the screen, Z up."""

    def __init__(self, recording: RecordingSource, name: str) -> None:
        super().__init__(recording, name)
        self.timeline = timeline_of(recording, name.rpartition("/")[0])

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
        return self.timeline.session_ns([(file, media_s) for file, media_s, _ in self._parts])

    def bound_at(self, seconds: float) -> float:
        """How far `times` may be off at an instant, seconds, 95 %: as the pictures of the film. Raises NotKnown."""
        return self.recording[f"{self.name.rpartition('/')[0]}/video"].bound_at(seconds)


class CameraSound(SoundBlocks):
    """Blocks of a camera's sound, float32 (channels, samples) within -1 and 1; none may lie in a pause."""

    def __init__(self, recording: RecordingSource, name: str) -> None:
        super().__init__(recording, name)
        self.timeline = timeline_of(recording, name.rpartition("/")[0])
        self._blocks: Iterator[SoundBlock] = iter(())
        self._next = 0
        reopens_in_child(self)

    def leave_to_parent(self) -> object:
        """Forget the file that is open in the process that this one was forked from."""
        left = self._blocks
        self._blocks, self._next = iter(()), 0
        return left

    def _read(self) -> Iterator[SoundBlock]:
        """Decode all sound, chapter by chapter, that of pauses too."""
        for chapter in self.timeline.clip.chapters:
            yield from CameraStream(self.name, Clip([chapter])).sound()

    @cached_property
    def _places(self) -> list[tuple[GoProMedia, Floats, Int64]]:
        """Of each file the media seconds of the blocks that are shown, and their numbers among all blocks."""
        found, done = [], 0
        for chapter in self.timeline.clip.chapters:
            blocks = [
                (block.t_s, block.t_s + block.samples.shape[1] / block.rate_hz, block.rate_hz)
                for block in CameraStream(self.name, Clip([chapter])).sound()
            ]
            ends_s = np.array(blocks, np.float64).reshape(-1, 3)
            self.rate_hz = int(ends_s[0, 2]) if len(ends_s) else 0
            stored = self.recording.stored
            hidden = hidden_in_film(stored, chapter.path, ends_s[:, 0])
            shown = np.flatnonzero(~(hidden | hidden_in_film(stored, chapter.path, ends_s[:, 1])))
            found.append((chapter, ends_s[shown, 0], done + shown))
            done += len(ends_s)
        return found

    @cached_property
    def rate_hz(self) -> int:
        """Samples a second; 0 without any."""
        return 0 if not self._places else self.__dict__["rate_hz"]

    @cached_property
    def _numbers(self) -> Int64:
        return np.concatenate([numbers for *_, numbers in self._places])

    def __len__(self) -> int:
        """Count the blocks."""
        return len(self._numbers)

    @cached_property
    def session_ns(self) -> Int64:
        """Session time of the first sample of each block, (n,) int64 ns. Raises NotKnown."""
        return self.timeline.session_ns([(file, media_s) for file, media_s, _ in self._places])

    def bound_at(self, seconds: float) -> float:
        """How far `times` may be off, seconds; NaN where no block is near. Raises NotKnown."""
        number = self.index_at(seconds)
        pictures, apart_s = self._beside
        bound_s = self.timeline.bound_at_picture(int(pictures[number])) + float(apart_s[number])
        return bound_s if abs(self.times[number] - seconds) <= self.reach_s else float("nan")

    @cached_property
    def _beside(self) -> tuple[Int64, Floats]:
        """The picture beside each block, and how far the sound may lie from the pictures, (n,) seconds."""
        clip, pictures, apart_s = self.timeline.clip, list[Int64](), list[Floats]()
        for start_s, (file, media_s, _) in zip(clip.starts_s, self._places, strict=True):
            after = np.searchsorted(clip.frame_times_s, media_s + float(start_s), side="right")
            pictures.append(np.maximum(after - 1, 0))
            apart_s.append(np.full(len(media_s), sound_bound_s(file)))
        return np.concatenate(pictures), np.concatenate(apart_s)

    def packets(self) -> Iterator[tuple[int, Packet]]:
        """Yield (session ns, packet as it is stored) of the blocks that have a time. Raises NotKnown."""
        ends = np.cumsum([len(media_s) for _, media_s, _ in self._places])
        for (file, media_s, _), ns in zip(self._places, np.split(self.session_ns, ends), strict=False):
            known = dict(zip(media_s.tolist(), ns.tolist(), strict=True))
            for at_s, packet in sound_packets(file):
                if (found := known.get(float(at_s), UNKNOWN)) != UNKNOWN:
                    yield found, packet

    def _value(self, number: int) -> Floats32:
        wanted = int(self._numbers[number])
        if wanted < self._next or self._next == 0:
            self._blocks, self._next = self._read(), 0
        for block in self._blocks:
            self._next += 1
            if self._next > wanted:
                return np.asarray(block.samples, np.float32)
        raise Unreadable(f"{self.name}: block {number} cannot be decoded")

    def close(self) -> None:
        """Close the files that are open."""
        self._blocks, self._next = iter(()), 0
