"""`kitchensync export seconds`: the published counts, and every row by brute force."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import made_data_sets
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from typed_commands import typed

from kitchensync.cli import main
from kitchensync.dataset.tables.seconds import SubSegments
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording, Entry, TaggedError

LABELS = {"Preparation Error": 2, "Temperature Error": 3, "Measurement Error": 4, "Timing Error": 5,
          "Technique Error": 6}  # fmt: skip

run = partial(typed, "export", "seconds")


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.parametrize(("task", "rows", "ones"), [("er", 177_511, 60_366), ("eer", 87_904, None)])
def test_the_published_counts(
    shared_data: Callable[[str], Path], tmp_path: Path, task: str, rows: int, ones: int | None
) -> None:
    out = tmp_path / "seconds.csv"
    done = run(shared_data("captaincook4d"), "--task", task, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    found = table(out)
    assert len(found) == rows == json.loads(done.stdout)["rows"]
    assert ones is None or sum(row["label"] == "1" for row in found) == ones
    assert out.read_text().splitlines()[0] == "recording,step_id,second,label"
    per_entry = json.loads((shared_data("captaincook4d-derived") / "expected.json").read_text())["segments"]
    assert task != "er" or len(found) == per_entry["seconds"]


def as_published(steps: list[dict[str, Any]], errors: list[dict[str, Any]]) -> list[tuple[int, int, bool]]:
    """What the published loader reads for error recognition, written down from its description."""
    spans: dict[int, list[tuple[int, int, bool]]] = {}
    for step, error in zip(steps, errors, strict=True):
        if step["start_time"] >= 0:
            one = (math.floor(step["start_time"]), math.ceil(step["end_time"]), "errors" in error)
            spans.setdefault(step["step_id"], []).append(one)
    return [
        (step_id, second, found[-1][2])
        for step_id, found in spans.items()
        for start, end, _ in found
        for second in range(start, end)
    ]


@pytest.mark.slow
def test_every_row_of_the_shared_recordings(shared_data: Callable[[str], Path], tmp_path: Path) -> None:
    folder = shared_data("captaincook4d")
    assert run(folder, "--out", tmp_path / "s.csv").exit_code == 0
    steps = json.loads((folder / "annotation_json/step_annotations.json").read_text())
    errors = json.loads((folder / "annotation_json/error_annotations.json").read_text())
    tagged = {one["recording_id"]: one["step_annotations"] for one in errors}
    expected = [
        (name, str(step_id), str(second), str(int(wrong)))
        for name, body in steps.items()
        for step_id, second, wrong in as_published(body["steps"], tagged[name])
    ]
    assert [tuple(row.values()) for row in table(tmp_path / "s.csv")] == expected


def tags(*names: str) -> tuple[TaggedError, ...]:
    return tuple(TaggedError(name, "so") for name in names)


TWICE = AnnotatedRecording(
    "1_1", 1, "Tea", 1, 1,
    (
        Entry(7, "Do-Do 7", 2.5, 4.2, tags("Order Error", "Timing Error", "Technique Error")),
        Entry(3, "Do-Do 3", 10.0, 12.0, tags("Other")),
        Entry(7, "Do-Do 7", 6.0, 7.1),
        Entry(3, "Do-Do 3", -1.0, -1.0, tags("Missing Step", "Preparation Error")),
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        (SubSegments(), [(7, 2, 0), (7, 3, 0), (7, 4, 0), (7, 6, 0), (7, 7, 0), (3, 10, 1), (3, 11, 1)]),
        (SubSegments("eer"), [(7, 2, 0), (7, 3, 0), (3, 10, 1)]),
        (SubSegments("er", 2), [(7, 2, 0), (7, 4, 0), (7, 6, 0), (3, 10, 1)]),
        (SubSegments("ecr", 2), [(7, 2, 0), (7, 4, 0), (7, 6, 0), (3, 10, 2)]),
        (
            SubSegments("er", by_segment=True),
            [(7, 2.5, 1), (7, 3.5, 1), (3, 10.0, 1), (3, 11.0, 1), (7, 6.0, 0), (7, 7.0, 0)],
        ),
        (
            SubSegments(corrected=True),
            [(7, 2, 1), (7, 3, 1), (7, 4, 1), (3, 10, 1), (3, 11, 1), (7, 6, 0), (7, 7, 0)],
        ),
        (SubSegments("ecr", 2, "timing", by_segment=True), [(7, 2.5, 1), (3, 10.0, 0), (7, 6.0, 0)]),
    ],
)
def test_a_step_that_was_done_twice(asked: SubSegments, rows: list[tuple[int, float, int]]) -> None:
    assert list(asked.rows(TWICE)) == [("1_1", *row) for row in rows]


def test_what_the_last_time_of_a_step_overrules_is_named(tmp_path: Path) -> None:
    made_data_sets.write(tmp_path / "set", [TWICE])
    done = run(tmp_path / "set", "--out", tmp_path / "a.csv")
    assert "1 entries have the label of their step" in done.stderr
    done = run(tmp_path / "set", "--out", tmp_path / "b.csv", "--corrected", "--strict")
    assert (done.exit_code, done.stderr) == (0, "")
    assert sum(row["label"] == "1" for row in table(tmp_path / "b.csv")) == 5


def test_entries_that_overlap_may_give_a_second_two_labels(tmp_path: Path) -> None:
    over = replace(TWICE, entries=(*TWICE.entries[:1], replace(TWICE.entries[2], start_s=3.9)))
    made_data_sets.write(tmp_path / "set", [over])
    done = run(tmp_path / "set", "--corrected", "--out", tmp_path / "a.csv")
    assert "2 seconds have several labels" in done.stderr, "those from 3 and from 4 s"
    assert (
        run(tmp_path / "set", "--corrected", "--grid", "segment", "--out", tmp_path / "b.csv").exit_code == 2
    )


@pytest.mark.slow
def test_corrected_each_entry_counts_by_itself(shared_data: Callable[[str], Path], tmp_path: Path) -> None:
    expected = json.loads((shared_data("captaincook4d-derived") / "expected.json").read_text())["segments"]
    for task, key in (("er", "seconds"), ("eer", "early_seconds_per_entry")):
        out = tmp_path / f"{task}.csv"
        assert run(shared_data("captaincook4d"), "--task", task, "--corrected", "--out", out).exit_code == 0
        found = table(out)
        assert len(found) == expected[key]
        wrong = sum(row["label"] == "1" for row in found)
        assert task == "eer" or wrong == expected["seconds_with_errors"]


@given(
    st.lists(
        st.tuples(
            st.integers(1, 4), st.floats(0, 30), st.floats(0, 9), st.sets(st.sampled_from(sorted(LABELS)))
        ),
        max_size=8,
    ),
    st.sampled_from([1, 2]),
)
def test_categories_are_those_of_the_last_entry(
    drawn: list[tuple[int, float, float, set[str]]], window: int
) -> None:
    entries = tuple(
        Entry(step, f"Do-Do {step}", start, start + length, tags(*sorted(names)))
        for step, start, length, names in drawn
    )
    last = {entry.step_id: entry for entry in entries}
    one = replace(TWICE, entries=entries)
    for category, (tag, number) in zip(
        ("preparation", "temperature", "measurement", "timing", "technique"), LABELS.items(), strict=True
    ):
        for _, step, second, label in SubSegments("ecr", window, category).rows(one):
            assert label == last[step].has_tag(tag)
            assert second % window == 0
        for _, step, _, label in SubSegments("ecr", window).rows(one):
            assert (label == number) <= last[step].has_tag(tag)


def test_categories_that_one_label_cannot_tell_are_warned_of(tmp_path: Path) -> None:
    made_data_sets.write(tmp_path / "set", [TWICE])
    done = run(tmp_path / "set", "--task", "ecr", "--out", tmp_path / "a.csv", "--strict")
    assert done.exit_code == 1
    assert "1 steps have several categories" in done.stderr
    words = ("--task", "ecr", "--category", "timing", "--corrected", "--out")
    done = run(tmp_path / "set", *words, tmp_path / "b.csv")
    assert (done.exit_code, done.stderr) == (0, "")
    assert run(tmp_path / "set", "--category", "timing", "--out", tmp_path / "c.csv").exit_code == 2
    assert not (tmp_path / "c.csv").exists()


def test_a_table_that_is_there_is_kept_without_force(tmp_path: Path) -> None:
    made_data_sets.write(tmp_path / "set", [TWICE])
    (tmp_path / "a.csv").write_text("mine")
    assert run(tmp_path / "set", "--out", tmp_path / "a.csv").exit_code == 1
    assert (tmp_path / "a.csv").read_text() == "mine"
    assert run(tmp_path / "set", "--out", tmp_path / "a.csv", "--force").exit_code == 0
    assert len(table(tmp_path / "a.csv")) == 7


def test_the_forms_are_listed() -> None:
    done = CliRunner().invoke(main, ["export", "--list"])
    assert done.exit_code == 0
    assert {line.split()[0] for line in done.output.splitlines()} >= {"localization", "seconds"}
    assert all(len(line.split()) > 2 for line in done.output.splitlines())
