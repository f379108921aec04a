"""The commands `calibrate check` and `calibrate imu` with small recordings of known truth."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.spatial.transform import Rotation
from small_recordings import (
    SEED,
    seal_stream,
    write_constants,
    write_film,
    write_headset,
    write_manifest,
    write_true_alignment,
)

from kitchensync.calibration.commands.calibrate import calibrate
from kitchensync.calibration.jobs.mount_check import refresh
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.hololens.streams import inertial_samples as imu
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.reading.calibration_results import save
from kitchensync.virtual_kitchen.gopro.files.sensors import CameraMount
from kitchensync.virtual_kitchen.world import rotations

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def take(tmp_path_factory) -> Path:
    """Return a recording with a video, a gyroscope, constants, and the true clock map as its alignment."""
    recording = tmp_path_factory.mktemp("data") / "take1"
    kitchen = write_film(recording / "gopro", SEED, 660)
    streams = write_headset(recording, kitchen)
    write_manifest(recording, streams, {"hololens": "hololens", "gopro": "gopro"})
    for stream in ("pv", "gyroscope"):
        write_constants(recording, stream)
    write_true_alignment(recording, kitchen, "GX010001.MP4", 22.0)
    return recording


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(calibrate, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def test_the_rotation_by_motion_is_that_of_the_virtual_mount(take):
    code, output = run("check", take, "--json")
    assert code == 0, output
    (answer,) = json.loads(output)["recordings"]
    assert answer["status"] == "PASS"
    (mount,) = answer["mounts"]
    flip = np.diag([1.0, -1, -1])  # x right, y up, z back to x right, y down, z forward
    true = flip @ rotations.matrices(CameraMount.of_seed(SEED).wxyz[None])[0].T @ flip
    off = Rotation.from_matrix(np.array(mount["camera_from_pv"]) @ true.T).magnitude()
    assert np.degrees(off) < 0.3
    assert not mount["moved"]


def test_a_recording_without_alignment_fails_with_a_message_and_the_others_continue(take, tmp_path):
    write_manifest(other := tmp_path, {}, {})
    code, output = run("check", other, take, "--json")
    assert code == 1
    first, second = json.loads(output)["recordings"]
    assert first["status"] == "FAIL"
    assert "kitchensync sync" in first["reasons"][0]
    assert second["status"] == "PASS"
    code, output = run("check", take)
    assert "too briefly" in output


def keep_mount(take: Path, turn: np.ndarray) -> None:
    """Save a mount of the recording's camera as `calibrate rig` does."""
    media = open_media(take / "gopro" / "GX010001.MP4")
    mount = np.eye(4)
    mount[:3, :3] = turn
    answer = {
        "camera_from_pv": mount.tolist(),
        "distance_mm": 60.0,
        "angle_deg": 5.0,
        "sigma_deg": 0.02,
        "sigma_mm": 0.2,
        "rms_px": {"pv": 0.1, "camera": 0.1},
        "recording": "board-1",
    }
    save(
        take.parent, media.serial or "", "rig", media.mode.lens_name, datetime(2025, 1, 1, tzinfo=UTC), answer
    )


def test_a_mount_is_compared_with_its_calibration_and_the_answer_is_kept(take, tmp_path):
    shutil.copytree(take, copy := tmp_path / "take1")
    flip = np.diag([1.0, -1, -1])
    true = flip @ rotations.matrices(CameraMount.of_seed(SEED).wxyz[None])[0].T @ flip
    keep_mount(copy, true)
    code, output = run("check", copy)
    assert code == 0
    assert "sits as calibrated on 2025-01-01" in output
    kept = copy / "sync" / "mounts.json"
    before = kept.stat().st_mtime_ns
    refresh(copy)
    assert kept.stat().st_mtime_ns == before, "without changes nothing is computed again"
    (copy.parent / "calibrations").rename(tmp_path / "away")
    keep_mount(copy, Rotation.from_euler("x", 3, degrees=True).as_matrix() @ true)
    refresh(copy)
    answer = json.loads(kept.read_text())
    assert answer["status"] == "WARN"
    assert "turned by 3.0 degrees" in answer["reasons"][0]
    assert "kitchensync calibrate rig" in answer["reasons"][0]
    code, output = run("check", tmp_path, "--strict")
    assert code == 1, "a folder means all its recordings"


