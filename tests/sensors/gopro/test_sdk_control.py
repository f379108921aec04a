"""The classes of GoPro's library with the virtual camera: open, set, start, stop, list, close."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from cameras import virtual_camera
from kitchen_clock import MovedClock
from waiting import until

from kitchensync.sensors.errors import CameraLost, CameraRefused
from kitchensync.sensors.gopro.control.download import download
from kitchensync.sensors.gopro.control.entry import CameraAddress
from kitchensync.sensors.gopro.control.open_camera import open_camera
from kitchensync.sensors.gopro.control.settings import (
    apply_settings,
    measure_clock,
    set_clock_now,
    wanted_options,
)
from kitchensync.shell.host_clock import host_ns, utc_anchor

pytest.importorskip("open_gopro", reason="the extra `gopro` (open-gopro) is not installed")
from kitchensync.sensors.gopro.control.sdk import SdkCamera, at_home, wired

pytestmark = pytest.mark.slow


@pytest.fixture(params=["usb", "cohn"])
def camera(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    clock = MovedClock(runs=True)
    with virtual_camera(tmp_path, at_home=request.param == "cohn", clock=clock) as (gopro, url):
        if gopro.home is None:
            sdk = wired(gopro.camera.serial, url)
        else:
            sdk = at_home(
                "kitchen",
                CameraAddress(url, gopro.home.username, gopro.home.password, gopro.home.certificate),
            )
        with sdk:
            yield gopro, sdk


def test_a_complete_clip(camera: tuple[Any, SdkCamera], tmp_path: Path) -> None:
    gopro, sdk = camera
    before = set(threading.enumerate())

    def made_by_the_library() -> list[threading.Thread]:
        """Return all new threads but those of the virtual camera."""
        new = set(threading.enumerate()) - before
        return [
            thread for thread in new if "process_request" not in thread.name and thread.name != "gopro take"
        ]

    sdk.open()
    assert made_by_the_library()
    sdk.external_control()
    assert gopro.camera.control_owner == 2
    applied = apply_settings(sdk, wanted_options())
    assert applied.problems == []
    assert {key: applied.settings[key] for key in ("2", "3", "83", "121", "134", "135")} == {
        "2": 1, "3": 8, "83": 0, "121": 0, "134": 2, "135": 0,
    }  # fmt: skip
    started = sdk.shutter(True)
    assert started.before_host_ns < started.observed_host_ns
    assert sdk.state().encoding
    gopro.camera.kitchen.clock.move(0.5)
    sdk.shutter(False)
    sdk.wait_idle()
    files = sdk.media()
    assert [file.name for file in files] == ["GX010001.MP4"]
    got = download(sdk.entry, files[0], tmp_path / "GX010001.MP4")
    assert got.sha256 == gopro.camera.kitchen.truth.as_dict()["gopro"][0]["sha256"]
    sdk.close()
    until(lambda: not made_by_the_library(), "the end of the library's threads")


def test_the_clock_is_set_and_measured(camera: tuple[Any, SdkCamera]) -> None:
    gopro, sdk = camera
    begin_ns = host_ns()
    set_clock_now(sdk, 120)
    took_ns = host_ns() - begin_ns
    clock = measure_clock(sdk, limit_s=60.0)
    assert clock is not None
    assert clock.zone_minutes == 120
    # The true time of the camera at this moment, by its inner clock.
    inner, anchor = gopro.camera.clock, utc_anchor()
    true_ns = inner._local_minus_utc_ns + gopro.camera.kitchen.utc_minus_host_ns
    ours_ns = clock.offset_ns + anchor.utc_ns - anchor.host_ns
    assert abs(true_ns - ours_ns) < clock.error_ns + 20_000_000
    # The clock was set to a second that started during the call.
    assert abs(clock.offset_ns - 7200 * 10**9) < took_ns + clock.error_ns


def test_opening_a_camera_that_records_does_not_hang(camera: tuple[Any, SdkCamera]) -> None:
    gopro, sdk = camera
    gopro.camera.start_recording()
    until(lambda: sdk.state().encoding, "a camera that records")
    sdk.open()
    assert sdk.state().ready


def test_a_refused_setting_is_named(camera: tuple[Any, SdkCamera]) -> None:
    _, sdk = camera
    with pytest.raises(CameraRefused, match="it offers 4K, 5.3K"):
        sdk.set_setting(2, 24)
    assert apply_settings(sdk, {3: 5}).problems[0].startswith("frames a second")


def test_a_camera_that_is_gone_is_one_line_in_time(tmp_path: Path) -> None:
    with virtual_camera(tmp_path) as (gopro, url):
        serial = gopro.camera.serial
    with open_camera(f"usb:{serial}@{url.removeprefix('http://')}") as camera, pytest.raises(CameraLost):
        camera.open()


def test_a_wrong_password_and_a_missing_certificate_are_refused(tmp_path: Path) -> None:
    with virtual_camera(tmp_path, at_home=True) as (gopro, url):
        assert gopro.home is not None
        with (
            at_home("k", CameraAddress(url, "gopro", "wrong", gopro.home.certificate)) as camera,
            pytest.raises(CameraRefused, match="401"),
        ):
            camera.open()
        with at_home("k", CameraAddress(url, "gopro", "kitchen")) as camera, pytest.raises(CameraLost):
            camera.state()
