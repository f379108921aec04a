"""The command `kitchensync calibrate` with videos of a board made with known optics."""

from __future__ import annotations

import json
import re
import zlib
from datetime import UTC, datetime
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import CliRunner
from filmed_boards import film_board, places
from scipy.stats import t as student

from kitchensync.calibration.estimate.board import Board, Detector
from kitchensync.calibration.jobs.board_print import black_rectangles
from kitchensync.cli import main
from kitchensync.storage.reading.calibration_results import find, lens_from_words
from kitchensync.virtual_kitchen.world import boards
from kitchensync.virtual_kitchen.world.optics import Optics

pytestmark = pytest.mark.slow

OPTICS = Optics("fisheye", 960, 540, 441, 440, 479, 272, (0.03, -0.01, 0.004, -0.001))
PRINT = boards.DrawnBoard(7, 5, 0.036, 0.027)
BOARD = "7x5:36mm/27mm"


@pytest.fixture(scope="module")
def film(tmp_path_factory) -> Path:
    """Return a video of a board in fourteen poses."""
    return film_board(tmp_path_factory.mktemp("film"), OPTICS, PRINT, places(OPTICS, PRINT, 14, seed=5))


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["calibrate", *(str(argument) for argument in arguments)])
    return result.exit_code, result.output + (str(result.exception) if result.exit_code else "")


@pytest.mark.promise("Lens and mount are found within their stated error, and depth matches the room")
@pytest.mark.slow
def test_a_video_gives_a_lens_that_is_found_again(film, tmp_path):
    code, output = run("gopro", film, "--board", BOARD, "--data", tmp_path, "--json")
    assert code == 0, output
    answer = json.loads(output)
    assert answer["status"] == "ok"
    assert answer["model"] == "fisheye"
    assert answer["parameters"]["fx"] == pytest.approx(OPTICS.fx, rel=2e-3)
    assert abs(answer["parameters"]["cx"] - OPTICS.cx) < 1
    assert 10 <= len(answer["used"]) <= 40
    calibration = find(tmp_path, answer["serial"], "lens", answer["mode"], datetime.now(UTC))
    assert calibration is not None
    assert str(calibration[0]) == answer["path"]
    lens, covariance = lens_from_words(calibration[1])
    assert lens.fx == answer["parameters"]["fx"]
    sigma, freedom = (
        np.array(list(answer["sigma"].values())),
        np.array(list(answer["degrees_of_freedom"].values())),
    )
    parts = [list(answer["sigma_parts"][part].values()) for part in ("statistical", "systematic")]
    assert np.allclose(np.sqrt(np.diag(covariance)), np.hypot(*parts))
    assert np.all((freedom > 1) & (freedom < len(answer["used"])))
    widened = student.interval(0.9545, freedom)[1] / 2
    assert sigma[2:] == pytest.approx(widened[2:] * np.hypot(*parts)[2:], rel=1e-3), "no systematic part here"
    assert np.all(sigma[:2] > np.hypot(*parts)[:2])
    assert answer["sigma_parts"]["systematic"]["fx"] > 0
    assert cv2.imread(str(calibration[0].with_suffix(".png"))).shape == (592, 1920, 3)
    assert find(tmp_path, answer["serial"], "lens", "another mode", datetime.now(UTC)) is None


def test_the_calibration_that_counts_is_the_last_one_before(film, tmp_path):
    from kitchensync.storage.reading.calibration_results import save

    days = [datetime(2026, 1, day, tzinfo=UTC) for day in (3, 9)]
    paths = [save(tmp_path, "C1/../x", "lens", "a b", day, {"day": day.day}) for day in days]
    assert all(tmp_path in path.parents for path in paths)
    counts = {
        day: find(tmp_path, "C1/../x", "lens", "a b", datetime(2026, 1, day, tzinfo=UTC))[1]["day"]  # type: ignore[index]
        for day in (1, 5, 20)
    }
    assert counts == {1: 3, 5: 3, 20: 9}
    again = [save(tmp_path, "C1/../x", "lens", "a b", days[0], {"day": -n}) for n in range(1, 11)]
    assert len({*paths, *again}) == 12
    for day in (1, 5):
        newest = find(tmp_path, "C1/../x", "lens", "a b", datetime(2026, 1, day, tzinfo=UTC))
        assert newest is not None
        assert newest[1]["day"] == -10, "of results for the same time the newest counts"


def test_another_board_than_the_one_filmed_is_refused_with_a_picture(film, tmp_path):
    for board in ("6x4:36mm/27mm", "5x4:36mm/27mm"):
        code, output = run("gopro", film, "--board", board, "--data", tmp_path)
        assert code == 1
        assert "--board" in output
    assert len(list((tmp_path / "calibrations").glob("*/refused-*.png"))) == 2, "each refusal keeps its image"


@pytest.mark.slow
def test_a_mirrored_and_a_blurred_film_are_refused_with_the_reason(tmp_path):
    poses = places(OPTICS, PRINT, 2, seed=2)
    for name, options, reason in (
        ("mirrored", {"mirrored": True}, "mirrored"),
        ("blurred", {"blur_px": 9.0}, "blurred"),
    ):
        (tmp_path / name).mkdir()
        film = film_board(tmp_path / name, OPTICS, PRINT, poses, **options)
        code, output = run("gopro", film, "--board", BOARD, "--data", tmp_path / name, "--json")
        assert code == 1
        answer = json.loads(output[: output.index("}") + 1])
        assert answer["status"] == "refused"
        assert reason in answer["reason"]
        assert list((tmp_path / name / "calibrations").glob("*/refused-*.png"))


def test_the_print_is_the_board_and_in_true_scale(tmp_path):
    code, output = run("board", "--out", tmp_path / "board.pdf")
    assert code == 0, output
    board = Board()
    paper = np.full((1000, 1400), 255, np.uint8)
    for x, y, w, h in black_rectangles(board):
        left, top = round(40 + x * 5), round(20 + y * 5)
        paper[top : round(20 + (y + h) * 5), left : round(40 + (x + w) * 5)] = 0
    view = Detector(board).find(paper, "print")
    assert view is not None
    assert len(view.ids) == 70
    expected = board.corners_m[:, :2] * 5000 + [39.5, 19.5]
    assert np.abs(view.pixels - expected).max() < 0.6
    content = (tmp_path / "board.pdf").read_bytes()
    assert re.search(rb"MediaBox \[0 0 841.89 595.28\]", content), "A4, landscape, in points of 1/72 inch"
    drawing = b"".join(
        zlib.decompress(part) for part in re.findall(rb"stream\n(x.+?)\nendstream", content, re.S)
    )
    squares = re.findall(rb"68\.03 -68\.03 re", drawing)
    assert len(squares) == 44, "squares of 24 mm are 68.03 points wide"


def test_impossible_boards_are_refused_in_one_line(tmp_path):
    for board, reason in (
        ("11by8", "not of the form"),
        ("11x8:24mm/30mm", "smaller than its squares"),
        ("2x8:24mm/18mm", "3 to 30 squares"),
        ("11x8:40mm/30mm", "does not fit on a4"),
        ("11x8:24mm/18mm:DICT_9", "is not one of"),
    ):
        code, output = run("board", "--board", board, "--out", tmp_path / "x.pdf")
        assert code == 1
        assert reason in output
    assert not (tmp_path / "x.pdf").exists()
