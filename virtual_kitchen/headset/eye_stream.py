"""Extended eye tracker: three gaze rays in the frame of the tracker's node, and always a pose."""

import struct

import numpy as np

from virtual_kitchen.headset.client_configuration import ConfigurationReader, Rejected
from virtual_kitchen.headset.device import HeadsetState
from virtual_kitchen.headset.packets import Schedule, SentPacket
from virtual_kitchen.headset.stream import Feed, Stream
from virtual_kitchen.world.seeds import generator
from virtual_kitchen.world.smooth_noise import SmoothNoise

RATES_HZ = (30, 60, 90)
CALIBRATION, COMBINED, LEFT, RIGHT = 1, 2, 4, 8
BLINK_SLOT_S = 0.25
_HALF_BETWEEN_EYES_M = 0.032


class EyeFeed(Feed):
    """Readings for one client; while the eyes blink all rays are zero and their bits are unset."""

    def __init__(self, headset: HeadsetState, hz: int) -> None:
        seed = headset.kitchen.seed
        rng = generator(seed, "eye tracker")
        self._headset, self._seed = headset, seed
        period_s = 1 / (hz * (1 + rng.uniform(-100e-6, 100e-6)))
        self._schedule = Schedule(period_s, float(rng.uniform(0, 1 / 90)), 0.02)
        self._glance = SmoothNoise(seed, "glance", 0.25, (0.16, 0.12))

    def packet(self, k: int) -> SentPacket:
        """Return reading k: 92 bytes and the pose of the tracker's node."""
        at_s = self._schedule.captured_s(k)
        blinks = generator(self._seed, "blink", int(at_s / BLINK_SLOT_S)).random() < 0.06
        rays, valid = bytes(72), CALIBRATION
        if not blinks:
            glance = self._glance.evaluate(np.array([at_s]))[0][0]
            gaze = np.array([glance[0], glance[1] - 0.1, -1.0])
            gaze /= np.linalg.norm(gaze)
            sides = (0.0, -_HALF_BETWEEN_EYES_M, _HALF_BETWEEN_EYES_M)
            rays = b"".join(np.array([side, 0, 0, *gaze], "<f4").tobytes() for side in sides)
            valid |= COMBINED | LEFT | RIGHT
        payload = bytes(4) + rays + bytes(12) + struct.pack("<I", valid)
        return SentPacket(self._headset.clock.ticks_at(at_s), payload, self._headset.pose(at_s))


class EyeStream(Stream):
    """The port's side: one byte, the rate."""

    name, port = "eye_tracking", 3817

    def configure(self, reader: ConfigurationReader) -> Feed:
        """Read FRAMERATE."""
        hz = reader.number("B")
        if hz not in RATES_HZ:
            raise Rejected(f"eye tracker at {hz} Hz")
        return EyeFeed(self._headset, hz)
