"""Spatial input and the extended eye tracker: poses of head, eyes and hands while they are tracked."""

from __future__ import annotations

import struct
from functools import lru_cache

import numpy as np

from kitchensync.virtual_kitchen.headset.client_configuration import ConfigurationReader, Rejected
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.stream import Feed, Schedule, SentPacket, Stream
from kitchensync.virtual_kitchen.world.motion import rotations
from kitchensync.virtual_kitchen.world.rotations import Floats
from kitchensync.virtual_kitchen.world.seeds import SmoothNoise, generator

HZ = 30.0
HEAD, EYES, LEFT, RIGHT = 1, 2, 4, 8  # valid bits at the start of a packet
JOINTS = 26
SIGHT_SLOT_S = 1.3  # a hand is in view or not for whole slots of this length
_LONGEST_MEMORY = 40  # slots to look back for the last view of a hand
_JOINT = np.dtype([("xyzw", "<f4", 4), ("position", "<f4", 3), ("radius", "<f4"), ("accuracy", "<i4")])


def _template() -> tuple[Floats, Floats]:
    """Return joint positions (26, 3) of a flat left hand, palm at 0, fingers to -z, and their radii, metres."""
    places, radii = [[0.0, 0.0, 0.0], [0.0, 0.0, 0.07]], [0.014, 0.019]
    for finger, (side, first, step, count) in enumerate(
        (
            (-0.035, 0.03, 0.028, 4),
            (-0.022, 0.02, 0.027, 5),
            (0.0, 0.02, 0.029, 5),
            (0.02, 0.02, 0.027, 5),
            (0.038, 0.02, 0.022, 5),
        )
    ):
        spread = -0.02 if finger == 0 else side * 0.12
        for joint in range(count):
            places.append([side + spread * joint, 0.004 * joint, first - (step * joint) * 1.25])
            radii.append(0.010 - 0.001 * joint)
    return np.array(places), np.array(radii)


class SpatialFeed(Feed):
    """Packets from accept on; an invalid part keeps its last valid value."""

    def __init__(self, headset: HeadsetState) -> None:
        seed = headset.kitchen.seed
        rng = generator(seed, "spatial input")
        self._headset, self._seed = headset, seed
        self._schedule = Schedule(
            1 / (HZ * (1 + rng.uniform(-200e-6, 200e-6))), float(rng.uniform(0, 1 / HZ)), 0.004
        )
        self._reach = SmoothNoise(seed, "reach", 0.35, (0.09, 0.05, 0.06) * 2)
        self._glance = SmoothNoise(seed, "glance", 0.25, (0.16, 0.12))
        self._places, self._radii = _template()
        self._remembered = lru_cache(maxsize=4)(self._hand)
        self._head = lru_cache(maxsize=2)(self._worn_at)

    def packet(self, k: int) -> SentPacket:
        """Return packet k: 1936 bytes."""
        at_s = self._schedule.captured_s(k)
        position, turn, _ = self._head(at_s)
        glance = self._glance.value(np.array([at_s]))[0]
        gaze = turn @ _unit(np.array([glance[0], glance[1] - 0.1, -1.0]))
        rays = np.concatenate((position, -turn[:, 2], turn[:, 1], position, gaze))
        valid, hands = HEAD | EYES, b""
        for hand, bit in enumerate((LEFT, RIGHT)):
            seen_k = self._last_seen(k, hand)
            if seen_k == k:
                valid |= bit
                hands += self._hand(k, hand)
            else:
                hands += bytes(JOINTS * _JOINT.itemsize) if seen_k is None else self._remembered(seen_k, hand)
        payload = struct.pack("<I", valid) + rays.astype("<f4").tobytes() + hands
        return SentPacket(self._headset.clock.ticks_at(at_s), payload)

    def _worn_at(self, at_s: float) -> tuple[Floats, Floats, Floats]:
        """Return the head's position, rotation matrix and quaternion (1, 4)."""
        turned = self._headset.motion.orientation(np.array([at_s]))
        orientation = rotations.multiply(self._headset.frame_turn(), turned)
        return self._headset.place(at_s)[3, :3], rotations.matrices(orientation)[0], orientation

    def _in_sight(self, slot: int, hand: int) -> bool:
        return bool(generator(self._seed, "hand in sight", slot // 2, hand).random() < 0.7)

    def _last_seen(self, k: int, hand: int) -> int | None:
        """Return the last packet up to k with the hand in view."""
        slot = int(self._schedule.captured_s(k) / SIGHT_SLOT_S)
        if self._in_sight(slot, hand):
            return k
        for earlier in range(slot - 1, max(-1, slot - _LONGEST_MEMORY), -1):
            if self._in_sight(earlier, hand):
                end_s = (earlier + 1) * SIGHT_SLOT_S - self._schedule.phase_s
                return max(0, int(np.ceil(end_s / self._schedule.period_s)) - 1)
        return None

    def _hand(self, k: int, hand: int) -> bytes:
        """Return the 26 joints of a moving hand below the line of sight."""
        at_s = self._schedule.captured_s(k)
        position, turn, q_head = self._head(at_s)
        side = -1.0 if hand == 0 else 1.0
        reach = self._reach.value(np.array([at_s]))[0][3 * hand : 3 * hand + 3]
        centre = position + turn @ (np.array([0.14 * side, -0.12, -0.5]) + reach)
        curl = rotations.multiply(
            rotations.about_axis(1, np.array([0.5 * side + reach[0]])),
            rotations.about_axis(2, reach[1:2] * 4),
        )
        q = rotations.multiply(q_head, curl)
        joints = np.zeros(JOINTS, _JOINT)
        joints["xyzw"] = q[0][[1, 2, 3, 0]]
        joints["position"] = centre + (self._places * [-side, 1, 1]) @ rotations.matrices(q)[0].T
        joints["radius"] = self._radii
        return joints.tobytes()


def _unit(vector: Floats) -> Floats:
    return vector / np.linalg.norm(vector)


class SpatialStream(Stream):
    """The spatial input port: no configuration."""

    name, port = "spatial_input", 3812

    def configure(self, reader: ConfigurationReader) -> Feed:
        """Start at accept."""
        return SpatialFeed(self._headset)


RATES_HZ = (30, 60, 90)  # the device closes the connection at any other
CALIBRATION, COMBINED, LEFT_EYE, RIGHT_EYE = 1, 2, 4, 8  # a HoloLens 2 leaves the higher bits 0
BLINK_SLOT_S = 0.25
_HALF_BETWEEN_EYES_M = 0.032


class EyeFeed(Feed):
    """Readings for one client; during a blink all rays are zero and their bits are unset."""

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
            glance = self._glance.value(np.array([at_s]))[0]
            gaze = _unit(np.array([glance[0], glance[1] - 0.1, -1.0]))
            sides = (0.0, -_HALF_BETWEEN_EYES_M, _HALF_BETWEEN_EYES_M)
            rays = b"".join(np.array([side, 0, 0, *gaze], "<f4").tobytes() for side in sides)
            valid |= COMBINED | LEFT_EYE | RIGHT_EYE
        payload = bytes(4) + rays + bytes(12) + struct.pack("<I", valid)
        return SentPacket(self._headset.clock.ticks_at(at_s), payload, self._headset.pose(at_s))


class EyeStream(Stream):
    """The eye tracker port: one byte, the rate."""

    name, port = "eye_tracking", 3817

    def configure(self, reader: ConfigurationReader) -> Feed:
        """Read FRAMERATE."""
        hz = reader.number("B")
        if hz not in RATES_HZ:
            raise Rejected(f"eye tracker at {hz} Hz")
        return EyeFeed(self._headset, hz)
