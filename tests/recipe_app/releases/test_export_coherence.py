"""`kitchensync export coherence`: counts and rows of another program, and each rule by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import cv2
import made_data_sets
import numpy as np
import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from recipe_app.graphs.formats.annotations import AnnotatedRecording, Entry, TaggedError
from recipe_app.releases.tables.coherence_examples import examples
from storage.exports.film import FilmWriter


def run(*words: object) -> Any:
    return CliRunner().invoke(main, ["export", "coherence", *map(str, words)])


def test_counts_and_rows_are_those_of_another_program(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shared_data("captaincook4d")
    expected = json.loads((shared_data("coherence-measures") / "expected_examples.json").read_text())
    split = folder / "data_splits/recordings_data_split_combined.json"
    done = run(folder, "--split", split, "--out", tmp_path / "c.json", "--json")
    assert done.exit_code == 0, done.output
    said, rows = json.loads(done.stdout), json.loads((tmp_path / "c.json").read_text())
    known = expected.pop("rows")
    assert {key: said[key] for key in expected} == expected
    assert rows[:5] + rows[-5:] == known
    assert run(folder, "--out", tmp_path / "d.json", "--json").exit_code == 0
    assert (tmp_path / "d.json").read_bytes() == (tmp_path / "c.json").read_bytes()


def errors(*tags: str) -> tuple[TaggedError, ...]:
    return tuple(TaggedError(tag, "so") for tag in tags)


def of(*entries: Entry) -> list[tuple[str, dict[str, Any] | None]]:
    return list(examples(AnnotatedRecording("1_1", 1, "Tea", 1, 1, entries)))


def test_only_an_error_that_a_picture_shows_is_a_mistake() -> None:
    found = of(
        Entry(
            5, "Pour - Pour hot-cold water ", 10.0, 12.0, errors("Order Error", "Technique Error", "Other")
        ),
        Entry(6, "Stir", 20, 40, errors("Timing Error", "Measurement Error")),
        Entry(7, "Do-Do", 50, 50.05),
        Entry(8, "Do-Do", -1.0, -1.0, errors("Missing Step")),
        Entry(9, "Do-Do", 60, 160, errors("Missing Step")),
    )
    assert [why for why, _ in found] == [
        "", "only errors that no frame shows", "shorter than 0.1 s or not done", "shorter than 0.1 s or not done", "",
    ]  # fmt: skip
    first, last = found[0][1], found[4][1]
    assert first is not None
    assert last is not None
    assert first["procedure_description"] == "Pour hot-cold water"
    assert (first["mistake"], first["mistake_type"]) == (True, "Technique Error")
    assert (first["from"], first["to"]) == (pytest.approx(10.1), pytest.approx(11.4)), "5 % and 30 %"
    assert (last["from"], last["to"]) == (60.5, 157), "at most 0.5 s and 3 s"
    assert (last["example_id"], last["mistake_type"]) == ("1_1_4", "Missing Step")
    assert last["samples"] == 967, "96.5 s in tenths, the end too, and one more by the loader's rounding"
    assert last["single_frame_range"] == [773, 871]


def test_a_split_of_steps_is_refused(tmp_path: Path) -> None:
    made_data_sets.write(tmp_path / "set", made_data_sets.recordings(3)[:1])
    (tmp_path / "split.json").write_text('{"train": {"1_1": [0]}, "val": {}, "test": {}}')
    done = run(tmp_path / "set", "--split", tmp_path / "split.json", "--out", tmp_path / "c.json")
    assert (done.exit_code, (tmp_path / "c.json").exists()) == (2, False)
    assert "divides steps" in done.stderr


def test_of_each_half_second_the_sharpest_picture_is_written(tmp_path: Path) -> None:
    one = AnnotatedRecording(
        "1_1", 1, "Tea", 1, 1, (Entry(5, "Pour-Pour", 0.5, 10.5), Entry(6, "Do-Do", 4, 12))
    )
    made_data_sets.write(tmp_path / "set", [one])
    film = tmp_path / "set/captain_cook_4d/gopro/resolution_360p/1_1_360p.mp4"
    film.parent.mkdir(parents=True)
    sharp = {k for k in range(360) if k % 7 == 0}
    noise = np.random.default_rng(0).integers(0, 255, (90, 160, 1)).astype(np.uint8)
    with FilmWriter(film, Fraction(1, 30), key_every=30, crf=5) as writer:
        for number in range(360):
            picture = noise if number in sharp else np.full_like(noise, 128)
            writer.write(np.repeat(picture, 3, axis=2), number)
    done = run(tmp_path / "set", "--frames", "--out", tmp_path / "c.json", "--json")
    assert done.exit_code == 0, done.output
    rows = json.loads((tmp_path / "c.json").read_text())
    assert json.loads(done.stdout)["frames"] == sum(len(row["frames"]) for row in rows)
    for row in rows:
        first, behind = row["single_frame_range"]
        assert len(row["frames"]) == len(row["frame_times"]) == -(-(behind - first) // 5) >= 2
        for number, (name, at_s) in enumerate(zip(row["frames"], row["frame_times"], strict=True)):
            samples = range(first + 5 * number, min(first + 5 * number + 5, behind))
            looked_at = {int((row["from"] + 0.1 * k) * 30) for k in samples}
            assert round(at_s * 30) in (looked_at & sharp or looked_at)
            picture = cv2.imread(str(tmp_path / name))
            assert picture.shape == (90, 160, 3)
            assert (picture.std() > 30) == bool(looked_at & sharp)
    assert run(tmp_path / "set", "--frames", "--out", tmp_path / "c.json", "--force").exit_code == 0
    film.unlink()
    again = run(tmp_path / "set", "--frames", "--out", tmp_path / "d.json", "--strict")
    assert (again.exit_code, "1 films are not here: 1_1" in again.stderr) == (1, True)
