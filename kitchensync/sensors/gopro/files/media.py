"""A GoPro file: exact frame times, inertial samples on the same time, and the camera's description of itself.

Media time is seconds from the first frame of the file. Everything is read on access; telemetry is read without
reading frames and sound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kitchensync.sensors.errors import BadGpmf, UnreadableMedia
from kitchensync.sensors.gopro.files.picture_reader import PictureReader
from kitchensync.sensors.gopro.files.telemetry import Payload, Telemetry
from kitchensync.sensors.gopro.mp4 import boxes, gpmf
from kitchensync.sensors.gopro.mp4.boxes import edit_shift_s
from kitchensync.sensors.gopro.mp4.sample_tables import read_tables
from kitchensync.sensors.shown_picture import shown_size

if TYPE_CHECKING:
    import av
    import av.container
    import av.stream


@dataclass(frozen=True, slots=True)
class CameraMode:
    """Frame size (px), frame rate (Hz), lens as in the camera's header, and stabilisation."""

    width: int
    height: int
    rate_hz: float
    lens: str | None
    is_stabilised: bool

    @classmethod
    def of(cls, header: Mapping[str, str], *, width: int, height: int, rate_hz: float) -> CameraMode:
        """Read lens (`VFOV`) and stabilisation (`EISE`: on unless it begins with N) from the camera's header."""
        steady = not header.get("EISE", "N").startswith("N")
        return cls(width, height, rate_hz, header.get("VFOV") or None, steady)

    @property
    def lens_name(self) -> str:
        """Part of a file name with all that affects the lens: stabilisation crops and warps, the rate does not."""
        return f"{self.width}x{self.height}-{self.lens or '?'}" + "-stabilized" * self.is_stabilised

    @property
    def latency_name(self) -> str:
        """Text with all that affects the frame latency, which includes the rate."""
        parts = [f"{self.width}x{self.height}", f"{self.rate_hz:.2f}", self.lens or ""]
        return " ".join(filter(None, [*parts, "stabilised" if self.is_stabilised else ""]))


MOST_PIXELS = 50_000_000
"""Largest frame that is decoded; 8K has 33 million pixels. A file of 200 kB may claim a thousand times as many."""
OF_ONE_FILE = {"protocol_whitelist": "file", "format_whitelist": "mov,matroska,webm,avi,mpegts,mpeg,wav,ogg"}
"""Options of libav that exclude playlists, which could open other files."""
MOST_PAYLOADS = 200_000
"""Largest number of telemetry payloads; they come once a second, so this is two days."""


@dataclass(frozen=True)
class VideoInfo:
    """The file's description of its video."""

    codec: str
    width: int
    height: int
    frames: int
    rate: Fraction
    duration_s: float
    clockwise_deg: int = 0
    "Rotation that players apply to the frames."

    @property
    def shown_size(self) -> tuple[int, int]:
        """Width and height as players show it."""
        return shown_size(self.width, self.height, self.clockwise_deg)


@dataclass(frozen=True)
class AudioInfo:
    """The file's description of its sound."""

    codec: str
    rate_hz: int
    frames: int
    "AAC frames."
    duration_s: float


def open_container(path: Path) -> av.container.InputContainer:
    """Open a video with libav; it opens no other file, and decodes no frame larger than `MOST_PIXELS`.

    Raises av.FFmpegError; OSError, also if the index claims more than the file has.
    """
    import av

    boxes.check_counts(path)
    container = av.open(str(path), "r", metadata_errors="replace", options=OF_ONE_FILE)
    for stream in container.streams.video:
        if stream.codec_context is not None:  # None for an unknown codec
            stream.codec_context.options = {"max_pixels": str(MOST_PIXELS)}
    return container


def open_media(path: Path | str) -> GoProMedia:
    """Open an MP4. Raises `UnreadableMedia` if it is incomplete or not an MP4."""
    media = GoProMedia(Path(path))
    with media.container():
        return media


