"""Lenses from rendered boards compared with their true optics and with OpenCV's calibration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from kitchensync.calibration.estimate.board import Board, BoardDetection, Detector
from kitchensync.calibration.estimate.choice import CandidateFrame, choose
from kitchensync.calibration.estimate.intrinsics import Intrinsics, estimate, estimate_best
from kitchensync.calibration.estimate.lens_quality import DETECTOR_PX, detector_error
from kitchensync.storage.geometry.errors import Refused
from kitchensync.virtual_kitchen.world import boards
from kitchensync.virtual_kitchen.world.optics import Optics

pytestmark = pytest.mark.slow

BOARD = Board(9, 6, 0.03, 0.022)
PRINT = boards.DrawnBoard(9, 6, 0.03, 0.022)
OPTICS = {
    "fisheye": Optics("fisheye", 960, 540, 440, 441, 484, 266, (0.03, -0.01, 0.004, -0.001)),
    "pinhole": Optics("pinhole", 960, 540, 620, 621, 476, 274, (-0.12, 0.08, 5e-4, -4e-4, -0.01)),
}
VIEWS = 10


def aimed(
    optics: Optics, rng: np.random.Generator, *, slant: float = 0.7, low: float = 0.1, high: float = 0.9
) -> np.ndarray:
    """Return a random pose of the board within the image."""
    pixel = rng.uniform(low, high, 2) * [optics.width, optics.height]
    ray = optics.ray(*pixel)
    tilt = tuple(rng.uniform(-slant, slant, 2))
    return boards.looking_at(PRINT, rng.uniform(0.22, 0.4), tilt, rng.uniform(-0.4, 0.4), (0.135, 0.09), ray)


@pytest.fixture(scope="module", params=OPTICS)
def filmed(request) -> tuple[Optics, list[BoardDetection]]:
    """Return the optics of a lens and the views of ten boards rendered with it."""
    optics, rng = OPTICS[request.param], np.random.default_rng(11)
    camera, detector = boards.BoardCamera(optics, PRINT), Detector(BOARD)
    views = []
    while len(views) < VIEWS:
        picture = camera.see(aimed(optics, rng), rng=rng)
        view = detector.find(picture, f"picture {len(views)}")
        if view is not None and len(view.ids) >= 12:
            views.append(view)
    return optics, views


def second_opinion(optics: Optics, views: list[BoardDetection]) -> np.ndarray:
    """Return OpenCV's calibration from the same corners."""
    objects = [BOARD.corners_m[view.ids].astype(np.float32)[:, None] for view in views]
    pixels = [view.pixels.astype(np.float32)[:, None] for view in views]
    size = (optics.width, optics.height)
    if optics.kind == "fisheye":
        guess = np.array([[450.0, 0, 480], [0, 450, 270], [0, 0, 1]])
        flags = (
            cv2.fisheye.CALIB_RECOMPUTE_EXTRINSIC
            | cv2.fisheye.CALIB_FIX_SKEW
            | cv2.fisheye.CALIB_USE_INTRINSIC_GUESS
        )
        _, matrix, k, _, _ = cv2.fisheye.calibrate(objects, pixels, size, guess, np.zeros(4), flags=flags)
    else:
        _, matrix, k, _, _ = cv2.calibrateCamera(objects, pixels, size, None, None)
    return np.array([matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2], *k.ravel()])


def test_the_lens_is_found_and_opencv_agrees(filmed):
    optics, views = filmed
    estimated = estimate(views, BOARD, optics.kind)
    assert estimated.lens.fx == pytest.approx(optics.fx, rel=2e-3)
    assert estimated.lens.fy == pytest.approx(optics.fy, rel=2e-3)
    assert distortion_error_px(estimated, optics) < 0.3
    assert estimated.rms_px < 0.2
    assert estimated.held_out_px < 0.25
    assert np.abs(estimated.lens.parameters[:4] - second_opinion(optics, views)[:4]).max() < 0.5


def distortion_error_px(intrinsics: Intrinsics, optics: Optics) -> float:
    """Return the RMS distance of the same rays in true and estimated images, apart from a rotation."""
    table = optics.ray_table()[::20, ::20].reshape(-1, 3)
    truth, estimated = optics.pixels(table), intrinsics.lens.project(table)
    turns = [
        (intrinsics.lens.project(table + 1e-5 * np.cross(axis, table)) - estimated).ravel() / 1e-5
        for axis in np.eye(3)
    ]
    off = (truth - estimated).ravel()
    off -= np.column_stack(turns) @ np.linalg.lstsq(np.column_stack(turns), off, rcond=None)[0]
    return float(np.sqrt(np.mean(np.sum(off.reshape(-1, 2) ** 2, axis=1))))


