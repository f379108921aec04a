"""Boards printed in the layout of OpenCV before 4.6 are found and named like new ones."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from click.testing import CliRunner

from kitchensync.calibration.estimate.board import NEW, OLD, Board, Detector
from kitchensync.cli import main

SIZES = ((11, 8), (10, 6), (8, 11), (9, 7))
CORNER_OFF_PX = 0.35


@pytest.fixture
def printer(shared_data: Callable[[str], Path]) -> ModuleType:
    """Load the module that makes prints and videos of both layouts with known corners."""
    spec = importlib.util.spec_from_file_location("boards_of_both", shared_data("strangers/boards.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("is_old", [False, True])
@pytest.mark.parametrize(("across", "down"), SIZES)
def test_both_layouts_give_as_many_corners(printer: ModuleType, across: int, down: int, is_old: bool) -> None:
    detector = Detector(Board(across, down, printer.SQUARE_M, printer.MARKER_M, "DICT_5X5_250"))
    for picture, corners in printer.views(across, down, is_old, 3, seed=4):
        view = detector.find(picture, "a picture")
        assert view is not None
        assert len(view.ids) >= len(corners) - 4  # one marker may be missed in either layout
        assert np.linalg.norm(view.pixels - corners[view.ids], axis=1).max() < CORNER_OFF_PX
    expected = {NEW} if down % 2 else {OLD if is_old else NEW}
    assert {detector.layout} == expected


@pytest.mark.parametrize("is_old", [False, True])
def test_part_of_a_board_is_found_with_the_layout_of_an_earlier_image(
    printer: ModuleType, is_old: bool
) -> None:
    """Some parts look the same in both layouts: they are left out until an image shows which layout it is."""
    detector = Detector(Board(11, 8, printer.SQUARE_M, printer.MARKER_M, "DICT_5X5_250"))
    picture, corners = next(iter(printer.views(11, 8, is_old, 1, seed=9)))
    part = picture.copy()
    part[:, int(np.median(corners[:, 0])) :] = 110
    detector.find(part, "half a board")
    assert detector.layout in ("", OLD if is_old else NEW)
    detector.find(picture, "all of it")
    view = detector.find(part, "half a board")
    assert view is not None
    assert len(view.ids) >= 20
    assert np.linalg.norm(view.pixels - corners[view.ids], axis=1).max() < CORNER_OFF_PX


@pytest.mark.slow
@pytest.mark.parametrize("is_old", [False, True])
def test_the_command_says_which_layout_it_found(printer: ModuleType, tmp_path: Path, is_old: bool) -> None:
    film = tmp_path / "board.mp4"
    printer.film(film, 10, 6, is_old, places=12, hold=3)
    arguments = [
        "calibrate",
        "gopro",
        str(film),
        "--board",
        "10x6:24mm/18mm",
        "--data",
        str(tmp_path),
        "--json",
    ]
    done = CliRunner().invoke(main, arguments)
    answer = json.loads(done.stdout)
    assert (answer["status"], answer["board_layout"]) == ("ok", OLD if is_old else NEW)
    assert len(answer["used"]) >= 10
