"""`kitchensync export promqa`: published examples again, targets by brute force, each rule by itself."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import made_data_sets
import pytest
from cooked_recording import write_cooked
from typed_commands import typed

from kitchensync.dataset.promqa.published_examples import EDITED_BY_HAND
from kitchensync.dataset.promqa.questions import Targets, clock, examples
from kitchensync.dataset.promqa.sampling import sample
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording, Entry, TaggedError
from kitchensync.task_graphs.model import END, START, Graph, Step

pytestmark = pytest.mark.slow

LABELS = {0: START, 1: "Do-a", 2: "Do-b", 3: "Do-c", 4: "Do-b", 5: "Do-d", 6: END}
EDGES = ((0, 2), (0, 1), (1, 3), (2, 3), (3, 4), (1, 5), (4, 6), (5, 6))
"""Nodes 2 and 4 have one text; `c` needs `a` and the first `b`."""
GRAPH = Graph("tea", tuple(Step(node, label) for node, label in LABELS.items()), EDGES)

run = partial(typed, "export", "promqa")


@pytest.fixture(scope="module")
def published(
    shared_data: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], list[dict[str, Any]], Path]:
    out = tmp_path_factory.mktemp("promqa") / "examples.json"
    folder = shared_data("promqa")
    done = run(shared_data("captaincook4d"), "--available", folder / "available.json", "--out", out, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout), json.loads(out.read_text()), folder


def test_candidates_are_those_of_another_program(
    published: tuple[dict[str, Any], list[dict[str, Any]], Path],
) -> None:
    said, made, folder = published
    expected = json.loads((folder / "expected.json").read_text())
    keys = ("recordings", "candidates", "next_empty", "next_sum", "missing_empty", "missing_sum")
    for key in (*keys, "clip0_candidates"):
        assert said[key] == expected[key], key
    assert len(made) == said["written"] == sum(expected["candidates"].values())
    assert said["status"] == "WARN"
    assert "1 steps have a text that is not in the graph: 2_26" in said["warnings"]


def test_published_examples_come_out_but_those_that_were_edited_by_hand(
    published: tuple[dict[str, Any], list[dict[str, Any]], Path],
) -> None:
    _, made, folder = published
    ours = {one["question_id"]: one for one in made}
    expected = json.loads((folder / "expected.json").read_text())
    differing = []
    for one in json.loads((folder / "targets.json").read_text()):
        found = ours.get(one["question_id"])
        if found is None:
            differing.append((one["question_id"], ["absent"]))
        elif differs := [key for key in one if found.get(key) != one[key]]:
            differing.append((one["question_id"], differs))
        else:
            assert list(found) == list(one), "the same order of keys too"
    by_hand = [(question, keys) for question, keys, edited in expected["differences"] if edited]
    assert sorted(differing) == sorted(by_hand)
    assert len(by_hand) == len(expected["differences"])


def test_targets_of_any_set_of_steps_by_brute_force() -> None:
    targets = Targets.of(GRAPH)
    steps = [1, 2, 3, 4, 5]
    reach = {(a, b) for a, b in EDGES}
    for _ in steps:
        reach |= {(a, d) for a, b in reach for c, d in reach if b == c}
    named = [2, 1, 3, 4, 5]
    for size in range(6):
        for some in combinations(steps, size):
            done = frozenset((0, *some))
            following = [
                v for v in named
                if v not in done and all(a in done for a, b in EDGES if b == v)
                and not any((v, d) in reach for d in done)
            ]  # fmt: skip
            passed = [v for v in named if v not in done and any((v, d) in reach for d in done)]
            assert (targets.next(done), targets.missing(done)) == (following, passed)


def of(*entries: Entry) -> dict[str, dict[str, Any]]:
    made, *_ = examples(AnnotatedRecording("1_1", 1, "Tea", 1, 1, entries), Targets.of(GRAPH))
    return {one["question_id"]: one for one in made}


def wrong(*tags: str) -> tuple[TaggedError, ...]:
    return tuple(TaggedError(tag, f"{tag} {n}") for n, tag in enumerate(tags))


def ids(found: dict[str, dict[str, Any]], kind: str = "next") -> list[str]:
    return [name for name, one in found.items() if one["type"] == kind]


def test_nodes_of_one_text_are_given_in_order_and_a_question_once() -> None:
    found = of(
        Entry(2, "Do-b", 20, 30), Entry(1, "Do-a", 10, 15), Entry(2, "Do-b", 40, 50), Entry(2, "Do-b", 60, 70)
    )
    assert ids(found) == ["1_1_-1_next", "1_1_1_next", "1_1_2_next", "1_1_4_next"]
    assert found["1_1_4_next"]["end_time"] == "00:00:50", "the first one stays"
    assert [step["step_id"] for step in found["1_1_4_missing"]["missing_steps"]] == [3]
    assert [step["step_id"] for step in found["1_1_2_next"]["next_steps"]] == [3, 5]
    assert ids(found, "missing") == ["1_1_1_missing", "1_1_2_missing", "1_1_4_missing"]


def test_skipped_entries_are_no_history_but_move_the_end() -> None:
    found = of(
        Entry(1, "Do-a", -1.0, -1.0, wrong("Missing Step")),
        Entry(2, "Do-b", 1, 4.5),
        Entry(3, "Do-c", 8, 90, wrong("Missing Step")),
        Entry(5, "Do-d", 10, 20),
    )
    assert ids(found) == ["1_1_5_next"], "the clip before the first step ends before 5 s too"
    assert found["1_1_5_next"]["previous_steps"] == []
    assert found["1_1_5_next"]["end_time"] == "00:01:30"


def test_a_step_that_is_under_way_when_the_film_stops_prevents_the_question() -> None:
    long = of(Entry(1, "Do-a", 10, 20), Entry(2, "Do-b", 17.9, 30), Entry(3, "Do-c", 28.0, 40))
    assert ids(long) == ["1_1_-1_next", "1_1_2_next", "1_1_3_next"], "2 s of it may be seen, not more"
    assert [step["step_id"] for step in long["1_1_2_next"]["previous_steps"]] == [1]
    short = of(Entry(1, "Do-a", 10, 20), Entry(2, "Do-b", 18.5, 19.5))
    assert ids(short) == ["1_1_-1_next", "1_1_2_next"], "its last tenth counts"
    touching = of(Entry(1, "Do-a", 10, 19.4), Entry(2, "Do-b", 18.5, 19.5))
    assert ids(touching) == ["1_1_-1_next", "1_1_1_next", "1_1_2_next"]


def test_errors_are_asked_for_with_the_last_words_and_noise_by_kind() -> None:
    found = of(
        Entry(1, "Do-a", 10, 20, wrong("Order Error", "Missing"), "Do-a twice"),
        Entry(2, "Do-b", 30, 40, wrong("Order Error", "Timing Error", "Order Error", "Other")),
    )
    assert Counter(one["type"] for one in found.values()) == {
        "next": 3,
        "missing": 2,
        "order": 2,
        "timing": 1,
    }
    assert found["1_1_2_order"]["error_description"] == "Order Error 2"
    assert found["1_1_2_order"]["previous_steps"] == [
        {
            "step_id": 1,
            "description": "Do-a twice",
            "errors": [{"tag": "Order Error", "description": "Order Error 0"},
                       {"tag": "Missing", "description": "Missing 1"}],
        }
    ]  # fmt: skip
    ordered = of(
        Entry(1, "Do-a", 10, 20, wrong("Order Error")), Entry(2, "Do-b", 30, 40, wrong("Order Error"))
    )
    noisy = {one["type"]: one["is_noisy"] for one in ordered.values() if one["previous_steps"]}
    assert noisy == {"next": True, "missing": True, "order": False}
    assert "errors" not in ordered["1_1_-1_next"]["current_step"]


def test_a_step_that_the_graph_lacks_is_asked_about_and_not_done() -> None:
    made, unknown, _ = examples(
        AnnotatedRecording("1_1", 1, "Tea", 1, 1, (Entry(9, "Do-what", 10, 20),)), Targets.of(GRAPH)
    )
    assert unknown == 1
    (asked,) = (one for one in made if one["question_id"] == "1_1_9_next")
    assert asked["current_step"] == {"step_id": None, "description": "Do-what"}
    assert [step["step_id"] for step in asked["next_steps"]] == [2, 1]


def test_the_clock_is_cut() -> None:
    assert [clock(s) for s in (0, 59.999, 60, 3661.5)] == ["00:00:00", "00:00:59", "00:01:00", "01:01:01"]


@pytest.mark.slow
def test_a_sample_is_the_same_again_and_keeps_to_its_limits(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    given = (shared_data("captaincook4d"), "--sample", 40, "--seed")
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert run(*given, seed, "--out", tmp_path / name).exit_code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() != (tmp_path / "c").read_bytes()
    drawn = json.loads((tmp_path / "a").read_text())
    count = Counter(one["type"] for one in drawn)
    tags = ("order", "preparation", "measurement", "timing", "technique", "temperature")
    assert count == {"next": 40, "missing": 40, **dict.fromkeys(tags, 5)}
    cells = Counter[Any]()
    for one in drawn:
        targets = one.get("next_steps") or one.get("missing_steps") or []
        assert len(targets) <= 5
        assert sum("errors" in step for step in one["previous_steps"]) <= 5
        cells[one["type"], one["is_noisy"], bool(targets), one["recording_id"]] += 1
    assert all(number == 1 for (kind, *_), number in cells.items() if kind in ("next", "missing"))
    quarters = Counter(cell[:3] for cell in cells if cell[0] in ("next", "missing"))
    assert set(quarters.values()) == {10}


@pytest.mark.parametrize("wanted", [1, 2, 3, 6])
def test_a_small_sample_has_as_many_of_each_kind_as_are_asked_for(wanted: int) -> None:
    made = [
        {"question_id": f"{number}{kind}{noisy}{full}", "recording_id": str(number), "type": kind,
         "is_noisy": noisy, "previous_steps": [], f"{kind}_steps": [1] * full}
        for number in range(9) for kind in ("next", "missing") for noisy in (False, True) for full in (0, 1)
    ]  # fmt: skip
    drawn = sample(made, wanted, 1)  # type: ignore[arg-type]
    assert Counter(one["type"] for one in drawn) == {"next": wanted, "missing": wanted}


def test_kinds_and_films_that_are_asked_for(tmp_path: Path) -> None:
    one = AnnotatedRecording("1_1", 1, "Tea", 1, 1, (Entry(1, "Do-a", 10, 20, wrong("Timing Error")),))
    other = AnnotatedRecording("2_1", 2, "Soup", 1, 1, (Entry(2, "Do-b", 10, 20),))
    made_data_sets.write(tmp_path / "set", [one, other])
    graph = {"steps": {str(k): v for k, v in LABELS.items()}, "edges": [list(edge) for edge in EDGES]}
    (tmp_path / "set/task_graphs").mkdir()
    (tmp_path / "set/task_graphs/tea.json").write_text(json.dumps(graph))
    done = run(tmp_path / "set", "--kinds", "timing,next", "--out", tmp_path / "p.json")
    assert (done.exit_code, "no graph of soup" in done.stderr) == (0, True)
    made = json.loads((tmp_path / "p.json").read_text())
    assert [row["question_id"] for row in made] == ["1_1_-1_next", "1_1_1_next", "1_1_1_timing"]
    (tmp_path / "links.json").write_text('{"1_1": {"gopro_360p": "https://x"}, "2_1": ["gopro_4k"]}')
    done = run(tmp_path / "set", "--available", tmp_path / "links.json", "--out", tmp_path / "q.json")
    assert json.loads((tmp_path / "q.json").read_text()) == []
    assert run(tmp_path / "set", "--kinds", "nxt", "--out", tmp_path / "r.json").exit_code == 2
    done = run(tmp_path / "set", "--verified", "--out", tmp_path / "r.json")
    assert (done.exit_code, "kept in recordings" in done.stderr) == (2, True)
    (tmp_path / "links.json").write_text('{"1_1": 3}')
    done = run(tmp_path / "set", "--available", tmp_path / "links.json", "--out", tmp_path / "r.json")
    assert (done.exit_code, (tmp_path / "r.json").exists()) == (1, False)


def test_an_own_recording_gives_examples_by_the_graph_it_was_cooked_by(tmp_path: Path) -> None:
    write_cooked(tmp_path)
    done = run(tmp_path / "take1", "--out", tmp_path / "p.json")
    assert done.exit_code == 0, done.output
    assert "WARN: 1 steps end in the first 5 s and are dropped" in done.stderr
    made = {one["question_id"]: one for one in json.loads((tmp_path / "p.json").read_text())}
    assert [step["step_id"] for step in made["take1_3_next"]["next_steps"]] == [4]
    assert made["take1_2_technique"]["error_description"] == "spilt"
    first = "step 1 ends in the first 5 s of the film: by the published rule it is no history"
    assert [step["step_id"] for step in made["take1_3_missing"]["previous_steps"]] == [2], first
    assert [step["step_id"] for step in made["take1_3_missing"]["missing_steps"]] == [1], first
    done = run(tmp_path / "take1", "--out", tmp_path / "q.json", "--strict", "--corrected")
    assert done.exit_code == 0, done.output
    right = {one["question_id"]: one for one in json.loads((tmp_path / "q.json").read_text())}
    assert [step["step_id"] for step in right["take1_3_missing"]["previous_steps"]] == [1, 2]
    assert right["take1_3_missing"]["missing_steps"] == []
    assert right.keys() == made.keys(), "nothing is asked in the first 5 s all the same"


def test_published_examples_are_compared_by_the_command_and_each_difference_has_a_cause(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shared_data("promqa")
    given = (shared_data("captaincook4d"), "--available", folder / "available.json")
    done = run(*given, "--against", folder / "targets.json", "--out", tmp_path / "p.json", "--json")
    said = json.loads(done.stdout)["against"]
    wanted = json.loads((folder / "expected.json").read_text())
    assert said["equal"] == wanted["whole_examples"]["equal"]
    found = sorted([one["question_id"], one["differs"], one["cause"]] for one in said["differences"])
    assert found == sorted([one[0], one[1], "recording edited by hand"] for one in wanted["differences"])
    assert len(EDITED_BY_HAND) == 38
    done = run(*given, "--against", folder / "targets.json", "--out", tmp_path / "p.json", "--force")
    assert (
        f"; {said['equal']} of {said['equal'] + len(found)} published examples are reproduced" in done.stdout
    )
    assert all(question in done.stdout for question, *_ in found)
    (tmp_path / "bad.json").write_text('[{"question_id": 7}]')
    done = run(*given, "--against", tmp_path / "bad.json", "--out", tmp_path / "q.json")
    assert (done.exit_code, "bad.json: [0]: question_id" in done.stderr) == (1, True)
