"""The names of a camera's setting, which are keys of kept results and must stay as they were."""

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
def test_names_under_which_lens_and_latency_are_kept(header, lens_name, latency_name):
    mode = CameraMode.of(header, width=3840, height=2160, rate_hz=30000 / 1001)
    assert (mode.lens_name, mode.latency_name) == (lens_name, latency_name)
