"""`kitchensync export steps|keysteps|prompts|windows`: each file beside the annotations, read by other means."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import made_data_sets
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typed_commands import typed

from kitchensync.dataset.grounding.object_questions import draw_questions, questions
from kitchensync.dataset.tables.step_rows import windows
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording, Entry, TaggedError

TAGS = ("Preparation Error", "Measurement Error", "Order Error", "Timing Error", "Technique Error",
        "Temperature Error", "Missing Step")  # fmt: skip

run = partial(typed, "export")


def written(form: str, folder: Path, out: Path, *more: object) -> tuple[Any, dict[str, Any]]:
    done = run(form, folder, "--out", out, "--json", *more)
    assert done.exit_code == 0, done.output
    if out.suffix == ".csv":
        with out.open(newline="") as file:
            return list(csv.DictReader(file)), json.loads(done.stdout)
    return json.loads(out.read_text()), json.loads(done.stdout)


def published(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "annotation_json/error_annotations.json").read_text())
    return found


def tea(*entries: Entry) -> AnnotatedRecording:
    return AnnotatedRecording("1_1", 1, "Hot Tea", 1, 1, entries)


def errors(*tags: str) -> tuple[TaggedError, ...]:
    return tuple(TaggedError(tag, "so") for tag in tags)


WRONG = tea(
    Entry(4, "Pour-Pour 1 cup of milk", 9.0, 12.0, errors("Other")),
    Entry(2, "Boil-Boil water in a pot", 1, 10.5, errors("Timing Error", "Order Error", "Timing Error")),
    Entry(3, "Stir-Stir", -1.0, -1.0, errors("Missing Step")),
    Entry(5, "Serve-Serve", 11.0, 11.5),
)


@pytest.mark.slow
def test_steps_are_the_published_table_with_seven_categories(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shared_data("captaincook4d")
    rows, said = written("steps", folder, tmp_path / "s.csv")
    expected = json.loads((shared_data("captaincook4d-derived") / "expected.json").read_text())
    with (folder / "annotation_csv/error_annotations.csv").open(newline="") as file:
        header, *table = csv.reader(file)
    columns = [header.index(tag) for tag in TAGS]
    assert len(rows) == len(table) == said["rows"] == expected["table12"]["entries"]
    for row, known in zip(rows, table, strict=True):
        found = list(row.values())
        assert (found[0], found[2], found[5]) == (known[0], known[1], str(int(known[5] == "True")))
        assert found[6:13] == [known[column] for column in columns]
        assert row["node"] == ""
        assert (found[3], found[4]) == tuple(
            "-1.0" if time == "None" else str(float(time)) for time in known[2:4]
        )
    names = list(rows[0])[6:13]
    used = {tag: sum(row[name] == "1" for row in rows) for tag, name in zip(TAGS, names, strict=True)}
    assert used == {tag: expected["figure19"]["entries"][tag] for tag in TAGS}


def test_key_steps_are_of_recordings_without_errors_in_order_of_time(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shared_data("captaincook4d")
    made, said = written("keysteps", folder, tmp_path / "k.json")
    bodies = {one["recording_id"]: one["step_annotations"] for one in published(folder)}
    normal = {name for name, body in bodies.items() if not any("errors" in step for step in body)}
    assert {one["recording"] for one in made} == normal
    assert (len(made), said["with_errors"]) == (100, 152)
    for one in made:
        done = [step for step in bodies[one["recording"]] if step["start_time"] >= 0]
        starts = [step["start"] for step in one["keysteps"]]
        assert starts == sorted(step["start_time"] for step in done)
        times = {(step["step_id"], step["start"], step["end"]) for step in one["keysteps"]}
        assert times == {(step["step_id"], step["start_time"], step["end_time"]) for step in done}


def test_questions_have_the_answers_of_the_annotators(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shared_data("captaincook4d")
    one_each, _ = written("prompts", folder, tmp_path / "1.json")
    seven, _ = written("prompts", folder, tmp_path / "7.json", "--ask", "categories")
    steps = [(one["recording_id"], place, step) for one in published(folder)
             for place, step in enumerate(one["step_annotations"])]  # fmt: skip
    assert (len(one_each), len(seven)) == (len(steps), 7 * len(steps))
    for question, (recording, place, step) in zip(one_each, steps, strict=True):
        assert (question["recording"], question["entry"]) == (recording, place)
        right = step["start_time"] >= 0 and "errors" not in step
        assert question["answer"] == ("Yes" if right else "No")
    for number, (_, _, step) in enumerate(steps):
        answers = [one["answer"] == "Yes" for one in seven[7 * number : 7 * number + 7]]
        tags = {error["tag"] for error in step.get("errors", [])}
        assert answers == [tag in tags for tag in TAGS]
        assert any(answers) == bool(tags - {"Other"})


def test_questions_are_put_in_the_published_words(tmp_path: Path) -> None:
    made_data_sets.write(tmp_path / "set", [WRONG])
    made, _ = written("prompts", tmp_path / "set", tmp_path / "p.json")
    assert (
        made[1]["question"] == "Did the person perform the step Boil water in a pot from the recipe Hot Tea?"
    )
    assert [(one["start"], one["end"]) for one in made] == [
        (9.0, 12.0),
        (1, 10.5),
        (None, None),
        (11.0, 11.5),
    ]
    assert [one["answer"] for one in made] == ["No", "No", "No", "Yes"]
    done = run("prompts", tmp_path / "set", "--out", tmp_path / "7", "--ask", "categories", "--strict")
    assert (done.exit_code, "1 steps have errors of none of the seven" in done.stderr) == (1, True)
    questions = [one["question"] for one in json.loads((tmp_path / "7").read_text())]
    assert len(set(questions)) == 28
    assert all("Hot Tea" in question and question.endswith("?") for question in questions)


def test_a_row_of_a_step_with_another_error_or_none_done(tmp_path: Path) -> None:
    made_data_sets.write(tmp_path / "set", [WRONG])
    written("steps", tmp_path / "set", tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text() == (
        "recording,entry,step_id,start,end,error,"
        "preparation,measurement,order,timing,technique,temperature,missing,node,text\n"
        "1_1,0,4,9.0,12.0,1,0,0,0,0,0,0,0,,Pour 1 cup of milk\n"
        "1_1,1,2,1.0,10.5,1,0,0,1,1,0,0,0,,Boil water in a pot\n"
        "1_1,2,3,-1.0,-1.0,1,0,0,0,0,0,0,1,,Stir\n"
        "1_1,3,5,11.0,11.5,0,0,0,0,0,0,0,0,,Serve\n"
    )


@pytest.mark.slow
def test_windows_are_the_expected_ones(shared_data: Callable[[str], Path], tmp_path: Path) -> None:
    expected = json.loads((shared_data("span-measures") / "expected_windows.json").read_text())
    made, said = written("windows", shared_data("captaincook4d"), tmp_path / "w.json")
    assert said["recordings"] == expected["recordings"]
    assert len({one["id"] for one in made}) == len(made)
    for size, known in expected["windows"].items():
        ours = [one for one in made if len(one["step_ids"]) == int(size)]
        rows = [[one["recording"], one["start"], one["end"], one["step_ids"]] for one in ours]
        assert rows[:2] == known["first"][:2]
        assert rows[-len(known["last"]) :] == known["last"]
        assert said["windows"][size] == {key: known[key] for key in ("clips", "seconds", "over_120_s")}


def test_a_window_ends_with_the_last_end_among_its_steps() -> None:
    one, two = windows(WRONG, 2)
    assert (one["start"], one["end"], one["step_ids"]) == (1, 12.0, [2, 4])
    assert (two["start"], two["end"], two["step_ids"]) == (9.0, 12.0, [4, 5]), "the last step ends earlier"
    assert one["errors"][0][2] == {"tag": "Timing Error", "description": "so"}
    assert one["objects"] == [["water", "pot"], ["milk"]]
    assert list(windows(WRONG, 4)) == [], "one of the four was not done"


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 50)), max_size=7), st.integers(1, 8))
def test_windows_of_any_recording(drawn: list[tuple[float, float]], size: int) -> None:
    one = tea(*(Entry(n, f"Do-Do {n}", start, start + length) for n, (start, length) in enumerate(drawn)))
    order = sorted(range(len(drawn)), key=lambda n: (one.entries[n].start_s, one.entries[n].end_s, n))
    runs = [order[k : k + size] for k in range(len(order) - size + 1)]
    assert [
        (clip["step_ids"], clip["start"], clip["end"]) for clip in windows(one, size)
    ] == [(run, one.entries[run[0]].start_s, max(one.entries[n].end_s for n in run)) for run in runs]  # fmt: skip


def test_long_windows_are_left_out_and_counted(tmp_path: Path) -> None:
    made_data_sets.write(tmp_path / "set", [WRONG])
    more = ("--sizes", "2,1", "--max-seconds", "10")
    made, said = written("windows", tmp_path / "set", tmp_path / "w.json", *more)
    assert [one["step_ids"] for one in made] == [[4, 5], [2], [4], [5]]
    assert said["left_out"] == 1
    assert said["windows"]["2"] == {"clips": 1, "seconds": 3.0, "over_120_s": 0}


@pytest.mark.parametrize("sizes", ["", "0", "two", "2,,3", "-1"])
def test_sizes_that_are_none_are_wrong_usage(tmp_path: Path, sizes: str) -> None:
    made_data_sets.write(tmp_path / "set", [WRONG])
    done = run("windows", tmp_path / "set", "--out", tmp_path / "w.json", "--sizes", sizes)
    assert (done.exit_code, (tmp_path / "w.json").exists()) == (2, False)


def test_published_faults_do_not_fail_and_a_late_step_is_named(tmp_path: Path) -> None:
    made_data_sets.write(tmp_path / "set", [tea(Entry(1, "Do-Do 1", 50.0, 70.0))])
    for form in ("steps", "keysteps", "prompts", "windows"):
        done = run(form, tmp_path / "set", "--out", tmp_path / form)
        assert done.exit_code == 0
        assert "1 steps end after their video: 1_1 step 1" in done.stderr
        assert run(form, tmp_path / "set", "--out", tmp_path / form, "--force", "--strict").exit_code == 1


def test_questions_about_objects_in_five_forms(tmp_path: Path) -> None:
    wrong = errors("Technique Error")
    one = tea(
        Entry(1, "Fill-Fill the kettle with water", 1.0, 4.0),
        Entry(2, "Boil-Boil the water in the kettle", 4.0, 9.0, wrong),
        Entry(3, "Pour-Pour the water over the tea bag", 10.0, 12.0),
    )
    (clip,) = windows(one, 3)
    found = list(questions(clip, "Hot Tea"))
    # named twice in a row: kettle in 1, 2; water in 1, 2 and 2, 3; wrong: kettle and water in 2
    assert Counter(row["qa_type"] for row in found) == {
        "Precondition Grounding": 3, "Object State Evolution": 3, "Counterfactual Reasoning": 3,
        "Readiness Assessment": 3, "Mistake Recognition": 2,
    }  # fmt: skip
    assert len({row["question_id"] for row in found}) == len(found)
    said = {row["question"]: row["answer"] for row in found}
    early, late = "Boil the water in the kettle", "Pour the water over the tea bag"
    assert said[f'How does the water change before "{late}" begins?'] == f'It was changed by "{early}".'
    assert said[f'What mistake occurs on the kettle in "{early}", and why?'] == "so."
    ready = said[f'Before "{late}", is the water ready, and by which cues?']
    assert ready == f'No: in "{early}" something went wrong: so.'
    assert {(row["clip_start"], row["clip_end"], row["task"]) for row in found} == {(1.0, 12.0, "Hot Tea")}
    for wanted in range(1, len(found) + 2):
        some = draw_questions(found, wanted, 5)
        assert len(some) == min(wanted, len(found))
        assert some == draw_questions(found[::1], wanted, 5) == [row for row in found if row in some]
        counts = Counter(row["qa_type"] for row in some)
        assert wanted > 5 or max(counts.values()) == 1, "one of each form before two of one"


@pytest.mark.slow
def test_each_recording_s_questions_are_in_one_part(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shared_data("captaincook4d")
    parts = folder / "data_splits" / "recordings_data_split_combined.json"
    known = {row["recording_id"] if "recording_id" in row else row["recording"] for row in published(folder)}
    split = {
        part: [one for one in ids if one in known] for part, ids in json.loads(parts.read_text()).items()
    }
    (tmp_path / "split.json").write_text(json.dumps(split))
    more = ("--questions", "--sizes", "2", "--split", tmp_path / "split.json")
    made, said = written("windows", folder, tmp_path / "q.json", *more)
    places: dict[str, set[str]] = {}
    for row in made:
        places.setdefault(row["recording"], set()).add(row["split"])
    assert all(len(of) == 1 for of in places.values())
    assert all(recording in split[part] for recording, of in places.items() for part in of)
    assert sum(said["by_split"].values()) == len(made) == sum(said["candidates"].values())
    drawn_ones, _ = written(
        "windows", folder, tmp_path / "s.json", "--questions", "--sizes", "2", "--sample", 50
    )
    assert Counter(row["qa_type"] for row in drawn_ones) == dict.fromkeys(
        {row["qa_type"] for row in made}, 10
    )
    rest, said = written(
        "windows", folder, tmp_path / "r.json", "--questions", "--sizes", "2", "--sample", 10**6
    )
    assert len(rest) == len({(row["recording"], row["question"]) for row in made}) < len(made)
    assert f"only {len(rest)} of 1000000 questions can be drawn" in said["warnings"][-1]
