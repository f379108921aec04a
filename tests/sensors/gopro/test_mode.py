"""The names of a camera's settings, which are keys of stored results and must not change."""

from __future__ import annotations

import pytest

from kitchensync.sensors.gopro.files.media import CameraMode


@pytest.mark.parametrize(
    ("header", "lens_name", "latency_name"),
    [
        ({"VFOV": "W", "EISE": "N"}, "3840x2160-W", "3840x2160 29.97 W"),
        ({"VFOV": "L", "EISE": "Y"}, "3840x2160-L-stabilized", "3840x2160 29.97 L stabilised"),
        ({"VFOV": "W", "EISE": "HS Boost"}, "3840x2160-W-stabilized", "3840x2160 29.97 W stabilised"),
        ({}, "3840x2160-?", "3840x2160 29.97"),
    ],
)
def test_keys_of_stored_lenses_and_latencies(header, lens_name, latency_name):
    mode = CameraMode.of(header, width=3840, height=2160, rate_hz=30000 / 1001)
    assert (mode.lens_name, mode.latency_name) == (lens_name, latency_name)
