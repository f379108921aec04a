"""Near depth compared with the true room: wrapped depth is detected, cloud and mesh hold near depth only."""

from __future__ import annotations

import json
from pathlib import Path

import furnished as room
import near_room
import numpy as np
import pytest
from click.testing import CliRunner
from packed_depth import pack_nv12
from scipy.spatial import KDTree

from kitchensync.calibration.commands.space import cloud, mesh
from kitchensync.calibration.space.mesh import open3d_or_refuse
from kitchensync.sensors.hololens.streams import depth_ahat
from kitchensync.storage.geometry.errors import Refused
from kitchensync.storage.geometry.wrapping import without_wrapped
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.world.room import off_surface_m

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def take(tmp_path_factory) -> tuple[Path, Kitchen]:
    path = tmp_path_factory.mktemp("data") / "near"
    return path, near_room.write_near(path)


def run(command, *arguments: object) -> dict:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output + str(result.exception)
    return json.loads(result.output)


def packed(depth: np.ndarray, brightness: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pack and unpack both as a video frame does: steps of 4 mm, wrapped at 1024 mm, half the columns."""
    return depth_ahat.unpack_nv12(pack_nv12(depth, brightness))


@pytest.mark.slow
@pytest.mark.parametrize(("as_video", "range_mm"), [(False, near_room.ALIAS_MM), (True, 1024)])
def test_wrapped_depth_is_removed_and_near_depth_kept(take, as_video, range_mm):
    _, kitchen = take
    depth, brightness = near_room.sent_near(kitchen, near_room.TIMES_S[1], np.random.default_rng(8))
    true_mm, _ = near_room.traced_near(kitchen, near_room.TIMES_S[1])
    hand = np.hypot(*(np.mgrid[:512, :512] - [[[330]], [[300]]])) < 45
    true_mm[hand], depth[hand], brightness[hand] = 400, 400, round(0.4 * near_room.LAMP / 400**2)
    is_near = true_mm < range_mm
    assert 0.2 < is_near.mean() < 0.7
    sent = packed(depth, brightness) if as_video else (depth, brightness)
    unwrapped = without_wrapped(*sent)
    kept = unwrapped.depth_mm > 0
    assert np.mean(kept[is_near]) > 0.95
    assert np.mean(~is_near[kept]) < 0.01
    print(f"kept {np.mean(kept[is_near]):.2%} of what was near, {np.mean(~is_near[kept]):.2%} of it is not")
    assert np.mean(kept[hand]) > 0.99, "at its border the wrapped depth behind it has the same value"
    assert np.array_equal(unwrapped.wrapped, (sent[0] > 0) & ~kept)


def test_an_image_without_near_depth_is_judged_by_earlier_ones(take):
    _, kitchen = take
    depth, brightness = near_room.sent_near(kitchen, near_room.TIMES_S[1], np.random.default_rng(8))
    true_mm, _ = near_room.traced_near(kitchen, near_room.TIMES_S[1])
    before = without_wrapped(depth, brightness)
    depth[true_mm < near_room.ALIAS_MM] = 0
    after = without_wrapped(depth, brightness, bright=before.bright)
    assert np.count_nonzero(after.depth_mm) < 0.01 * np.count_nonzero(depth)
    assert after.bright == before.bright


def test_a_noisy_surface_is_judged_as_a_whole():
    rng = np.random.default_rng(2)
    true_mm = np.where(np.arange(512)[None, :] < 256, 500, 1500) * np.ones((512, 1))
    albedo = rng.uniform(0.3, 1.0, true_mm.shape)
    brightness = np.rint(4e8 * albedo / true_mm**2).astype(np.uint16)
    unwrapped = without_wrapped(np.rint(true_mm % 1055).astype(np.uint16), brightness)
    assert unwrapped.wrapped[:, :255].mean() < 0.001
    assert unwrapped.wrapped[:, 257:].mean() > 0.999


@pytest.mark.slow
def test_the_cloud_holds_what_was_near_and_nothing_else(take, tmp_path):
    path, kitchen = take
    answer = run(cloud, path, "--cameras", "none", "--voxel-mm", 10, "--out", tmp_path / "c.ply", "--json")
    points, _ = room.read_ply(tmp_path / "c.ply")
    assert answer["stream"] == "hololens/depth_ahat"
    assert len(points) == answer["points"] > 5000
    off = off_surface_m(points - room.VIEWING_POINT, room.THINGS)
    print(
        f"cloud {len(points)} points, {1e3 * np.sqrt(np.mean(off**2)):.2f} mm RMS, {1e3 * off.max():.1f} mm worst"
    )
    assert np.sqrt(np.mean(off**2)) < 0.005
    assert np.mean(off > 0.02) < 0.002
    true = [near_room.traced_near(kitchen, at) for at in near_room.TIMES_S]
    far = sum(np.count_nonzero(away > near_room.ALIAS_MM) for away, _ in true)
    assert answer["wrapped_pixels"] == pytest.approx(far, rel=0.03)
    away, points_in_view = true[1]
    near = points_in_view[away < 0.97 * near_room.ALIAS_MM][::7]
    assert np.mean(KDTree(points).query(near)[0] < 0.015) > 0.97


@pytest.mark.slow
def test_the_mesh_matches_the_near_surfaces(take, tmp_path):
    try:
        open3d = open3d_or_refuse()
    except Refused as refusal:
        pytest.skip(str(refusal))
    path, _ = take
    answer = run(mesh, path, "--voxel-mm", 10, "--out", tmp_path / "m.ply", "--json")
    assert answer["wrapped_pixels"] > 0
    points = np.asarray(open3d.io.read_triangle_mesh(str(tmp_path / "m.ply")).vertices)
    off = off_surface_m(points - room.VIEWING_POINT, room.THINGS)
    print(
        f"mesh {len(points)} points, {1e3 * np.sqrt(np.mean(off**2)):.2f} mm RMS, {1e3 * off.max():.1f} mm worst"
    )
    assert len(points) > 3000
    assert np.sqrt(np.mean(off**2)) < 0.01
