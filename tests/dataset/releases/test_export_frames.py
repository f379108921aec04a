"""`kitchensync export frames` and `export features`: pictures that say which ones they are, beside the tables."""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import av
import made_data_sets
import numpy as np
import pytest
from click.testing import CliRunner
from cooked_recording import DONE_S, WRONG, copied, film_s, write_cooked
from made_videos import numbered_planes
from numbered_recording import FRAME_S, film_host_ns
from small_recordings import FRAMES, HOST0_NS
from typed_commands import typed

from kitchensync.cli import main
from kitchensync.dataset.features import film_windows
from kitchensync.dataset.features.extractor import Histograms
from kitchensync.storage.events import EventLog
from kitchensync.storage.exports.film import FilmWriter
from kitchensync.virtual_kitchen.kitchen import Kitchen

pytestmark = pytest.mark.slow

PAUSE_S = (9.0, 12.5)
RATE = 30000 / 1001
READER = '''
import numpy as np
from numbered_pictures import number_in


class Reader:
    """Says which picture is the first and which the last one that it gets, and how many there are."""

    size, height, per_second, version = 3, 360, 5, "1"

    def vector(self, pictures):
        read = [number_in(picture.mean(axis=2)) for picture in pictures]
        assert None not in read
        return np.array([read[0], read[-1], len(read)])


class Short(Reader):
    def vector(self, pictures):
        return np.zeros(2)


class Broken(Reader):
    def __init__(self):
        raise RuntimeError("no graphics card")
'''


class Watched:
    """A picture that notes when somebody looks at it."""

    def __init__(self, number: int, picture: av.VideoFrame, looked_at: list[int]) -> None:
        self.width, self.height, self.rotation = picture.width, picture.height, picture.rotation
        self.colorspace = picture.colorspace
        self._number, self._picture, self._looked_at = number, picture, looked_at

    def reformat(self, **options: Any) -> av.VideoFrame:
        self._looked_at.append(self._number)
        return self._picture.reformat(**options)


@pytest.fixture(scope="module")
def kitchen_and_data(tmp_path_factory: pytest.TempPathFactory) -> tuple[Kitchen, Path]:
    """A recording with a privacy pause."""
    root = tmp_path_factory.mktemp("own")
    kitchen = write_cooked(root)
    log = EventLog(root / "take1", "tablet")
    for kind, at_s in zip(("pause", "resume"), PAUSE_S, strict=True):
        body = {"device": "t"}
        log.append(kind, host_ns=HOST0_NS + round(at_s * 1e9), uncertainty_ns=0, body=body, op_id=kind)
    return kitchen, root


