"""Write encoded samples into the chapters of one recording: all files share start time and counters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kitchensync.virtual_kitchen.gopro.files import mp4_writer
from kitchensync.virtual_kitchen.gopro.files.encoders import AAC_BITS_PER_S, AAC_SAMPLES, AUDIO_HZ
from kitchensync.virtual_kitchen.gopro.files.models import FileIds
from kitchensync.virtual_kitchen.gopro.files.mp4_writer import Mp4Writer, TrackWriter
from kitchensync.virtual_kitchen.gopro.files.sensors import FRAME_TICKS, FRAMES_PER_PAYLOAD, VIDEO_TIMESCALE

SECONDS_PER_DAY = 86400
HANDLERS = {b"hvc1": ("GoPro H.265", "GoPro H.265 encoder"), b"avc1": ("GoPro AVC", "GoPro AVC encoder")}


@dataclass(frozen=True)
class WallTimes:
    """The camera's wall clock at the first frame: created_utc_s whole Unix seconds, local_s since the Unix epoch."""

    created_utc_s: int
    local_s: float

    @property
    def timecode_frames(self) -> int:
        """Frames of 1001/30000 s since local midnight."""
        return round(self.local_s % SECONDS_PER_DAY * VIDEO_TIMESCALE / FRAME_TICKS)


@dataclass(frozen=True)
class PictureFormat:
    """Video encoding: hvc1 or avc1, frame size, decoder configuration record."""

    codec: bytes
    width: int
    height: int
    configuration: bytes


@dataclass(frozen=True)
class ChapterRule:
    """When a new chapter begins, always after a whole payload; `hole_bytes` unused, sparse bytes precede the data."""

    frames: int | None = None
    bytes: int | None = None
    hole_bytes: int = 0


@dataclass(frozen=True)
class Chapter:
    """One finished file of a recording."""

    number: int
    path: Path
    first_frame: int
    frames: int
    size: int


class ChapterWriter:
    """Writes samples to the file of their chapter. Sound is split with the video, to one block."""

    def __init__(
        self,
        path_of: Callable[[int], Path],
        pictures: PictureFormat,
        sound_configuration: bytes,
        ids: FileIds,
        wall: WallTimes,
        rule: ChapterRule,
        on_chapter: Callable[[Chapter], None] | None = None,
    ) -> None:
        """Start the first file; `on_chapter` is called for each finished file that is followed by another."""
        self._path_of, self._pictures, self._sound = path_of, pictures, sound_configuration
        self._ids, self._wall, self._rule, self._on_chapter = ids, wall, rule, on_chapter
        self._ends_at: int | None = None
        self._first_frame = 0
        self._video_frames = 0
        self._metadata_frames = 0
        self.chapters: list[Chapter] = []
        self.hilights_ms: list[int] = []
        self._open()

    @property
    def path(self) -> Path:
        """The file being written."""
        return self._path

    def video(self, data: bytes, *, is_key: bool) -> None:
        """Append the sample of the next frame."""
        if self._video_frames == self._ends_at:
            self._close(is_last=False)
            self._first_frame, self._ends_at = self._video_frames, None
            self._open()
        self._writer.write_sample(self._video, data, FRAME_TICKS, is_sync=is_key)
        self._video_frames += 1

    def audio(self, data: bytes) -> None:
        """Append one AAC block."""
        self._writer.write_sample(self._audio, data, AAC_SAMPLES)

    def metadata(self, payload: bytes, frames: int) -> None:
        """Append the payload of the next frames; a chapter may end after it."""
        self._metadata_frames += frames
        duration_ms = round(frames * FRAME_TICKS * 1000 / VIDEO_TIMESCALE)
        self._writer.write_sample(self._metadata, payload, duration_ms)
        if frames == FRAMES_PER_PAYLOAD and self._is_full():
            self._ends_at = self._metadata_frames

    def finish(self) -> int:
        """Close the last chapter; return its bytes."""
        return self._close(is_last=True)

    def abandon(self) -> None:
        """Close the file without its moov box, as after a power loss."""
        self._writer.abandon()

    def _is_full(self) -> bool:
        rule = self._rule
        by_frames = rule.frames is not None and self._metadata_frames - self._first_frame >= rule.frames
        return by_frames or (rule.bytes is not None and self._writer.written_bytes >= rule.bytes)

    def _open(self) -> None:
        self._path = self._path_of(len(self.chapters) + 1)
        self._writer = Mp4Writer(
            self._path, leading=self._ids.leading_block(), hole_bytes=self._rule.hole_bytes
        )
        add, pictures = self._writer.add_track, self._pictures
        name, compressor = HANDLERS[pictures.codec]
        shape = (pictures.width, pictures.height)
        entry = mp4_writer.video_entry(pictures.codec, *shape, compressor, pictures.configuration)
        sound = mp4_writer.aac_entry(2, AUDIO_HZ, AAC_BITS_PER_S, self._sound)
        code = mp4_writer.timecode_entry(
            VIDEO_TIMESCALE, FRAME_TICKS, 30, is_drop_frame=self._ids.model.drop_frame
        )
        self._video = add(
            TrackWriter(1, b"vide", name, VIDEO_TIMESCALE, entry, mp4_writer.VIDEO_HEADER, *shape,
                  has_edit=True, timecode_track=3, sync=[])
        )  # fmt: skip
        header = mp4_writer.SOUND_HEADER
        self._audio = add(
            TrackWriter(2, b"soun", "GoPro AAC", AUDIO_HZ, sound, header, volume=0x100, timecode_track=3)
        )
        header = mp4_writer.timecode_header()
        self._code = add(
            TrackWriter(3, b"tmcd", "GoPro TCD", VIDEO_TIMESCALE, code, header, pictures.width, 16)
        )
        self._metadata = add(
            TrackWriter(4, b"meta", "GoPro MET", 1000, mp4_writer.GPMF_ENTRY, mp4_writer.METADATA_HEADER)
        )
        count = self._wall.timecode_frames + self._first_frame
        self._writer.write_sample(self._code, count.to_bytes(4, "big"), 0)

    def _close(self, *, is_last: bool) -> int:
        frames = self._video_frames - self._first_frame
        self._code.durations[0] = frames * FRAME_TICKS
        user_data = self._ids.user_data(self._pictures.width, self._pictures.height, self.hilights_ms)
        size = self._writer.finish(created_utc_s=self._wall.created_utc_s, user_data=user_data)
        chapter = Chapter(len(self.chapters) + 1, self._path, self._first_frame, frames, size)
        self.chapters.append(chapter)
        if self._on_chapter is not None and not is_last:
            self._on_chapter(chapter)
        return size