def test_corners_are_closer_to_the_truth_than_those_of_opencvs_detector():
    optics, rng, detector = OPTICS["fisheye"], np.random.default_rng(5), Detector(BOARD)
    camera, mine, theirs = boards.BoardCamera(optics, PRINT), [], []
    for _ in range(6):
        pose = aimed(optics, rng)
        picture = camera.see(pose, rng=rng)
        truth = optics.pixels(BOARD.corners_m @ pose[:3, :3].T + pose[:3, 3])
        view = detector.find(picture, "")
        assert view is not None
        mine.append(view.pixels - truth[view.ids])
        pixels, ids, _, _ = cv2.aruco.CharucoDetector(BOARD.opencv).detectBoard(picture)
        theirs.append(pixels.reshape(-1, 2) - truth[ids.ravel()])
    rms_px = [np.sqrt(np.mean(np.sum(np.concatenate(of) ** 2, axis=1))) for of in (mine, theirs)]
    assert sum(map(len, mine)) > 0.95 * sum(map(len, theirs))
    assert rms_px[0] < 0.08
    assert rms_px[0] < 0.9 * rms_px[1]


def test_an_error_common_to_all_views_is_stated_separately_and_has_the_stated_effect():
    optics, rng = OPTICS["fisheye"], np.random.default_rng(9)
    views = [points_of(optics, aimed(optics, rng), "view" + i * "+") for i in range(12)]
    estimated = estimate(views, BOARD, "fisheye")
    middle, stretch = estimated.lens.parameters[2:4], 1 + 100 * DETECTOR_PX / 960
    out = [replace(view, pixels=middle + stretch * (view.pixels - middle)) for view in views]
    moved = (estimate(out, BOARD, "fisheye").lens.parameters - estimated.lens.parameters) / 100
    assert moved == pytest.approx(detector_error(estimated.lens), abs=1e-4)
    assert np.sqrt(np.diag(estimated.systematic)) == pytest.approx(np.abs(detector_error(estimated.lens)))
    assert estimated.covariance[0, 0] > estimated.systematic[0, 0]


def test_the_better_model_is_chosen_by_unseen_views(filmed):
    optics, views = filmed
    assert estimate_best(views, BOARD).lens.kind == optics.kind


def test_an_outlier_view_is_named_and_left_out(filmed):
    optics, views = filmed
    rng = np.random.default_rng(2)
    spoilt = replace(
        views[3], pixels=views[3].pixels + rng.normal(0, 6, views[3].pixels.shape), name="the shaken one"
    )
    estimated = estimate([*views[:3], spoilt, *views[4:]], BOARD, optics.kind)
    assert list(estimated.left_out) == ["the shaken one"]
    assert estimated.lens.fx == pytest.approx(optics.fx, rel=4e-3)


def test_too_few_views_are_refused(filmed):
    optics, views = filmed
    poor = [replace(view, ids=view.ids[:6], pixels=view.pixels[:6]) for view in views[:4]]
    with pytest.raises(
        Refused, match=r"6 usable views .* at least 8 .*4 left out: only 6 corners.*picture 0"
    ):
        estimate([*poor, *views[4:]], BOARD, optics.kind)


def test_images_of_several_sizes_are_refused_and_the_odd_one_named(filmed):
    optics, views = filmed
    mixed = [*views[:9], replace(views[9], size=(1920, 1080))]
    with pytest.raises(Refused, match=r"several sizes \(960 x 540, 1920 x 1080\).*picture 9"):
        estimate(mixed, BOARD, optics.kind)


def test_a_board_that_was_never_tilted_and_one_that_never_left_the_middle_are_refused():
    optics, rng = OPTICS["pinhole"], np.random.default_rng(3)
    flat = [points_of(optics, facing(aimed(optics, rng)), f"flat {i}") for i in range(12)]
    with pytest.raises(Refused, match="never tilted"):
        estimate(flat, BOARD, "pinhole")
    middle = []
    for i in range(12):
        pose = aimed(optics, rng, low=0.49, high=0.51)
        pose[:3, 3] *= 3
        middle.append(points_of(optics, pose, f"middle {i}"))
    with pytest.raises(Refused, match="of the picture, 45% are needed"):
        estimate(middle, BOARD, "pinhole")


def facing(pose: np.ndarray) -> np.ndarray:
    """Return the same position, parallel to the image plane."""
    pose[:3, :3] = np.eye(3)
    return pose


