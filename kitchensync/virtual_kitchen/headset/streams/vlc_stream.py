"""The four grey cameras: each one's view of the scene, turned as the camera is mounted."""

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kitchensync.virtual_kitchen.headset.cameras import RigCamera, constants
from kitchensync.virtual_kitchen.headset.client_configuration import (
    GOP_OPTION,
    ConfigurationReader,
    Rejected,
    RequestedEncoding,
    VideoEncoding,
)
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.stream import Feed, SentPacket, Stream
from kitchensync.virtual_kitchen.headset.streams.pv_stream import video_schedule
from kitchensync.virtual_kitchen.headset.video_encoder import GroupedVideo, control_for
from kitchensync.virtual_kitchen.world import frame_counter
from kitchensync.virtual_kitchen.world.rotations import multiply
from kitchensync.virtual_kitchen.world.seeds import generator

HZ = 30
LATENCY_S = 0.03
LATE_TICKS = 125_000  # delay of these cameras' host stamps, 100 ns
SHIFT_FACTOR_OPTION, SHIFT_OPTION = 2**64 - 1, 2**64 - 2  # option keys of hl2ss itself
_EXPOSURE_NS, _GAIN = 5_990_000, 24
_METADATA = struct.Struct("<QQII")


@dataclass(frozen=True, slots=True)
class VlcConfiguration:
    """The configuration of one client; `shift_ticks` is added to the stamps."""

    with_pose: bool
    divisor: int
    encoding: VideoEncoding
    gop: int
    shift_ticks: int


class VlcFeed(Feed):
    """Frames of one camera for one client."""

    def __init__(self, headset: HeadsetState, camera: RigCamera, configuration: VlcConfiguration) -> None:
        rng = generator(headset.kitchen.seed, camera.name)
        self._headset, self._camera, self._configuration = headset, camera, configuration
        hz = HZ * (1 + rng.uniform(-40e-6, 40e-6))
        phase_s = float(rng.uniform(0, 1 / HZ))
        self._schedule = video_schedule(hz, configuration.divisor, configuration.gop, phase_s, LATENCY_S)
        self._sensor_epoch_ns = int(rng.integers(10**9, 10**14))
        self._mount = camera.orientation()
        self._is_raw = configuration.encoding.profile is RequestedEncoding.RAW
        pixels_per_s = camera.width * camera.height * HZ
        control = control_for(configuration.encoding, pixels_per_s, at_requested_rate=headset.has_rings)
        size = camera.width, camera.height, HZ
        self._video = GroupedVideo(configuration.encoding.profile, size, configuration.gop, control)

    def packet(self, k: int) -> SentPacket:
        """Return frame k: image and metadata."""
        at_s = self._schedule.captured_s(k)
        ticks = self._headset.clock.ticks_at(at_s) + LATE_TICKS + self._configuration.shift_ticks
        grey = self._grey(at_s)
        if self._headset.kitchen.frame_counter:
            frame_counter.draw_grey(grey, k)
        if self._is_raw:
            image = grey.tobytes()
        else:
            chroma = np.full((self._camera.height // 2, self._camera.width), 128, np.uint8)
            image = self._video.encode(k, np.concatenate((grey, chroma)))
        sensor_ns = self._sensor_epoch_ns + round(at_s * 1e9)
        metadata = _METADATA.pack(sensor_ns, _EXPOSURE_NS, _GAIN, 0)
        pose = b""
        if self._configuration.with_pose:
            pose = self._headset.pose(self._headset.clock.world_s_at(ticks))
        return SentPacket(ticks, image + metadata, pose)

    def _grey(self, at_s: float) -> npt.NDArray[np.uint8]:
        head = self._headset.motion.orientation(np.array([at_s]))
        view = multiply(head, self._mount)[0]
        camera = self._camera
        return self._headset.kitchen.scene.render_grey(view, camera.width, camera.height, camera.focal_px)


class VlcStream(Stream):
    """The port of one grey camera."""

    def __init__(self, headset: HeadsetState, camera: RigCamera) -> None:
        super().__init__(headset)
        self._camera = camera
        self.name, self.port = camera.name, camera.port

    def configure(self, reader: ConfigurationReader) -> Feed | None:
        """Read mode, divisor, encoding and options; mode 2 downloads the camera's constants."""
        mode = reader.number("B") & 3
        if mode == 2:
            reader.answer(constants(self._camera))
        if mode > 1:
            return None
        divisor, encoding, options = reader.divisor(), reader.video_encoding(), reader.encoder_options()
        (constant,) = struct.unpack("<q", struct.pack("<Q", options.get(SHIFT_OPTION, 0)))
        (factor,) = struct.unpack("<d", struct.pack("<Q", options.get(SHIFT_FACTOR_OPTION, 0)))
        if not np.isfinite(factor):
            raise Rejected(f"stamp shift factor {factor}")
        shift_ticks = int(factor * _EXPOSURE_NS / 100) + constant
        gop = 1 if encoding.profile is RequestedEncoding.RAW else options.get(GOP_OPTION, 0) or HZ
        return VlcFeed(
            self._headset, self._camera, VlcConfiguration(mode == 1, divisor, encoding, gop, shift_ticks)
        )
