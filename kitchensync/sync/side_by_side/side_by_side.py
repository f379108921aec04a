"""A video for visual checks: pictures of all cameras at each instant of the index side by side, with times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.gopro.files.picture_reader import PictureReader
from kitchensync.sensors.hololens.catalogue import headset_stream, is_front_camera, known_stream
from kitchensync.sensors.hololens.headset_stream import DEPTH, FRAMES, HeadsetStream
from kitchensync.shell.array_types import Mask, UInt8
from kitchensync.storage.exports.film import TICKS_PER_S, FilmWriter, units_of_ticks
from kitchensync.storage.exports.hidden_films import hidden_in_film
from kitchensync.storage.options.outputs import written
from kitchensync.storage.reading.headset_pictures import DepthFrame, Frame
from kitchensync.storage.reading.instants import Instant
from kitchensync.storage.recording import Recording, StoredStream, open_recording
from kitchensync.sync.errors import CannotFilm

WIDTH_PX = 640
ShownPicture = tuple[UInt8, float | None]  # RGB uint8 (h, w, 3); media s for files of a camera


class HeadsetPictures:
    """A headset's camera, decoded sequentially; going back starts another decoder.

    Depth is shown in colours, near red to far blue; black where it is unknown.
    """

    def __init__(self, stream: StoredStream, kind: HeadsetStream) -> None:
        self._stream, self._kind = stream, kind
        self._next: Iterator[Frame | DepthFrame] = iter(())
        self._held: Frame | DepthFrame | None = None
        self._from = -1

    def __enter__(self) -> HeadsetPictures:
        """Open nothing yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop decoding."""
        self._next = iter(())

    def at(self, row: int, _file: str | None) -> ShownPicture | None:
        """Return a picture by its number; None if it is undecodable."""
        if (self._held is None or row < self._held.row) and row != self._from:
            self._next, self._from = self._frames(row), row
            self._held = next(self._next, None)
        while self._held is not None and self._held.row < row:
            self._held = next(self._next, None)
        frame = self._held
        if frame is None or frame.row != row:
            return None
        if isinstance(frame, Frame):
            is_grey = self._kind.is_grey_camera
            return (np.repeat(frame.grey()[:, :, None], 3, axis=2) if is_grey else frame.rgb()), None
        near = 255 - np.clip(frame.depth_mm * (255.0 / self._kind.farthest_mm), 0, 255).astype(np.uint8)
        coloured = cv2.cvtColor(cv2.applyColorMap(near, cv2.COLORMAP_TURBO), cv2.COLOR_BGR2RGB)
        coloured[frame.depth_mm == 0] = 0
        return np.asarray(coloured, np.uint8), None

    def hides(self, row: int, _file: str | None) -> bool:
        """Return whether a picture may be of a privacy pause."""
        return bool(self._stream.hidden[row])

    def _frames(self, row: int) -> Iterator[Frame | DepthFrame]:
        return self._stream.depth(row) if self._kind.kind == DEPTH else self._stream.frames(row)


class CameraPictures:
    """The files of one camera."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._stack = ExitStack()
        self._open: tuple[str, Mask, PictureReader] | None = None

    def __enter__(self) -> CameraPictures:
        """Open nothing yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the open file."""
        self._stack.close()

    def at(self, row: int, file: str | None) -> ShownPicture | None:
        """Return a picture by its number in `file`, a path inside the recording."""
        if file is None:
            return None
        try:
            picture = self._opened(file)[2].number(row, WIDTH_PX)
        except SensorError:
            return None  # the panel shows its number
        return picture.rgb, picture.time_s

    def hides(self, row: int, file: str | None) -> bool:
        """Return whether a picture may be of a privacy pause."""
        return file is not None and bool(self._opened(file)[1][row])

    def _opened(self, file: str) -> tuple[str, Mask, PictureReader]:
        if self._open is None or self._open[0] != file:
            self._stack.close()
            media = open_media(self._recording.readable / file)
            hidden = hidden_in_film(self._recording, media.path, media.frame_times_s)
            self._open = (file, hidden, self._stack.enter_context(media.pictures()))
        return self._open


PictureSource = HeadsetPictures | CameraPictures


Progress = Callable[[int, int], None]


def film_side_by_side(
    recording: Path,
    out: Path,
    *,
    streams: tuple[str, ...] = (),
    from_s: float = 0.0,
    to_s: float | None = None,
    progress: Progress | None = None,
    force: bool = False,
) -> int:
    """Write an MP4 with a picture of every stream at each frame of the master; return the number of frames.

    `streams` are names of the index (default: the front cameras and all films); `from_s` and `to_s` are seconds
    since the first frame of the master; `force` allows to replace `out`. A few pictures are in memory at a time.
    Raises NotARecording, NotIndexed, CannotFilm, OutputRefused.
    """
    with open_recording(recording) as opened, ExitStack() as stack:
        rows = _rows(opened, from_s, to_s)
        sources = {name: _pictures(opened, name) for name in _chosen(opened, streams, recording)}
        for source in sources.values():
            stack.enter_context(source)
        with written(out, force=force) as part:
            return _encode(part, opened, rows, sources, progress)


