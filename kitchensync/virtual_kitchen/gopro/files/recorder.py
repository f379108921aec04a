"""Record one clip of the virtual GoPro: render, encode and write in world time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from kitchensync.virtual_kitchen.gopro.files.board_roll import film, roll_of
from kitchensync.virtual_kitchen.gopro.files.chapters import (
    Chapter,
    ChapterRule,
    ChapterWriter,
    PictureFormat,
    WallTimes,
)
from kitchensync.virtual_kitchen.gopro.files.encoders import (
    AAC_SAMPLES,
    AUDIO_HZ,
    FIRST_BLOCK,
    AudioEncoder,
    VideoEncoder,
)
from kitchensync.virtual_kitchen.gopro.files.film_grid import FilmGrid, GridView
from kitchensync.virtual_kitchen.gopro.files.models import FileIds, chapter_path
from kitchensync.virtual_kitchen.gopro.files.sensors import (
    FRAMES_PER_PAYLOAD,
    CameraMount,
    Instruments,
    TelemetryWriter,
    Timeline,
    frame_media_s,
)
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.world.frame_counter import draw_i420
from kitchensync.virtual_kitchen.world.sound import kitchen_sound


class KitchenView:
    """The camera's view of the kitchen, rendered and encoded frame by frame."""

    def __init__(self, kitchen: Kitchen, mount: CameraMount) -> None:
        self.size = kitchen.gopro_size
        self._scene, self._motion = kitchen.scene, kitchen.motion
        self._has_counter = kitchen.frame_counter
        self._mount = mount
        self._encoder = VideoEncoder(*self.size)
        self.configuration = self._encoder.configuration
        self._views = np.empty((0, 4))

    def frame(self, number: int, world_s: np.ndarray) -> Iterator[tuple[bytes, bool]]:
        """Yield the samples that frame `number` completes; `world_s` are the world times of its payload."""
        in_payload = number % FRAMES_PER_PAYLOAD
        if in_payload == 0:
            self._views = self._mount.camera_orientation(self._motion.orientation(world_s))
        width, height = self.size
        focal_px = self._mount.focal_per_width * width
        picture = self._scene.render_i420(self._views[in_payload], width, height, focal_px)
        if self._has_counter:
            draw_i420(picture, number, height)
        yield from self._encoder.encode(number, picture)

    def flush(self) -> Iterator[tuple[bytes, bool]]:
        """Yield the samples still in the encoder."""
        yield from self._encoder.flush()


class BoardView:
    """The board that the cook shows, from groups of pictures that are already encoded."""

    def __init__(self, kitchen: Kitchen) -> None:
        assert kitchen.show is not None
        self._roll = roll_of(kitchen.show)
        self.size = (self._roll.width, self._roll.height)
        self.configuration = self._roll.configuration
        self._samples: Iterator[tuple[bytes, bool]] = iter(())

    def frame(self, number: int, world_s: np.ndarray) -> Iterator[tuple[bytes, bool]]:
        """Yield the sample of frame `number`; the first call sets where in the show the video begins."""
        if number == 0:
            self._samples = film(self._roll, float(world_s[0]))
        yield next(self._samples)

    def flush(self) -> Iterator[tuple[bytes, bool]]:
        """Yield nothing: no encoder holds frames back."""
        yield from ()


def _view(
    kitchen: Kitchen, mount: CameraMount, grid: FilmGrid | None, timeline: Timeline
) -> KitchenView | BoardView | GridView:
    if kitchen.show is not None:
        return BoardView(kitchen)
    if grid is not None:
        return GridView(grid, grid.first_at(timeline.start_world_s))
    return KitchenView(kitchen, mount)


LONGEST_NAP_S = 0.25
ALL_INSTRUMENTS = Instruments()
ONE_CHAPTER = ChapterRule()


