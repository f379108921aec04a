"""One stream of the headset as one object: each file of `streams` makes one, and nobody else asks for its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kitchensync.sensors.errors import BadPacket
from kitchensync.sensors.hololens import constants as c
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.sensors.stream import Format, SensorStream

SAMPLES, FRAMES, DEPTH, RECORDS, SOUND = "samples", "frames", "depth", "records", "sound"
"""Kinds of streams: how a reader hands them out."""
RAW = "raw"
RIG_TO_SENSOR = "row-vector 4x4, p_sensor = p_rig x M, metres"


class ConstantField(NamedTuple):
    """One of the numbers that a sensor says about itself: how it lies in the answer and what it means."""

    name: str
    shape: tuple[int, ...]
    unit: str
    frame: str
    "Frame of reference, or conversion between two."
    meaning: str


EXTRINSICS = ConstantField("extrinsics", (4, 4), "m", RIG_TO_SENSOR, "rig node to sensor")


class PictureUnit(NamedTuple):
    """A packet on its way to a picture."""

    image: memoryview
    "What a decoder wants, or raw bytes; empty where the packet holds no picture."
    metadata: Any = None
    sensor_ticks: int = 0
    "The sensor's own clock, 0 where it has none."
    zdepth: memoryview | None = None
    "A Zdepth blob that came beside the picture."


class Flags(NamedTuple):
    """Where a record says which of its parts are valid: a number of 4 bytes, and the bit of each part."""

    at: int
    parts: Mapping[str, int]
    gaze: slice = slice(0, 0)
    "Bytes of the record that hold rays of the eyes."


def pose_only(profile: Profile) -> bytes:
    """Configure a stream that has no settings: data with a pose."""
    return bytes([c.Mode.CONTINUOUS_WITH_POSE])


def ask_plainly(profile: Profile) -> bytes:
    """Ask for constants that do not depend on a setting."""
    return bytes([c.Mode.CONSTANTS])


@dataclass(frozen=True)
class RecordCodec:
    """What stands in packets that are one record each."""

    stream: str
    record: np.dtype

    def check(self, payload: memoryview | bytes, form: Format | None = None) -> None:
        """Raise BadPacket where a payload is not as long as the record."""
        if len(payload) != self.record.itemsize:
            raise BadPacket(self.stream, f"{len(payload)} bytes instead of {self.record.itemsize}")

    def decode(self, payload: memoryview | bytes) -> np.void:
        """View a payload as one record. Raises BadPacket."""
        self.check(payload)
        record: np.void = np.frombuffer(payload, self.record)[0]
        return record

    def encode(self, record: np.ndarray | np.void) -> bytes:
        """Lay a record out as a payload: the inverse of `decode`."""
        return np.asarray(record, self.record).tobytes()


@dataclass(frozen=True, eq=False)
class HeadsetStream(SensorStream):
    """All that is fixed about one stream of the headset."""

    port: int = 0
    pose_bytes: int = c.POSE_BYTES
    "Bytes of pose after every payload: 64 or 0."
    module: str = ""
    "Where its packets are decoded."
    kind: str = ""
    is_default: bool = False
    "True when it is recorded unless the operator says otherwise."
    configure: Callable[[Profile], bytes] = pose_only
    "Bytes to send after connecting; empty where the headset speaks first."
    details: Callable[[Profile], Format] = field(default=lambda _: {"loses": []})
    "Codec, size, units, and what the profile loses."
    hz_by_profile: Callable[[Profile], float] | None = None
    "Packets a second where a setting decides it."
    bits_per_s: Callable[[Profile], float] = field(default=lambda _: 0.0)
    "What it is expected to send."
    constants: tuple[ConstantField, ...] = ()
    "Numbers that can be downloaded: float32, one after another."
    ask_constants: Callable[[Profile], bytes] = ask_plainly
    "The question for them."
    device_list: bytes = b""
    "The question for the list of its devices, where it has one."
    excludes: tuple[str, ...] = ()
    "Streams that cannot be sent with it: they share one physical sensor."
    unsteady_with: tuple[str, ...] = ()
    "Streams with which it was reported to crash the headset's app now and then."
    opens_a_device: bool = False
    "True when opening it starts a camera, or a sensor that another stream may be using."
    is_front_camera: bool = False
    "It is to be switched on before it is opened, and its settings are seen in its pictures."
    is_grey_camera: bool = False
    "It wants orders before it is opened."
    is_gyroscope: bool = False
    "Its motion is compared with a camera's."
    is_voice: bool = False
    "Its sound is compared with a camera's."
    is_head_pose: bool = False
    "It says where head, eyes and hands are in the world, without a pose beside the payload."
    rays_from_own_pose: bool = False
    "Its directions are in a frame of its own, which the pose of each packet brings to the world."
    in_pose_table: bool = False
    "Its poses are a column of the table of poses: of the grey cameras, which share one pose, one is enough."
    wraps: bool = False
    "Its depth begins again at 0 after the constant `alias`."
    picture_parts: tuple[np.dtype, np.dtype, np.dtype] | None = None
    "Every raw payload is a head, a picture and a tail of these: it is compressed as pictures on disk."
    cut: Callable[[bytes], PictureUnit] | None = None
    "Finds the picture in a payload. Raises BadPacket."
    raw_picture: Callable[[PictureUnit], np.ndarray] | None = None
    "Views a picture that was sent without a codec. Raises BadPacket."
    optics: Callable[[Any], tuple[float, float, float, float] | None] = field(default=lambda _: None)
    "Reads fx, fy, cx, cy in pixels from a picture's metadata, where the camera tells them."
    depth: Callable[[PictureUnit, Any, Format], tuple[np.ndarray, np.ndarray | None]] | None = None
    "Makes depth in mm and brightness of a packet and its decoded picture (None without a video codec)."
    farthest_mm: float = 0.0
    "As far as its depth is shown."
    flags: Flags | None = None

    @property
    def has_pose(self) -> bool:
        """Return whether every packet has a pose."""
        return self.pose_bytes > 0

    @property
    def has_constants(self) -> bool:
        """Return whether there is anything to download."""
        return bool(self.constants or self.device_list)

    @property
    def constants_bytes(self) -> int:
        """Bytes of the answer to the question for constants."""
        return 4 * sum(int(np.prod(one.shape)) for one in self.constants)

    def rate_hz(self, profile: Profile) -> float:
        """Packets a second that it is to send with these settings."""
        return self.hz_by_profile(profile) if self.hz_by_profile else self.nominal_hz

    def describe(self, profile: Profile) -> Format:
        """Say in JSON-able words what it will hold: codec, size, units, and what the profile loses."""
        configuration = self.configure(profile).hex()
        mode = int(self.has_pose)
        return {"module": self.module, "mode": mode, "configuration": configuration} | self.details(profile)
