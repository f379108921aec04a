"""The video of a camera, all clips and chapters joined, with its motion and sound, on session time."""

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
    """A chapter of a video is missing or damaged."""


class FilmTimeline:
    """Session times of a camera's frames, motion and sound, from the alignments that `sync` wrote."""

    def __init__(self, recording: RecordingSource, camera: str) -> None:
        self.recording, self.camera = recording, camera

    @cached_property
    def clip(self) -> Clip:
        """All files of the camera as one video. Raises FilmUnreadable."""
        try:
            return film_of(self.recording.path, self.camera, self.recording.films[self.camera])
        except SensorError as error:
            raise FilmUnreadable(f"{self.recording.id}: {error}") from error

    @cached_property
    def pictures(self) -> FilmTimes:
        """Capture time of each frame, on the capture clock."""
        return capture_times(self.recording.stored, self.camera, self.clip)

    @cached_property
    def clocks(self) -> dict[Path, FilmClock]:
        """The clock of each file that is aligned with a headset."""
        clocks, _ = film_clocks(self.recording.path, self.recording.stored.readable)
        return {clock.file: clock for clock in clocks}

    @cached_property
    def hidden(self) -> npt.NDArray[np.bool_]:
        """Mask of the frames that may be in a privacy pause, (n,); all of them if their times are unknown."""
        stored, chapters = self.recording.stored, self.clip.chapters
        return np.concatenate(
            [hidden_in_film(stored, chapter.path, chapter.frame_times_s) for chapter in chapters]
        )

    @property
    def bounds_s(self) -> Floats:
        """Error bound of the time of each frame, (n,) seconds, 95 %; NaN where it is unknown."""
        times = self.pictures
        return np.where(times.capture_ns == UNKNOWN, np.nan, times.bound_ns / 1e9)

    def bound_at_picture(self, number: int) -> float:
        """Return the error bound of the time of a frame, seconds, 95 %. Raises NotKnown."""
        bound_s = float(self.bounds_s[number])
        if np.isnan(bound_s):
            why = self.pictures.why or "run `kitchensync sync` first"
            raise NotKnown(f"{self.recording.id}: {self.camera}: {why}")
        return bound_s

    def session_ns(self, parts: list[tuple[GoProMedia, Floats]], *, of_pictures: bool = False) -> Int64:
        """Return session ns of media seconds of some files, joined; UNKNOWN for a file that is not aligned.

        Raises NotKnown if none of them is aligned.
        """
        aligned = [self._of_file(file, media_s, of_pictures=of_pictures) for file, media_s in parts]
        if parts and all(file_ns is None for file_ns in aligned):
            why = self.pictures.why or "run `kitchensync sync` first"
            raise NotKnown(f"{self.recording.id}: the start of {self.camera}'s video is unknown: {why}")
        times = [
            np.full(len(media_s), UNKNOWN) if file_ns is None else file_ns
            for file_ns, (_, media_s) in zip(aligned, parts, strict=True)
        ]
        return np.concatenate(times) if times else np.empty(0, np.int64)

    def _of_file(self, file: GoProMedia, media_s: Floats, *, of_pictures: bool) -> Int64 | None:
        clock, stored, session = self.clocks.get(file.path), self.recording.stored, self.recording.clock
        if clock is None:
            return None if stored.main_headset else self._without_headset(file, media_s)
        at_s = media_s + (clock.picture_late_s if of_pictures else 0.0)
        host = session.host_clock(clock.headset)
        if host is None:
            # Without clock exchanges only the ticks of the main headset are on session time.
            if clock.headset != session.main_headset:
                return None
            ticks = clock.ticks_of(at_s)
            return session.of_ticks(clock.headset, ticks, 100 * ticks)
        host_ns = film_host_ns(stored, self.camera, clock, host, at_s)
        return None if host_ns is None else session.of_ticks(clock.headset, clock.ticks_of(at_s), host_ns)

    def _without_headset(self, file: GoProMedia, media_s: Floats) -> Int64 | None:
        """Return session ns by an event in the video, else its own time or that of the video it is aligned with."""
        media_ns = np.rint(media_s * 1e9).astype(np.int64)
        if self.pictures.is_placed:
            first = self.clip.first_frames[self.clip.chapters.index(file)]
            begun_ns = int(self.pictures.capture_ns[first])
            return None if begun_ns == UNKNOWN else self.recording.clock.of_host(begun_ns + media_ns)
        if self.recording.clock.has_host:
            return None
        clock_map = self.recording.films_on_films.get(f"{self.camera}/{file.path.name}")
        if clock_map is not None:
            return clock_map.to_ticks(media_s) * 100
        zero_s = self._reference_zero_s(file)
        begins_s = self.clip.starts_s[self.clip.chapters.index(file)]
        return None if zero_s is None else media_ns + round((begins_s - zero_s) * 10**9)

    def _reference_zero_s(self, file: GoProMedia) -> Fraction | None:
        """Return the start of a file's clip in the video, if others were aligned with it or it is the only clip."""
        chapters = self.clip.chapters
        groups = [group.paths for group in group_clips(chapter.path for chapter in chapters)]
        paths = next((paths for paths in groups if file.path in paths), (file.path,))
        starts_s = {chapter.path: at for chapter, at in zip(chapters, self.clip.starts_s, strict=True)}
        references = self.recording.reference_films
        if not references:
            is_only = len(self.recording.film_cameras) == 1 and len(groups) <= 1
            return starts_s[paths[0]] if is_only else None
        reference = next((path for path in paths if f"{self.camera}/{path.name}" in references), None)
        return starts_s[reference] if reference is not None else None


