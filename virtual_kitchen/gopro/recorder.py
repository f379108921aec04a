"""Record one take of the virtual GoPro: render, encode and write at the pace of the world."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from virtual_kitchen.gopro import mp4_boxes
from virtual_kitchen.gopro.encoders import (
    AAC_BITS_PER_S,
    AAC_SAMPLES,
    AUDIO_HZ,
    FIRST_BLOCK,
    HEIGHT,
    WIDTH,
    AudioEncoder,
    VideoEncoder,
)
from virtual_kitchen.gopro.models import FileIds
from virtual_kitchen.gopro.mp4_writer import Mp4Writer, Track
from virtual_kitchen.gopro.sensors import (
    FRAME_TICKS,
    FRAMES_PER_PAYLOAD,
    VIDEO_TIMESCALE,
    Mount,
    Telemetry,
    Timeline,
    frame_media_s,
)
from virtual_kitchen.kitchen import Kitchen
from virtual_kitchen.world.sound import kitchen_sound

SECONDS_PER_DAY = 86400
LONGEST_NAP_S = 0.25


@dataclass(frozen=True)
class WallTimes:
    """The camera's wall clock at the first frame: created_utc_s whole Unix seconds, local_s since the Unix epoch."""

    created_utc_s: int
    local_s: float

    @property
    def timecode_frames(self) -> int:
        """Frames of 1001/30000 s since local midnight."""
        return round(self.local_s % SECONDS_PER_DAY * VIDEO_TIMESCALE / FRAME_TICKS)


class TakeFile:
    """The four tracks of one file; audio and metadata follow the video payload by payload."""

    def __init__(
        self, path: Path, kitchen: Kitchen, timeline: Timeline, ids: FileIds, wall: WallTimes
    ) -> None:
        """Start the file."""
        self._kitchen, self._timeline, self._ids, self._wall = kitchen, timeline, ids, wall
        self._mount = Mount.of_seed(kitchen.seed)
        self._telemetry = Telemetry(kitchen.motion, timeline, self._mount, ids.model.name, kitchen.seed)
        self._video, self._audio = VideoEncoder(), AudioEncoder()
        self._next_block = FIRST_BLOCK
        self._views = np.empty((0, 4))
        self._frames = 0
        self._metadata_frames = 0
        self._writer = Mp4Writer(path, leading=ids.leading_block())
        self._add_tracks()

    def _add_tracks(self) -> None:
        add = self._writer.add_track
        picture = mp4_boxes.video_entry(
            b"hvc1", WIDTH, HEIGHT, "GoPro H.265 encoder", self._video.configuration
        )
        sound = mp4_boxes.aac_entry(2, AUDIO_HZ, AAC_BITS_PER_S, self._audio.configuration)
        code = mp4_boxes.timecode_entry(VIDEO_TIMESCALE, FRAME_TICKS, 30, is_drop_frame=True)
        self._video_track = add(
            Track(1, b"vide", "GoPro H.265", VIDEO_TIMESCALE, picture, mp4_boxes.video_header(), WIDTH, HEIGHT,
                  has_edit=True, timecode_track=3, sync=[])
        )  # fmt: skip
        self._audio_track = add(
            Track(
                2,
                b"soun",
                "GoPro AAC",
                AUDIO_HZ,
                sound,
                mp4_boxes.sound_header(),
                volume=0x100,
                timecode_track=3,
            )
        )
        self._code_track = add(
            Track(3, b"tmcd", "GoPro TCD", VIDEO_TIMESCALE, code, mp4_boxes.timecode_header(), WIDTH, 16)
        )
        self._metadata_track = add(
            Track(4, b"meta", "GoPro MET", 1000, mp4_boxes.gpmf_entry(), mp4_boxes.metadata_header())
        )
        self._writer.write_sample(self._code_track, self._wall.timecode_frames.to_bytes(4, "big"), 0)

    @property
    def frames(self) -> int:
        """Frames rendered so far."""
        return self._frames

    def add_frame(self) -> None:
        """Render and encode the next frame; after each full payload write its sound and its metadata."""
        in_payload = self._frames % FRAMES_PER_PAYLOAD
        if in_payload == 0:
            times = self._timeline.world_s(
                frame_media_s(np.arange(self._frames, self._frames + FRAMES_PER_PAYLOAD))
            )
            self._views = self._mount.camera_orientation(self._kitchen.motion.orientation(times))
        focal_px = self._mount.focal_per_width * WIDTH
        picture = self._kitchen.scene.render_i420(self._views[in_payload], WIDTH, HEIGHT, focal_px)
        self._write_video(self._video.encode(self._frames, picture))
        self._frames += 1
        if self._frames % FRAMES_PER_PAYLOAD == 0:
            self._write_followers()

    def finish(self) -> int:
        """Write what is left and the moov box; return the file's bytes."""
        self._write_video(self._video.flush())
        self._write_followers()
        self._write_audio(self._audio.encode(None))
        self._code_track.durations[0] = self._frames * FRAME_TICKS
        user_data = self._ids.user_data(WIDTH, HEIGHT)
        return self._writer.finish(created_utc_s=self._wall.created_utc_s, user_data=user_data)

    def abandon(self) -> None:
        """Close the file without its moov box."""
        self._writer.abandon()

    def _write_followers(self) -> None:
        frames = self._frames - self._metadata_frames
        if frames:
            self._metadata_frames = self._frames
            duration_ms = round(frames * FRAME_TICKS * 1000 / VIDEO_TIMESCALE)
            self._writer.write_sample(self._metadata_track, self._telemetry.next_payload(frames), duration_ms)
        end_block = int(np.ceil(float(frame_media_s(self._frames)) * AUDIO_HZ / AAC_SAMPLES))
        while self._next_block < end_block:
            media_s = (np.arange(AAC_SAMPLES) + self._next_block * AAC_SAMPLES) / AUDIO_HZ
            heard = kitchen_sound(self._kitchen.seed, self._timeline.world_s(media_s))
            self._write_audio(self._audio.encode(np.stack([heard, heard])))
            self._next_block += 1

    def _write_video(self, samples: Iterator[tuple[bytes, bool]]) -> None:
        for data, is_key in samples:
            self._writer.write_sample(self._video_track, data, FRAME_TICKS, is_sync=is_key)

    def _write_audio(self, blocks: Iterator[bytes]) -> None:
        for data in blocks:
            self._writer.write_sample(self._audio_track, data, AAC_SAMPLES)


