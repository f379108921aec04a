"""Near depth and active brightness (AHAT): hands over a counter, repeating every two seconds.

The frames depend only on seed and k, so encoded groups of pictures are cached.
"""

from __future__ import annotations

import struct
import threading
from collections import OrderedDict
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kitchensync.virtual_kitchen.headset.cameras import AHAT, constants
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
from kitchensync.virtual_kitchen.headset.video_encoder import PictureGroup, control_for
from kitchensync.virtual_kitchen.world.seeds import generator

MAGIC, KEY_FRAME = 0xCA, 1  # first bytes of a Zdepth frame
_HEADER = struct.Struct("<BBHHH8I")


def blob(depth_mm: npt.NDArray[np.uint16], number: int) -> bytes:
    """Return a frame (height, width) as a blob: zeroes, blocks, edges, surfaces."""
    codec = pa.Codec("zstd")
    zeroes = np.packbits(depth_mm == 0).tobytes()
    plain = (zeroes, b"\0" * 8, b"\0" * 8, depth_mm.tobytes())
    parts = [codec.compress(part, asbytes=True) for part in plain]
    sizes = [size for raw, part in zip(plain, parts, strict=True) for size in (len(raw), len(part))]
    height, width = depth_mm.shape
    return _HEADER.pack(MAGIC, KEY_FRAME, number & 0xFFFF, width, height, *sizes) + b"".join(parts)


SIDE = 512
HZ = 45
SENSOR_HZ = 62.976e6  # sensor ticks count this clock, not that of the host stamps
LATENCY_S = 0.03
RING = 90  # frames until the hands repeat their movement
SAME, ZDEPTH = 0, 1  # depth profiles of hl2ss
_NOISE_MM = 4.0
_KEPT_GROUPS = 8
_SIZES = struct.Struct("<II")
U16 = npt.NDArray[np.uint16]
U8 = npt.NDArray[np.uint8]


