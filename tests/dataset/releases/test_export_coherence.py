"""`kitchensync export coherence`: counts and rows of another program, and each rule by itself."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import av
import cv2
import made_data_sets
import numpy as np
import pytest
from made_videos import numbered_planes, write_video
from numbered_pictures import number_in
from typed_commands import typed

from kitchensync.dataset.examples.coherence_frames import IS_ALIKE, IS_DARK, BoundaryFrames
from kitchensync.dataset.source.source_films import OpenFilm
from kitchensync.dataset.tables.boundary_examples import actions_of, boundary_examples
from kitchensync.dataset.tables.coherence_examples import examples
from kitchensync.sensors.gopro.files.clip import Clip
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.storage.exports.film import FilmWriter
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording, Entry, TaggedError
from kitchensync.virtual_kitchen.world.frame_counter import draw_i420

run = partial(typed, "export", "coherence")


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
    assert (again.exit_code, "1 videos are missing: 1_1" in again.stderr) == (1, True)


EGG, SALT, WHISK = "Crack-Crack one egg", "Add-Add salt", "Whisk-Whisk the eggs"
BUTTER, CRACKED = "Add-Add butter to the egg", "Crack-Crack 2 eggs"
KITCHENS = [
    AnnotatedRecording("1_1", 1, "Tea", 1, 1, (Entry(1, EGG, 2, 6), Entry(2, SALT, 8, 9))),
    AnnotatedRecording(
        "1_2", 1, "Tea", 1, 1,
        (
            Entry(4, CRACKED, 1, 2.5, errors("Technique Error")),
            Entry(3, WHISK, 3, 7),
            Entry(5, "Add-Add butter", 8, 12),
            Entry(6, "Add-Add some butter", 14, 18),
        ),
    ),
]  # fmt: skip


def of_boundaries(folder: Path, *words: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    done = run(folder / "set", "--boundaries", "--out", folder / "b.json", "--force", "--json", *words)
    assert done.exit_code == 0, done.output
    rows = json.loads((folder / "b.json").read_text())
    return json.loads(done.stdout), {row["example_id"]: row for row in rows}


def write_halves(film: Path, seconds: int, changes_s: float, light: int) -> None:
    """Film a left half that is light until a second, a right half afterwards, ten pictures a second."""
    film.parent.mkdir(parents=True, exist_ok=True)
    with FilmWriter(film, Fraction(1, 10), key_every=10, crf=5) as writer:
        for number in range(seconds * 10):
            picture = np.zeros((90, 160, 3), np.uint8)
            half = slice(0, 80) if number < changes_s * 10 else slice(80, 160)
            picture[:, half] = light
            writer.write(picture, number)


def test_pictures_at_boundaries_show_steps_done_and_not_done(tmp_path: Path) -> None:
    made_data_sets.write(tmp_path / "set", KITCHENS)
    said, rows = of_boundaries(tmp_path)
    first = {name.partition("/")[2]: row for name, row in rows.items() if name.startswith("1_1_0/")}
    assert {name: (row["recording"], row["time"], row["mistake_type"]) for name, row in first.items()} == {
        "pos": ("1_1", 6, None),
        "hardneg": ("1_1", 2, "Action Incomplete"),
        "easyneg_MisalignSRL_V_1_2_5.0": ("1_2", 5, "MisalignSRL_V"),
        **{
            name: (row["recording"], row["time"], "MisalignSRL_V_ARG1")
            for name, row in first.items()
            if "_V_A" in name
        },
    }
    assert {(row["recording"], row["time"]) for name, row in first.items() if "_V_A" in name} <= {
        ("1_2", 10),
        ("1_2", 16),
    }
    salt = [row["mistake_type"] for name, row in rows.items() if name.startswith("1_1_1/")]
    assert salt == [None, "MisalignSRL_ARG1", "MisalignSRL_V_ARG1"], (
        "of 1 s: not shown undone; nobody else did salt"
    )
    assert not any(name.startswith("1_2_0/") for name in rows), "it has an error that shows"
    assert said["left_out"] == {"with an error that a frame shows": 1}
    assert said["types"]["Action Incomplete"] == 4
    assert ["at a moment inside" in one or "1 steps repeat" in one for one in said["warnings"]] == [
        True,
        True,
    ]
    assert of_boundaries(tmp_path)[1] == rows
    (tmp_path / "split.json").write_text(json.dumps({"train": ["1_1"], "val": [], "test": ["1_2"]}))
    alone = of_boundaries(tmp_path, "--split", str(tmp_path / "split.json"))[0]
    assert alone["types"] == {"Action Incomplete": 4}, "no recording of another part is shown"
    assert alone["by_split"] == {"test:mistake": 3, "test:success": 3, "train:mistake": 1, "train:success": 2}


def test_words_of_one_meaning_are_one_where_a_lab_says_so(tmp_path: Path) -> None:
    made_data_sets.write(tmp_path / "set", KITCHENS)
    table = tmp_path / "actions.csv"
    words = ("--actions", str(table))
    _, read = of_boundaries(tmp_path, *words)
    assert read == of_boundaries(tmp_path)[1]
    lines = table.read_text().splitlines()
    assert (lines[0], f"{EGG},Crack,eggs" in lines, f"{SALT},Add,salts" in lines) == (
        "text,verb,noun",
        True,
        True,
    )
    assert read["1_1_0/pos"]["verb_noun_pair"] == ["Crack", "eggs"]
    assert of_boundaries(tmp_path, *words)[1] == read
    whisked = [line.replace("Whisk,eggs", "Crack,eggs") for line in lines if SALT not in line]
    table.write_text("\ufeff" + "\r\n".join([*whisked, '"another, of ""no"" recording",Go,']) + "\r\n")
    said, rows = of_boundaries(tmp_path, *words)
    verbs = [
        name for name in read if name.startswith("1_1_0/") and read[name]["mistake_type"] == "MisalignSRL_V"
    ]
    assert verbs
    assert not {*verbs} & {*rows}, "nobody did anything else to eggs now"
    assert {name for name in rows if name.startswith("1_1_1/")} == {
        name for name in read if name.startswith("1_1_1/")
    }
    assert [SALT in one or "another" in one for one in said["warnings"] if "actions.csv: 1" in one] == [
        True,
        True,
    ]
    for damage in (
        "",
        "text;verb;noun\n",
        "text,verb,noun\na,b\n",
        "text,verb,noun\na,,c\n",
        "text,verb,noun\na,b,\na,c,\n",
    ):
        table.write_text(damage)
        refused = run(tmp_path / "set", "--boundaries", *words, "--out", tmp_path / "refused.json")
        assert (refused.exit_code, "actions.csv" in refused.stderr) == (1, True), refused.output
    alone = run(tmp_path / "set", *words, "--out", tmp_path / "refused.json")
    assert (alone.exit_code, "--boundaries" in alone.stderr) == (2, True)


def test_corrected_boundaries_are_at_ends_and_never_where_it_was_done_before(tmp_path: Path) -> None:
    made_data_sets.write(tmp_path / "set", KITCHENS)
    said, rows = of_boundaries(tmp_path, "--corrected")
    assert said["warnings"] == []
    assert [row["mistake_type"] for name, row in rows.items() if name.startswith("1_1_0/")] == [
        None, "Action Incomplete",
    ], "an egg was cracked in the other film before"  # fmt: skip
    others = {
        (row["recording"], row["time"]) for row in rows.values() if row["example_id"].startswith("1_1_1/")
    }
    assert others <= {("1_1", 9), ("1_2", 7), ("1_2", 12), ("1_2", 18)}
    assert said["left_out"]["the same was done just before"] == 1
    assert not any(name.startswith("1_2_3/") for name in rows)
    refused = run(tmp_path / "set", "--corrected", "--out", tmp_path / "c.json")
    assert (refused.exit_code, "--boundaries" in refused.stderr) == (2, True)


def test_dark_and_unchanged_steps_have_no_boundary_pictures(tmp_path: Path) -> None:
    made_data_sets.write(tmp_path / "set", KITCHENS)
    films = [tmp_path / "set" / made_data_sets.FILM.format(name) for name in ("1_1", "1_2")]
    write_halves(films[0], 20, 4, 200)
    write_halves(films[1], 20, 6, 40)
    said, rows = of_boundaries(tmp_path, "--frames")
    assert {name.partition("/")[0] for name in rows} == {"1_1_0", "1_2_1"}, (
        "the others look alike at both ends"
    )
    assert said["frames"] == len(rows)
    for row in rows.values():
        picture = cv2.imread(str(tmp_path / row["frames"][0]))
        is_left, film_light = (row["time"] < 4, 200) if row["recording"] == "1_1" else (row["time"] < 6, 40)
        assert picture.shape == (360, 640, 3)
        assert abs(int(picture[:, slice(20, 300) if is_left else slice(340, 620)].mean()) - film_light) < 12
        assert row["frame_times"] == [row["time"]]
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.jpg")}
    assert written == {row["frames"][0] for row in rows.values()}, "none that nothing shows"
    said, rows = of_boundaries(tmp_path, "--frames", "--corrected")
    assert {name.partition("/")[0] for name in rows} == {"1_1_0"}, "a mean of 20 of 255 is dark"
    films[1].unlink()
    said, rows = of_boundaries(tmp_path, "--frames")
    assert any("1 videos are missing: 1_2" in one for one in said["warnings"])
    assert {len(row["frames"]) for row in rows.values() if row["recording"] == "1_2"} == {0}


@pytest.mark.parametrize(
    ("before", "after", "published", "corrected"),
    [
        ((200, 0), (200, 40), IS_ALIKE, IS_ALIKE),  # cosine 0.981
        ((200, 0), (200, 80), "", ""),  # cosine 0.928
        ((0, 0), (0, 0), IS_DARK, IS_DARK),
        ((6, 0), (0, 6), "", IS_DARK),  # nearly black, mean 3
        ((80, 0), (0, 80), "", IS_DARK),  # mean 40: 0.16 of full brightness
        ((130, 0), (0, 130), "", ""),  # mean 65: 0.25
    ],
)
def test_thresholds_of_boundary_pictures(
    tmp_path: Path, before: tuple[int, int], after: tuple[int, int], published: str, corrected: str
) -> None:
    with FilmWriter(tmp_path / "film.mp4", Fraction(1, 10), key_every=10, crf=5) as writer:
        for number in range(70):
            halves = before if number < 40 else after
            writer.write(
                np.repeat(np.array(halves, np.uint8), 80)[None, :, None].repeat(90, 0).repeat(3, 2), number
            )
    for is_corrected, why in ((False, published), (True, corrected)):
        rows, *_ = boundary_examples(KITCHENS[:1], actions_of(KITCHENS), {}, 1, corrected=is_corrected)
        look = BoundaryFrames(rows, corrected=is_corrected)
        list(look.extract(OpenFilm(Clip([open_media(tmp_path / "film.mp4")]), None), "1_1"))
        (egg,) = (row for row in rows if row["example_id"] == "1_1_0/pos")
        assert look.why_left_out(egg) == why, is_corrected


def write_numbered(film: Path, fps: Fraction, light: list[bool]) -> None:
    """Film numbers, the lower part of the picture light on one side or the other."""

    def shown() -> Iterator[np.ndarray]:
        for number, is_left in enumerate(light):
            planes = numbered_planes(number)
            planes[120:360, slice(0, 320) if is_left else slice(320, 640)] = 0
            draw_i420(planes, number, 360)
            yield planes

    write_video(film, shown(), fps, bf="2")


def number_on(jpeg: Path) -> int | None:
    return number_in(cv2.imread(str(jpeg), cv2.IMREAD_GRAYSCALE))


RATES = [Fraction(30000, 1001), Fraction(60000, 1001), Fraction(24000, 1001), Fraction(25), Fraction(30)]


@pytest.fixture(scope="module")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[tuple[str, str], list[int]]]:
    """Twenty films at the rates of cameras; of two steps each their first picture and the one behind the last."""
    root, chance = tmp_path_factory.mktemp("numbered"), random.Random(6)
    kitchens, bounds = [], {}
    for number in range(1, 21):
        fps, name = RATES[number % 5], f"1_{number}"
        cuts = sorted(chance.sample(range(1, 7), 4))
        at = [round(one * 1.5 * fps) + chance.randrange(20) for one in cuts]
        bounds[name, "0"], bounds[name, "1"] = at[:2], at[2:]
        spans = [[float(round(one / fps, 3)) for one in two] for two in (at[:2], at[2:])]
        entries = Entry(1, EGG, *spans[0]), Entry(2, SALT, *spans[1])
        kitchens.append(AnnotatedRecording(name, 1, "Tea", 1, 1, entries))
        light = [sum(k >= behind for behind in (at[1], at[3])) == 1 for k in range(at[3] + 20)]
        write_numbered(root / "set" / made_data_sets.FILM.format(name), fps, light)
    made_data_sets.write(root / "set", kitchens)
    return root, bounds


def rate_of(recording: str) -> Fraction:
    return RATES[int(recording.partition("_")[2]) % 5]


@pytest.mark.slow
def test_the_number_in_each_boundary_picture_is_the_rule_s(numbered: Any) -> None:
    root, bounds = numbered
    said, rows = of_boundaries(root, "--frames")
    for example_id, row in rows.items():
        example, _, kind = example_id.partition("/")
        first, behind = bounds[tuple(example.rsplit("_", 1))]
        fps = rate_of(row["recording"])
        middle = {int(row["time"] * fps), int((row["time"] + 0.001) * fps)}
        wanted = {"pos": {behind}, "hardneg": {first}}.get(kind, middle)
        assert number_on(root / row["frames"][0]) in wanted, example_id
    kinds = Counter(name.partition("/")[2].partition("_")[0] for name in rows)
    assert (kinds["pos"], said["frames"]) == (40, len(rows))
    assert min(kinds["hardneg"], kinds["easyneg"]) > 10


@pytest.mark.slow
def test_corrected_the_sharpest_of_five_is_shown(numbered: Any) -> None:
    root, bounds = numbered
    _, rows = of_boundaries(root, "--frames", "--corrected")
    sharpness = {}
    for name in {row["recording"] for row in rows.values()}:
        with av.open(str(root / "set" / made_data_sets.FILM.format(name))) as film:
            for number, picture in enumerate(film.decode(video=0)):
                grey = cv2.cvtColor(picture.to_ndarray(format="bgr24"), cv2.COLOR_BGR2GRAY)
                sharpness[name, number] = cv2.Laplacian(grey, cv2.CV_64F).var()
    shown = set()
    for example_id, row in rows.items():
        example, _, kind = example_id.partition("/")
        name, fps = row["recording"], rate_of(row["recording"])
        ends = {float(round(two[1] / fps, 3)): two[1] for (one, _), two in bounds.items() if one == name}
        at = bounds[tuple(example.rsplit("_", 1))][0] if kind == "hardneg" else ends[row["time"]]
        five = {at + math.floor(shift * fps) for shift in (-0.05, -0.025, 0, 0.025, 0.05)}
        number = number_on(root / row["frames"][0])
        assert number == max(five, key=lambda one: sharpness[name, one]), example_id
        assert row["frame_times"] == [pytest.approx(number / fps, abs=1e-4)]
        shown.add(number - at)
    assert len(shown) > 2


@pytest.mark.slow
def test_a_sample_has_as_many_successes_as_mistakes_of_each_part_and_every_kind(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shared_data("captaincook4d")
    split = folder / "data_splits/recordings_data_split_combined.json"
    parts = {one: part for part, names in json.loads(split.read_text()).items() for one in names}
    drawn = []
    for seed in ("1", "1", "2"):
        words = ("--boundaries", "--split", split, "--sample", "100", "--seed", seed, "--force")
        done = run(folder, *words, "--out", tmp_path / "b.json", "--json")
        assert done.exit_code == 0, done.output
        drawn.append(json.loads((tmp_path / "b.json").read_text()))
    assert drawn[0] == drawn[1]
    assert {one["example_id"] for one in drawn[0]} != {one["example_id"] for one in drawn[2]}
    found = Counter(
        (parts[one["example_id"].rpartition("/")[0].rpartition("_")[0]], one["mistake_type"])
        for one in drawn[0]
    )
    for part in ("train", "val", "test"):
        mistakes = {kind: count for (of, kind), count in found.items() if of == part and kind}
        assert found[part, None] == sum(mistakes.values()) == 100
        assert set(mistakes.values()) == {25}
    run(folder, "--boundaries", "--sample", "9999", "--out", tmp_path / "all.json")
    assert Counter(one["mistake"] for one in json.loads((tmp_path / "all.json").read_text())) == {
        True: 2273,
        False: 2273,
    }
    assert run(folder, "--sample", "3", "--out", tmp_path / "c.json").exit_code == 2


def test_what_is_hidden_in_a_published_film_is_no_picture_of_a_step(tmp_path: Path) -> None:
    entries = (Entry(1, "Fill-Fill a pot", 0.0, 4.0), Entry(2, "Boil-Boil water", 5.0, 9.0))
    made_data_sets.write(tmp_path / "set", [AnnotatedRecording("1_1", 1, "Tea", 1, 1, entries)])
    film = tmp_path / "set" / made_data_sets.FILM.format("1_1")
    film.parent.mkdir(parents=True)
    made_data_sets.small_film(film, seconds=10)
    hidden = np.arange(100) >= 45
    np.savez(film.with_name("1_1_360p_frames.npz"), capture_ns=np.arange(100), hidden=hidden, fps=[10, 1])
    done = run(tmp_path / "set", "--frames", "--out", tmp_path / "c.json", "--json")
    assert done.exit_code == 0, done.output
    shown, unseen = json.loads((tmp_path / "c.json").read_text())
    assert (len(shown["frames"]), unseen["frames"]) == (1, [])


def test_what_was_hidden_in_a_pause_is_no_picture_at_a_boundary(tmp_path: Path) -> None:
    write_halves(tmp_path / "film.mp4", 20, 4, 200)
    rows, *_ = boundary_examples(KITCHENS[:1], actions_of(KITCHENS), {}, 1)
    hidden = np.zeros(200, bool)
    hidden[60:70] = True  # the end of the first step
    look = BoundaryFrames(rows, corrected=False)
    seen = [
        name for name, _ in look.extract(OpenFilm(Clip([open_media(tmp_path / "film.mp4")]), hidden), "1_1")
    ]
    assert "1_1/000060.jpg" not in seen
    assert {"1_1/000020.jpg", "1_1/000080.jpg"} <= set(seen)
    whys = {row["example_id"]: look.why_left_out(row) for row in rows}
    assert whys["1_1_0/pos"] == whys["1_1_0/hardneg"] == "examples of which a picture is hidden"
