"""Constants of the sensors: downloaded from a headset before streaming (mode 2), named, with unit and frame."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

import numpy as np

from sensors.errors import NoConstants, StreamRefused, StreamUnreachable
from sensors.hololens import constants as c
from sensors.hololens import extended_audio, extended_video, wire
from sensors.hololens.catalogue import stream_spec
from sensors.hololens.profile import Profile

RIG_TO_SENSOR = "row-vector 4x4, p_sensor = p_rig x M, metres"
PIXEL = "picture as sent, not turned, pixel (0, 0) at the first value"


@dataclass(frozen=True)
class Constant:
    """One thing that a sensor says about itself."""

    name: str
    values: np.ndarray | str
    "float32 as sent, or text."
    unit: str
    frame: str
    "Frame of reference, or conversion between two."
    meaning: str


@dataclass(frozen=True)
class _Field:
    name: str
    shape: tuple[int, ...]
    unit: str
    frame: str
    meaning: str


def _camera(height: int, width: int, *scales: _Field) -> tuple[_Field, ...]:
    plane, size = (height, width), "sensor, +x right, +y down, +z forward"
    ray = "camera ray at z = 1 of an integer pixel; 0 where there is none"
    source = "source pixel of each pixel of the undistorted picture; -1 where there is none"
    return (
        _Field("uv2x", plane, "1", size, f"x of the {ray}"),
        _Field("uv2y", plane, "1", size, f"y of the {ray}"),
        _Field("extrinsics", (4, 4), "m", RIG_TO_SENSOR, "rig node to sensor"),
        *scales,
        _Field("mapx", plane, "pixel", PIXEL, f"x of the {source}"),
        _Field("mapy", plane, "pixel", PIXEL, f"y of the {source}"),
        _Field("k", (4,), "pixel", "undistorted picture", "fx, fy, cx, cy of the undistorted picture"),
    )


_SCALE = _Field("scale", (), "1/m", "depth", "depth units a metre; point = ray x depth / (scale x |ray|)")
_ALIAS = _Field("alias", (), "depth unit", "depth", "distance after which depth begins again at 0")
_EXTRINSICS = (_Field("extrinsics", (4, 4), "m", RIG_TO_SENSOR, "rig node to sensor"),)
_PV_FRAME = "camera, +x right, +y up, -z forward"
_PV = (
    _Field("focal_length", (2,), "pixel", "picture of this format", "fx, fy at the focus of the moment"),
    _Field("principal_point", (2,), "pixel", "picture of this format", "cx, cy"),
    _Field("radial_distortion", (3,), "1", "picture of this format", "k1, k2, k3"),
    _Field("tangential_distortion", (2,), "1", "picture of this format", "p1, p2"),
    _Field("projection", (4, 4), "pixel", _PV_FRAME, "row-vector projection of camera points"),
    _Field("extrinsics", (4, 4), "m", RIG_TO_SENSOR, "rig node to camera"),
    _Field("intrinsics_mf", (4,), "pixel", "picture of this format", "fx, fy, cx, cy as the system says"),
    _Field(
        "extrinsics_mf", (7,), "m", _PV_FRAME, "translation x y z, quaternion x y z w, as the system says"
    ),
)
_VLC = _camera(c.VLC_HEIGHT, c.VLC_WIDTH)
LAYOUTS: dict[str, tuple[_Field, ...]] = {
    "vlc_leftfront": _VLC,
    "vlc_leftleft": _VLC,
    "vlc_rightfront": _VLC,
    "vlc_rightright": _VLC,
    "depth_ahat": _camera(c.AHAT_HEIGHT, c.AHAT_WIDTH, _SCALE, _ALIAS),
    "depth_longthrow": _camera(c.LONGTHROW_HEIGHT, c.LONGTHROW_WIDTH, _SCALE),
    "accelerometer": _EXTRINSICS,
    "gyroscope": _EXTRINSICS,
    "pv": _PV,
}
"The streams that have numbers to give, with the layout of their answer: float32 one after another."

DEVICE_LISTS = {
    "extended_audio": extended_audio.LIST_DEVICES,
    "extended_video": extended_video.LIST_DEVICES,
}
"The streams that have a text to give."


def has_constants(name: str) -> bool:
    """Tell whether a stream has anything to download."""
    return name in LAYOUTS or name in DEVICE_LISTS


def question(name: str, profile: Profile) -> bytes:
    """Give the bytes that ask for a stream's constants; the front camera's hold for one format."""
    if name in DEVICE_LISTS:
        return DEVICE_LISTS[name]
    mode = bytes([c.Mode.CONSTANTS])
    return (
        mode + wire.video_format(profile.pv_width, profile.pv_height, profile.pv_hz) if name == "pv" else mode
    )


def answer_bytes(name: str) -> int:
    """Bytes of the answer of a stream with numbers."""
    return 4 * sum(int(np.prod(field.shape)) for field in LAYOUTS[name])


def parse(name: str, answer: bytes) -> list[Constant]:
    """Cut an answer into its constants, float32; `NoConstants` when its length is another."""
    if name in DEVICE_LISTS:
        return [_device_list(name, answer)]
    if len(answer) != answer_bytes(name):
        raise NoConstants(name, f"{len(answer)} bytes came instead of {answer_bytes(name)}")
    numbers, at, found = np.frombuffer(answer, "<f4"), 0, []
    for field in LAYOUTS[name]:
        count = int(np.prod(field.shape))
        values = numbers[at : at + count].reshape(field.shape)
        found.append(Constant(field.name, values, field.unit, field.frame, field.meaning))
        at += count
    return found


def _device_list(name: str, answer: bytes) -> Constant:
    size = struct.unpack_from("<I", answer)[0] if len(answer) >= 4 else -1
    if size != len(answer) - 4:
        raise NoConstants(name, f"a device list of {len(answer)} bytes does not hold what it promises")
    text = answer[4:].decode("utf-16-le", errors="replace")
    return Constant("device_list", text, "", "", "the devices that this stream could show")


def download(name: str, host: str, profile: Profile, timeout_s: float = 15.0) -> list[Constant]:
    """Ask one stream for its constants, on a connection of its own; the headset closes at the end.

    Do it before the stream is opened: the port serves one client at a time. The front camera must be on.
    Raises `NoConstants`, `StreamRefused`, `StreamUnreachable`.
    """
    port = stream_spec(name).port
    most = answer_bytes(name) if name in LAYOUTS else 1 << 20
    answer = bytearray()
    try:
        with socket.create_connection((host, port), timeout_s) as sock:
            sock.sendall(question(name, profile))
            while len(answer) <= most and (part := sock.recv(1 << 18)):
                answer += part
    except ConnectionRefusedError as error:
        raise StreamRefused(host, port, name) from error
    except TimeoutError as error:
        raise NoConstants(name, f"{len(answer)} bytes came in {timeout_s:g} s") from error
    except OSError as error:
        raise StreamUnreachable(host, port, name, (error.strerror or str(error)).lower()) from error
    return parse(name, bytes(answer))
