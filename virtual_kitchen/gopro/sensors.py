"""What the virtual GoPro measures: its clock, its inertial sensors, its exposure, as GPMF payloads.

Camera axes are GoPro's (seen from behind): X to the left, Y backwards, Z up. The camera sits rigidly on the head,
turned by a few seeded degrees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from virtual_kitchen.gopro.gpmf_writer import SensorBlock, payload
from virtual_kitchen.world.clocks import CameraClock
from virtual_kitchen.world.motion import HeadMotion, rotations
from virtual_kitchen.world.seeds import generator

FRAME_TICKS = 3003
VIDEO_TIMESCALE = 90000
FRAMES_PER_PAYLOAD = 30
GYRO_SCALE = 939
ACCL_SCALE = 417
STORED_AXES = "ZXY"
IMU_HZ = 199.2527
FIRST_IMU_US = -2273
FIRST_FRAME_US = 132495
READ_OUT_MS = 16.0


@dataclass(frozen=True)
class Timeline:
    """One recording's media time, 0 at the first frame, on the camera's crystal."""

    crystal: CameraClock
    start_world_s: float

    def world_s(self, media_s: np.ndarray) -> np.ndarray:
        """Return the world seconds of media times (n,)."""
        return self.start_world_s + media_s * (1 + self.crystal.drift_ppm * 1e-6)


def frame_media_s(frame: np.ndarray | int) -> np.ndarray:
    """Return media seconds of frames, exact multiples of 1001/30000."""
    return np.asarray(frame, np.float64) * FRAME_TICKS / VIDEO_TIMESCALE


@dataclass(frozen=True)
class Mount:
    """How one camera of one seed sits on the head, and the faults of its sensors.

    wxyz turns camera vectors into head vectors (both x right, y up, z back); imu_hz is the inertial unit's rate in
    media time, since that unit has a crystal of its own.
    """

    wxyz: np.ndarray
    gyro_bias: np.ndarray
    accl_bias: np.ndarray
    imu_hz: float
    focal_per_width: float

    @classmethod
    def of_seed(cls, seed: int) -> Mount:
        """Return the camera of a seed."""
        random = generator(seed, "gopro mount")
        axis = random.normal(size=3)
        angle = np.radians(random.uniform(3.0, 9.0))
        wxyz = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis / np.linalg.norm(axis)])
        return cls(
            wxyz=wxyz,
            gyro_bias=random.normal(0, 0.004, 3),
            accl_bias=random.normal(0, 0.03, 3),
            imu_hz=IMU_HZ * (1 + random.uniform(-1, 1) * 2e-4),
            focal_per_width=0.62,
        )

    def to_camera(self, head_vectors: np.ndarray) -> np.ndarray:
        """Return head vectors (n, 3) in GoPro axes: X left, Y back, Z up."""
        turned = head_vectors @ rotations.matrices(self.wxyz)
        return np.stack([-turned[:, 0], turned[:, 2], turned[:, 1]], axis=1)

    def camera_orientation(self, head_wxyz: np.ndarray) -> np.ndarray:
        """Return the camera's orientation (n, 4) of head orientations (n, 4)."""
        return rotations.multiply(head_wxyz, self.wxyz)


class Telemetry:
    """Make the payloads of one recording, one after another, from the head's motion."""

    def __init__(self, motion: HeadMotion, timeline: Timeline, mount: Mount, device: str, seed: int) -> None:
        """Start at frame 0 with nothing counted; the noise is that of the seed and the world time of the start."""
        self._motion = motion
        self._timeline = timeline
        self._mount = mount
        self._device = device
        self._random = generator(seed, "gopro noise", round(timeline.start_world_s * 1e9))
        self._frames = 0
        self._imu_samples = 0

    def imu_media_s(self, sample: np.ndarray) -> np.ndarray:
        """Return the media times of inertial samples: FIRST_IMU_US and then one every 1/imu_hz."""
        return FIRST_IMU_US * 1e-6 + np.asarray(sample, np.float64) / self._mount.imu_hz

    def next_payload(self, frames: int) -> bytes:
        """Return the payload of the next frames, with every inertial sample up to the next payload's first frame."""
        first_frame, self._frames = self._frames, self._frames + frames
        # A tenth of a millisecond earlier than the sample before frame 0 lies: each payload starts at such a sample.
        end_s = float(frame_media_s(self._frames)) + (FIRST_IMU_US - 100) * 1e-6
        first_sample = self._imu_samples
        self._imu_samples = int(np.floor((end_s - FIRST_IMU_US * 1e-6) * self._mount.imu_hz)) + 1
        samples = np.arange(first_sample, self._imu_samples)
        return payload(self._device, [*self._imu_blocks(samples), *self._frame_blocks(first_frame, frames)])

    def _imu_blocks(self, samples: np.ndarray) -> list[SensorBlock]:
        media_s = self.imu_media_s(samples)
        world_s = self._timeline.world_s(media_s)
        mount, random = self._mount, self._random
        force = mount.to_camera(self._motion.specific_force(world_s)) + mount.accl_bias
        turn = mount.to_camera(self._motion.angular_velocity(world_s)) + mount.gyro_bias
        stored_accl = _stored(force + random.normal(0, 0.04, force.shape), ACCL_SCALE)
        stored_gyro = _stored(turn + random.normal(0, 0.0015, turn.shape), GYRO_SCALE)
        first_us = FIRST_FRAME_US + round(float(media_s[0]) * 1e6) if len(media_s) else 0
        shared = {"first_us": first_us, "total": self._imu_samples}
        return [
            SensorBlock(
                "ACCL", "s", "Accelerometer", **shared, values=stored_accl, unit="m/s²", scale=ACCL_SCALE,
                axes=STORED_AXES, temperature_c=41.5,
            ),
            SensorBlock(
                "GYRO", "s", "Gyroscope", **shared, values=stored_gyro, unit="rad/s", scale=GYRO_SCALE,
                axes=STORED_AXES, temperature_c=41.5,
            ),
        ]  # fmt: skip

    def _frame_blocks(self, first_frame: int, frames: int) -> list[SensorBlock]:
        stamp = FIRST_FRAME_US + round(float(frame_media_s(first_frame)) * 1e6)
        exposure_s = 1 / 120 + 0.0004 * np.sin(np.arange(first_frame, self._frames) / 97.0)
        thirds = -(-frames // 3)
        return [
            SensorBlock(
                "SHUT", "f", "Exposure time (shutter speed)", stamp, self._frames, values=exposure_s, unit="s"
            ),
            SensorBlock(
                "WBAL",
                "S",
                "White Balance temperature (Kelvin)",
                stamp,
                -(-self._frames // 3),
                values=np.full(thirds, 4600),
            ),
            SensorBlock("ISOE", "S", "Sensor ISO", stamp, self._frames, values=np.full(frames, 320)),
        ]


def _stored(camera: np.ndarray, scale: int) -> np.ndarray:
    """Return camera vectors as the int16 channels Z, X, Y."""
    channels = camera[:, ["XYZ".index(letter) for letter in STORED_AXES]]
    return np.clip(np.rint(channels * scale), -32768, 32767).astype(np.int16)
