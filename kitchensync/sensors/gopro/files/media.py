"""A GoPro file: exact frame times, the inertial samples on the same time, and what the camera says of itself.

Media time is seconds from the first picture of the file. Everything is read on demand; the pictures and the
sound are never read to learn about the telemetry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

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
    """Size of the pictures (px), their rate (Hz), the lens as the camera's header says it, and stabilisation."""

    width: int
    height: int
    rate_hz: float
    lens: str | None
    is_stabilised: bool

    @classmethod
    def of(cls, header: Mapping[str, str], *, width: int, height: int, rate_hz: float) -> CameraMode:
        """Read lens (`VFOV`) and stabilisation (`EISE`: anything but N is on) from the camera's own header."""
        steady = not header.get("EISE", "N").startswith("N")
        return cls(width, height, rate_hz, header.get("VFOV") or None, steady)

    @property
    def lens_name(self) -> str:
        """What the lens depends on, as a part of a file name: stabilisation crops and warps, the rate does not."""
        return f"{self.width}x{self.height}-{self.lens or '?'}" + "-stabilized" * self.is_stabilised

    @property
    def latency_name(self) -> str:
        """What the picture latency depends on: the rate too."""
        parts = [f"{self.width}x{self.height}", f"{self.rate_hz:.2f}", self.lens or ""]
        return " ".join(filter(None, [*parts, "stabilised" if self.is_stabilised else ""]))


MOST_PIXELS = 50_000_000
"""Of one picture of a film; 8K has 33 million. A file of 200 kB may promise a thousand times as many."""
OF_ONE_FILE = {"protocol_whitelist": "file", "format_whitelist": "mov,matroska,webm,avi,mpegts,mpeg,wav,ogg"}
"""For libav: a list of other files is no film."""
MOST_PAYLOADS = 200_000
"""Of telemetry, which comes once a second: of two days."""


@dataclass(frozen=True)
class VideoInfo:
    """What the file says of its pictures."""

    codec: str
    width: int
    height: int
    frames: int
    rate: Fraction
    duration_s: float
    clockwise_deg: int = 0
    "By how much players turn its pictures."

    @property
    def shown_size(self) -> tuple[int, int]:
        """Width and height as players show it."""
        return shown_size(self.width, self.height, self.clockwise_deg)


@dataclass(frozen=True)
class AudioInfo:
    """What the file says of its sound."""

    codec: str
    rate_hz: int
    frames: int
    "AAC frames."
    duration_s: float


def open_container(path: Path) -> av.container.InputContainer:
    """Open a video with libav: no other file is opened, and no picture beyond `MOST_PIXELS` is decoded.

    Raises av.FFmpegError; OSError, also where its index promises more than the file holds.
    """
    import av

    boxes.check_counts(path)
    container = av.open(str(path), "r", metadata_errors="replace", options=OF_ONE_FILE)
    for stream in container.streams.video:
        if stream.codec_context is not None:  # None where nobody can decode it
            stream.codec_context.options = {"max_pixels": str(MOST_PIXELS)}
    return container


def open_media(path: Path | str) -> GoProMedia:
    """Open an MP4; `UnreadableMedia` in one line when it is not whole or not one."""
    media = GoProMedia(Path(path))
    with media.container():
        return media