class GoProMedia(Telemetry):
    """One MP4 of a GoPro. Attributes are read on first access."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._moov = boxes.read_moov(path)
        except OSError as error:
            raise UnreadableMedia(path, (error.strerror or str(error)).lower()) from error
        self.tracks = {track.track_id: track for track in boxes.tracks(self._moov)}

    @contextmanager
    def container(self) -> Iterator[av.container.InputContainer]:
        """Open the file with `open_container`, as a context. Raises UnreadableMedia."""
        import av

        try:
            container = open_container(self.path)
        except (av.FFmpegError, OSError) as error:
            raise UnreadableMedia(self.path, (error.strerror or str(error)).lower()) from error
        try:
            yield container
        except av.FFmpegError as error:
            raise UnreadableMedia(self.path, (error.strerror or str(error)).lower()) from error
        finally:
            container.close()

    def _stream_of(self, container: av.container.InputContainer, sample_format: str) -> Any | None:
        """Return the libav stream of the track with this sample description."""
        for stream in container.streams:
            track = self.tracks.get(stream.id)
            if track is not None and track.format == sample_format:
                return stream
        return None

    def _packets(self, sample_format: str) -> list[tuple[int, int, bytes]]:
        """Read the samples of a data track: (pts, duration, bytes), in order; other tracks are not read."""
        with self.container() as container:
            stream = self._stream_of(container, sample_format)
            if stream is None:
                return []
            _discard_others(container, stream)
            return [
                (packet.pts, packet.duration or 0, bytes(packet))
                for packet in container.demux(stream)
                if packet.size and packet.pts is not None
            ]

    # --- pictures -------------------------------------------------------------------------------

    @cached_property
    def video(self) -> VideoInfo | None:
        """Codec, size, count and rate of the frames; None without a video track."""
        with self.container() as container:
            if not container.streams.video:
                return None
            stream = container.streams.video[0]
            self._need_codec(stream)
            rate = stream.average_rate or Fraction(0)
            duration_s = float((stream.duration or 0) * (stream.time_base or Fraction(0)))
            rotation = self.tracks[stream.id].clockwise_deg if stream.id in self.tracks else 0
            return VideoInfo(
                stream.codec_context.name,
                stream.width,
                stream.height,
                stream.frames,
                rate,
                duration_s,
                rotation,
            )

    def _need_codec(self, stream: Any) -> None:
        if stream.codec_context is None:
            raise UnreadableMedia(self.path, f"box stsd of track {stream.id}: unknown codec")

    @cached_property
    def audio(self) -> AudioInfo | None:
        """Codec, rate and count of the sound; None without a sound track."""
        with self.container() as container:
            if not container.streams.audio:
                return None
            stream = container.streams.audio[0]
            self._need_codec(stream)
            duration_s = float((stream.duration or 0) * (stream.time_base or Fraction(0)))
            return AudioInfo(stream.codec_context.name, stream.rate, stream.frames, duration_s)

    @cached_property
    def _frames(self) -> tuple[np.ndarray, Fraction]:
        with self.container() as container:
            if not container.streams.video:
                raise UnreadableMedia(self.path, "no video track")
            stream = container.streams.video[0]
            track = self.tracks.get(stream.id)
            if track is not None and track.reorders:
                _discard_others(container, stream)
                packets = container.demux(stream)
                pts = [packet.pts for packet in packets if packet.pts is not None and not packet.is_discard]
            else:
                # Frames are stored in order, so libav's index has their times, with the edit list applied.
                pts = [entry.timestamp for entry in stream.index_entries if not entry.is_discard]
            return np.sort(np.array(pts, np.int64)), stream.time_base or Fraction(1, 90_000)

    @property
    def hidden_frames(self) -> int:
        """Number of stored frames that an edit list hides; `frame_pts` excludes them."""
        return max(0, self.video.frames - len(self.frame_pts)) if self.video is not None else 0

    @property
    def frame_pts(self) -> np.ndarray:
        """Presentation timestamps of all frames, (n,) int64, in units of `time_base`, with the edit list applied."""
        return self._frames[0]

    @property
    def time_base(self) -> Fraction:
        """Unit of `frame_pts`, seconds."""
        return self._frames[1]

    @cached_property
    def frame_times_s(self) -> np.ndarray:
        """Times of all frames, (n,) float64 seconds, the first is 0; each rounded once from exact integers."""
        pts = self.frame_pts
        if not len(pts):
            return np.empty(0)
        times_s: np.ndarray = (pts - pts[0]) * self.time_base.numerator / self.time_base.denominator
        return times_s

    @cached_property
    def frame_period(self) -> Fraction:
        """Most common step between frames, seconds."""
        steps = np.diff(self.frame_pts)
        if not len(steps):
            return 1 / (self.video.rate or Fraction(30)) if self.video else Fraction(1, 30)
        if (step := int(np.median(steps))) <= 0:
            raise UnreadableMedia(self.path, "box stts: its frames have no duration")
        return step * self.time_base

    @cached_property
    def duration_s(self) -> Fraction:
        """Seconds from the first frame to the end of the last frame, exact."""
        pts = self.frame_pts
        return int(pts[-1] - pts[0]) * self.time_base + self.frame_period if len(pts) else Fraction(0)

    def pictures(self) -> PictureReader:
        """Open the frames, upright, for access by time or number (a context manager)."""
        return PictureReader(self, upright=True)

    # --- telemetry ------------------------------------------------------------------------------

    @cached_property
    def payloads(self) -> list[Payload]:
        """All GPMF payloads in order, including those that an edit list hides; empty without a telemetry track.

        libav drops hidden payloads and misplaces partly hidden ones, so the tables are read here.
        """
        track = next((track for track in self.tracks.values() if track.format == "gpmd"), None)
        if track is None:
            return []
        try:
            tables = read_tables(self.path, "gpmd", track.table, self.path.stat().st_size)
        except UnreadableMedia:
            return self._payloads_of_libav()
        units = track.timescale or 1000
        if len(tables) > MOST_PAYLOADS:
            raise UnreadableMedia(self.path, f"box stsz of track gpmd: {len(tables)} payloads")
        if not len(tables):  # the tables of a fragmented file are in its fragments
            return self._payloads_of_libav()
        if int(tables.sizes.sum()) > self.path.stat().st_size:
            raise UnreadableMedia(self.path, "box stsz of track gpmd: more bytes than the file has")
        shift_s = self._telemetry_shift_s(track, units)
        starts = np.cumsum(tables.durations) - tables.durations
        payloads = []
        with self.path.open("rb") as file:
            rows = zip(starts, tables.durations, tables.offsets, tables.sizes, strict=True)
            for start, duration, offset, size in rows:
                if size:
                    file.seek(offset)
                    start_s = float(Fraction(int(start), units) + shift_s)
                    payloads.append(Payload(start_s, int(duration) / units, file.read(size)))
        return payloads

    def _payloads_of_libav(self) -> list[Payload]:
        """Return the payloads that libav can read, for damaged tables and fragmented files."""
        with self.container() as container:
            stream = self._stream_of(container, "gpmd")
            base = (stream.time_base if stream is not None else None) or Fraction(1, 1000)
        return [
            Payload(float(pts * base), float(duration * base), data)
            for pts, duration, data in self._packets("gpmd")
        ]

    @property
    def telemetry_is_placed(self) -> bool:
        """Return whether an edit list has the position of the telemetry relative to the frames.

        An edit list that moves nothing does not count: some tools write one into every track.
        """
        edits = [edit for track in self.tracks.values() if track.format == "gpmd" for edit in track.edits]
        return any(edit.media_time != 0 for edit in edits)

    @property
    def edited_tracks(self) -> list[boxes.Track]:
        """The tracks with an edit list."""
        return [track for track in self.tracks.values() if track.edits]

    @property
    def movie_timescale(self) -> int:
        """Units of `EditPart.duration` per second."""
        return boxes.timescale(boxes.find(self._moov, "mvhd")) or 1000

    def later_s(self, sample_format: str) -> Fraction:
        """Return the time of a track's time 0 after the first frame, seconds, by the edit lists."""
        track = next(track for track in self.tracks.values() if track.format == sample_format)
        shift_s = edit_shift_s(track.edits, track.timescale or 1000, self.movie_timescale)
        return shift_s - int(self.frame_pts[0]) * self.time_base

    def _telemetry_shift_s(self, track: boxes.Track, units: int) -> Fraction:
        """Return the start of the first payload after the first shown frame, seconds, by the edit lists.

        Edit lists round to the movie's milliseconds. A payload begins with a frame, so the start is rounded to the
        nearest frame if it is close to one.
        """
        try:
            if self.video is None or not len(self.frame_pts):
                return edit_shift_s(track.edits, units, self.movie_timescale)
        except UnreadableMedia:  # the codec is unknown, but the telemetry can be read
            return edit_shift_s(track.edits, units, self.movie_timescale)
        shift_s = self.later_s(track.format)
        on_grid_s = round(shift_s / self.frame_period) * self.frame_period
        return on_grid_s if abs(on_grid_s - shift_s) < self.frame_period / 4 else shift_s

    # --- the camera's description of itself -------------------------------------------------------

    @cached_property
    def header(self) -> dict[str, str]:
        """Texts of the camera's header (udta GPMF): CASN serial, MINF model, FMWR firmware, ..."""
        data = boxes.find(self._moov, "udta", "GPMF")
        if data is None:
            return {}
        try:
            return gpmf.header_texts(data)
        except BadGpmf as error:
            raise UnreadableMedia(self.path, f"the camera's header is {error}") from error

    @property
    def mode(self) -> CameraMode:
        """Settings of the camera. Raises UnreadableMedia without a video track."""
        if self.video is None:
            raise UnreadableMedia(self.path, "it has no frames")
        width, height, rate = self.video.width, self.video.height, float(self.video.rate)
        return CameraMode.of(self.header, width=width, height=height, rate_hz=rate)

    @property
    def camera_model(self) -> str | None:
        """Model in the header, else the telemetry's device name; None without both."""
        if "MINF" in self.header:
            return self.header["MINF"]
        return next((part.device for parts in self.stream_parts for part in parts if part.device), None)

    @property
    def serial(self) -> str | None:
        """Serial number of the camera."""
        return self.header.get("CASN")

    @cached_property
    def container_metadata(self) -> dict[str, str]:
        """Metadata texts that libav reads from the file."""
        with self.container() as container:
            return dict(container.metadata)

    @property
    def firmware(self) -> str | None:
        """Firmware of the camera."""
        return self.header.get("FMWR") or self.container_metadata.get("firmware")

    @property
    def creation_time(self) -> str | None:
        """Start in the file, in whole seconds, formatted as UTC; older cameras store their local time."""
        return self.container_metadata.get("creation_time")

    @property
    def handlers(self) -> list[str]:
        """Names of the tracks, in order."""
        with self.container() as container:
            names = [stream.metadata.get("handler_name", "") for stream in container.streams]
        return [name.strip("\0\t\n\x0b\x0c\r ") for name in names]

    @cached_property
    def timecode(self) -> boxes.TimecodeFormat | None:
        """Format of the time code; None without one."""
        track = next((track for track in self.tracks.values() if track.format == "tmcd"), None)
        return boxes.timecode_format(track.description) if track is not None else None

    @cached_property
    def tmcd_frames(self) -> int | None:
        """Frames from the camera's local midnight to the first frame of the file; None without a time code."""
        samples = self._packets("tmcd")
        return int.from_bytes(samples[0][2][:4], "big") if samples and len(samples[0][2]) >= 4 else None

    @property
    def tmcd_wall_seconds_since_midnight(self) -> float | None:
        """Seconds from local midnight to the first frame: frames x frame duration, not the displayed time code."""
        if self.tmcd_frames is None or self.timecode is None:
            return None
        return self.tmcd_frames * self.timecode.frame_duration / self.timecode.timescale

    @property
    def tmcd_displayed(self) -> str | None:
        """The time code as players display it; without dropped frame numbers it runs behind the wall clock."""
        if self.tmcd_frames is None or self.timecode is None:
            return None
        return boxes.printed(self.tmcd_frames, self.timecode)


def _discard_others(container: av.container.InputContainer, selected: av.stream.Stream) -> None:
    """Make libav skip the bytes of all other tracks."""
    from av.stream import Discard

    for stream in container.streams:
        if stream.index != selected.index:
            stream.discard = Discard.all
