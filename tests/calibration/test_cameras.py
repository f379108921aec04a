"""Camera models compared with OpenCV, with the virtual kitchen's optics, and with their own inverse."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kitchensync.storage.geometry.camera_models import Fisheye, Pinhole, inside, lens_of
from kitchensync.storage.geometry.errors import BadModel
from kitchensync.storage.geometry.look_up_table import LookUpTable
from kitchensync.virtual_kitchen.world.optics import Optics

WIDE = Fisheye(1920, 1080, 880, 878, 955, 545, 0.03, -0.01, 0.004, -0.001)
LINEAR = Pinhole(1920, 1080, 1250, 1252, 962, 541, -0.12, 0.08, 5e-4, -4e-4, -0.01)
LENSES = [WIDE, LINEAR]


def points_ahead(count: int = 400) -> np.ndarray:
    rng = np.random.default_rng(5)
    depth = rng.uniform(0.3, 4, count)
    return np.column_stack((rng.uniform(-0.7, 0.7, (count, 2)) * depth[:, None], depth))


@pytest.mark.parametrize("lens", LENSES, ids=lambda lens: lens.kind)
def test_projections_agree_with_opencv(lens):
    points = points_ahead()
    matrix = np.array([[lens.fx, 0, lens.cx], [0, lens.fy, lens.cy], [0, 0, 1.0]])
    nothing = np.zeros(3)
    if lens.kind == "fisheye":
        expected = cv2.fisheye.projectPoints(points[:, None], nothing, nothing, matrix, lens.parameters[4:])[
            0
        ]
    else:
        expected = cv2.projectPoints(points, nothing, nothing, matrix, lens.parameters[4:])[0]
    assert np.allclose(lens.project(points), expected.reshape(-1, 2), atol=1e-9)


@pytest.mark.parametrize("lens", LENSES, ids=lambda lens: lens.kind)
def test_projections_agree_with_the_reference(lens):
    judge = Optics(lens.kind, 1920, 1080, *lens.parameters[:4], k=tuple(lens.parameters[4:]))
    points = points_ahead()
    assert np.allclose(lens.project(points), judge.pixels(points), atol=1e-9)
    ray = judge.ray(37, 900)
    assert np.allclose(lens.rays([[37, 900]])[0], ray / np.linalg.norm(ray), atol=1e-9)


@pytest.mark.parametrize("lens", LENSES, ids=lambda lens: lens.kind)
def test_single_precision_points_are_projected_to_a_thousandth_of_a_pixel(lens):
    points = np.vstack((points_ahead(), [[0.1, 0.2, -1.0], [0, 0, 0]]))
    single = lens.project(points.astype(np.float32))
    assert single.dtype == np.float32
    assert np.allclose(single, lens.project(points), atol=1e-3, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("lens", LENSES, ids=lambda lens: lens.kind)
@given(u=st.floats(0, 1919), v=st.floats(0, 1079), distance=st.floats(0.1, 20))
def test_a_pixel_and_its_ray_correspond(lens, u, v, distance):
    ray = lens.rays([[u, v]])
    assert np.linalg.norm(ray) == pytest.approx(1.0)
    assert np.allclose(lens.project(ray * distance), [[u, v]], atol=1e-6)


@pytest.mark.parametrize("lens", LENSES, ids=lambda lens: lens.kind)
@pytest.mark.parametrize("width", [640, 3840])
def test_an_image_of_another_width_maps_edges_to_edges(lens, width):
    """A pixel is a square around its index: the edge of the image is at -0.5 in every size."""
    small, share = lens.scaled(width), width / 1920
    expected = (lens.project(points_ahead()) + 0.5) * share - 0.5
    assert np.allclose(small.project(points_ahead()), expected, atol=1e-9)
    assert (small.width, small.height) == (width, 1080 * share)


@pytest.mark.parametrize("lens", LENSES, ids=lambda lens: lens.kind)
def test_nothing_behind_the_camera_is_visible(lens):
    assert np.isnan(lens.project([[0.01, 0.02, -1.0]])).all()
    assert not inside(lens, lens.project([[0.01, 0.02, -1.0]])).any()


def test_nothing_is_visible_where_the_lens_model_folds_back():
    barrel = Pinhole(1000, 1000, 500, 500, 500, 500, k1=-0.3)
    assert np.isfinite(barrel.project([[1.0, 0.0, 1.0]])).all()
    assert np.isnan(barrel.project([[1.2, 0.0, 1.0]])).all(), "beyond r = 1.054 the image radius shrinks"


def tables(width: int = 64, height: int = 48) -> tuple[LookUpTable, Fisheye]:
    """Return the look-up tables of a headset with a fisheye lens, and this lens."""
    lens = Fisheye(width, height, 30, 30, 31, 23, 0.05, -0.01)
    u, v = np.meshgrid(np.arange(width), np.arange(height))
    rays = lens.rays(np.column_stack((u.ravel(), v.ravel())).astype(float)).reshape(height, width, 3)
    fx = fy = 22.0
    cx, cy = (width - 1) / 2, (height - 1) / 2
    undistorted = np.stack(((u - cx) / fx, (v - cy) / fy, np.ones(u.shape)), -1).reshape(-1, 3)
    source = lens.project(undistorted).reshape(height, width, 2)
    source[~inside(lens, source)] = -1
    return LookUpTable(
        (rays[..., :2] / rays[..., 2:]).astype("f4"), source.astype("f4"), (fx, fy, cx, cy)
    ), lens


def test_a_look_up_table_agrees_with_the_lens_it_was_made_from():
    camera, lens = tables()
    pixels = np.array([[10.0, 12.0], [40.5, 30.25], [31.0, 23.0]])
    off_rad = np.arccos(np.clip(np.sum(camera.rays(pixels) * lens.rays(pixels), axis=1), -1, 1))
    assert off_rad.max() < 1e-3
    points = lens.rays(pixels) * 1.7
    assert np.abs(camera.project(points) - pixels).max() < 0.05
    assert np.isnan(camera.project([[5.0, 0, 0.1], [0, 0, -1]])).all()


def test_camera_parameters_round_trip_and_wrong_ones_are_refused():
    parameters = dict(zip(WIDE.names, WIDE.parameters, strict=True))
    assert lens_of("fisheye", 1920, 1080, parameters) == WIDE
    with pytest.raises(BadModel, match="not one of pinhole, fisheye"):
        lens_of("mirror", 1920, 1080, parameters)
    with pytest.raises(BadModel, match="has the parameters"):
        lens_of("pinhole", 1920, 1080, parameters)