def points_of(optics: Optics, pose: np.ndarray, name: str) -> BoardDetection:
    """Return a view with exact corners, without an image."""
    at = BOARD.corners_m @ pose[:3, :3].T + pose[:3, 3]
    pixels = optics.pixels(at) + np.random.default_rng(len(name)).normal(0, 0.03, (len(at), 2))
    kept = np.all((pixels > 2) & (pixels < [optics.width - 3, optics.height - 3]), axis=1)
    return BoardDetection(name, np.flatnonzero(kept), pixels[kept], (optics.width, optics.height), 0.7)


def test_mirrored_foreign_and_missing_boards_are_distinguished():
    optics, rng = OPTICS["pinhole"], np.random.default_rng(4)
    pose = boards.looking_at(PRINT, 0.35, (0.2, -0.1), 0.1, (0.135, 0.09), np.array([0.0, 0, 1]))
    picture = boards.BoardCamera(optics, PRINT).see(pose, rng=rng)
    detector = Detector(BOARD)
    assert detector.find(picture, "") is not None
    assert "mirrored" in detector.explain_missing(np.ascontiguousarray(picture[:, ::-1]))
    assert "--board" in Detector(Board(7, 5, 0.03, 0.022)).explain_missing(picture)
    assert "DICT_5X5_250" in Detector(Board(9, 6, 0.03, 0.022, "DICT_4X4_250")).explain_missing(picture)
    shaken = boards.BoardCamera(optics, PRINT).see(pose, blur_px=7.0, rng=rng)
    assert "blurred" in detector.explain_missing(shaken)
    assert detector.explain_missing(np.full((540, 960), 90, np.uint8)).startswith("no board is to be seen")


def test_blurred_moving_and_repeated_views_are_left_out_with_reasons():
    optics, rng = OPTICS["pinhole"], np.random.default_rng(6)
    camera, detector = boards.BoardCamera(optics, PRINT), Detector(BOARD)
    pose = boards.looking_at(PRINT, 0.35, (0.2, -0.1), 0.1, (0.135, 0.09), np.array([0.0, 0, 1]))
    sharp = detector.find(camera.see(pose, rng=rng), "sharp")
    softer = detector.find(camera.see(pose, blur_px=1.6, rng=rng), "softer")
    assert sharp is not None
    assert softer is not None
    assert softer.edge_px > 1.4 * sharp.edge_px
    blurred = replace(sharp, name="blurred", edge_px=2.5)
    others = [CandidateFrame(points_of(optics, aimed(optics, rng), f"other {i}"), 0.1) for i in range(5)]
    again = [CandidateFrame(replace(sharp, name=f"again {i}"), 0.0) for i in range(4)]
    moving = CandidateFrame(replace(sharp, name="moving"), 4.0)
    chosen, left_out = choose([CandidateFrame(blurred, 0.1), moving, *others, *again], BOARD, most=6)
    assert left_out["blurred"] == "blurred"
    assert left_out["moving"] == "moving"
    assert {view.name for view in chosen} >= {f"other {i}" for i in range(5)}
    assert sum(name.startswith("again") for name in left_out) == 3


def test_the_published_calibration_of_opencvs_sample_pictures_is_reproduced():
    folder = Path("/usr/share/doc/opencv-doc/examples/data")
    pictures = sorted(folder.glob("left[0-9]*.jpg"))
    if len(pictures) != 13:
        pytest.skip("needs the 13 left pictures of Debian's package opencv-doc")
    views = []
    for path in pictures:
        grey = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        has_corners, corners = cv2.findChessboardCorners(grey, (9, 6))
        assert has_corners
        ends = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_COUNT, 30, 0.1)
        corners = cv2.cornerSubPix(grey, corners, (11, 11), (-1, -1), ends)
        views.append(
            BoardDetection(path.name, np.arange(54), corners.reshape(-1, 2).astype(float), (640, 480), 0.7)
        )
    published = cv2.FileStorage(str(folder / "left_intrinsics.yml"), cv2.FILE_STORAGE_READ)
    matrix, k = published.getNode("camera_matrix").mat(), published.getNode("distortion_coefficients").mat()
    mine = estimate(views, Board(10, 7, 0.025, 0.018), "pinhole", square_pixels=True, robust=False)
    assert mine.lens.fx == mine.lens.fy == pytest.approx(matrix[0, 0], abs=0.05)
    assert mine.lens.cx == pytest.approx(matrix[0, 2], abs=0.05)
    assert mine.lens.k1 == pytest.approx(k.ravel()[0], abs=1e-5)
    assert mine.rms_px == pytest.approx(published.getNode("avg_reprojection_error").real(), abs=1e-3)
