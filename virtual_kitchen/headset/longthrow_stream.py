"""Far depth (Long Throw): a room's walls and things, as PNG, five pictures a second."""

import struct

import cv2
import numpy as np
import numpy.typing as npt

from virtual_kitchen.headset.cameras import LONGTHROW, constants
from virtual_kitchen.headset.client_configuration import ConfigurationReader, Rejected
from virtual_kitchen.headset.device import Headset
from virtual_kitchen.headset.packets import Feed, Packet, Schedule
from virtual_kitchen.world.seeds import generator

WIDTH, HEIGHT, HZ = 320, 288, 5
SENSOR_HZ, SENSOR_STEP = 62.976e6, 12_595_200
RING = 10  # pictures until the room repeats itself
LATENCY_S = 0.06
_MOST_FILTER = 6
U16 = npt.NDArray[np.uint16]


def picture(seed: int, index: int) -> tuple[U16, U16]:
    """Return depth (mm, 0 invalid) and brightness, both (288, 320) uint16, of one picture of the ring."""
    rng = generator(seed, "long throw scene")
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    depth = 1800 + 3.5 * (HEIGHT - rows) + 400 * np.sin(columns / 60 + 2 * np.pi * index / RING)
    for _ in range(5):
        centre = tuple(int(x) for x in rng.integers(40, 250, 2))
        cv2.circle(depth, centre, int(rng.integers(15, 40)), float(rng.uniform(700, 1800)), -1)
    depth += generator(seed, "long throw noise", index).normal(0, 6, depth.shape)
    brightness = np.clip(2.5e9 / depth**2, 0, 65535)
    invalid = np.hypot(rows - HEIGHT / 2, columns - WIDTH / 2) > 165
    depth[invalid] = 0
    return np.rint(depth).astype(np.uint16), np.rint(brightness).astype(np.uint16)


def as_png(depth: U16, brightness: U16) -> bytes:
    """Return both as one PNG of 320x288 RGBA pixels whose BGRA bytes are depth, then brightness."""
    bgra = np.stack((depth, brightness)).astype("<u2").view(np.uint8).reshape(HEIGHT, WIDTH, 4)
    return bytes(cv2.imencode(".png", bgra)[1])


class LongThrowFeed:
    """Depth packets for one client."""

    def __init__(self, headset: Headset, with_pose: bool, divisor: int, pictures: dict[int, bytes]) -> None:
        rng = generator(headset.kitchen.seed, "long throw")
        self._headset, self._with_pose, self._divisor = headset, with_pose, divisor
        self._pictures = pictures
        period_s = SENSOR_STEP / SENSOR_HZ * divisor * (1 + rng.uniform(-40e-6, 40e-6))
        self._schedule = Schedule(period_s, float(rng.uniform(0, 1 / HZ)), LATENCY_S)
        self._sensor_epoch = int(rng.integers(10**8, 10**13))

    def first_k(self, world_s: float) -> int:
        """Return the next picture."""
        return self._schedule.first_k(world_s)

    def due_s(self, k: int) -> float:
        """Return when picture k leaves the device."""
        return self._schedule.due_s(k)

    def packet(self, k: int) -> Packet:
        """Return picture k and its sensor ticks."""
        at_s, index = self._schedule.captured_s(k), k * self._divisor % RING
        if index not in self._pictures:
            self._pictures[index] = as_png(*picture(self._headset.kitchen.seed, index))
        sensor_ticks = self._sensor_epoch + k * SENSOR_STEP * self._divisor
        pose = self._headset.pose(at_s) if self._with_pose else b""
        payload = self._pictures[index] + struct.pack("<Q", sensor_ticks)
        return Packet(self._headset.clock.ticks_at(at_s), payload, pose)


class LongThrowStream:
    """The port's side: mode, divisor and PNG filter, which changes nothing but the size."""

    name, port = "depth_longthrow", 3805

    def __init__(self, headset: Headset) -> None:
        self._headset = headset
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

    def release(self) -> None:
        """Nothing stays open."""
