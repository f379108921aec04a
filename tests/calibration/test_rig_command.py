"""The command `calibrate rig` with a board recorded by both cameras of a known mount."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from filmed_boards import HELD_FRAMES, film_board
from scipy.spatial.transform import Rotation
from small_recordings import (
    SEED,
    START_WORLD_S,
    seal_stream,
    truth_ticks,
    write_constants,
    write_headset,
    write_manifest,
    write_true_alignment,
)

from kitchensync.calibration.commands.calibrate import calibrate
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.hololens.streams import pv
from kitchensync.storage.reading.calibration_results import save
from kitchensync.virtual_kitchen.gopro.files.sensors import CameraMount
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world import boards, rotations
from kitchensync.virtual_kitchen.world.motion import simulated_motion
from kitchensync.virtual_kitchen.world.optics import Optics

pytestmark = pytest.mark.slow

BOARD, PRINT = "7x5:36mm/27mm", boards.DrawnBoard(7, 5, 0.036, 0.027)
GOPRO = Optics("fisheye", 960, 540, 441, 440, 479, 272, (0.03, -0.01, 0.004, -0.001))
PV = Optics("pinhole", 640, 360, 505, 505, 319.5, 179.5, (0, 0, 0, 0, 0))
POSES = 16
FRAME_S = 1001 / 30000
PV_HZ = 10.0


def true_mount() -> np.ndarray:
    """Return GoPro from front camera: the rotation of the virtual mount and a position on the forehead."""
    flip = np.diag([1.0, -1, -1])  # x right, y up, z back to x right, y down, z forward
    mount = np.eye(4)
    mount[:3, :3] = flip @ rotations.matrices(CameraMount.of_seed(SEED).wxyz[None])[0].T @ flip
    mount[:3, 3] = [0.02, 0.06, 0.03]
    return mount


def front_poses() -> list[np.ndarray]:
    rng = np.random.default_rng(9)
    poses = []
    for _ in range(POSES):
        ray = PV.ray(*(rng.uniform(0.35, 0.65, 2) * [640, 360]))
        tilt = tuple(rng.uniform(-0.6, 0.6, 2))
        poses.append(
            boards.looking_at(PRINT, rng.uniform(0.4, 0.6), tilt, rng.uniform(-0.3, 0.3), (0.126, 0.09), ray)
        )
    return poses


def front_packets(kitchen: Kitchen, poses: list[np.ndarray]):
    """Yield raw frames of the front camera while the GoPro records."""
    camera, rng = boards.BoardCamera(PV, PRINT), np.random.default_rng(1)
    pictures = [camera.see(pose, rng=rng) for pose in poses]
    metadata = np.zeros((), pv.METADATA)
    metadata["focal_length"], metadata["principal_point"] = (505, 505), (319.5, 179.5)
    metadata["width"], metadata["height"] = 640, 360
    chroma = np.full((180, 640), 128, np.uint8).tobytes()
    for media_s in np.arange(0.02, POSES * HELD_FRAMES * FRAME_S - 0.05, 1 / PV_HZ):
        shown = pictures[int(media_s / FRAME_S) // HELD_FRAMES]
        yield int(truth_ticks(kitchen, np.array([media_s]))[0]), pv.encode(shown.tobytes() + chroma, metadata)


@pytest.fixture(scope="module")
def take(tmp_path_factory) -> Path:
    recording = tmp_path_factory.mktemp("data") / "board-1"
    (recording / "gopro").mkdir(parents=True)
    kitchen = Kitchen(SEED, simulated_motion(SEED), Truth(recording, SEED))
    poses = front_poses()
    mount = true_mount()
    film_board(
        recording / "gopro", GOPRO, PRINT, [mount @ pose for pose in poses], SEED, start_world_s=START_WORLD_S
    )
    streams = write_headset(recording, kitchen, with_pv=False)
    seal_stream(recording, "hololens/pv", front_packets(kitchen, poses))
    streams["hololens/pv"] = {"format": {"codec": "raw", "width": 640, "height": 360}}
    write_manifest(recording, streams, {"hololens": "hololens", "gopro": "gopro"})
    for stream in ("pv", "gyroscope"):
        write_constants(recording, stream)
    write_true_alignment(recording, kitchen, "GX010042.MP4", 6.5)
    return recording


def keep_lens(recording: Path) -> None:
    media = open_media(recording / "gopro" / "GX010042.MP4")
    names = ("fx", "fy", "cx", "cy", "k1", "k2", "k3", "k4")
    sigma = [0.05] * 4 + [1e-4] * 4
    lens = {
        "model": "fisheye",
        "width": 960,
        "height": 540,
        "parameters": dict(zip(names, [441, 440, 479, 272, *GOPRO.k], strict=True)),
        "sigma": dict(zip(names, sigma, strict=True)),
        "covariance": np.diag(np.square(sigma)).tolist(),
        "rms_px": 0.1,
        "held_out_px": 0.1,
        "picture_sigma_px": {"median": 0.1, "largest": 0.2},
        "used": [],
        "left_out": {},
        "covered": 1.0,
    }
    save(
        recording.parent,
        media.serial or "",
        "lens",
        media.mode.lens_name,
        datetime(2025, 1, 1, tzinfo=UTC),
        lens,
    )


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(calibrate, [str(argument) for argument in arguments])
    return result.exit_code, result.output + (str(result.exception) if result.exit_code else "")


def test_the_mount_is_found_by_board_and_by_motion(take):
    code, output = run("rig", take, "--board", BOARD)
    assert code == 1, output
    assert "kitchensync calibrate gopro" in output
    keep_lens(take)
    code, output = run("rig", take, "--board", BOARD, "--json")
    assert code == 0, output
    (mount,) = json.loads(output)["mounts"]
    estimated, true = np.array(mount["camera_from_pv"]), true_mount()
    off = Rotation.from_matrix(estimated[:3, :3] @ true[:3, :3].T).magnitude()
    assert np.degrees(off) < 0.1
    assert np.linalg.norm(estimated[:3, 3] - true[:3, 3]) < 3e-3
    assert np.degrees(off) < 4 * mount["sigma_deg"]
    assert 0 < mount["sigma_parts"]["systematic"]["mm"] < mount["sigma_mm"]
    assert len(mount["used"]) >= 10
    assert mount["by_motion"].get("refused") or mount["by_motion"]["apart_deg"] < 0.5
    assert Path(mount["path"]).is_file()
    assert Path(mount["path"]).with_suffix(".png").stat().st_size > 10_000
    code, output = run("rig", take, "--board", "9x6:36mm/27mm")
    assert code == 1
    assert "instants with the board in both pictures" in output
