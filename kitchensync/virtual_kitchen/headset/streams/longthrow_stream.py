"""Far depth (Long Throw): the room's walls and objects as PNG, five frames per second."""

import struct

import cv2
import numpy as np
import numpy.typing as npt

from kitchensync.virtual_kitchen.headset.cameras import LONGTHROW, constants
from kitchensync.virtual_kitchen.headset.client_configuration import ConfigurationReader, Rejected
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.stream import Feed, Schedule, SentPacket, Stream
from kitchensync.virtual_kitchen.world import rotations
from kitchensync.virtual_kitchen.world.motion import VIEWING_POINT_M
from kitchensync.virtual_kitchen.world.room import distance_m
from kitchensync.virtual_kitchen.world.seeds import generator

WIDTH, HEIGHT, HZ = 320, 288, 5
SENSOR_HZ, SENSOR_STEP = 62.976e6, 12_595_200  # 200 ms, measured on a device
RING = 10  # frames until the room repeats
LATENCY_S = 0.06
_MOST_FILTER = 6  # the device closes the connection above it
_ROUND_PX = 165  # radius of the round image
_NOISE_MM = 3.0
U16 = npt.NDArray[np.uint16]


def picture(seed: int, index: int) -> tuple[U16, U16]:
    """Return depth (mm, 0 invalid) and brightness, both (288, 320) uint16, of one frame of the ring."""
    rng = generator(seed, "long throw scene")
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    depth = 1800 + 3.5 * (HEIGHT - rows) + 400 * np.sin(columns / 60 + 2 * np.pi * index / RING)
    for _ in range(5):
        centre = tuple(int(x) for x in rng.integers(40, 250, 2))
        cv2.circle(depth, centre, int(rng.integers(15, 40)), float(rng.uniform(700, 1800)), -1)
    depth += generator(seed, "long throw noise", index).normal(0, 6, depth.shape)
    brightness = np.clip(2.5e9 / depth**2, 0, 65535)
    invalid = np.hypot(rows - HEIGHT / 2, columns - WIDTH / 2) > _ROUND_PX
    depth[invalid] = 0
    return np.rint(depth).astype(np.uint16), np.rint(brightness).astype(np.uint16)


def as_png(depth: U16, brightness: U16) -> bytes:
    """Return both as one PNG of 320x288 RGBA pixels whose BGRA bytes are depth, then brightness."""
    bgra = np.stack((depth, brightness)).astype("<u2").view(np.uint8).reshape(HEIGHT, WIDTH, 4)
    return bytes(cv2.imencode(".png", bgra)[1])


class RoomPictures:
    """Depth of the room along the camera's rays from the head's position: true depth plus sensor noise."""

    def __init__(self, headset: HeadsetState) -> None:
        self._headset = headset
        u, v = np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT))
        cx, cy = LONGTHROW.centre_px
        focal = LONGTHROW.focal_px
        rays = np.stack(((u - cx) / focal, (v - cy) / focal, np.ones(u.shape)), axis=-1).reshape(-1, 3)
        self._rays = rays / np.linalg.norm(rays, axis=1, keepdims=True) @ LONGTHROW.from_rig
        self._invalid = np.hypot(u - WIDTH / 2, v - HEIGHT / 2) > _ROUND_PX

    def at(self, k: int, world_s: float) -> tuple[U16, U16]:
        """Return depth (mm along each ray, 0 invalid) and brightness, both (288, 320) uint16, of frame k."""
        at = np.array([max(world_s, 0.0)])
        turn = rotations.matrices(self._headset.motion.orientation(at))[0]
        place = self._headset.motion.position(at)[0] - VIEWING_POINT_M + turn @ np.array(LONGTHROW.place_m)
        depth = 1e3 * distance_m(place, self._rays @ turn.T).reshape(HEIGHT, WIDTH)
        depth += generator(self._headset.kitchen.seed, "room noise", k).normal(0, _NOISE_MM, depth.shape)
        brightness = np.clip(2.5e9 / depth**2, 0, 65535)
        depth[self._invalid] = 0
        return np.rint(depth).astype(np.uint16), np.rint(brightness).astype(np.uint16)


class LongThrowFeed(Feed):
    """Depth packets for one client."""

    def __init__(
        self, headset: HeadsetState, with_pose: bool, divisor: int, pictures: dict[int, bytes]
    ) -> None:
        rng = generator(headset.kitchen.seed, "long throw")
        self._headset, self._with_pose, self._divisor = headset, with_pose, divisor
        self._pictures = pictures
        period_s = SENSOR_STEP / SENSOR_HZ * divisor * (1 + rng.uniform(-40e-6, 40e-6))
        self._schedule = Schedule(period_s, float(rng.uniform(0, 1 / HZ)), LATENCY_S)
        self._sensor_epoch = int(rng.integers(10**8, 10**13))
        self._room = RoomPictures(headset) if headset.kitchen.show is not None else None

    def packet(self, k: int) -> SentPacket:
        """Return frame k and its sensor ticks."""
        at_s = self._schedule.captured_s(k)
        image = as_png(*self._room.at(k, at_s)) if self._room is not None else self._from_ring(k)
        sensor_ticks = self._sensor_epoch + k * SENSOR_STEP * self._divisor
        pose = self._headset.pose(at_s) if self._with_pose else b""
        payload = image + struct.pack("<Q", sensor_ticks)
        return SentPacket(self._headset.clock.ticks_at(at_s), payload, pose)

    def _from_ring(self, k: int) -> bytes:
        index = k * self._divisor % RING
        if index not in self._pictures:
            self._pictures[index] = as_png(*picture(self._headset.kitchen.seed, index))
        return self._pictures[index]


class LongThrowStream(Stream):
    """The port: mode, divisor and PNG filter, which only changes the size."""

    name, port = "depth_longthrow", 3805

    def __init__(self, headset: HeadsetState) -> None:
        super().__init__(headset)
        self._pictures: dict[int, bytes] = {}

    def configure(self, reader: ConfigurationReader) -> Feed | None:
        """Read the configuration; mode 2 downloads the camera's constants."""
        mode = reader.number("B") & 3
        if mode == 2:
            reader.answer(constants(LONGTHROW))
        if mode > 1:
            return None
        divisor, png_filter = reader.divisor(), reader.number("I")
        if png_filter > _MOST_FILTER:
            raise Rejected(f"PNG filter {png_filter}")
        return LongThrowFeed(self._headset, mode == 1, divisor, self._pictures)