def timeline_of(recording: RecordingSource, camera: str) -> FilmTimeline:
    """Return the timeline of a camera's video, made once for each recording."""
    if camera not in recording.timelines:
        recording.timelines[camera] = FilmTimeline(recording, camera)
    timeline: FilmTimeline = recording.timelines[camera]
    return timeline


class FilmStream(TimedStream):
    """Frames of a camera's video, upright, uint8 RGB (h, w, 3)."""

    kind = "frames"

    def __init__(self, recording: RecordingSource, name: str) -> None:
        super().__init__(recording, name)
        self.timeline = timeline_of(recording, name.rpartition("/")[0])
        self._stack = ExitStack()

    @cached_property
    def rows(self) -> Int64:
        """Numbers in the video of the frames outside privacy pauses, (n,)."""
        return np.flatnonzero(~self.timeline.hidden)

    def __len__(self) -> int:
        """Count the frames."""
        return len(self.rows)

    @property
    def media_times(self) -> Floats:
        """Seconds since the first frame of the video, (n,), as a player shows them."""
        return self.timeline.clip.frame_times_s[self.rows]

    @cached_property
    def session_ns(self) -> Int64:
        """Session time of each frame, (n,) int64 ns, as `sync` aligned it. Raises NotKnown."""
        parts = [(chapter, chapter.frame_times_s) for chapter in self.timeline.clip.chapters]
        return self.timeline.session_ns(parts, of_pictures=True)[self.rows]

    @property
    def bounds_s(self) -> Floats:
        """Error bounds of `times`, (n,) seconds, 95 %; NaN where unknown."""
        return self.timeline.bounds_s[self.rows]

    def bound_at(self, seconds: float) -> float:
        """Return the error bound at an instant, seconds, 95 %; NaN if no frame is near. Raises NotKnown."""
        number = self.index_near(seconds)
        return float("nan") if number is None else self.timeline.bound_at_picture(int(self.rows[number]))

    @cached_property
    def _pictures(self) -> ClipPictures:
        return self._stack.enter_context(self.timeline.clip.pictures())

    def _value(self, number: int) -> npt.NDArray[np.uint8]:
        return self._pictures.number(int(self.rows[number])).rgb

    def small(self, number: int, width: int) -> npt.NDArray[np.uint8]:
        """Return a frame scaled to a width in pixels. Raises Unreadable."""
        return self._pictures.number(int(self.rows[number]), width).rgb

    def project(self, number: int, points: npt.ArrayLike) -> Floats:
        """Project points of the world, (..., 3) metres, into frame `number`: pixels (..., 2), x and y.

        NaN outside of the frame, behind the camera, for points that are NaN, and where the head was not tracked. Uses
        the lens and mount from `calibrate gopro` and `calibrate rig`, stored next to the recording.
        Raises Refused if one of them is missing.
        """
        view = self.view(number)
        if view is None:
            return np.full((*np.shape(points)[:-1], 2), np.nan)
        chapter, _ = self._in_file(number)
        assert chapter.video is not None, "files with a view have video"
        pixels = pixels_in_picture(view.camera, view.camera_from_world, points)
        size, turns = (view.camera.width, view.camera.height), self._eyes[chapter.path].turns
        return shown_pixels(pixels, size, turns, chapter.video.shown_size)

    def view(self, number: int) -> View | None:
        """Return lens and pose of the camera at frame `number`, as it is stored; None if the head was not tracked.

        Raises Refused if lens or mount is not calibrated.
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
        """Calibrated camera of each file that is aligned. Raises Refused."""
        from kitchensync.reader.cameras.eyes import GoPro

        clocks = self.timeline.clocks
        paths = [chapter.path for chapter in self.timeline.clip.chapters if chapter.path in clocks]
        return {path: GoPro(self.recording, clocks[path]) for path in paths}

    def close(self) -> None:
        """Close the files that are open."""
        self._stack.close()
        self.__dict__.pop("_pictures", None)


class CameraMotion(MotionStream):
    """An inertial sensor of a camera over its whole video: X left, Y out of the screen, Z up."""

    def __init__(self, recording: RecordingSource, name: str) -> None:
        super().__init__(recording, name)
        self.timeline = timeline_of(recording, name.rpartition("/")[0])

    @property
    def unit(self) -> str:
        """Unit of the values, `rad/s` or `m/s^2`."""
        return CAMERA_STREAMS[self.name.rpartition("/")[2]].unit

    @cached_property
    def _parts(self) -> list[tuple[GoProMedia, Floats, Floats32]]:
        """File, media seconds and values, without samples that may be in a privacy pause."""
        read = CAMERA_STREAMS[self.name.rpartition("/")[2]].imu
        assert read is not None, "CAMERA_KINDS makes it for inertial streams only"
        parts: list[tuple[GoProMedia, Floats, Floats32]] = []
        for chapter in self.timeline.clip.chapters:
            track, clock = read(Clip([chapter])), self.timeline.clocks.get(chapter.path)
            media_s = track.t_s - (clock.telemetry_late_s if clock is not None else 0.0)
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
        """Return the error bound of `times` at an instant, seconds, 95 %: that of the frames. Raises NotKnown."""
        return self.recording[f"{self.name.rpartition('/')[0]}/video"].bound_at(seconds)


class CameraSound(SoundBlocks):
    """Blocks of a camera's sound outside privacy pauses, float32 (channels, samples) within -1 and 1."""

    def __init__(self, recording: RecordingSource, name: str) -> None:
        super().__init__(recording, name)
        self.timeline = timeline_of(recording, name.rpartition("/")[0])
        self._blocks: Iterator[SoundBlock] = iter(())
        self._next = 0
        reopens_in_child(self)

    def leave_to_parent(self) -> object:
        """Forget the file that the parent process has open."""
        parents_blocks = self._blocks
        self._blocks, self._next = iter(()), 0
        return parents_blocks

    def _read(self) -> Iterator[SoundBlock]:
        """Decode all sound, chapter by chapter, with that of privacy pauses."""
        for chapter in self.timeline.clip.chapters:
            yield from CameraStream(self.name, Clip([chapter])).sound()

    @cached_property
    def _places(self) -> list[tuple[GoProMedia, Floats, Int64]]:
        """File, media seconds of the blocks outside privacy pauses, and their numbers among all blocks."""
        places, done = [], 0
        for chapter in self.timeline.clip.chapters:
            blocks = [
                (block.t_s, block.t_s + block.samples.shape[1] / block.rate_hz, block.rate_hz)
                for block in CameraStream(self.name, Clip([chapter])).sound()
            ]
            spans = np.array(blocks, np.float64).reshape(-1, 3)
            self.rate_hz = int(spans[0, 2]) if len(spans) else 0
            stored = self.recording.stored
            hidden = hidden_in_film(stored, chapter.path, spans[:, 0])
            shown = np.flatnonzero(~(hidden | hidden_in_film(stored, chapter.path, spans[:, 1])))
            places.append((chapter, spans[shown, 0], done + shown))
            done += len(spans)
        return places

    @cached_property
    def rate_hz(self) -> int:
        """Samples per second; 0 without sound. Reading `_places` sets it."""
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
        """Return the error bound of `times`, seconds; NaN if no block is near. Raises NotKnown."""
        number = self.index_at(seconds)
        frames, offset_s = self._frames_beside
        bound_s = self.timeline.bound_at_picture(int(frames[number])) + float(offset_s[number])
        return bound_s if abs(self.times[number] - seconds) <= self.reach_s else float("nan")

    @cached_property
    def _frames_beside(self) -> tuple[Int64, Floats]:
        """The frame shown at each block, and the largest offset between sound and frames, (n,) seconds."""
        clip, frames, offset_s = self.timeline.clip, list[Int64](), list[Floats]()
        for start_s, (file, media_s, _) in zip(clip.starts_s, self._places, strict=True):
            after = np.searchsorted(clip.frame_times_s, media_s + float(start_s), side="right")
            frames.append(np.maximum(after - 1, 0))
            offset_s.append(np.full(len(media_s), sound_bound_s(file)))
        return np.concatenate(frames), np.concatenate(offset_s)

    def packets(self) -> Iterator[tuple[int, Packet]]:
        """Yield (session ns, undecoded packet) of the blocks that have a time. Raises NotKnown."""
        ends = np.cumsum([len(media_s) for _, media_s, _ in self._places])
        for (file, media_s, _), ns in zip(self._places, np.split(self.session_ns, ends), strict=False):
            session_ns = dict(zip(media_s.tolist(), ns.tolist(), strict=True))
            for at_s, packet in sound_packets(file):
                if (time_ns := session_ns.get(float(at_s), UNKNOWN)) != UNKNOWN:
                    yield time_ns, packet

    def _value(self, number: int) -> Floats32:
        position = int(self._numbers[number])
        # Sound is decoded in order: going back starts again at the first block.
        if position < self._next or self._next == 0:
            self._blocks, self._next = self._read(), 0
        for block in self._blocks:
            self._next += 1
            if self._next > position:
                return np.asarray(block.samples, np.float32)
        raise Unreadable(f"{self.name}: block {number} cannot be decoded")

    def close(self) -> None:
        """Close the files that are open."""
        self._blocks, self._next = iter(()), 0
