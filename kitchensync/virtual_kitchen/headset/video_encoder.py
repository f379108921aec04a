"""Encode groups of pictures, each with a new encoder: the same frames always give the same bytes."""

from fractions import Fraction
from math import log2

import av
import numpy as np
import numpy.typing as npt

from kitchensync.virtual_kitchen.headset.client_configuration import RequestedEncoding, VideoEncoding

_H264_PROFILES = {
    RequestedEncoding.H264_BASELINE: "baseline",
    RequestedEncoding.H264_MAIN: "main",
    RequestedEncoding.H264_HIGH: "high",
}
_FOREVER = 1_000_000  # key frame interval: a group ends when its encoder is dropped, not by a count
# Rate factor at the client's default bit rate, 12/75 (H.264) or 12/150 (H.265) bit per pixel, close to that rate.
_DEFAULT_BITS_PER_PIXEL = {True: 12 / 150, False: 12 / 75}
_DEFAULT_QUALITY = {True: 24.5, False: 24.5}
_LEAST_KBIT_PER_S, _MOST_KBIT_PER_S = 16, 100_000


def control_for(
    encoding: VideoEncoding, pixels_per_s: float, *, at_requested_rate: bool, better_by: float = 0.0
) -> str:
    """Return the rate control parameters of libx264 and libx265 for a requested bit rate.

    With `at_requested_rate` it is the mean bit rate, as in the device's encoder: plain frames reach it too. Otherwise
    it is a constant rate factor (6 steps double the rate; bounded to 14..42): cheap, and plain frames are small.
    """
    if at_requested_rate:
        kbit = min(_MOST_KBIT_PER_S, max(_LEAST_KBIT_PER_S, encoding.bits_per_s // 1000))
        return f"bitrate={kbit}:vbv-maxrate={kbit}:vbv-bufsize={kbit}"
    is_h265 = encoding.profile is RequestedEncoding.H265_MAIN
    times = encoding.bits_per_s / (pixels_per_s * _DEFAULT_BITS_PER_PIXEL[is_h265])
    quality = min(42.0, max(14.0, _DEFAULT_QUALITY[is_h265] - better_by - 6 * log2(times)))
    return f"crf={quality:.2f}"


class PictureGroup:
    """An encoder from one key frame on: no B-frames, one thread, one access unit per frame."""

    def __init__(self, profile: RequestedEncoding, width: int, height: int, hz: int, control: str) -> None:
        is_h265 = profile is RequestedEncoding.H265_MAIN
        self._codec = av.CodecContext.create("libx265" if is_h265 else "libx264", "w")
        self._codec.width, self._codec.height, self._codec.pix_fmt = width, height, "yuv420p"
        self._codec.time_base, self._codec.framerate = Fraction(1, hz), Fraction(hz)
        self._codec.thread_count = 1
        self._codec.options = _h265_options(control) if is_h265 else _h264_options(profile, control)
        self._count = 0

    def encode(self, i420: npt.NDArray[np.uint8]) -> bytes:
        """Return the access unit (Annex B) of the next frame, planar 4:2:0 (height * 3 / 2, width)."""
        picture = av.VideoFrame.from_ndarray(i420, format="yuv420p")
        picture.pts = self._count
        self._count += 1
        (unit,) = self._codec.encode(picture)
        return bytes(unit)


class GroupedVideo:
    """Encodes groups of pictures: a new encoder at each key frame and after skipped frames."""

    def __init__(
        self, profile: RequestedEncoding, size: tuple[int, int, int], gop: int, control: str
    ) -> None:
        """`size` is width, height, frames per second; every `gop`-th frame is a key frame."""
        self._profile, self._size, self._gop, self._control = profile, size, gop, control
        self._group: PictureGroup | None = None
        self._next_k = -1

    def encode(self, k: int, i420: npt.NDArray[np.uint8]) -> bytes:
        """Return the access unit of frame k."""
        if self._group is None or k % self._gop == 0 or k != self._next_k:
            self._group = PictureGroup(self._profile, *self._size, self._control)
        self._next_k = k + 1
        return self._group.encode(i420)


def _h265_options(control: str) -> dict[str, str]:
    parameters = (
        "pools=none:frame-threads=1:wpp=0:info=0:repeat-headers=1:log-level=none:bframes=0:scenecut=0:ctu=16:no-signhide=1"
        f":keyint={_FOREVER}:min-keyint={_FOREVER}:open-gop=0:{control}"
    )
    return {"preset": "ultrafast", "tune": "zerolatency", "x265-params": parameters}


def _h264_options(profile: RequestedEncoding, control: str) -> dict[str, str]:
    parameters = (
        "threads=1:aud=1:annexb=1:repeat-headers=1:bframes=0:scenecut=0"
        f":keyint={_FOREVER}:min-keyint={_FOREVER}:{control}"
    )
    return {
        "preset": "ultrafast",
        "tune": "zerolatency",
        "profile": _H264_PROFILES[profile],
        "x264-params": parameters,
    }
