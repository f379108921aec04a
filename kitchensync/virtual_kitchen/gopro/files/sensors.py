"""Telemetry of the virtual GoPro: clock, inertial sensors and exposure as GPMF payloads.

Camera axes are GoPro's (seen from behind): X to the left, Y backwards, Z up. The camera sits rigidly on the head,
turned by a few seeded degrees.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from kitchensync.virtual_kitchen.gopro.files.gpmf_writer import SensorBlock, numbers, payload, text
from kitchensync.virtual_kitchen.world.clocks import CameraCrystal
from kitchensync.virtual_kitchen.world.motion import HeadMotion, rotations
from kitchensync.virtual_kitchen.world.seeds import generator

FRAME_TICKS = 3003  # 1001/30000 s, constant in real files
VIDEO_TIMESCALE = 90000
FRAMES_PER_PAYLOAD = 30  # as in real files at 29.97 Hz
GYRO_SCALE = 939  # SCAL of HERO9 to HERO13
ACCL_SCALE = 417  # SCAL of real files
STORED_AXES = "ZXY"
IMU_HZ = 199.2527  # measured in a file of a HERO11; 200 is only nominal
FIRST_IMU_US = -2273  # first sample from frame 0, measured in files of HERO9 and HERO11
FIRST_FRAME_US = 132495  # its zero is arbitrary; the first gyroscope sample then has a real file's STMP
READ_OUT_MS = 16.0  # SROT in the header of a HERO11
EXPOSURE_S = 1 / 120
GPS_HZ = 10.0  # as of HERO11 and HERO13
GPS_SCALE = [10_000_000, 10_000_000, 1000, 1000, 100, 1, 1000, 100, 1]


@dataclass(frozen=True)
class Timeline:
    """One recording's media time, 0 at the first frame, on the camera's crystal."""

    crystal: CameraCrystal
    start_world_s: float

    def world_s(self, media_s: np.ndarray) -> np.ndarray:
        """Return the world seconds of media times (n,)."""
        return self.crystal.world_s_at(media_s, self.start_world_s)


def frame_media_s(frame: np.ndarray | int) -> np.ndarray:
    """Return the media seconds of frames, exact multiples of 1001/30000."""
    return np.asarray(frame, np.float64) * FRAME_TICKS / VIDEO_TIMESCALE


@dataclass(frozen=True)
class CameraMount:
    """How the camera of a seed sits on the head, and the errors of its sensors.

    `wxyz` turns camera vectors into head vectors (both x right, y up, z back); `imu_hz` is the rate of the inertial
    unit in media time, since that unit has its own crystal.
    """

    wxyz: np.ndarray
    gyro_bias: np.ndarray
    accl_bias: np.ndarray
    imu_hz: float
    focal_per_width: float

    @classmethod
    def of_seed(cls, seed: int) -> CameraMount:
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


class Extras:
    """Telemetry of newer cameras: orientation and gravity of every frame, and GPS."""

    def __init__(self, motion: HeadMotion, timeline: Timeline, mount: CameraMount, seed: int) -> None:
        """Start at the first frame; the kitchen's place on Earth depends on the seed."""
        self._motion, self._timeline, self._mount = motion, timeline, mount
        first = mount.camera_orientation(motion.orientation(timeline.world_s(np.zeros(1))))
        self._first_inverse = first * np.array([1.0, -1.0, -1.0, -1.0])
        random = generator(seed, "gopro place")
        self._place = np.array([random.uniform(-60, 60), random.uniform(-170, 170), random.uniform(0, 500)])
        self._random = generator(seed, "gopro gps noise", round(timeline.start_world_s * 1e9))

    def frame_blocks(self, frames: np.ndarray, stamp_us: int, total: int) -> list[SensorBlock]:
        """Return CORI (since the first frame), IORI (none: no stabilisation) and GRAV of frames (n,)."""
        world_s = self._timeline.world_s(frame_media_s(frames))
        camera = self._mount.camera_orientation(self._motion.orientation(world_s))
        since_start = rotations.multiply(np.repeat(self._first_inverse, len(frames), axis=0), camera)
        up = np.einsum("nij,i->nj", rotations.matrices(camera), np.array([0.0, 1.0, 0.0]))
        still = np.tile([1.0, 0.0, 0.0, 0.0], (len(frames), 1))
        shown = (
            ("CORI", "CameraOrientation", since_start),
            ("IORI", "ImageOrientation", still),
            ("GRAV", "Gravity Vector", up),
        )
        return [
            SensorBlock(key, "s", title, stamp_us, total, values=np.rint(values * 32767), scale=32767)
            for key, title, values in shown
        ]

    def gps_blocks(self, samples: np.ndarray, total: int, days_at_start: float) -> list[SensorBlock]:
        """Return GPS5 with its lock, and GPS9 with time and lock in every sample."""
        media_s = samples / GPS_HZ
        stamp_us = FIRST_FRAME_US + round(float(media_s[0]) * 1e6) if len(samples) else 0
        walk = self._random.normal(0, [2e-6, 2e-6, 0.3], (len(samples), 3))
        speed = np.abs(self._random.normal(0, 0.05, (len(samples), 2)))
        five = np.rint(np.concatenate([self._place + walk, speed], axis=1) * GPS_SCALE[:5])
        at_s = days_at_start * 86400 + media_s
        time = np.stack([at_s // 86400, np.rint(at_s % 86400 * 1000)], axis=1)
        lock = np.tile([150.0, 3.0], (len(samples), 1))
        utc = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(seconds=float(at_s[0]) if len(at_s) else 0.0)
        facts = (
            numbers("GPSF", "L", [3]),
            text("GPSU", f"{utc:%y%m%d%H%M%S}.{utc.microsecond // 1000:03d}"),
            numbers("GPSP", "S", [150]),
            text("GPSA", "MSLV"),
        )
        return [
            SensorBlock("GPS5", "l", "GPS (Lat., Long., Alt., 2D speed, 3D speed)", stamp_us, total, values=five,
                        scale=GPS_SCALE[:5], more=facts),
            SensorBlock("GPS9", "lllllllSS", "GPS (Lat., Long., Alt., 2D, 3D, days, secs, DOP, fix)", stamp_us, total,
                        values=np.concatenate([five, time, lock], axis=1), scale=GPS_SCALE),
        ]  # fmt: skip


@dataclass(frozen=True)
class Instruments:
    """Contents and counters of a camera's telemetry.

    `imu_hz` None takes the mount's rate. `slips` are frames at which the encoder repeats a frame: the per-frame
    streams then have one sample fewer and MSKP goes on. `gps_days` are days since 2000-01-01 of the first frame.
    `picture_late_s` is how much later than its stamp a frame shows the world; only live clips have it.
    """

    per_frame: bool = True
    gps: bool = False
    gps_days: float = 0.0
    imu_hz: float | None = None
    first_imu_us: int = FIRST_IMU_US
    slips: tuple[int, ...] = ()
    picture_late_s: float = 0.0


class TelemetryWriter:
    """Makes the payloads of one recording, in order, from the head's motion."""

    def __init__(
        self,
        motion: HeadMotion,
        timeline: Timeline,
        mount: CameraMount,
        device: str,
        seed: int,
        instruments: Instruments = Instruments(),
    ) -> None:
        """Start at frame 0; the noise depends on the seed and the world time of the start."""
        self._motion = motion
        self._timeline = timeline
        self._mount = mount
        self._device = device
        self._instruments = instruments
        self.imu_hz = instruments.imu_hz or mount.imu_hz
        self._random = generator(seed, "gopro noise", round(timeline.start_world_s * 1e9))
        self._extras = (
            Extras(motion, timeline, mount, seed) if instruments.per_frame or instruments.gps else None
        )
        self._frames = 0
        self._imu_samples = 0
        self._gps_samples = 0

    def next_payload(self, frames: int) -> bytes:
        """Return the payload of the next frames, with every inertial sample up to the next payload's first frame."""
        first_frame, self._frames = self._frames, self._frames + frames
        # 0.1 ms of margin: a payload's first sample is about FIRST_IMU_US from its first frame or later.
        end_s = float(frame_media_s(self._frames)) - 1e-4
        first_sample = self._imu_samples
        self._imu_samples = int(np.floor(end_s * self.imu_hz)) + 1
        samples = np.arange(first_sample, self._imu_samples)
        blocks = [*self._imu_blocks(samples), *self._frame_blocks(first_frame, frames)]
        if self._instruments.gps:
            blocks += self._gps_blocks()
        return payload(self._device, blocks)

    def _imu_blocks(self, samples: np.ndarray) -> list[SensorBlock]:
        media_s = self._instruments.first_imu_us * 1e-6 + samples.astype(np.float64) / self.imu_hz
        world_s = self._timeline.world_s(media_s)
        mount, random = self._mount, self._random
        force = mount.to_camera(self._motion.specific_force(world_s)) + mount.accl_bias
        turn = mount.to_camera(self._motion.angular_velocity(world_s)) + mount.gyro_bias
        stored_accl = _stored(force + random.normal(0, 0.04, force.shape), ACCL_SCALE)
        stored_gyro = _stored(turn + random.normal(0, 0.0015, turn.shape), GYRO_SCALE)
        first_us = FIRST_FRAME_US + round(float(media_s[0]) * 1e6) if len(media_s) else 0
        total = self._imu_samples
        return [
            SensorBlock(
                "ACCL", "s", "Accelerometer", first_us, total, values=stored_accl, unit="m/s²", scale=ACCL_SCALE,
                axes=STORED_AXES, temperature_c=41.5,
            ),
            SensorBlock(
                "GYRO", "s", "Gyroscope", first_us, total, values=stored_gyro, unit="rad/s", scale=GYRO_SCALE,
                axes=STORED_AXES, temperature_c=41.5,
            ),
        ]  # fmt: skip

    def _frame_blocks(self, first_frame: int, frames: int) -> list[SensorBlock]:
        slips = self._instruments.slips
        shown = np.array([k for k in range(first_frame, self._frames) if k not in slips])
        total = self._frames - sum(slip < self._frames for slip in slips)
        stamp = FIRST_FRAME_US + round(float(frame_media_s(first_frame)) * 1e6)
        exposure_s = EXPOSURE_S + 0.0004 * np.sin(shown / 97.0)
        thirds = -(-frames // 3)
        blocks = [
            SensorBlock("SHUT", "f", "Exposure time (shutter speed)", stamp, total, values=exposure_s, unit="s"),
            SensorBlock(
                "WBAL", "S", "White Balance temperature (Kelvin)", stamp, -(-self._frames // 3),
                values=np.full(thirds, 4600),
            ),
            SensorBlock("ISOE", "S", "Sensor ISO", stamp, total, values=np.full(len(shown), 320)),
        ]  # fmt: skip
        if self._extras is not None and self._instruments.per_frame:
            blocks += self._extras.frame_blocks(shown, stamp, total)
            skipped = np.array([-sum(slip <= k for slip in slips) for k in range(first_frame, self._frames)])
            for key, title in (("MSKP", "Main video frame SKIP"), ("LSKP", "Low res video frame SKIP")):
                values = skipped if key == "MSKP" else np.zeros(frames)
                blocks.append(SensorBlock(key, "s", title, stamp, self._frames, values=values))
        return blocks

    def _gps_blocks(self) -> list[SensorBlock]:
        assert self._extras is not None
        first_sample = self._gps_samples
        self._gps_samples = int(np.ceil(float(frame_media_s(self._frames)) * GPS_HZ))
        samples = np.arange(first_sample, self._gps_samples)
        return self._extras.gps_blocks(samples, self._gps_samples, self._instruments.gps_days)


def _stored(camera: np.ndarray, scale: int) -> np.ndarray:
    """Return camera vectors as the int16 channels Z, X, Y."""
    channels = camera[:, ["XYZ".index(letter) for letter in STORED_AXES]]
    return np.clip(np.rint(channels * scale), -32768, 32767).astype(np.int16)
