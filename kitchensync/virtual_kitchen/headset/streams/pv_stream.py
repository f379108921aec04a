"""The front camera (PV): its three-connection life cycle, pictures, and 80 bytes about each of them."""

import struct
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kitchensync.virtual_kitchen.headset.client_configuration import (
    GOP_OPTION,
    AskedEncoding,
    ConfigurationReader,
    Rejected,
    VideoEncoding,
    VideoFormat,
)
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.stream import Feed, Schedule, SentPacket, Stream
from kitchensync.virtual_kitchen.headset.video_encoder import GroupedVideo, control_for
from kitchensync.virtual_kitchen.kitchen import encode_groups
from kitchensync.virtual_kitchen.world import frame_counter
from kitchensync.virtual_kitchen.world.boards import CAMERA_AXES, BoardPictures, Eye
from kitchensync.virtual_kitchen.world.optics import Optics
from kitchensync.virtual_kitchen.world.seeds import generator

OPEN_FLAG, CLOSE_FLAG = 4, 8
MRC_BYTES = 27
BLACK = 16  # luma, limited range
LATENCY_S = 0.045  # from exposure to the network
LONGEST_WAIT_FOR_KEY_S = 2.0
_SIZES = (
    (1952, 1100), (1920, 1080), (1504, 846), (1280, 720), (1128, 636),
    (960, 540), (760, 428), (640, 360), (500, 282), (424, 240),
)  # fmt: skip
FORMATS = frozenset(VideoFormat(w, h, hz) for w, h in _SIZES for hz in (30, 15)) | {
    VideoFormat(1504, 846, 60),
    VideoFormat(1504, 846, 5),
    VideoFormat(1952, 1100, 60),
}
_HORIZONTAL_VIEW_RAD = np.radians(64.7)
_EYE_TO_CAMERA_M = np.array([0.0, 0.02, -0.06, 0.0])  # in the head frame
_FOCUS_BREATHING = 0.02 / 10_000  # of the focal length, a step of the lens
_METADATA = struct.Struct("<4f Q Q i 4x 4I 2f 3f 2H")
assert _METADATA.size == 80


@dataclass(frozen=True, slots=True)
class PvConfiguration:
    """What one client asked for."""

    with_pose: bool
    format: VideoFormat
    divisor: int
    encoding: VideoEncoding
    gop: int


def video_schedule(hz: float, divisor: int, gop: int, phase_s: float, latency_s: float) -> Schedule:
    """Return frames of a camera thinned by a divisor; clients start at key frames if these come often enough."""
    period_s = divisor / hz
    return Schedule(period_s, phase_s, latency_s, gop if gop * period_s <= LONGEST_WAIT_FOR_KEY_S else 1)


DEFAULT = PvConfiguration(
    True, VideoFormat(640, 360, 30), 1, VideoEncoding(AskedEncoding.H265_MAIN, 552_960), 30
)
"""What a client with the usual settings asks for."""


