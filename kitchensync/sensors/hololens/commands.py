"""Remote-configuration commands (port 3809) as bytes: one function for each command, with checked values.

Commands without an answer are called orders. They are executed in sequence; a command with an answer after them is
the barrier. Camera orders have an effect only while the front camera is on, and are reset when it stops.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from kitchensync.sensors.errors import UnsupportedFormat
from kitchensync.sensors.hololens.constants import Command, MapDirection, TimeSource
from kitchensync.sensors.hololens.profile import Profile

WHITE_BALANCE_STEP_K = 25  # the command counts in steps of 25 K (92 to 300)
FOCUS_MANUAL, FOCUS_RANGE_NORMAL, NO_DRIVER_FALLBACK = 3, 2, 1  # arguments of hl2ss's PV_FOCUS
EXPOSURE_MANUAL = 0
_SWITCHES = (
    Command.PV_MARKER,
    Command.PV_DENOISING,
    Command.PV_EXPOSURE_PRIORITY,
    Command.PV_BACKLIGHT,
    Command.FLAT_MODE,
    Command.QUIET_MODE,
    Command.PV_STABILISATION,
    Command.ENCODER_BUFFERING,
    Command.READER_BUFFERING,
)
_NUMBERS = {
    Command.PV_WHITE_BALANCE_PRESET: range(8),
    Command.PV_WHITE_BALANCE_VALUE: range(92, 301),
    Command.PV_SCENE_MODE: (0, *range(2, 13)),
    Command.RM_EYE_SELECTION: range(2**32),
    Command.PV_OPTIMISATION: range(7),
    Command.PV_PRIMARY_USE: range(3),
    Command.PV_HDR: range(3),
}


def _checked(what: str, value: int, offered: Sequence[int]) -> int:
    if value not in offered:
        raise UnsupportedFormat(f"{what} {value}", f"{min(offered)} to {max(offered)}")
    return value


def switch(command: Command, on: bool) -> bytes:
    """Switch an option on or off (denoising, exposure priority, buffering and so on)."""
    if command not in _SWITCHES:
        raise ValueError(f"{command!r} is not a switch")
    return struct.pack("<BI", command, on)


def number(command: Command, value: int) -> bytes:
    """Set an option that is a number (presets, modes). Raises `UnsupportedFormat`."""
    return struct.pack("<BI", command, _checked(command.name.lower(), value, _NUMBERS[command]))


def focus(
    mode: int,
    focus_range: int = FOCUS_RANGE_NORMAL,
    distance: int = 0,
    value_mm: int = 1000,
    fallback: int = 1,
) -> bytes:
    """Set the focus: mode 0 auto, 1 single, 2 continuous, 3 manual at `value_mm` (170 to 10000)."""
    _checked("focus mode", mode, range(4))
    _checked("focus range", focus_range, range(3))
    _checked("focus distance", distance, range(3))
    _checked("focus value", value_mm, range(170, 10_001))
    return struct.pack("<B5I", Command.PV_FOCUS, mode, focus_range, distance, value_mm, fallback)


def exposure(mode: int, value_us: int) -> bytes:
    """Set the exposure: mode 0 manual with `value_us` (100 to 66000), else automatic."""
    return struct.pack(
        "<BII", Command.PV_EXPOSURE, mode, _checked("exposure value", value_us, range(100, 66_001))
    )


def loop_control(port: int, on: bool) -> bytes:
    """Make a grey camera use the capture path without repeated frames or wrong timestamps; send it before opening."""
    return struct.pack("<BII", Command.LOOP_CONTROL, port, on)


def current_time(source: TimeSource) -> bytes:
    """Request device ticks or UTC; the answer is a u64."""
    return struct.pack("<BI", Command.CURRENT_TIME, source)


def map_points(port: int, direction: MapDirection, points: np.ndarray) -> bytes:
    """Request the mapping of points (n, 2) between pixels and unit plane of a Research Mode camera (3800-3805)."""
    _checked("camera port", port, range(3800, 3806))
    values = np.ascontiguousarray(points, "<f4").reshape(-1, 2)
    return struct.pack("<B3I", Command.MAP_POINTS, port, direction, len(values)) + values.tobytes()


def rig_poses(device_ticks: Sequence[int]) -> bytes:
    """Request the rig node's poses at times of the recent past."""
    return struct.pack(f"<BI{len(device_ticks)}Q", Command.RIG_POSES, len(device_ticks), *device_ticks)


def camera_orders(profile: Profile) -> bytes:
    """Return the orders for a profile's manual settings of the front camera; empty without any."""
    orders = b""
    if profile.pv_focus_mm:
        orders += focus(FOCUS_MANUAL, value_mm=profile.pv_focus_mm, fallback=NO_DRIVER_FALLBACK)
    if profile.pv_exposure_us:
        orders += switch(Command.PV_EXPOSURE_PRIORITY, False)
        orders += exposure(EXPOSURE_MANUAL, profile.pv_exposure_us)
    if profile.pv_white_balance_k:
        value = round(profile.pv_white_balance_k / WHITE_BALANCE_STEP_K)
        orders += number(Command.PV_WHITE_BALANCE_VALUE, value)
    return orders


def before_streams(vlc_ports: Sequence[int]) -> bytes:
    """Return the orders before streaming: no buffering in the headset, and `loop_control` for grey cameras."""
    buffering = switch(Command.ENCODER_BUFFERING, False) + switch(Command.READER_BUFFERING, False)
    return buffering + b"".join(loop_control(port, True) for port in vlc_ports)