class GoProMedia(Telemetry):
    """One MP4 of a GoPro. Attributes are read when first asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._moov = boxes.read_moov(path)
        except OSError as error:
            raise UnreadableMedia(path, (error.strerror or str(error)).lower()) from error
        self.tracks = {track.track_id: track for track in boxes.tracks(self._moov)}

    @contextmanager
    def container(self) -> Iterator[av.container.InputContainer]:
        """Open the file with libav for a moment, as `open_container` does. Raises UnreadableMedia."""
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
        """Find the libav stream whose track has this sample description."""
        for stream in container.streams:
            track = self.tracks.get(stream.id)
            if track is not None and track.format == sample_format:
                return stream
        return None

    def _packets(self, sample_format: str) -> list[tuple[int, int, bytes]]:
        """Read the samples of a data track: (pts, duration, bytes), in order; other tracks are not touched."""
        with self.container() as container:
            wanted = self._stream_of(container, sample_format)
            if wanted is None:
                return []
            _discard_others(container, wanted)
            return [
                (packet.pts, packet.duration or 0, bytes(packet))
                for packet in container.demux(wanted)
                if packet.size and packet.pts is not None
            ]

    # --- pictures -------------------------------------------------------------------------------

    @cached_property
    def video(self) -> VideoInfo | None:
        """Codec, size, count and rate of the pictures; None when the file has none."""
        with self.container() as container:
            if not container.streams.video:
                return None
            stream = container.streams.video[0]
            self._need_codec(stream)
            rate = stream.average_rate or Fraction(0)
            duration_s = float((stream.duration or 0) * (stream.time_base or Fraction(0)))
            turned = self.tracks[stream.id].clockwise_deg if stream.id in self.tracks else 0
            return VideoInfo(
                stream.codec_context.name,
                stream.width,
                stream.height,
                stream.frames,
                rate,
                duration_s,
                turned,
            )

    def _need_codec(self, stream: Any) -> None:
        if stream.codec_context is None:
            raise UnreadableMedia(self.path, f"box stsd of track {stream.id}: no codec that is known")

    @cached_property
    def audio(self) -> AudioInfo | None:
        """Codec, rate and count of the sound; None when the file has none."""
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
                stamps = [one.pts for one in packets if one.pts is not None and not one.is_discard]
            else:  # stored in the order shown: the index knows all, edit list applied
                stamps = [entry.timestamp for entry in stream.index_entries if not entry.is_discard]
            return np.sort(np.array(stamps, np.int64)), stream.time_base or Fraction(1, 90_000)

    @property
    def hidden_frames(self) -> int:
        """Pictures that are stored and that no player shows: they are none of `frame_pts`."""
        return max(0, self.video.frames - len(self.frame_pts)) if self.video is not None else 0

    @property
    def frame_pts(self) -> np.ndarray:
        """Presentation stamps of all pictures, (n,) int64, in units of `time_base`, edit list applied."""
        return self._frames[0]

    @property
    def time_base(self) -> Fraction:
        """Seconds in one unit of `frame_pts`."""
        return self._frames[1]

    @cached_property
    def frame_times_s(self) -> np.ndarray:
        """Times of all pictures, (n,) float64 seconds, the first is 0; each rounded once from exact integers."""
        pts = self.frame_pts
        if not len(pts):
            return np.empty(0)
        times_s: np.ndarray = (pts - pts[0]) * self.time_base.numerator / self.time_base.denominator
        return times_s

    @cached_property
    def frame_period(self) -> Fraction:
        """Seconds from one picture to the next, the most common step."""
        steps = np.diff(self.frame_pts)
        if not len(steps):
            return 1 / (self.video.rate or Fraction(30)) if self.video else Fraction(1, 30)
        if (step := int(np.median(steps))) <= 0:
            raise UnreadableMedia(self.path, "box stts: its pictures last no time")
        return step * self.time_base

    @cached_property
    def duration_s(self) -> Fraction:
        """Seconds from the first picture to the end of the last, exact."""
        pts = self.frame_pts
        return int(pts[-1] - pts[0]) * self.time_base + self.frame_period if len(pts) else Fraction(0)

    def pictures(self) -> PictureReader:
        """Open the pictures, upright, for access by time or number (a context manager)."""
        return PictureReader(self, upright=True)

    # --- telemetry ------------------------------------------------------------------------------

    @cached_property
    def payloads(self) -> list[Payload]:
        """All GPMF payloads in order, those that an edit list hides too; empty when the file has no such track.

        libav leaves hidden ones out and misplaces one that is hidden in part, so that the tables are read here.
        """
        track = next((one for one in self.tracks.values() if one.format == "gpmd"), None)
        if track is None:
            return []
        try:
            tables = read_tables(self.path, "gpmd", track.table, self.path.stat().st_size)
        except UnreadableMedia:
            return self._payloads_of_libav()
        units = track.timescale or 1000
        if len(tables) > MOST_PAYLOADS:
            raise UnreadableMedia(self.path, f"box stsz of track gpmd: {len(tables)} payloads")
        if not len(tables):  # a fragmented file has its tables elsewhere
            return self._payloads_of_libav()
        if int(tables.sizes.sum()) > self.path.stat().st_size:
            raise UnreadableMedia(self.path, "box stsz of track gpmd: more bytes than the file has")
        shift_s = self._telemetry_shift_s(track, units)
        begins = np.cumsum(tables.durations) - tables.durations
        with self.path.open("rb") as file:
            return [
                Payload(
                    float(Fraction(int(at), units) + shift_s), int(lasts) / units, _bytes(file, place, size)
                )
                for at, lasts, place, size in zip(
                    begins, tables.durations, tables.offsets, tables.sizes, strict=True
                )
                if size
            ]

    def _payloads_of_libav(self) -> list[Payload]:
        """Return what libav can still read where the tables promise more than the file has, or lie elsewhere."""
        with self.container() as container:
            stream = self._stream_of(container, "gpmd")
            base = (stream.time_base if stream is not None else None) or Fraction(1, 1000)
        return [
            Payload(float(pts * base), float(duration * base), data)
            for pts, duration, data in self._packets("gpmd")
        ]

    @property
    def telemetry_is_placed(self) -> bool:
        """Return whether an edit list moves the telemetry track, and so says how it lies on the pictures.

        One that moves nothing says nothing: some tools write it into every track.
        """
        edits = [edit for track in self.tracks.values() if track.format == "gpmd" for edit in track.edits]
        return any(edit.media_time != 0 for edit in edits)

    @property
    def edited_tracks(self) -> list[boxes.Track]:
        """The tracks that have an edit list."""
        return [track for track in self.tracks.values() if track.edits]

    @property
    def movie_timescale(self) -> int:
        """Units of `EditPart.duration` in a second."""
        return boxes.timescale(boxes.find(self._moov, "mvhd")) or 1000

    def later_s(self, sample_format: str) -> Fraction:
        """Return when time 0 of a track's own tables comes after the first picture, seconds, as edit lists tell."""
        track = next(one for one in self.tracks.values() if one.format == sample_format)
        shift_s = edit_shift_s(track.edits, track.timescale or 1000, self.movie_timescale)
        return shift_s - int(self.frame_pts[0]) * self.time_base

    def _telemetry_shift_s(self, track: boxes.Track, units: int) -> Fraction:
        """Return when the first payload begins after the first shown picture, as edit lists tell.

        A payload begins with a picture: what a movie's milliseconds rounded is put back on the grid of pictures.
        """
        try:
            if self.video is None or not len(self.frame_pts):
                return edit_shift_s(track.edits, units, self.movie_timescale)
        except UnreadableMedia:  # a codec that nobody knows: its telemetry is read all the same
            return edit_shift_s(track.edits, units, self.movie_timescale)
        shift_s = self.later_s(track.format)
        on_grid_s = round(shift_s / self.frame_period) * self.frame_period
        return on_grid_s if abs(on_grid_s - shift_s) < self.frame_period / 4 else shift_s

    # --- what the camera says of itself -----------------------------------------------------------

    @cached_property
    def header(self) -> dict[str, str]:
        """Texts of the camera's own header (udta GPMF): CASN serial, MINF model, FMWR firmware, ..."""
        data = boxes.find(self._moov, "udta", "GPMF")
        if data is None:
            return {}
        try:
            return gpmf.header_texts(data)
        except BadGpmf as error:
            raise UnreadableMedia(self.path, f"the camera's header is {error}") from error

    @property
    def mode(self) -> CameraMode:
        """How the camera was set. Raises UnreadableMedia when the file has no pictures."""
        if self.video is None:
            raise UnreadableMedia(self.path, "it has no pictures")
        width, height, rate = self.video.width, self.video.height, float(self.video.rate)
        return CameraMode.of(self.header, width=width, height=height, rate_hz=rate)

    @property
    def camera_model(self) -> str | None:
        """Model as the header says, else the telemetry's device name; None when neither is there."""
        if "MINF" in self.header:
            return self.header["MINF"]
        return next((part.device for parts in self.stream_parts for part in parts if part.device), None)

    @property
    def serial(self) -> str | None:
        """Serial number of the camera."""
        return self.header.get("CASN")

    @cached_property
    def container_metadata(self) -> dict[str, str]:
        """Texts that libav finds in the file."""
        with self.container() as container:
            return dict(container.metadata)

    @property
    def firmware(self) -> str | None:
        """Firmware of the camera."""
        return self.header.get("FMWR") or self.container_metadata.get("firmware")

    @property
    def creation_time(self) -> str | None:
        """Start as the file says, whole seconds, printed as UTC: older cameras write their local clock there."""
        return self.container_metadata.get("creation_time")

    @property
    def handlers(self) -> list[str]:
        """Names of the tracks, in order."""
        with self.container() as container:
            names = [stream.metadata.get("handler_name", "") for stream in container.streams]
        return [name.strip("\0\t\n\x0b\x0c\r ") for name in names]

    @cached_property
    def timecode(self) -> boxes.TimecodeFormat | None:
        """How the time code counts; None when the file has none."""
        track = next((track for track in self.tracks.values() if track.format == "tmcd"), None)
        return boxes.timecode_format(track.description) if track is not None else None

    @cached_property
    def tmcd_frames(self) -> int | None:
        """Frames from the camera's local midnight to the first picture; None when the file has no time code."""
        samples = self._packets("tmcd")
        return int.from_bytes(samples[0][2][:4], "big") if samples and len(samples[0][2]) >= 4 else None

    @property
    def tmcd_wall_seconds_since_midnight(self) -> float | None:
        """Seconds from local midnight to the first picture: frames x frame duration, not the printed time code."""
        if self.tmcd_frames is None or self.timecode is None:
            return None
        return float(boxes.wall_seconds(self.tmcd_frames, self.timecode))

    @property
    def tmcd_displayed(self) -> str | None:
        """The time code as players print it; without dropped frames it runs behind the wall clock."""
        if self.tmcd_frames is None or self.timecode is None:
            return None
        return boxes.printed(self.tmcd_frames, self.timecode)


def _bytes(file: BinaryIO, place: int, size: int) -> bytes:
    file.seek(place)
    return file.read(size)


def _discard_others(container: av.container.InputContainer, wanted: av.stream.Stream) -> None:
    """Let libav skip the bytes of all other tracks."""
    from av.stream import Discard

    for stream in container.streams:
        if stream.index != wanted.index:
            stream.discard = Discard.all