class NearScene:
    """Depth (mm) and brightness, both 512x512 uint16, of the RING frames."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        rng = generator(seed, "ahat scene")
        rows, columns = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32)
        slope = 470 + 0.75 * (SIDE - rows) + 0.05 * columns
        self._counter = (
            cv2.GaussianBlur(rng.normal(0, 20, (SIDE, SIDE)).astype(np.float32), (0, 0), 3) + slope
        )
        for _ in range(6):  # objects on the counter
            centre = tuple(int(x) for x in rng.integers(90, 420, 2))
            high = float(rng.uniform(20, 110))
            cv2.circle(self._counter, centre, int(rng.integers(18, 45)), 480 + high, -1)
        radius = np.hypot(rows - 255.5, columns - 255.5)
        self._seen = radius < 250  # the sensor's round field of view
        self._shine = 1.0 - 0.6 * (radius / 256) ** 2
        self._hands = rng.uniform((150, 280), (360, 420), (2, 2))
        self._sway = rng.uniform(0, 2 * np.pi, (2, 2))

    def picture(self, index: int) -> tuple[U16, U16]:
        """Return depth and brightness of one frame of the ring."""
        depth = self._counter.copy()
        turn = 2 * np.pi * index / RING
        for hand, sway in zip(self._hands, self._sway, strict=True):
            x, y = hand + 42 * np.sin(turn * np.array([1, 2]) + sway)
            reach = 340 + 30 * np.sin(turn + sway[0])
            cv2.ellipse(depth, (int(x), int(y)), (34, 46), 20, 0, 360, reach, -1)
            cv2.line(depth, (int(x), int(y) + 20), (int(hand[0]) - 40, SIDE), reach + 25, 44)
        rng = generator(self._seed, "ahat noise", index)
        depth += rng.standard_normal(depth.shape, dtype=np.float32) * _NOISE_MM
        brightness = 1.5e9 / depth**2 * self._shine * self._seen
        depth[~self._seen] = 0
        return np.rint(depth).astype(np.uint16), np.rint(brightness).astype(np.uint16)


def packed(depth: U16, brightness: U16) -> U8:
    """Return both images in one planar 4:2:0 frame, (768, 512) uint8.

    Luma is the low byte of depth / 4 mm. Chroma, as one NV12 plane, holds the square roots of brightness at even
    columns.
    """
    roots = np.sqrt(brightness[:, ::2].astype(np.float32)).astype(np.uint8).reshape(-1, 2)
    luma = (depth >> 2).astype(np.uint8)
    return np.concatenate((luma.reshape(-1), roots[:, 0], roots[:, 1])).reshape(SIDE * 3 // 2, SIDE)


def only_brightness(_depth: U16, brightness: U16) -> U8:
    """Return the square root of brightness as luma, without colour, (768, 512) uint8."""
    luma = np.sqrt(brightness.astype(np.float32)).astype(np.uint8)
    return np.concatenate((luma, np.full((SIDE // 2, SIDE), 128, np.uint8)))


@dataclass(frozen=True, slots=True)
class AhatConfiguration:
    """The configuration of one client."""

    with_pose: bool
    divisor: int
    encoding: VideoEncoding
    gop: int
    is_zdepth: bool = False


_BITS_PER_S = SIDE * SIDE * HZ * 12 // 150 * 16  # client default for H.265, truncated before the factor 16
DEFAULT = AhatConfiguration(True, 1, VideoEncoding(RequestedEncoding.H265_MAIN, _BITS_PER_S), HZ)
"""The configuration of a client with the usual settings."""


class GroupShelf:
    """Cache of encoded groups of pictures of one seed, shared by all clients."""

    def __init__(self, seed: int, *, at_requested_rate: bool = False) -> None:
        self._seed, self._at_requested_rate = seed, at_requested_rate
        self._scene: NearScene | None = None
        self._pictures: dict[int, tuple[U16, U16]] = {}
        self._groups: OrderedDict[tuple[AhatConfiguration, int], tuple[PictureGroup, list[bytes]]] = (
            OrderedDict()
        )
        self._lock = threading.Lock()

    def picture(self, index: int) -> tuple[U16, U16]:
        """Return one frame of the ring, painted once."""
        if self._scene is None:
            self._scene = NearScene(self._seed)
        if index not in self._pictures:
            self._pictures[index] = self._scene.picture(index)
        return self._pictures[index]

    def unit(self, configuration: AhatConfiguration, start_k: int, k: int) -> bytes:
        """Return the access unit of frame k in the group that starts at `start_k`."""
        key = (configuration, start_k * configuration.divisor % RING)
        with self._lock:
            if key not in self._groups:
                encoding = configuration.encoding
                control = control_for(
                    encoding, SIDE * SIDE * HZ * 16, at_requested_rate=self._at_requested_rate, better_by=8
                )
                self._groups[key] = (PictureGroup(encoding.profile, SIDE, SIDE, HZ, control), [])
            self._groups.move_to_end(key)
            while len(self._groups) > _KEPT_GROUPS:
                self._groups.popitem(last=False)
            group, units = self._groups[key]
            while len(units) <= k - start_k:
                index = (start_k + len(units)) * configuration.divisor % RING
                pack = only_brightness if configuration.is_zdepth else packed
                units.append(group.encode(pack(*self.picture(index))))
            return units[k - start_k]

    def prepare(self, configuration: AhatConfiguration) -> None:
        """Encode all groups of the ring that a client can start with."""
        for start_k in range(0, RING, configuration.gop):
            self.unit(configuration, start_k, start_k + configuration.gop - 1)


class AhatFeed(Feed):
    """Depth packets for one client."""

    def __init__(self, headset: HeadsetState, configuration: AhatConfiguration, shelf: GroupShelf) -> None:
        rng = generator(headset.kitchen.seed, "ahat")
        self._headset, self._configuration, self._shelf = headset, configuration, shelf
        hz = SENSOR_HZ / 1_385_454 * (1 + rng.uniform(-40e-6, 40e-6))
        phase_s = float(rng.uniform(0, 1 / HZ))
        self._schedule = video_schedule(hz, configuration.divisor, configuration.gop, phase_s, LATENCY_S)
        self._sensor_epoch = int(rng.integers(10**8, 10**13))
        self._sensor_step = 1_385_454 * configuration.divisor
        self._start_k, self._next_k = 0, -1
        self._blobs: dict[int, bytes] = {}

    def packet(self, k: int) -> SentPacket:
        """Return frame k: sizes, image, sensor ticks."""
        at_s = self._schedule.captured_s(k)
        zdepth, image = self._zdepth(k), self._image(k)
        sensor_ticks = struct.pack("<Q", self._sensor_epoch + k * self._sensor_step)
        pose = self._headset.pose(at_s) if self._configuration.with_pose else b""
        return SentPacket(
            self._headset.clock.ticks_at(at_s),
            _SIZES.pack(len(zdepth), len(image)) + zdepth + image + sensor_ticks,
            pose,
        )

    def _zdepth(self, k: int) -> bytes:
        if not self._configuration.is_zdepth:
            return b""
        index = k * self._configuration.divisor % RING
        if index not in self._blobs:
            self._blobs[index] = blob(self._shelf.picture(index)[0], index)
        return self._blobs[index]

    def _image(self, k: int) -> bytes:
        if self._configuration.encoding.profile is RequestedEncoding.RAW:
            depth, brightness = self._shelf.picture(k * self._configuration.divisor % RING)
            return (
                brightness.tobytes()
                if self._configuration.is_zdepth
                else depth.tobytes() + brightness.tobytes()
            )
        if k != self._next_k or k % self._configuration.gop == 0:
            self._start_k = k
        self._next_k = k + 1
        return self._shelf.unit(self._configuration, self._start_k, k)


class AhatStream(Stream):
    """The port: depth is sent in one frame with brightness, or as a blob beside it."""

    name, port = "depth_ahat", 3804

    def __init__(self, headset: HeadsetState) -> None:
        super().__init__(headset)
        self._shelf = GroupShelf(headset.kitchen.seed, at_requested_rate=headset.has_rings)

    def prepare(self) -> None:
        """Encode the frames of a client with the usual settings."""
        self._shelf.prepare(DEFAULT)

    def configure(self, reader: ConfigurationReader) -> Feed | None:
        """Read mode, divisor, depth and brightness encodings and options; mode 2 downloads constants."""
        mode = reader.number("B") & 3
        if mode == 2:
            reader.answer(constants(AHAT))
        if mode > 1:
            return None
        divisor, depth_profile = reader.divisor(), reader.number("B")
        encoding, options = reader.video_encoding(), reader.encoder_options()
        if depth_profile not in (SAME, ZDEPTH):
            raise Rejected(f"depth profile {depth_profile}")
        gop = 1 if encoding.profile is RequestedEncoding.RAW else options.get(GOP_OPTION, 0) or HZ
        configuration = AhatConfiguration(mode == 1, divisor, encoding, gop, depth_profile == ZDEPTH)
        return AhatFeed(self._headset, configuration, self._shelf)
