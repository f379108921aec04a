"""The pictures of one stream by their number, mostly rising: each is decoded once, one in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import cv2
import numpy as np

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.gopro.files.picture_reader import PictureReader
from kitchensync.sensors.hololens.headset_stream import DEPTH, HeadsetStream
from kitchensync.shell.array_types import Mask, UInt8
from kitchensync.storage.exports.hidden_films import hidden_in_film
from kitchensync.storage.reading.headset_pictures import DepthFrame, Frame
from kitchensync.storage.recording import Recording, StoredStream

WIDTH_PX = 640


class ShownPicture(NamedTuple):
    """One picture, RGB uint8 (h, w, 3); `media_s` for files of a camera."""

    rgb: UInt8
    media_s: float | None = None


class HeadsetPictures:
    """A headset's camera, decoded on from picture to picture: going back begins anew.

    Depth is shown in colours, near red to far blue; black where it is not known.
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
        """Decode no further."""
        self._next = iter(())

    def at(self, row: int, _file: str | None) -> ShownPicture | None:
        """Return a picture by its number; None when it does not decode."""
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
            return ShownPicture(np.repeat(frame.grey()[:, :, None], 3, axis=2) if is_grey else frame.rgb())
        near = 255 - np.clip(frame.depth_mm * (255.0 / self._kind.farthest_mm), 0, 255).astype(np.uint8)
        coloured = cv2.cvtColor(cv2.applyColorMap(near, cv2.COLORMAP_TURBO), cv2.COLOR_BGR2RGB)
        coloured[frame.depth_mm == 0] = 0
        return ShownPicture(np.asarray(coloured, np.uint8))

    def hides(self, row: int, _file: str | None) -> bool:
        """Return whether a picture may show a privacy pause."""
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
        """Close the file that is open."""
        self._stack.close()

    def at(self, row: int, file: str | None) -> ShownPicture | None:
        """Return a picture by its number in `file`, a path inside the recording."""
        if file is None:
            return None
        try:
            picture = self._opened(file)[2].number(row, WIDTH_PX)
        except SensorError:
            return None  # the panel says which one does not decode
        return ShownPicture(picture.rgb, picture.time_s)

    def hides(self, row: int, file: str | None) -> bool:
        """Return whether a picture may show a privacy pause."""
        return file is not None and bool(self._opened(file)[1][row])

    def _opened(self, file: str) -> tuple[str, Mask, PictureReader]:
        if self._open is None or self._open[0] != file:
            self._stack.close()
            media = open_media(self._recording.readable / file)
            hidden = hidden_in_film(self._recording, media.path, media.frame_times_s)
            self._open = (file, hidden, self._stack.enter_context(media.pictures()))
        return self._open


PictureSource = HeadsetPictures | CameraPictures