class LiveTake:
    """Add each frame once its world time has come, until the world time of the stop.

    A late frame is not dropped: it shows the world as it was at its own time, and what is still missing at the stop
    is finished then. The frames of a take are those that begin before the stop, at least one.
    """

    def __init__(self, kitchen: Kitchen, timeline: Timeline, file: TakeFile) -> None:
        """Prepare; record() begins."""
        self._kitchen, self._timeline, self._file = kitchen, timeline, file
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stop_world_s: float | None = None
        self._is_abandoned = False

    def stop(self) -> float:
        """End the take at this moment of the world and return that moment; record() goes on to finish the file."""
        with self._lock:
            if self._stop_world_s is None:
                self._stop_world_s = self._kitchen.world_time_s(time.monotonic_ns())
            self._wake.set()
            return self._stop_world_s

    def abandon(self) -> None:
        """Give the take up: record() ends at once and leaves no moov box."""
        self._is_abandoned = True
        self.stop()

    def record(self) -> bool:
        """Write the file until it is finished; return False when the take was given up."""
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
        """Return whether the frame of a world time belongs to the take, waiting until that is known."""
        while not self._is_abandoned:
            with self._lock:
                # Decided under the lock of stop(), so that a frame in doubt is in or out for good.
                now_ns = time.monotonic_ns()
                if self._stop_world_s is not None:
                    return world_s < self._stop_world_s or self._file.frames == 0
                if self._kitchen.world_time_s(now_ns) >= world_s:
                    return True
            due_s = (self._kitchen.host_ns_of(world_s) - now_ns) / 1e9
            self._wake.wait(min(max(due_s, 0.001), LONGEST_NAP_S))
        return False
