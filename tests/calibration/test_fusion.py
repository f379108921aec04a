"""Long-throw depth of the virtual room fused into a mesh and compared with its walls."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from tables import look_up_table

from kitchensync.calibration.space.mesh import Fusion, PinholeDepth, open3d_or_refuse
from kitchensync.storage.geometry.errors import Refused
from kitchensync.virtual_kitchen.headset.cameras import LONGTHROW
from kitchensync.virtual_kitchen.world.room import BACK, FLOOR, RIGHT, distance_m, off_surface_m


def looking(yaw_deg: float, pitch_deg: float, place: list[float]) -> np.ndarray:
    """Return world from camera: camera x right, y down, z forward; room x right, y up, z back."""
    pose = np.eye(4)
    turn = Rotation.from_euler("YX", [yaw_deg, pitch_deg], degrees=True).as_matrix()
    pose[:3, :3] = turn @ np.diag([1.0, -1, -1])
    pose[:3, 3] = place
    return pose


def seen_depth(pose: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the radial depth of the room in millimetres with sensor noise."""
    plane = look_up_table(LONGTHROW).plane.reshape(-1, 2).astype(float)
    rays = np.column_stack((plane, np.ones(len(plane))))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    away = distance_m(pose[:3, 3], rays @ pose[:3, :3].T)
    return np.rint(1000 * away + rng.normal(0, 4, away.shape)).astype(np.uint16).reshape(288, 320)


def test_the_reference_knows_its_room():
    right = distance_m(np.zeros(3), np.array([[1.0, 1e-9, 1e-9], [1e-9, -1.0, 0.3], [1e-9, 1e-9, 1.0]]) + 0.0)
    assert right[0] == pytest.approx(RIGHT)
    assert right[2] == pytest.approx(BACK)
    points = np.array([[RIGHT, 0, 0], [0, FLOOR + 0.01, 0.5], [0, 0, 0.4]])
    assert off_surface_m(points)[:2] == pytest.approx([0, 0.01])
    assert off_surface_m(points)[2] > 0.5


def test_depth_along_z_of_a_wall_is_its_distance():
    camera = look_up_table(LONGTHROW)
    wall = np.rint(1000 * 1.8 * np.sqrt(1 + np.sum(camera.plane.astype(float) ** 2, -1))).astype(np.uint16)
    z = PinholeDepth(camera).z_m(wall)
    assert np.abs(z[z > 0] - 1.8).max() < 2e-3
    assert np.mean(z > 0) > 0.95


@pytest.mark.slow
def test_depth_without_a_surface_is_refused_as_a_mesh(tmp_path):
    try:
        fusion = Fusion(look_up_table(LONGTHROW))
    except Refused as refusal:
        pytest.skip(str(refusal))
    for _ in range(3):
        fusion.add(np.zeros((288, 320), np.uint16), np.eye(4))
    with pytest.raises(Refused, match="was seen by two of 3 pictures"):
        fusion.write(tmp_path / "room.ply")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_room_becomes_a_mesh_within_a_centimetre():
    try:
        open3d_or_refuse()
    except Refused as refusal:
        pytest.skip(str(refusal))
    rng, fusion = np.random.default_rng(1), Fusion(look_up_table(LONGTHROW))
    for step in range(36):
        place = [0.3 * np.sin(step), 0.1 * np.cos(step), 0.3 + 0.2 * np.sin(2 * step)]
        pose = looking(step * 20.0, -15 + 10 * np.sin(step), place)
        fusion.add(seen_depth(pose, rng), pose)
    mesh = fusion.mesh()
    assert fusion.pictures == 36
    assert len(mesh.triangles) > 20_000
    off = off_surface_m(mesh.points)
    assert np.sqrt(np.mean(off**2)) < 0.01
    assert np.percentile(off, 95) < 0.02
