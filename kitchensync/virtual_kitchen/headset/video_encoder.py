"""Groups of pictures, each from an encoder of its own: the same pictures give the same bytes for ever."""

from dataclasses import dataclass
from fractions import Fraction
from math import log2

import av
import numpy as np
import numpy.typing as npt

from kitchensync.virtual_kitchen.headset.client_configuration import AskedEncoding, VideoEncoding

_H264_PROFILES = {
    AskedEncoding.H264_BASELINE: "baseline",
    AskedEncoding.H264_MAIN: "main",
    AskedEncoding.H264_HIGH: "high",
}
_FOREVER = 1_000_000  # a group ends when its encoder is dropped, not by a count
# Quality at the client's default bit rate, 12/75 (H.264) or 12/150 (H.265) bit a pixel: lands near that rate.
_DEFAULT_BITS_PER_PIXEL = {True: 12 / 150, False: 12 / 75}
_DEFAULT_QUALITY = {True: 24.5, False: 24.5}
_LEAST_KBIT_PER_S, _MOST_KBIT_PER_S = 16, 100_000


@dataclass(frozen=True, slots=True)
class RateControl:
    """How many bits a picture gets: parameters that libx264 and libx265 understand alike."""

    parameters: str


def control_for(
    encoding: VideoEncoding, pixels_per_s: float, *, at_asked_rate: bool, better_by: float = 0.0
) -> RateControl:
    """Return what comes near a wanted bit rate.

    At the asked rate: by mean bit rate as the device's encoder has it, so that flat pictures fill it too. Else a
    constant rate factor (6 steps double the rate; bounded to 14..42), which is cheap and gives flat pictures less.
    """
    if at_asked_rate:
        kbit = min(_MOST_KBIT_PER_S, max(_LEAST_KBIT_PER_S, encoding.bits_per_s // 1000))
        return RateControl(f"bitrate={kbit}:vbv-maxrate={kbit}:vbv-bufsize={kbit}")
    is_h265 = encoding.profile is AskedEncoding.H265_MAIN
    times = encoding.bits_per_s / (pixels_per_s * _DEFAULT_BITS_PER_PIXEL[is_h265])
    quality = min(42.0, max(14.0, _DEFAULT_QUALITY[is_h265] - better_by - 6 * log2(times)))
    return RateControl(f"crf={quality:.2f}")


class PictureGroup:
    """One encoder from one key frame on: no B frames, one thread, one unit for each picture."""

    def __init__(
        self, profile: AskedEncoding, width: int, height: int, hz: int, control: RateControl
    ) -> None:
        is_h265 = profile is AskedEncoding.H265_MAIN
        self._codec = av.CodecContext.create("libx265" if is_h265 else "libx264", "w")
        self._codec.width, self._codec.height, self._codec.pix_fmt = width, height, "yuv420p"
        self._codec.time_base, self._codec.framerate = Fraction(1, hz), Fraction(hz)
        self._codec.thread_count = 1
        self._codec.options = _h265_options(control) if is_h265 else _h264_options(profile, control)
        self._count = 0

    def encode(self, i420: npt.NDArray[np.uint8]) -> bytes:
        """Return the access unit (Annex B) of the next picture, planar 4:2:0 (height * 3 / 2, width)."""
        picture = av.VideoFrame.from_ndarray(i420, format="yuv420p")
        picture.pts = self._count
        self._count += 1
        (unit,) = self._codec.encode(picture)
        return bytes(unit)


class GroupedVideo:
    """Pictures encoded group after group: a new encoder at each key frame, and after pictures that were left out."""

    def __init__(
        self, profile: AskedEncoding, size: tuple[int, int, int], gop: int, control: RateControl
    ) -> None:
        """`size` is width, height, pictures a second; every `gop`-th picture is a key frame."""
        self._profile, self._size, self._gop, self._control = profile, size, gop, control
        self._group: PictureGroup | None = None
        self._next_k = -1

    def encode(self, k: int, i420: npt.NDArray[np.uint8]) -> bytes:
        """Return the access unit of picture k."""
        if self._group is None or k % self._gop == 0 or k != self._next_k:
            self._group = PictureGroup(self._profile, *self._size, self._control)
        self._next_k = k + 1
        return self._group.encode(i420)


def _h265_options(control: RateControl) -> dict[str, str]:
    parameters = (
        "pools=none:frame-threads=1:wpp=0:info=0:repeat-headers=1:log-level=none:bframes=0:scenecut=0:ctu=16:no-signhide=1"
        f":keyint={_FOREVER}:min-keyint={_FOREVER}:open-gop=0:{control.parameters}"
    )
    return {"preset": "ultrafast", "tune": "zerolatency", "x265-params": parameters}


def _h264_options(profile: AskedEncoding, control: RateControl) -> dict[str, str]:
    parameters = (
        "threads=1:aud=1:annexb=1:repeat-headers=1:bframes=0:scenecut=0"
        f":keyint={_FOREVER}:min-keyint={_FOREVER}:{control.parameters}"
    )
    return {
        "preset": "ultrafast",
        "tune": "zerolatency",
        "profile": _H264_PROFILES[profile],
        "x264-params": parameters,
    }