class PvFeed(Feed):
    """The camera's view of the scene along the head's orientation, encoded group by group."""

    def __init__(self, headset: HeadsetState, wanted: PvConfiguration) -> None:
        rng = generator(headset.kitchen.seed, "pv")
        self._headset, self._wanted = headset, wanted
        hz = wanted.format.hz * (1 + rng.uniform(-40e-6, 40e-6))
        phase_s = float(rng.uniform(0, 1 / wanted.format.hz))
        self._schedule = video_schedule(hz, wanted.divisor, wanted.gop, phase_s, LATENCY_S)
        self._focal_px = focal_px_of(wanted.format)
        pixels_per_s = wanted.format.width * wanted.format.height * wanted.format.hz
        control = control_for(wanted.encoding, pixels_per_s, at_asked_rate=headset.has_rings)
        size = wanted.format.width, wanted.format.height, wanted.format.hz
        self._video = GroupedVideo(wanted.encoding.profile, size, wanted.gop, control)
        self._prepared = headset.prepared_pv.get(replace(wanted, with_pose=True), {})
        self._board: BoardPictures | None = None
        self._board_focal_px = 0.0

    def images(self, first_k: int) -> dict[int, bytes]:
        """Return the images of the group of pictures that begins with frame `first_k`, by number."""
        return {k: self._image(k) for k in range(first_k, first_k + self._wanted.gop)}

    @property
    def _is_encoded(self) -> bool:
        return self._wanted.encoding.profile is not AskedEncoding.RAW

    def packet(self, k: int) -> SentPacket:
        """Return frame k, stamped with the middle of its exposure."""
        at_s = self._schedule.captured_s(k)
        image = self._prepared[k] if k in self._prepared else self._image(k)
        pose = self._pose(at_s) if self._wanted.with_pose else b""
        return SentPacket(self._headset.clock.ticks_at(at_s), image + self._metadata(), pose)

    def _image(self, k: int) -> bytes:
        size, picture = self._wanted.format, self._picture(self._schedule.captured_s(k))
        if self._headset.kitchen.frame_counter:
            frame_counter.draw_i420(picture, k, size.height)
        return self._video.encode(k, picture) if self._is_encoded else _nv12(picture, size)

    def _picture(self, at_s: float) -> npt.NDArray[np.uint8]:
        """Return what is before the camera, planar 4:2:0: the kitchen, or the board that the cook shows."""
        size, show = self._wanted.format, self._headset.kitchen.show
        if self._headset.faults.active("black_pictures", "pv", at_s):
            planes = np.full((size.height * 3 // 2, size.width), 128, np.uint8)
            planes[: size.height] = BLACK
            return planes
        if show is None:
            view = self._headset.motion.orientation(np.array([at_s]))[0]
            return self._headset.kitchen.scene.render_i420(view, size.width, size.height, self._focal_px)
        focal_px = self._focal_px * self._breathing
        if self._board is None or focal_px != self._board_focal_px:
            self._board = BoardPictures(show, eye(size, focal_px))
            self._board_focal_px = focal_px
        return self._board.at(*show.moment(at_s))

    @property
    def _breathing(self) -> float:
        """How much longer the focal length is than with the lens where it starts."""
        return 1 + _FOCUS_BREATHING * (self._headset.camera.lens_position - 2145)

    def _pose(self, at_s: float) -> bytes:
        matrix = self._headset.place(at_s)
        matrix[3] += _EYE_TO_CAMERA_M @ matrix * [1, 1, 1, 0]
        return matrix.astype("<f4").tobytes()

    def _metadata(self) -> bytes:
        size, camera = self._wanted.format, self._headset.camera
        focal_px = self._focal_px * self._breathing
        return _METADATA.pack(
            focal_px, focal_px, (size.width - 1) / 2, (size.height - 1) / 2, camera.exposure_us * 10, 1, 0,
            camera.lens_position, 3, 400, camera.white_balance_k, 1.5, 2.0, 1.0, 1.25, 2.0, size.width, size.height,
        )  # fmt: skip


def focal_px_of(size: VideoFormat) -> float:
    """Return the focal length in pixels with the lens where it starts."""
    return float(size.width / 2 / np.tan(_HORIZONTAL_VIEW_RAD / 2))


def eye(size: VideoFormat, focal_px: float) -> Eye:
    """Return the camera as it sees and where it sits on the head: no distortion, a pure shift."""
    centre = (size.width - 1) / 2, (size.height - 1) / 2
    optics = Optics("pinhole", size.width, size.height, focal_px, focal_px, *centre, (0.0,) * 5)
    from_head = CAMERA_AXES.copy()
    from_head[:3, 3] = -(CAMERA_AXES[:3, :3] @ _EYE_TO_CAMERA_M[:3])
    return Eye(optics, from_head)


def _nv12(i420: npt.NDArray[np.uint8], size: VideoFormat) -> bytes:
    """Return the picture as NV12 with rows padded to a multiple of 64 bytes."""
    stride = -(-size.width // 64) * 64
    out = np.zeros((size.height * 3 // 2, stride), np.uint8)
    out[: size.height, : size.width] = i420[: size.height]
    planes = i420[size.height :].reshape(2, size.height // 2, size.width // 2)
    out[size.height :, : size.width] = planes.transpose(1, 2, 0).reshape(size.height // 2, size.width)
    return out.tobytes()


def constants(size: VideoFormat) -> bytes:
    """Return the camera's 52 float32 constants: no distortion, rig to camera a pure shift."""
    focal = focal_px_of(size)
    centre = ((size.width - 1) / 2, (size.height - 1) / 2)
    projection = np.array([[-focal, 0, 0, 0], [0, focal, 0, 0], [*centre, 1, 0], [0, 0, 0, 1]])
    from_rig = np.eye(4)
    from_rig[3] -= _EYE_TO_CAMERA_M
    platform = (focal, focal, *centre, *_EYE_TO_CAMERA_M[:3], 0, 0, 0, 1)
    numbers = (focal, focal, *centre, *[0.0] * 5, *projection.flat, *from_rig.flat, *platform)
    return np.array(numbers, "<f4").tobytes()


def read_pv(reader: ConfigurationReader, with_pose: bool) -> PvConfiguration:
    """Read what follows the mode byte of a stream."""
    size = reader.video_format()
    if size not in FORMATS:
        raise Rejected(f"format {size}")
    divisor, encoding, options = reader.divisor(), reader.video_encoding(), reader.encoder_options()
    gop = options.get(GOP_OPTION, 0) or size.hz
    return PvConfiguration(with_pose, size, divisor, encoding, gop)


def prepare(headset: HeadsetState, end_s: float) -> None:
    """Render and encode the pictures of a client with the usual settings until `end_s` (world time)."""
    starts = range(0, PvFeed(headset, DEFAULT).first_k(end_s), DEFAULT.gop)
    headset.prepared_pv[DEFAULT] = encode_groups(lambda k: PvFeed(headset, DEFAULT).images(k), starts)


class PvStream(Stream):
    """The port's side: start, stream and stop the camera subsystem."""

    name, port = "pv", 3810

    def __init__(self, headset: HeadsetState) -> None:
        super().__init__(headset)
        self._closes = False

    def configure(self, reader: ConfigurationReader) -> Feed | None:
        """Obey the mode byte: flags 4 and 8 open the camera before and close it after."""
        mode = reader.number("B")
        if mode & OPEN_FLAG:
            reader.take(MRC_BYTES)
            self._headset.open_camera()
        self._closes = bool(mode & CLOSE_FLAG)
        if mode & 3 == 3:
            return None
        if not self._headset.camera_on:
            raise Rejected("the camera is off")
        if mode & 3 == 2:
            size = reader.video_format()
            if size not in FORMATS:
                raise Rejected(f"format {size}")
            reader.answer(constants(size))
            return None
        return PvFeed(self._headset, read_pv(reader, mode & 3 == 1))

    def release(self) -> None:
        """Close the camera if the client asked for it."""
        if self._closes:
            self._headset.close_camera()
            self._closes = False
