"""The front camera (PV): its life cycle of three connections, its frames, 80 bytes of metadata for each."""

import struct
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kitchensync.virtual_kitchen.headset.client_configuration import (
    GOP_OPTION,
    ConfigurationReader,
    Rejected,
    RequestedEncoding,
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
MRC_BYTES = 27  # mixed-reality settings after the flag, of no effect here
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
_FOCUS_BREATHING = 0.02 / 10_000  # share of the focal length per step of the lens
_METADATA = struct.Struct("<4f Q Q i 4x 4I 2f 3f 2H")
assert _METADATA.size == 80


@dataclass(frozen=True, slots=True)
class PvConfiguration:
    """The configuration of one client."""

    with_pose: bool
    format: VideoFormat
    divisor: int
    encoding: VideoEncoding
    gop: int


def video_schedule(hz: float, divisor: int, gop: int, phase_s: float, latency_s: float) -> Schedule:
    """Return a camera's schedule with a frame rate divisor; clients start at key frames if these are frequent."""
    period_s = divisor / hz
    return Schedule(period_s, phase_s, latency_s, gop if gop * period_s <= LONGEST_WAIT_FOR_KEY_S else 1)


DEFAULT = PvConfiguration(
    True, VideoFormat(640, 360, 30), 1, VideoEncoding(RequestedEncoding.H265_MAIN, 552_960), 30
)
"""The configuration of a client with the usual settings."""


class PvFeed(Feed):
    """The camera's view of the scene along the head's orientation, encoded in groups of pictures."""

    def __init__(self, headset: HeadsetState, configuration: PvConfiguration) -> None:
        rng = generator(headset.kitchen.seed, "pv")
        self._headset, self._configuration = headset, configuration
        hz = configuration.format.hz * (1 + rng.uniform(-40e-6, 40e-6))
        phase_s = float(rng.uniform(0, 1 / configuration.format.hz))
        self._schedule = video_schedule(hz, configuration.divisor, configuration.gop, phase_s, LATENCY_S)
        self._focal_px = focal_px_of(configuration.format)
        pixels_per_s = configuration.format.width * configuration.format.height * configuration.format.hz
        control = control_for(configuration.encoding, pixels_per_s, at_requested_rate=headset.has_rings)
        size = configuration.format.width, configuration.format.height, configuration.format.hz
        self._video = GroupedVideo(configuration.encoding.profile, size, configuration.gop, control)
        self._prepared = headset.prepared_pv.get(replace(configuration, with_pose=True), {})
        self._board: BoardPictures | None = None
        self._board_focal_px = 0.0

    def images(self, first_k: int) -> dict[int, bytes]:
        """Return the encoded frames of the group that begins with frame `first_k`, by number."""
        return {k: self._image(k) for k in range(first_k, first_k + self._configuration.gop)}

    def packet(self, k: int) -> SentPacket:
        """Return frame k, stamped with the middle of its exposure."""
        at_s = self._schedule.captured_s(k)
        image = self._prepared[k] if k in self._prepared else self._image(k)
        pose = self._pose(at_s) if self._configuration.with_pose else b""
        return SentPacket(self._headset.clock.ticks_at(at_s), image + self._metadata(), pose)

    def _image(self, k: int) -> bytes:
        size, picture = self._configuration.format, self._picture(self._schedule.captured_s(k))
        if self._headset.kitchen.frame_counter:
            frame_counter.draw_i420(picture, k, size.height)
        if self._configuration.encoding.profile is RequestedEncoding.RAW:
            return _nv12(picture, size)
        return self._video.encode(k, picture)

    def _picture(self, at_s: float) -> npt.NDArray[np.uint8]:
        """Return the view, planar 4:2:0: the kitchen, or the board that the cook shows."""
        size, show = self._configuration.format, self._headset.kitchen.show
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
        """Return the focal length relative to that at the initial lens position."""
        return 1 + _FOCUS_BREATHING * (self._headset.camera.lens_position - 2145)

    def _pose(self, at_s: float) -> bytes:
        matrix = self._headset.place(at_s)
        matrix[3] += _EYE_TO_CAMERA_M @ matrix * [1, 1, 1, 0]
        return matrix.astype("<f4").tobytes()

    def _metadata(self) -> bytes:
        size, camera = self._configuration.format, self._headset.camera
        focal_px = self._focal_px * self._breathing
        return _METADATA.pack(
            focal_px, focal_px, (size.width - 1) / 2, (size.height - 1) / 2, camera.exposure_us * 10, 1, 0,
            camera.lens_position, 3, 400, camera.white_balance_k, 1.5, 2.0, 1.0, 1.25, 2.0, size.width, size.height,
        )  # fmt: skip


def focal_px_of(size: VideoFormat) -> float:
    """Return the focal length at the initial lens position, pixels."""
    return float(size.width / 2 / np.tan(_HORIZONTAL_VIEW_RAD / 2))


def eye(size: VideoFormat, focal_px: float) -> Eye:
    """Return optics and place of the camera on the head: no distortion, no rotation."""
    centre = (size.width - 1) / 2, (size.height - 1) / 2
    optics = Optics("pinhole", size.width, size.height, focal_px, focal_px, *centre, (0.0,) * 5)
    from_head = CAMERA_AXES.copy()
    from_head[:3, 3] = -(CAMERA_AXES[:3, :3] @ _EYE_TO_CAMERA_M[:3])
    return Eye(optics, from_head)


def _nv12(i420: npt.NDArray[np.uint8], size: VideoFormat) -> bytes:
    """Return the frame as NV12 with rows padded to a multiple of 64 bytes."""
    stride = -(-size.width // 64) * 64
    out = np.zeros((size.height * 3 // 2, stride), np.uint8)
    out[: size.height, : size.width] = i420[: size.height]
    planes = i420[size.height :].reshape(2, size.height // 2, size.width // 2)
    out[size.height :, : size.width] = planes.transpose(1, 2, 0).reshape(size.height // 2, size.width)
    return out.tobytes()


def constants(size: VideoFormat) -> bytes:
    """Return the camera's 52 float32 constants: no distortion, no rotation from rig to camera."""
    focal = focal_px_of(size)
    centre = ((size.width - 1) / 2, (size.height - 1) / 2)
    projection = np.array([[-focal, 0, 0, 0], [0, focal, 0, 0], [*centre, 1, 0], [0, 0, 0, 1]])
    from_rig = np.eye(4)
    from_rig[3] -= _EYE_TO_CAMERA_M
    platform = (focal, focal, *centre, *_EYE_TO_CAMERA_M[:3], 0, 0, 0, 1)
    numbers = (focal, focal, *centre, *[0.0] * 5, *projection.flat, *from_rig.flat, *platform)
    return np.array(numbers, "<f4").tobytes()


def read_pv(reader: ConfigurationReader, with_pose: bool) -> PvConfiguration:
    """Read the configuration after the mode byte."""
    size = reader.video_format()
    if size not in FORMATS:
        raise Rejected(f"format {size}")
    divisor, encoding, options = reader.divisor(), reader.video_encoding(), reader.encoder_options()
    gop = options.get(GOP_OPTION, 0) or size.hz
    return PvConfiguration(with_pose, size, divisor, encoding, gop)


def prepare(headset: HeadsetState, end_s: float) -> None:
    """Render and encode the frames of a client with the usual settings until `end_s` (world time)."""
    starts = range(0, PvFeed(headset, DEFAULT).first_k(end_s), DEFAULT.gop)
    headset.prepared_pv[DEFAULT] = encode_groups(lambda k: PvFeed(headset, DEFAULT).images(k), starts)


class PvStream(Stream):
    """The port: starts, streams and stops the camera subsystem."""

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
        """Close the camera if the client's mode requests it."""
        if self._closes:
            self._headset.close_camera()
            self._closes = False