class ClipFile:
    """The four tracks of one recording; audio and metadata follow the video payload by payload."""

    def __init__(
        self,
        path: Path,
        kitchen: Kitchen,
        timeline: Timeline,
        ids: FileIds,
        wall: WallTimes,
        *,
        instruments: Instruments = ALL_INSTRUMENTS,
        rule: ChapterRule = ONE_CHAPTER,
        on_chapter: Callable[[Chapter], None] | None = None,
        grid: FilmGrid | None = None,
    ) -> None:
        """Start the first chapter's file at `path`; the later ones get their own names beside it."""
        self._kitchen, self._timeline = kitchen, timeline
        mount = CameraMount.of_seed(ids.seed)
        self._telemetry = TelemetryWriter(
            kitchen.motion,
            timeline,
            mount,
            ids.model.name,
            kitchen.seed,
            instruments,
        )
        self._picture_late_s = instruments.picture_late_s
        self._view = _view(kitchen, mount, grid, timeline)
        self._audio = AudioEncoder()
        self._next_block = FIRST_BLOCK
        self._world_s = np.empty(0)
        self._frames = 0
        self._metadata_frames = 0
        pictures = PictureFormat(b"hvc1", *self._view.size, self._view.configuration)
        self.writer = ChapterWriter(
            partial(chapter_path, path), pictures, self._audio.configuration, ids, wall, rule, on_chapter
        )

    @property
    def frames(self) -> int:
        """Frames rendered so far."""
        return self._frames

    def add_frame(self) -> None:
        """Render and encode the next frame; after each full payload write its sound and its metadata."""
        if self._frames % FRAMES_PER_PAYLOAD == 0:
            payload = np.arange(self._frames, self._frames + FRAMES_PER_PAYLOAD)
            self._world_s = self._timeline.world_s(frame_media_s(payload) + self._picture_late_s)
        self._write_video(self._view.frame(self._frames, self._world_s))
        self._frames += 1
        if self._frames % FRAMES_PER_PAYLOAD == 0:
            self._write_followers()

    def finish(self) -> int:
        """Write the remaining samples and the moov box; return the size of the last file."""
        self._write_video(self._view.flush())
        self._write_followers()
        self._write_audio(self._audio.encode(None))
        return self.writer.finish()

    def abandon(self) -> None:
        """Close the file without its moov box."""
        self.writer.abandon()

    def _write_followers(self) -> None:
        frames = self._frames - self._metadata_frames
        end_block = int(np.ceil(float(frame_media_s(self._frames)) * AUDIO_HZ / AAC_SAMPLES))
        while self._next_block < end_block:
            media_s = (np.arange(AAC_SAMPLES) + self._next_block * AAC_SAMPLES) / AUDIO_HZ
            heard = kitchen_sound(self._kitchen.seed, self._timeline.world_s(media_s))
            self._write_audio(self._audio.encode(np.stack([heard, heard])))
            self._next_block += 1
        if frames:
            self._metadata_frames = self._frames
            self.writer.metadata(self._telemetry.next_payload(frames), frames)

    def _write_video(self, samples: Iterator[tuple[bytes, bool]]) -> None:
        for data, is_key in samples:
            self.writer.video(data, is_key=is_key)

    def _write_audio(self, blocks: Iterator[bytes]) -> None:
        for data in blocks:
            self.writer.audio(data)


class LiveClip:
    """Adds each frame when its world time has come, until the world time of the stop.

    A late frame is not dropped: it shows the world at its own time, and frames still missing at the stop are added
    then. The frames of a clip are those that begin before the stop, at least one.
    """

    def __init__(self, kitchen: Kitchen, timeline: Timeline, file: ClipFile) -> None:
        """Prepare; record() begins."""
        self._kitchen, self._timeline, self._file = kitchen, timeline, file
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stop_world_s: float | None = None
        self._is_abandoned = False

    def stop(self) -> float:
        """End the clip at the current world time and return it; record() goes on to finish the file."""
        with self._lock:
            if self._stop_world_s is None:
                self._stop_world_s = self._kitchen.now_s()
            self._wake.set()
            return self._stop_world_s

    def abandon(self) -> None:
        """Abandon the clip: record() ends immediately and writes no moov box."""
        self._is_abandoned = True
        self.stop()

    def record(self) -> bool:
        """Write the file until it is finished; return False if the clip was abandoned."""
        is_finished = False
        try:
            while self._wait_for(float(self._timeline.world_s(frame_media_s(self._file.frames)))):
                self._file.add_frame()
            if not self._is_abandoned:
                self._file.finish()
                is_finished = True
        finally:
            if not is_finished:
                self._file.abandon()
        return is_finished

    def _wait_for(self, world_s: float) -> bool:
        """Wait until it is known whether the frame of a world time belongs to the clip; return that."""
        while not self._is_abandoned:
            with self._lock:
                # The lock of stop(): a frame at the time of the stop must not be decided twice.
                now_ns = self._kitchen.clock.now_ns()
                if self._stop_world_s is not None:
                    return world_s < self._stop_world_s or self._file.frames == 0
                if self._kitchen.world_time_s(now_ns) >= world_s:
                    return True
            due_s = (self._kitchen.host_ns_of(world_s) - now_ns) / 1e9
            self._kitchen.clock.nap(self._wake, min(max(due_s, 0.001), LONGEST_NAP_S))
        return False