def _rows(recording: Recording, from_s: float, to_s: float | None) -> range:
    since_s = recording.instants.seconds
    first = int(np.searchsorted(since_s, from_s, side="left"))
    last = len(since_s) if to_s is None else int(np.searchsorted(since_s, to_s, side="right"))
    if first >= last:
        whole = f"the index covers 0 to {since_s[-1]:.1f} s" if len(since_s) else "the index is empty"
        raise CannotFilm(recording.id, f"nothing between these times: {whole}")
    return range(first, last)


def _chosen(recording: Recording, streams: tuple[str, ...], path: Path) -> list[str]:
    instants = recording.instants
    kinds = {name: sensor.kind for name in instants.names if (sensor := known_stream(name)) is not None}
    available = [
        name for name in instants.names if instants.is_film(name) or kinds.get(name) in (FRAMES, DEPTH)
    ]
    if not streams:
        default_names = [name for name in available if instants.is_film(name) or is_front_camera(name)]
        if not default_names:
            raise CannotFilm(
                path, f"no front camera and no film in the index; choose of: {', '.join(available)}"
            )
        return default_names
    for name in streams:
        if name not in available:
            raise CannotFilm(
                path, f"no pictures of {name} in the index; there are: {', '.join(available) or 'none'}"
            )
    return list(dict.fromkeys(streams))


def _pictures(recording: Recording, name: str) -> PictureSource:
    if recording.instants.is_film(name):
        return CameraPictures(recording)
    stream = recording[recording.instants.stream_of(name)]
    return HeadsetPictures(stream, headset_stream(name.rpartition("/")[2]))


def _encode(
    part: Path,
    recording: Recording,
    rows: range,
    sources: dict[str, PictureSource],
    progress: Progress | None,
) -> int:
    ticks0, first = recording.at(0).ticks, recording.at(rows[0]).ticks
    with FilmWriter(part) as film:
        for done, row in enumerate(rows, start=1):
            instant = recording.at(row)
            title = f"{(instant.ticks - ticks0) / TICKS_PER_S:9.3f} s   frame {row} of {recording.instants.master}"
            picture = sheet([_panel(name, instant, source) for name, source in sources.items()], title)
            film.write(picture, units_of_ticks(instant.ticks - first))
            if progress is not None:
                progress(done, len(rows))
    return len(rows)


def _panel(name: str, instant: Instant, source: PictureSource) -> Panel:
    """Return the picture of one stream at one instant, or the reason for none."""
    row = instant.file_rows.get(name, instant.rows.get(name))
    if row is None:
        return Panel(name, None, "no picture near this instant")
    if source.hides(row, instant.files.get(name)):
        return Panel(name, None, "privacy pause")
    shown = source.at(row, instant.files.get(name))
    if shown is None:
        return Panel(name, None, f"picture {row} does not decode")
    rgb, media_s = shown
    file = f"  {Path(instant.files[name]).name}" if name in instant.files else ""
    media = f"  media {media_s:.3f} s" if media_s is not None else ""
    away_ms = instant.dt_us[name] / 1000
    return Panel(name, drawn(rgb), f"{file}  picture {row}  {away_ms:+.1f} ms{media}")


WIDTH, HEIGHT, LINE = 640, 360, 24
MOST_COLUMNS = 2
FONT, SIZE = cv2.FONT_HERSHEY_SIMPLEX, 0.46
INK, PAPER, EMPTY = (240, 240, 240), (24, 28, 32), (60, 64, 70)


@dataclass(frozen=True, slots=True)
class Panel:
    """One stream at one instant; `picture` (HEIGHT, WIDTH, 3), or None with the reason in `words`."""

    name: str
    picture: UInt8 | None
    words: str


def drawn(picture: UInt8) -> UInt8:
    """Scale an RGB picture of any size into a panel, on black."""
    height, width = picture.shape[:2]
    scale = min(WIDTH / width, HEIGHT / height)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    out = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    left, top = (WIDTH - size[0]) // 2, (HEIGHT - size[1]) // 2
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    out[top : top + size[1], left : left + size[0]] = cv2.resize(picture, size, interpolation=method)
    return out


def sheet(panels: list[Panel], title: str) -> UInt8:
    """Draw panels side by side, two per row, each with its words below, under one title."""
    columns = min(MOST_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    out = np.empty((LINE + rows * (HEIGHT + LINE), columns * WIDTH, 3), np.uint8)
    out[:] = PAPER
    _write(out, title, 8, LINE - 7)
    for k, panel in enumerate(panels):
        top, left = LINE + k // columns * (HEIGHT + LINE), k % columns * WIDTH
        place = out[top : top + HEIGHT, left : left + WIDTH]
        if panel.picture is None:
            place[:] = EMPTY
            _write(place, panel.words, 16, HEIGHT // 2)
            _write(out, panel.name, left + 8, top + HEIGHT + LINE - 7)
        else:
            place[:] = panel.picture
            _write(out, f"{panel.name}  {panel.words}", left + 8, top + HEIGHT + LINE - 7)
    return out


def _write(picture: UInt8, text: str, left: int, bottom: int) -> None:
    cv2.putText(picture, text, (left, bottom), FONT, SIZE, INK, 1, cv2.LINE_AA)