def test_a_missing_video_fails_with_a_message(take, tmp_path):
    """Originals may have been freed after copies were made: a report is still needed."""
    shutil.copytree(take, copy := tmp_path / "take1")
    (copy / "gopro" / "GX010001.MP4").unlink()
    (copy / "sync" / "mounts.json").unlink(missing_ok=True)
    refresh(copy)
    answer = json.loads((copy / "sync" / "mounts.json").read_text())
    assert answer["status"] == "FAIL"
    assert "GX010001.MP4" in answer["reasons"][0]


@pytest.fixture(scope="module")
def rest(tmp_path_factory) -> Path:
    """Return a recording of a headset at rest on a table for half a minute."""
    recording = tmp_path_factory.mktemp("data") / "table"
    write_rest(recording)
    return recording


def write_rest(recording: Path, shaken: float = 0.0) -> None:
    """Write half a minute of both sensors; `shaken` is an additional rotation rate in the gyroscope's unit."""
    rng = np.random.default_rng(4)
    streams = {}
    for name, hz, batch, mean, noise in (
        ("gyroscope", 1000.0, 100, [0.3, -0.2, 0.1], 0.05),
        ("accelerometer", 500.0, 50, [0.0, 9.70, 1.5], 0.02),
    ):
        count = int(32 * hz) // batch * batch
        samples = np.zeros(count, imu.SAMPLE)
        t = np.arange(count) / hz
        samples["vinyl_ns"] = 10**10 + np.rint(t * 1e9).astype(np.int64)
        samples["soc_ticks"] = 10**9 + np.repeat(np.rint(t[::batch] * 1e7).astype(np.int64), batch)
        samples["xyz"] = mean + rng.normal(0, noise, (count, 3))
        moving = t < 5
        samples["xyz"][moving] += rng.normal(0, 20, (int(moving.sum()), 3))
        if name == "gyroscope":
            samples["xyz"] += shaken * np.sin(5 * t)[:, None]
        parts = np.split(samples, count // batch)
        seal_stream(
            recording, f"hololens/{name}", [(p["soc_ticks"][0], imu.encode_samples(p)) for p in parts]
        )
        streams[f"hololens/{name}"] = {}
    write_manifest(recording, streams, {"hololens": "hololens"})


def test_rest_detection_uses_the_unit_of_the_rig_file(tmp_path):
    write_rest(tmp_path / "data" / "table", shaken=0.4)  # 0.4 deg/s is nearly nothing, 0.4 rad/s a quick nod
    with edit_manifest(tmp_path / "data" / "table") as manifest:
        manifest["devices"]["hololens"]["gyroscope_unit"] = "deg_per_s"
    code, output = run("imu", tmp_path / "data" / "table", "--json")
    assert code == 0, output
    with edit_manifest(tmp_path / "data" / "table") as manifest:
        manifest["devices"]["hololens"]["gyroscope_unit"] = "rad_per_s"
    code, output = run("imu", tmp_path / "data" / "table", "--json")
    assert code == 1, output


def test_the_sensors_at_rest_are_described_and_kept(rest):
    code, output = run("imu", rest, "--json")
    assert code == 0, output
    answer = json.loads(output)
    assert Path(answer["path"]).parent.parent == rest.parent / "calibrations"
    assert answer["gyroscope"]["mean"] == pytest.approx([0.3, -0.2, 0.1], abs=0.003)
    assert answer["gyroscope"]["white_noise_per_sqrt_hz"] == pytest.approx(
        [0.05 / np.sqrt(1000)] * 3, rel=0.1
    )
    assert 25 <= answer["gyroscope"]["still_s"] <= 27.5
    felt = np.array([0.0, 9.70, 1.5])
    assert answer["down"] == pytest.approx(-felt / np.linalg.norm(felt), abs=1e-3)
    assert answer["gravity_excess_m_per_s2"] == pytest.approx(np.linalg.norm(felt) - 9.80665, abs=1e-3)
    code, output = run("imu", rest)
    assert code == 0
    assert "down in the sensor's axes" in output


def test_a_moving_head_is_not_at_rest(take):
    code, _ = run("imu", take)
    assert code == 1