@pytest.fixture
def data(kitchen_and_data: tuple[Kitchen, Path], tmp_path: Path) -> Path:
    shutil.copytree(kitchen_and_data[1], tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package that announces extractors."""
    about = tmp_path / "packages" / "reader-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: reader\nVersion: 1.0\n")
    names = "\n".join(f"{name} = picture_reader:{name.title()}" for name in ("reader", "short", "broken"))
    (about / "entry_points.txt").write_text(f"[kitchensync.extractors]\n{names}\n")
    (about.parent / "picture_reader.py").write_text(READER)
    monkeypatch.syspath_prepend(about.parent)
    monkeypatch.setattr("sys.dont_write_bytecode", True)


run = partial(typed, "export")


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_pictures_are_those_of_the_frame_index_with_what_they_show(
    kitchen_and_data: tuple[Kitchen, Path], data: Path
) -> None:
    out = data.parent / "out"
    done = run("frames", data, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    kitchen, said, rows = kitchen_and_data[0], json.loads(done.stdout), table(out / "frames.csv")
    shown = [int(row["frame"]) for row in rows]
    true_ns = {k: film_host_ns(kitchen, k) for k in range(FRAMES)}
    begin, end = (HOST0_NS + at_s * 1e9 for at_s in PAUSE_S)
    assert not [k for k in shown if begin <= true_ns[k] <= end], "what was filmed in a pause is not listed"
    assert len(set(range(FRAMES)) - set(shown)) == said["hidden"]
    assert said["hidden"] == pytest.approx((PAUSE_S[1] - PAUSE_S[0]) * RATE, abs=6)
    assert max(abs(int(row["capture_ns"]) - true_ns[int(row["frame"])]) for row in rows) < 20e6
    assert max(abs(float(row["second"]) - int(row["frame"]) * FRAME_S) for row in rows) < 1e-4
    wrong = [int(row["frame"]) for row in rows if row["normal"] == "0"]
    step = film_s(kitchen, DONE_S[1]) / FRAME_S, film_s(kitchen, DONE_S[WRONG]) / FRAME_S
    assert (wrong[0], wrong[-1]) == (pytest.approx(step[0], abs=2), pytest.approx(step[1], abs=2))
    assert wrong == list(range(wrong[0], wrong[-1] + 1))
    assert (out / "normal_training.csv").read_text() == "recording,frame\n", "its recording has an error"


def test_a_released_data_set_has_the_same_pictures(data: Path) -> None:
    given = ("release", "captaincook4d", str(data), "--out", str(data.parent / "set"))
    assert CliRunner().invoke(main, [*given, "--media", "360p"]).exit_code == 0
    assert run("frames", data, "--out", data.parent / "own").exit_code == 0
    assert run("frames", data.parent / "set", "--out", data.parent / "again").exit_code == 0
    own = (data.parent / "own/frames.csv").read_text()
    assert own.replace("take1,", "1_1,") == (data.parent / "again/frames.csv").read_text()


def test_pictures_of_the_published_set(shared_data: Callable[[str], Path], tmp_path: Path) -> None:
    folder = shared_data("captaincook4d")
    split = folder / "data_splits/recordings_data_split_combined.json"
    done = run("frames", folder, "--every", 300, "--split", split, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    with (folder / "metadata/video_information.csv").open(newline="") as file:
        seconds = {row["recording_id"]: float(row["duration(sec)"]) for row in csv.DictReader(file)}
    bodies = {one["recording_id"]: one["step_annotations"]
              for one in json.loads((folder / "annotation_json/error_annotations.json").read_text())}  # fmt: skip
    expected = []
    for name, steps in bodies.items():
        for k in range(0, math.floor(round(seconds[name] * 2997) / 100), 300):
            at = k / 29.97
            hit = any("errors" in step and step["start_time"] <= at < step["end_time"] for step in steps)
            expected.append((name, str(k), str(int(not hit)), ""))
    rows = table(tmp_path / "frames.csv")
    assert [(r["recording"], r["frame"], r["normal"], r["capture_ns"]) for r in rows] == expected
    normal = set(json.loads((folder / "data_splits/recordings_data_split_normal.json").read_text())["train"])
    assert {row["recording"] for row in table(tmp_path / "normal_training.csv")} == normal


@pytest.mark.parametrize("window", [1, 2])
def test_rows_of_features_are_the_seconds_of_the_film(tmp_path: Path, reader: None, window: int) -> None:
    (one,) = made_data_sets.recordings(3)[:1]
    made_data_sets.write(tmp_path / "set", [one])
    place = tmp_path / "set/captain_cook_4d/gopro/resolution_360p" / f"{one.recording_id}_360p.mp4"
    place.parent.mkdir(parents=True)
    with FilmWriter(place, Fraction(1001, 30000), key_every=30) as film:
        for number in range(100):
            film.write(av.VideoFrame.from_ndarray(numbered_planes(number), format="yuv420p"), number)
    out = tmp_path / "out"
    more = ("--extractor", "reader", "--window", window)
    done = run("features", tmp_path / "set", *more, "--out", out, "--json", "--strict")
    assert done.exit_code == 0, done.output
    name = f"{one.recording_id}_360p.mp4_{window}s_{window}s.npz"
    with np.load(out / name, allow_pickle=False) as arrays:
        rows = arrays["arr_0"]
    starts = np.arange(0, 100 / RATE, window)
    assert (rows.dtype, rows.shape) == (np.float32, (len(starts), 3))
    assert json.loads(done.stdout)["files"] == {name: {"windows": len(starts), "empty": 0}}
    assert rows[:, 0].tolist() == np.ceil(starts * RATE).tolist(), "the first picture of each row"
    for start, (first, last, count) in zip(starts, rows, strict=True):
        shown = [k for k in range(100) if start <= k / RATE < start + window]
        wanted = {int(k / RATE * 5) for k in shown}
        assert (first in shown, last in shown, count) == (True, True, len(wanted))


def test_what_was_filmed_in_a_pause_is_looked_at_by_nothing(
    kitchen_and_data: tuple[Kitchen, Path], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kitchen, looked_at = kitchen_and_data[0], list[int]()
    read = film_windows.numbered_pictures

    def noted(take: object) -> Iterator[tuple[int, Any]]:
        for number, picture in read(take):  # type: ignore[arg-type]
            yield number, Watched(number, picture, looked_at)

    monkeypatch.setattr(film_windows, "numbered_pictures", noted)
    done = run("features", data, "--out", data.parent / "out", "--json")
    assert done.exit_code == 0, done.output
    begin, end = (HOST0_NS + at_s * 1e9 for at_s in PAUSE_S)
    assert len(looked_at) > 50
    assert not [k for k in looked_at if begin <= film_host_ns(kitchen, k) <= end]
    with np.load(data.parent / "out/take1_360p.mp4_1s_1s.npz", allow_pickle=False) as arrays:
        rows, empty = arrays["arr_0"], arrays["empty"]
    assert 2 <= empty.sum() <= 4
    assert not rows[empty].any()
    assert f"{empty.sum()} windows show nothing" in done.stderr


def test_features_go_on_where_they_are_not_done(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied(data, "take2")
    out, vector = data.parent / "out", Histograms.vector
    seen = []

    def cut_off(self: Histograms, pictures: np.ndarray) -> np.ndarray:
        seen.append(len(pictures))
        if len(seen) > math.ceil(FRAMES / RATE):
            raise KeyboardInterrupt
        return vector(self, pictures)

    with monkeypatch.context() as patched:
        patched.setattr(Histograms, "vector", cut_off)
        assert run("features", data, "--out", out).exit_code == 1
    assert os.listdir(out) == ["take1_360p.mp4_1s_1s.npz"]
    first = (out / "take1_360p.mp4_1s_1s.npz").stat().st_mtime_ns
    assert run("features", data, "--out", out).exit_code == 0
    assert (out / "take1_360p.mp4_1s_1s.npz").stat().st_mtime_ns == first
    with np.load(out / "take2_360p.mp4_1s_1s.npz", allow_pickle=False) as arrays:
        rows = arrays["arr_0"][~arrays["empty"]]
    assert rows.shape[1] == Histograms.size
    groups = (rows[:, :48].sum(axis=1), rows[:, 48:84].sum(axis=1), rows[:, 84:].sum(axis=1))
    assert all(((np.abs(total - 1) < 1e-5) | (total == 0)).all() for total in groups)
    (out / "take1_360p.mp4_1s_1s.npz").write_bytes(b"mine")
    refused = run("features", data, "--out", out)
    assert (refused.exit_code, "--force" in refused.stderr) == (1, True)
    assert (out / "take1_360p.mp4_1s_1s.npz").read_bytes() == b"mine"


def test_vectors_tell_colours_and_motion_apart() -> None:
    red, blue = np.zeros((4, 96, 170, 3), np.uint8), np.zeros((4, 96, 170, 3), np.uint8)
    red[..., 0], blue[..., 2] = 250, 250
    moving = red.copy()
    moving[1::2] = blue[1::2]
    still, other, moved = (Histograms().vector(pictures) for pictures in (red, blue, moving))
    assert np.abs(still[:48] - other[:48]).sum() > 0.5
    assert still[84] == 1, "no pixel changes"
    assert Histograms().vector(red[:1])[84:].sum() == 0, "one picture does not move"
    assert np.array_equal(still, Histograms().vector(red))
    assert moved.shape == (Histograms.size,)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none", "no extractor 'none' is installed; there are: broken, histograms, reader, short"),
        ("short", "returned (2,), not 3 finite numbers"),
        ("broken", "RuntimeError: no graphics card"),
    ],
)
def test_an_extractor_that_is_none_is_refused(data: Path, reader: None, name: str, words: str) -> None:
    done = run("features", data, "--extractor", name, "--out", data.parent / "out")
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
    assert words in done.stderr
    assert not [path for path in (data.parent / "out").rglob("*") if path.is_file()]


def test_films_that_are_not_here_are_named(tmp_path: Path) -> None:
    made = made_data_sets.recordings(3)[:2]
    made_data_sets.write(tmp_path / "set", made)
    done = run("features", tmp_path / "set", "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert f"2 videos are missing: {made[0].recording_id}, {made[1].recording_id}" in done.stderr
    assert run("features", tmp_path / "set", "--out", tmp_path / "out", "--strict").exit_code == 1
