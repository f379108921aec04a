"""`kitchensync annotate read`: exports with answers by another program, cases made here, bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labelled import CONFIG, annotation, region, task
from typed_commands import typed

from kitchensync.dataset.annotation.forms.frame_times import region_of, span_s

RATES = [Fraction(25), Fraction(30), Fraction(30000, 1001), Fraction(60000, 1001)]

run = partial(typed, "annotate", "read")


def read(tmp_path: Path, tasks: Any, *words: object, config: str = CONFIG) -> Any:
    """Run the command over tasks; return its object."""
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    (tmp_path / "config.xml").write_text(config)
    ran = run(tmp_path / "tasks.json", "--config", tmp_path / "config.xml", "--json", *words)
    assert ran.exit_code == 0, ran.stderr
    return json.loads(ran.stdout)


def holds(ours: Any, theirs: Any, place: str = "") -> None:
    """Find every leaf of theirs in ours; numbers to 1e-8."""
    if isinstance(theirs, dict):
        for key in theirs:
            assert key in ours, f"{place}.{key}"
            holds(ours[key], theirs[key], f"{place}.{key}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), place
        for one, other in zip(ours, theirs, strict=True):
            holds(one, other, place)
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, abs=1e-8), place
    else:
        assert ours == theirs, place


def test_the_shared_exports_read_as_another_program_read_them(
    shared_data: Callable[[str], Path],
) -> None:
    expected = json.loads(shared_data("labelling/expected.json").read_text())
    spoken = {name: {"audio": one.pop("audio")} for name, one in expected["recordings"].items()}
    config = shared_data("labelling/config.xml")
    ran = run(shared_data("labelling/tasks.json"), "--config", config, "--fps", "30000/1001", "--json")
    assert ran.exit_code == 0
    found = json.loads(ran.stdout)
    assert found["schema"] == "annotate-read/1"
    holds(found, expected)
    for name, one in expected["recordings"].items():
        assert found["recordings"][name]["annotators"].keys() == one["annotators"].keys()
        for who, spans in one["annotators"].items():
            assert found["recordings"][name]["annotators"][who].keys() == spans.keys()
    holds(json.loads(run(shared_data("labelling/audio.json"), "--json").stdout)["recordings"], spoken)
    assert run(shared_data("labelling/tasks.json"), "--config", config, "--strict").exit_code == 1


@pytest.mark.parametrize(("fps", "first_s", "end_s"), [("25", 4.0, 8.0), ("30", 10 / 3, 20 / 3)])
def test_other_rates_give_other_seconds(tmp_path: Path, fps: str, first_s: float, end_s: float) -> None:
    tasks = [task(annotation(7, 1, region(101, 200, "S01 · stir")), fps=float(fps))]
    for words in ((), ("--fps", fps)):
        found = read(tmp_path, tasks, *words)
        assert found["fps"] == fps
        spans = found["recordings"]["take"]["annotators"]["1"]["S01 · stir"]
        assert spans == [[pytest.approx(first_s, abs=1e-8), pytest.approx(end_s, abs=1e-8)]]


@given(st.sampled_from(RATES), st.integers(1, 200_000), st.integers(0, 50_000))
def test_a_time_made_of_a_region_gives_the_region_again(fps: Fraction, start: int, more: int) -> None:
    assert region_of(*span_s(start, start + more, fps), fps) == (start, start + more)


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (region(1, 9, "S09 · another"), "unknown label"),
        (region(1, 9), "region without label"),
        (region(9, 1, "S01 · stir"), "end before start"),
        (region(0, 9, "S01 · stir"), "region before the first frame"),
        (region(990, 1001, "S01 · stir"), "region past the end"),
        (
            region(1, 9) | {"value": {"ranges": None, "timelinelabels": ["S01 · stir"]}},
            "region without ranges",
        ),
        (region(1, 9) | {"value": {"ranges": [], "timelinelabels": ["S01 · stir"]}}, "region without ranges"),
        (region(1, 9) | {"value": {"timelinelabels": ["S01 · stir"]}}, "region without ranges"),
        (region(1, 9) | {"value": {"sequence": [{"frame": 4}], "timelinelabels": []}}, "box on the timeline"),
        (region(1, 9) | {"value": {"ranges": 3}}, "unreadable region"),
        (region(1, 9) | {"value": {"ranges": [{"start": "x", "end": 9}]}}, "unreadable region"),
        (region(1, 9) | {"value": "none"}, "unreadable region"),
    ],
)
def test_a_region_that_cannot_count_is_named_with_its_place(
    tmp_path: Path, bad: dict[str, Any], word: str
) -> None:
    found = read(tmp_path, [task(annotation(7, 1, region(11, 20, "S02 · pour"), bad))])
    said = found["recordings"]["take"]
    assert said["problems"] == [word]
    assert said["findings"][0]["where"] == f"task 1 annotation 7 region {bad['id']}"
    assert said["annotators"]["1"] == {"S02 · pour": [[0.4, 0.8]]}
    assert found["status"] == "WARN"


def test_of_two_annotations_by_one_person_the_later_counts(tmp_path: Path) -> None:
    two = (annotation(7, 1, region(1, 25, "S01 · stir")), annotation(8, 1, region(26, 50, "S01 · stir")))
    cancelled = annotation(9, 1, region(51, 75, "S01 · stir"), cancelled=True)
    said = read(tmp_path, [task(*two, cancelled)])["recordings"]["take"]
    assert said["annotators"] == {"1": {"S01 · stir": [[1.0, 2.0]]}}
    assert said["problems"] == ["two annotations by one person"]
    assert said["ignored_annotations"] == [7, 9]


def test_a_film_that_was_imported_twice_has_the_marks_of_both_tasks(tmp_path: Path) -> None:
    first = annotation(7, 1, region(1, 25, "S01 · stir"))
    second = annotation(8, 2, region(26, 50, "S01 · stir")), annotation(9, 1, region(51, 75, "S01 · stir"))
    said = read(tmp_path, [task(first), task(*second)])["recordings"]["take"]
    assert said["annotators"] == {"1": {"S01 · stir": [[2.0, 3.0]]}, "2": {"S01 · stir": [[1.0, 2.0]]}}
    assert said["problems"] == ["two annotations by one person"]


def test_what_was_never_submitted_is_named_and_does_not_count(tmp_path: Path) -> None:
    draft = {"id": 77, "user": "ann@example.org", "result": [region(1, 25, "S01 · stir")] * 2}
    found = read(tmp_path, [task() | {"drafts": [draft, {"id": 78, "user": "ben", "result": []}]}])
    assert found["recordings"]["take"]["annotators"] == {}
    assert found["warnings"] == ["take: never submitted: task 1 draft 77 by ann@example.org, 2 regions"]


def test_a_rate_that_the_task_does_not_say_is_a_warning(tmp_path: Path) -> None:
    tasks = [task(annotation(7, 1, region(31, 60, "S01 · stir")), fps=25.0)]
    found = read(tmp_path, tasks, "--fps", "30")
    assert "region at another rate" in found["warnings"][0]
    assert found["recordings"]["take"]["annotators"]["1"]["S01 · stir"] == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('[{"video": "/a.mp4", "step": [], "annotator": 1, "annotation_id": 3}]', "JSON_MIN"),
        ("[" * 70 + "]" * 70, "nested too deeply"),
        ("{", "no JSON"),
        ('[{"data": {}}]', "recording_id: has no text"),
        (json.dumps([task(fps=25.0), task(fps=30.0)]), "recording take is in task 1 too, with another video"),
        (json.dumps([task(annotation(7, 1, region(1, 2, "\ud800")))]), "half a character"),
        (json.dumps([task(annotation(7, 1, region(1, 2)), fps=-1)]), "not a number of frames a second"),
    ],
)
def test_what_is_no_export_is_refused_in_one_line(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "tasks.json").write_text(content)
    ran = run(tmp_path / "tasks.json", "--json")
    assert ran.exit_code == 1
    assert ran.stderr.startswith("kitchensync: tasks.json: ")
    assert ran.stderr.count("\n") == 1
    assert said in json.loads(ran.stdout)["reason"]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "declares entities"),
        ("<View>", "is not XML"),
        ("<View/>", "has no labels"),
        ("<View>" + "<Label/>" * 20_001 + "</View>", "more than 20000 elements"),
    ],
)
def test_a_configuration_that_is_none_is_refused(tmp_path: Path, config: str, said: str) -> None:
    (tmp_path / "tasks.json").write_text(json.dumps([task()]))
    (tmp_path / "config.xml").write_text(config)
    ran = run(tmp_path / "tasks.json", "--config", tmp_path / "config.xml")
    assert ran.exit_code == 1
    assert said in ran.stderr


ODD = st.sampled_from(
    [None, True, -1, 0, 1e-300, 1e300, 10**20, "", "x", [], {}, [[]], [None], [{}], {"id": []}]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in places(one, (*path, key)))]


def spoken(text: str) -> dict[str, Any]:
    value = {"start": 1.0, "end": 2.0, "labels": ["S01 · stir"], "text": [text]}
    return {"id": "a", "type": "labels" if not text else "textarea", "original_length": 9.0, "value": value}


@given(st.data())
def test_an_export_with_anything_anywhere_is_read_or_refused(data: st.DataObject) -> None:
    marked = annotation(7, 1, region(1, 9, "S01 · stir"), spoken(""), spoken("I stir"))
    export = [task(marked, annotation(8, 2, region(2, 9, "S02 · pour")))]
    export[0]["predictions"] = [{"result": [region(1, 9, "S01 · stir")]}]
    *above, last = data.draw(st.sampled_from([place for place in places(export) if place]))
    inside: Any = export
    for key in above:
        inside = inside[key]
    inside[last] = data.draw(ODD)
    with TemporaryDirectory() as folder:
        (Path(folder) / "tasks.json").write_text(json.dumps(export))
        ran = run(Path(folder) / "tasks.json", "--json")
    assert isinstance(ran.exception, SystemExit | None), ran.exc_info
    assert ran.exit_code in (0, 1)
    assert json.loads(ran.stdout)["schema"] == "annotate-read/1"


@pytest.mark.parametrize("fps", ["0", "1e-400", "1/0", "nan", "1e9"])
def test_a_rate_that_no_film_has_is_wrong_usage(tmp_path: Path, fps: str) -> None:
    (tmp_path / "tasks.json").write_text(json.dumps([task()]))
    ran = run(tmp_path / "tasks.json", "--fps", fps)
    assert (ran.exit_code, ran.stderr.count("\n")) == (2, 1)


def test_films_without_one_rate_ask_for_it(tmp_path: Path) -> None:
    marked = annotation(7, 1, region(1, 2, "S01 · stir"))
    (tmp_path / "tasks.json").write_text(
        json.dumps([task(marked), task(marked, fps=30.0, recording="other")])
    )
    ran = run(tmp_path / "tasks.json")
    assert ran.exit_code == 1
    assert "25, 30; give --fps" in ran.stderr
