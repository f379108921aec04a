"""Films that were cut elsewhere: the certificate has the map of the whole film, or names the clue against it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from filmed_motion import film_of_motion, recording
from strange_films import film_maker

from kitchensync.storage.reading.alignments import film_clocks
from kitchensync.storage.recording import open_recording
from kitchensync.storage.timeline.alignment import Alignment
from kitchensync.sync.synchronize import synchronize

pytestmark = pytest.mark.slow

SEED, FRAMES = 11, 420


class Cut:
    """A recording with its whole film aligned, and the map that every cut of it has to have."""

    def __init__(self, maker: ModuleType, folder: Path) -> None:
        self.maker, self.folder = maker, folder
        self.path = film_of_motion(folder, SEED, 0.0, FRAMES)
        self.film = maker.tables.read(self.path)
        self.bare = recording(folder, "take1", SEED, 0.0, SEED)
        (self.bare / "gopro").mkdir()
        (whole,) = self.aligned("whole", [(self.film, {})])
        assert whole["status"] == "aligned"
        times, ticks = np.array(whole["samples"]).T
        self.line = np.polynomial.Polynomial.fit(times, ticks, 1)

    def aligned(self, name: str, films: list[tuple[Any, dict[str, Any]]]) -> list[dict[str, Any]]:
        target = shutil.copytree(self.bare, self.folder / name / "take1")
        for number, (one, _) in enumerate(films, 1):
            self.maker.tables.write(one, target / "gopro" / f"GX0{number}0001.MP4")
        return list(synchronize(target)["pairs"])

    def worst_ms(self, pair: dict[str, Any], truth: dict[str, Any]) -> float:
        times, ticks = np.array(pair["samples"]).T
        return float(np.abs(ticks - self.line(times + truth["media_zero_s"])).max()) / 1e4


@pytest.fixture(scope="module")
def cut(shared_data: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Cut:
    return Cut(film_maker(shared_data), tmp_path_factory.mktemp("cut"))


@pytest.mark.parametrize("shift", [-1, 1])
def test_the_pictures_settle_where_an_untold_cut_lies(cut: Cut, shift: int) -> None:
    first = cut.maker.keys(cut.film)[4]
    payload = cut.maker.payload_at(cut.film, first) + shift
    made = cut.maker.cut(cut.film, first, payload)
    (pair,) = cut.aligned(f"untold{shift}", [made])
    assert pair["status"] == "aligned"
    assert any("settled by its pictures" in warning for warning in pair["warnings"])
    agrees = {clue["name"]: clue["agrees"] for clue in pair["evidence"]["film"]}
    assert (agrees["beginning"], agrees["pictures"]) == (False, True)
    assert [clue.agrees for clue in Alignment.from_object(pair).clues] == list(agrees.values())
    assert cut.worst_ms(pair, made[1]) < 2 * max(pair["sigma"]["bound95_ms"])


@pytest.mark.parametrize("kind", ["settled", "neighbour"])
def test_who_reads_the_telemetry_finds_it_on_the_pictures(cut: Cut, kind: str) -> None:
    """The rates of the whole film and of a cut one, at the same ticks, are the same, whoever reads them."""
    first = cut.maker.keys(cut.film)[4]
    payload = cut.maker.payload_at(cut.film, first) + 1
    made = (
        [cut.maker.cut(cut.film, first, payload)]
        if kind == "settled"
        else cut.maker.chapters(cut.film, [first], [payload])
    )
    cut.aligned(f"read {kind}", made)
    with open_recording(cut.folder / "whole" / "take1") as whole:
        (clock,) = film_clocks(whole.path, whole.readable)[0]
        true = clock.gyroscope()
        true_ticks = clock.ticks_of(true.t_s)
    with open_recording(cut.folder / f"read {kind}" / "take1") as recording:
        for clock in film_clocks(recording.path, recording.readable)[0]:
            track = clock.gyroscope()
            ticks = clock.ticks_of(track.t_s)
            inside = (ticks > true_ticks[0]) & (ticks < true_ticks[-1])
            expected = np.interp(ticks[inside], true_ticks, true.xyz[:, 2])
            assert np.abs(track.xyz[inside, 2] - expected).max() < 0.02
        stream = recording.camera("gopro/gyroscope")
        own = stream.imu()
        ticks = film_clocks(recording.path, recording.readable)[0][0].ticks_of(own.t_s)
        assert np.abs(own.xyz[:, 2] - np.interp(ticks, true_ticks, true.xyz[:, 2])).max() < 0.02


def test_a_told_cut_needs_no_picture(cut: Cut) -> None:
    first = cut.maker.keys(cut.film)[4]
    made = cut.maker.cut(cut.film, first, cut.maker.payload_at(cut.film, first) - 1, hide=0, told=True)
    (pair,) = cut.aligned("told", [made])
    assert pair["status"] == "aligned"
    assert not any("settled" in warning for warning in pair["warnings"])
    assert cut.worst_ms(pair, made[1]) < 2 * max(pair["sigma"]["bound95_ms"])


def test_pictures_that_show_nothing_leave_a_doubt(cut: Cut, tmp_path: Path) -> None:
    dressed = cut.maker.dressed(cut.film, tmp_path, width=320, height=180)
    first = cut.maker.keys(dressed)[8]
    made = cut.maker.cut(dressed, first, cut.maker.payload_at(dressed, first) + 1)
    (pair,) = cut.aligned("doubt", [made])
    assert pair["status"] == "check"
    assert "its position on the frames is unknown" in " ".join(pair["reasons"])


def test_no_shift_of_the_whole_settles_an_edit_list_of_several_parts(cut: Cut) -> None:
    film, _ = cut.maker.cut(cut.film, 0, 0)
    film["vide"].edits = [(2000, 0), (None, 270_000)]
    (pair,) = cut.aligned("edits", [(film, {})])
    assert pair["status"] == "check"
    assert "an edit list of several parts is not supported" in " ".join(pair["reasons"])


@pytest.mark.parametrize("payloads", [0, 1, -1])
def test_a_payload_in_the_neighbour_moves_no_chapter(cut: Cut, payloads: int) -> None:
    at = cut.maker.keys(cut.film)[len(cut.maker.keys(cut.film)) // 2]
    made = cut.maker.chapters(cut.film, [at], [cut.maker.payload_at(cut.film, at) + payloads])
    pairs = cut.aligned(f"chapters{payloads}", made)
    for pair, (_, truth) in zip(pairs, made, strict=True):
        assert pair["status"] == "aligned"
        assert cut.worst_ms(pair, truth) < 2 * max(pair["sigma"]["bound95_ms"])


@pytest.mark.parametrize("keep", [False, True])
def test_a_gyroscope_that_stands_still_is_left_out_and_named(cut: Cut, keep: bool) -> None:
    last = len(cut.film["gpmd"].samples)
    (pair,) = cut.aligned(f"still{keep}", [(cut.maker.still_gyro(cut.film, last - 4, last, keep), {})])
    assert pair["status"] != "not_aligned"
    assert any("gyroscope repeats one value" in warning for warning in pair["warnings"])
    assert cut.worst_ms(pair, {"media_zero_s": 0.0}) < 2 * max(pair["sigma"]["bound95_ms"])


def test_a_gyroscope_that_never_moves_is_the_reason(cut: Cut) -> None:
    still = cut.maker.still_gyro(cut.film, 0, len(cut.film["gpmd"].samples))
    (pair,) = cut.aligned("dead", [(still, {})])
    assert pair["status"] == "not_aligned"
    assert any("the gyroscope repeats one value from 0:00 to" in reason for reason in pair["reasons"])
