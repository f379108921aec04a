"""A decoded frame as a player shows it: rotated by the track header, with the colour range of the video's tags.

Frames that are written to videos have correct grey levels for both ranges of the source: full range (0-255, as GoPros
record) and limited range (16-235) are converted to limited BT.709, with which the written videos are tagged. A source
without a tag is limited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Floats

if TYPE_CHECKING:
    import av

LIMITED, FULL, BT709, UNSPECIFIED = 1, 2, 1, 2
"""ISO/IEC 23091-2: libav's codes of colour ranges and colour matrices."""


def quarter_turns(degrees: float) -> int:
    """Return the number of `np.rot90` turns that make a stored frame upright; `degrees` as in libav."""
    return round(degrees / 90) % 4


def shown_size(width: int, height: int, degrees: float) -> tuple[int, int]:
    """Return width and height of a frame as a player shows it."""
    return (height, width) if quarter_turns(degrees) % 2 else (width, height)


def shown_pixels(pixels: Floats, stored: tuple[int, int], turns: int, shown: tuple[int, int]) -> Floats:
    """Map pixels (..., 2), x and y, of a stored frame to the shown frame, which is turned by `turns` quarters.

    `stored` and `shown` are widths and heights.
    """
    size = np.array(stored)
    for _ in range(turns):  # in the direction of np.rot90
        pixels, size = np.stack([pixels[..., 1], size[0] - 1 - pixels[..., 0]], -1), size[::-1]
    return np.asarray((pixels + 0.5) * (np.array(shown) / size) - 0.5)


def even_width(width: int, height: int, new_height: int) -> int:
    """Return the even width of a frame at another height."""
    return 2 * round(width * new_height / height / 2)


def shown_array(
    frame: av.VideoFrame, *, format: str = "rgb24", width: int | None = None, height: int | None = None
) -> npt.NDArray[np.uint8]:
    """Convert to an upright array, uint8 (height, width, 3), of full range; `width` and `height` are those shown."""
    columns, rows = _stored_size(frame, width, height)
    matrix = BT709 if frame.colorspace == UNSPECIFIED else frame.colorspace
    array = frame.reformat(width=columns, height=rows, format=format, src_colorspace=matrix).to_ndarray()
    return np.ascontiguousarray(np.rot90(array, quarter_turns(frame.rotation)))


def shown_frame(
    frame: av.VideoFrame, *, width: int | None = None, height: int | None = None
) -> av.VideoFrame:
    """Convert to an upright frame for a video: 8 bits, limited BT.709; `width` and `height` are those shown."""
    import av

    matrix = frame.colorspace if frame.colorspace != UNSPECIFIED else BT709
    is_full = frame.format.is_rgb or frame.format.name.startswith("yuvj") or frame.color_range == FULL
    converted = frame.reformat(
        *_stored_size(frame, width, height),
        format="yuv420p",
        src_colorspace=matrix,
        dst_colorspace=BT709,
        src_color_range=FULL if is_full else LIMITED,
        dst_color_range=LIMITED,
    )
    turns = quarter_turns(frame.rotation)
    if not turns:
        return converted
    planes = [np.rot90(_plane(plane), turns) for plane in converted.planes]
    turned = av.VideoFrame(planes[0].shape[1], planes[0].shape[0], "yuv420p")
    for plane, values in zip(turned.planes, planes, strict=True):
        rows = np.zeros((plane.height, plane.line_size), np.uint8)
        rows[:, : plane.width] = values
        plane.update(rows.tobytes())
    turned.color_range, turned.colorspace = LIMITED, BT709
    return turned


def _stored_size(frame: av.VideoFrame, width: int | None, height: int | None) -> tuple[int, int]:
    """Return (width, height) before turning; by default those of the frame."""
    shown = shown_size(frame.width, frame.height, frame.rotation)
    return shown_size(width or shown[0], height or shown[1], frame.rotation)


def _plane(plane: Any) -> npt.NDArray[np.uint8]:
    rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
    return rows[:, : plane.width]
