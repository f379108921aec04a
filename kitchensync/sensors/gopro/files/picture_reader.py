"""Frames of a file by time or number, with exact timestamps; reading forward is fast, going back seeks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from kitchensync.sensors.errors import UnreadableMedia
from kitchensync.sensors.shown_picture import shown_array, shown_size

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

READ_ON_FRAMES = 45
"Frames up to this many ahead are reached by decoding on instead of by seeking."


class Picture(NamedTuple):
    """One decoded frame."""

    number: int
    "Number in the file (or in the recording), from 0."
    pts: int
    "Timestamp in units of the file's `time_base`."
    time_s: float
    "Media seconds, 0 at the first frame; rounded once from exact integers."
    rgb: np.ndarray
    "uint8 (h, w, 3)."


class HasPictures(Protocol):
    """The parts of a file that the reader uses."""

    path: Path

    @property
    def frame_pts(self) -> np.ndarray: ...

    @property
    def frame_times_s(self) -> np.ndarray: ...

    @property
    def time_base(self) -> Fraction: ...

    def container(self) -> AbstractContextManager[Any]: ...


def index_at(frame_times_s: np.ndarray, time_s: float) -> int:
    """Return the number of the frame at a media time; the first one before the video, the last one after it."""
    at = int(np.searchsorted(frame_times_s, time_s + 1e-9, side="right")) - 1
    return min(max(at, 0), len(frame_times_s) - 1)


class PictureReader:
    """Random access to the frames of one file."""

    def __init__(self, media: HasPictures, *, upright: bool = False) -> None:
        """Read frames as they are stored, which lens calibrations need, or `upright` as players show them."""
        self._media, self._is_upright = media, upright
        self._stack = ExitStack()
        self._stream: Any = None
        self._container: Any = None
        self._frames: Iterator[Any] = iter(())
        self._next = -1
        "Number of the frame that is decoded next; -1 = unknown."

    def __enter__(self) -> PictureReader:
        """Open the file."""
        if not len(self._media.frame_pts):
            raise UnreadableMedia(self._media.path, "no frames")
        self._container = self._stack.enter_context(self._media.container())
        self._stream = self._container.streams.video[0]
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the file."""
        self._stack.__exit__(None, None, None)

    def at(self, time_s: float, width: int | None = None) -> Picture:
        """Decode the frame at a media time."""
        return self.number(index_at(self._media.frame_times_s, time_s), width)

    def grey(self, index: int) -> np.ndarray:
        """Decode only the luma of a frame, uint8 (h, w). Raises `UnreadableMedia`."""
        frame = self._frame(index)
        plane = frame.reformat(format="gray").planes[0]
        rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
        return rows[:, : plane.width]

    def number(self, index: int, width: int | None = None) -> Picture:
        """Decode a frame by its number. Raises `UnreadableMedia`."""
        frame = self._frame(index)
        shown = shown_size(frame.width, frame.height, frame.rotation if self._is_upright else 0)
        height = max(2, round(shown[1] * width / shown[0])) if width else shown[1]
        if self._is_upright:
            rgb = shown_array(frame, width=width, height=height)
        else:
            rgb = frame.reformat(width=width or frame.width, height=height, format="rgb24").to_ndarray()
        return Picture(index, int(self._media.frame_pts[index]), float(self._media.frame_times_s[index]), rgb)

    def _frame(self, index: int) -> Any:
        pts = self._media.frame_pts
        if not 0 <= index < len(pts):
            raise UnreadableMedia(self._media.path, f"it has {len(pts)} frames, no frame {index}")
        if not 0 <= index - self._next <= READ_ON_FRAMES or self._next < 0:
            self._container.seek(int(pts[index]), stream=self._stream, backward=True)
            self._frames = self._decoded()
        for frame in self._frames:
            self._next = int(np.searchsorted(pts, frame.pts)) + 1
            if frame.pts == pts[index]:
                return frame
            if frame.pts > pts[index]:
                break
        self._next = -1
        raise UnreadableMedia(self._media.path, f"frame {index} cannot be decoded")

    def _decoded(self) -> Iterator[Any]:
        """Decode frames in order; damaged frames and those overwritten by a redaction are skipped."""
        import av

        for packet in self._container.demux(self._stream):
            with suppress(av.FFmpegError):
                yield from (frame for frame in packet.decode() if frame.pts is not None)
