"""Bluetooth with the library's classes over a simulated radio; no real radio was tested."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cameras import virtual_camera
from kitchen_clock import MovedClock

pytest.importorskip("open_gopro", reason="the extra `gopro` (open-gopro) is not installed")

from radio import radio_of

from kitchensync.sensors.errors import CameraRefused
from kitchensync.sensors.gopro.control.library import BleCamera
from kitchensync.sensors.gopro.control.settings import (
    apply_settings,
    measure_clock,
    set_clock_now,
    wanted_options,
)
from kitchensync.shell.host_clock import host_ns, utc_anchor

pytestmark = pytest.mark.slow

Both = tuple[Any, BleCamera]


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Both]:
    monkeypatch.chdir(tmp_path)
    with (
        virtual_camera(tmp_path / "sim", model="hero11", clock=MovedClock(runs=True)) as (gopro, _),
        BleCamera(gopro.camera.serial[-4:], radio=radio_of(gopro.camera)) as camera,
    ):
        camera.open()
        yield gopro, camera


def test_a_clip_over_bluetooth(both: Both, tmp_path: Path) -> None:
    gopro, camera = both
    info = camera.info()
    assert (info.model_name, info.serial) == ("HERO11 Black", gopro.camera.serial)
    assert camera.state().battery_percent == 92
    applied = apply_settings(camera, wanted_options())
    assert applied.problems == []
    assert (gopro.camera.settings.values[135], gopro.camera.settings.values[83]) == (0, 0)
    camera.external_control()
    camera.keep_alive()
    started = camera.shutter(True)
    assert started.before_host_ns < started.observed_host_ns
    gopro.camera.kitchen.clock.move(0.4)
    assert camera.state().encoding
    camera.shutter(False)
    camera.wait_idle()
    assert len(gopro.camera.card.files()) == 1
    assert camera.media() == []
    assert not (tmp_path / "cohn_db.json").exists()


def test_its_clock_is_set_and_measured(both: Both) -> None:
    gopro, camera = both
    begin_ns = host_ns()
    set_clock_now(camera, 120)
    took_ns = host_ns() - begin_ns
    offset = measure_clock(camera, limit_s=60.0)
    assert offset is not None
    assert abs(offset.offset_ns - 7200 * 10**9) < took_ns + offset.error_ns
    anchor = utc_anchor()
    true_ns = gopro.camera.clock._local_minus_utc_ns + gopro.camera.kitchen.utc_minus_host_ns
    assert abs(true_ns - offset.offset_ns - anchor.utc_ns + anchor.host_ns) < offset.error_ns + 20_000_000
    earliest = gopro.camera.clock.local_now()
    shown = camera.get_clock().local
    assert earliest <= shown <= gopro.camera.clock.local_now()


def test_refused_settings_are_named(both: Both) -> None:
    _, camera = both
    with pytest.raises(CameraRefused, match="setting 3"):
        camera.set_setting(3, 10)
    with pytest.raises(CameraRefused, match="not over Bluetooth"):
        camera.set_setting(9999, 1)
