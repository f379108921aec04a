"""Packets that cannot be decoded are recognized by their form; good ones, and those without a frame, pass."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.sensors.hololens.streams import (
    depth_ahat,
    depth_longthrow,
    extended_depth,
    microphone,
    pv,
    vlc,
)
from kitchensync.sensors.hololens.streams import inertial_samples as imu

UNIT = b"\0\0\0\1\x26" + bytes(40)
RAW = Profile(link="wired", pv_codec="raw", vlc_codec="raw", microphone="pcm", extended_depth="raw")
FORMATS = [(name, STREAMS[name].describe(profile)) for name in STREAMS for profile in (Profile(), RAW)]


def metadata(width: int = 640, height: int = 360) -> np.ndarray:
    record = np.zeros((), pv.METADATA)
    record["width"], record["height"] = width, height
    return record


def look(name: str, payload: bytes, profile: Profile) -> None:
    STREAMS[name].check(payload, STREAMS[name].describe(profile))


GREY = np.zeros((), vlc.METADATA)
GOOD: list[tuple[str, bytes, Profile]] = [
    ("pv", pv.encode(UNIT, metadata()), Profile()),
    ("pv", pv.encode(bytes(640 * 540), metadata()), RAW),
    ("pv", metadata().tobytes(), Profile()),
    ("vlc_leftleft", vlc.encode(UNIT, GREY), Profile()),
    ("vlc_leftleft", vlc.encode(bytes(640 * 480), GREY), RAW),
    ("vlc_leftleft", GREY.tobytes(), Profile()),
    ("depth_ahat", depth_ahat.encode(UNIT, 5), Profile()),
    ("depth_ahat", depth_ahat.encode(bytes(1 << 20), 5), RAW),
    ("depth_ahat", depth_ahat.encode(b"", 5), Profile()),
    ("depth_longthrow", depth_longthrow.encode(b"\x89PNG\r\n\x1a\n" + bytes(90), 5), Profile()),
    ("gyroscope", imu.encode_samples(np.zeros(315, imu.SAMPLE)), Profile()),
    ("microphone", microphone.encode(bytes(300)), Profile()),
    ("microphone", bytes(4 * 768), RAW),
    ("spatial_input", bytes(1936), Profile()),
    ("eye_tracking", bytes(92), Profile()),
    ("extended_depth", extended_depth.encode(bytes(2 * 64 * 10), 64, 10), RAW),
]


@pytest.mark.parametrize(("name", "payload", "profile"), GOOD)
def test_good_packets_pass(name: str, payload: bytes, profile: Profile) -> None:
    look(name, payload, profile)


ENDS_ANYWHERE = (UNIT, b"PNG")  # whatever a picture's last byte is, only its decoder misses it


@pytest.mark.parametrize(
    ("name", "payload", "profile"),
    [case for case in GOOD if not any(part in case[1] for part in ENDS_ANYWHERE)],
)
def test_packets_without_their_last_byte_are_refused(name: str, payload: bytes, profile: Profile) -> None:
    with pytest.raises(SensorError):
        look(name, payload[:-1], profile)


def test_five_microphones_are_not_accepted_as_two() -> None:
    look("microphone", bytes(20), Profile(microphone="array"))
    with pytest.raises(SensorError, match="multiple of 20"):
        look("microphone", bytes(24), Profile(microphone="array"))


def test_samples_that_are_not_finite_are_refused() -> None:
    samples = np.zeros(315, imu.SAMPLE)
    samples["xyz"][100, 1] = np.nan
    with pytest.raises(SensorError, match="not numbers"):
        look("gyroscope", imu.encode_samples(samples), Profile())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "format_"), FORMATS)
@given(payload=st.binary(max_size=200))
def test_any_bytes_end_in_our_own_error(name: str, format_: dict[str, Any], payload: bytes) -> None:
    with contextlib.suppress(SensorError):
        STREAMS[name].check(payload, format_)
