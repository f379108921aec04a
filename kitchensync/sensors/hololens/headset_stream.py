"""Description of one stream of the headset.

Each file of `streams` makes one, so that no other code needs its name.
"""

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
"""Kinds of streams, which select the reader."""
RAW = "raw"
RIG_TO_SENSOR = "row-vector 4x4, p_sensor = p_rig x M, metres"


class ConstantField(NamedTuple):
    """One constant of a sensor: its shape in the answer and its meaning."""

    name: str
    shape: tuple[int, ...]
    unit: str
    frame: str
    "Frame of reference, or conversion between two."
    meaning: str


EXTRINSICS = ConstantField("extrinsics", (4, 4), "m", RIG_TO_SENSOR, "rig node to sensor")


class PictureUnit(NamedTuple):
    """The undecoded frame of a packet."""

    image: memoryview
    "Input of a decoder, or raw bytes; empty if the packet has no frame."
    metadata: Any = None
    sensor_ticks: int = 0
    "The sensor's own clock, 0 if it has none."
    zdepth: memoryview | None = None
    "The Zdepth blob of the packet."


class Flags(NamedTuple):
    """Offset of a record's 4-byte flags of valid parts, and the bit of each part."""

    at: int
    parts: Mapping[str, int]
    gaze: slice = slice(0, 0)
    "Bytes of the record with gaze rays."


@dataclass(frozen=True)
class RecordCodec:
    """Codec of packets that are one record each."""

    stream: str
    record: np.dtype

    def check(self, payload: memoryview | bytes, form: Format | None = None) -> None:
        """Check that a payload has the size of the record. Raises BadPacket."""
        if len(payload) != self.record.itemsize:
            raise BadPacket(self.stream, f"{len(payload)} bytes instead of {self.record.itemsize}")

    def decode(self, payload: memoryview | bytes) -> np.void:
        """View a payload as one record. Raises BadPacket."""
        self.check(payload)
        record: np.void = np.frombuffer(payload, self.record)[0]
        return record

    def encode(self, record: np.ndarray | np.void) -> bytes:
        """Encode a record as a payload, the inverse of `decode`."""
        return np.asarray(record, self.record).tobytes()


@dataclass(frozen=True, eq=False)
class HeadsetStream(SensorStream):
    """Description of one stream of the headset."""

    port: int = 0
    pose_bytes: int = c.POSE_BYTES
    "Bytes of pose after every payload: 64 or 0."
    module: str = ""
    "Module that decodes its packets."
    kind: str = ""
    is_default: bool = False
    "True if it is recorded by default."
    configure: Callable[[Profile], bytes] = field(default=lambda _: bytes([c.Mode.CONTINUOUS_WITH_POSE]))
    "Bytes to send after connecting, by default for data with a pose; empty if the headset sends first."
    details: Callable[[Profile], Format] = field(default=lambda _: {"loses": []})
    "Codec, size, units, and losses of the profile."
    hz_by_profile: Callable[[Profile], float] | None = None
    "Packets per second, if they depend on a setting."
    bits_per_s: Callable[[Profile], float] = field(default=lambda _: 0.0)
    "Expected data rate."
    constants: tuple[ConstantField, ...] = ()
    "Constants that can be downloaded: float32, one after another."
    ask_constants: Callable[[Profile], bytes] = field(default=lambda _: bytes([c.Mode.CONSTANTS]))
    "Request for the constants."
    device_list: bytes = b""
    "Request for the list of its devices, if it has one."
    excludes: tuple[str, ...] = ()
    "Streams that cannot be sent with it, since they share one physical sensor."
    unsteady_with: tuple[str, ...] = ()
    "Streams with which it was reported to crash the headset's app occasionally."
    opens_a_device: bool = False
    "True if opening it starts a camera, or a sensor that another stream may use."
    is_front_camera: bool = False
    "It must be switched on before it is opened, and its settings are visible in its frames."
    is_grey_camera: bool = False
    "It needs orders before it is opened."
    is_gyroscope: bool = False
    "Its motion is compared with that of a camera."
    is_voice: bool = False
    "Its sound is compared with that of a camera."
    is_head_pose: bool = False
    "It has the poses of head, eyes and hands in the world in its payload."
    rays_from_own_pose: bool = False
    "Its directions are in its own frame, which the pose of each packet transforms to the world."
    in_pose_table: bool = False
    "Its poses are a column of the table of poses; the grey cameras share one pose, so one of them is enough."
    wraps: bool = False
    "Its depth starts again at 0 after the constant `alias`."
    picture_parts: tuple[np.dtype, np.dtype, np.dtype] | None = None
    "Every raw payload is a head, an image and a tail of these types, so that images can be compressed on disk."
    cut: Callable[[bytes], PictureUnit] | None = None
    "Returns the undecoded frame of a payload. Raises BadPacket."
    raw_picture: Callable[[PictureUnit], np.ndarray] | None = None
    "Views a frame that was sent without a codec. Raises BadPacket."
    optics: Callable[[Any], tuple[float, float, float, float] | None] = field(default=lambda _: None)
    "Reads fx, fy, cx, cy in pixels from a frame's metadata, if the camera sends them."
    depth: Callable[[PictureUnit, Any, Format], tuple[np.ndarray, np.ndarray | None]] | None = None
    "Returns depth in mm and brightness from a packet and its decoded frame (None without a video codec)."
    farthest_mm: float = 0.0
    "Largest depth that is displayed."
    flags: Flags | None = None

    @property
    def has_pose(self) -> bool:
        """Return whether every packet has a pose."""
        return self.pose_bytes > 0

    @property
    def has_constants(self) -> bool:
        """Return whether it has constants to download."""
        return bool(self.constants or self.device_list)

    @property
    def constants_bytes(self) -> int:
        """Size of the answer with all constants, bytes."""
        return 4 * sum(int(np.prod(constant.shape)) for constant in self.constants)

    def rate_hz(self, profile: Profile) -> float:
        """Return the expected packets per second with these settings."""
        return self.hz_by_profile(profile) if self.hz_by_profile else self.nominal_hz

    def describe(self, profile: Profile) -> Format:
        """Return the description for the manifest: codec, size, units, and losses of the profile."""
        configuration = self.configure(profile).hex()
        mode = int(self.has_pose)
        return {"module": self.module, "mode": mode, "configuration": configuration} | self.details(profile)
