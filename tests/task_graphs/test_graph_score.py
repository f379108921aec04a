"""`score` agrees with the published numbers, and the judge with the definitions."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from property_runs import examples

from kitchensync.cli import main
from kitchensync.task_graphs.formats.annotation_files import format_annotations
from kitchensync.task_graphs.formats.annotations import parse_annotations
from kitchensync.task_graphs.formats.graph_files import read_annotations, read_task_graphs
from kitchensync.task_graphs.model import Edge, Graph, Step
from kitchensync.task_graphs.scoring.judge import Performed, Prerequisites, by_time, judge, match_texts
from kitchensync.task_graphs.scoring.score import score, without_graph


@pytest.fixture
def folder(shared_data: Callable[[str], Path]) -> Path:
    return shared_data("captaincook4d")


def test_score_prints_the_published_numbers_exactly(folder: Path) -> None:
    result = CliRunner().invoke(main, ["graph", "score", str(folder), "--json"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout) == json.loads((folder / "expected.json").read_text())


def test_scores_can_be_limited_to_one_recipe(folder: Path) -> None:
    expected = json.loads((folder / "expected.json").read_text())
    graphs, annotations = read_task_graphs(folder), read_annotations(folder)
    for stem, graph in graphs.items():
        alone = score({stem: graph}, annotations)
        assert alone["recipes"] == {stem: expected["recipes"][stem]}
        assert alone["graphs"] == {stem: expected["graphs"][stem]}
        assert set(without_graph({stem: graph}, annotations)) == set(graphs) - {stem}


def test_annotation_files_are_written_back_byte_for_byte(folder: Path) -> None:
    written = format_annotations(read_annotations(folder))
    published = [path for path in folder.glob("*/*") if path.parent.name != "task_graphs"]
    assert {str(path.relative_to(folder)) for path in published} == set(written)
    for path in published:
        assert written[str(path.relative_to(folder))].encode() == path.read_bytes(), path.name


def test_missing_average_lengths_are_computed(folder: Path) -> None:
    texts = format_annotations(read_annotations(folder))
    published = texts.pop("annotation_csv/average_segment_length.csv").splitlines()
    computed = format_annotations(parse_annotations(texts))["annotation_csv/average_segment_length.csv"]
    differing = [
        mine for mine, theirs in zip(computed.splitlines(), published, strict=True) if mine != theirs
    ]
    assert [line.split(",")[1] for line in differing] == ['"Tomato Chutney"', '"Zoodles"']


Timed = list[tuple[int, int, int]]


@st.composite
def cooked(draw: st.DrawFn) -> tuple[int, list[Edge], Timed]:
    """Draw a graph of up to 6 steps with ascending edges, and performances with times, repeats and gaps."""
    count = draw(st.integers(1, 6))
    pairs = [(a, b) for a in range(1, count + 1) for b in range(a + 1, count + 1)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    times = st.tuples(st.integers(1, count), st.integers(0, 20), st.integers(0, 8))
    performed = [(node, start, start + length) for node, start, length in draw(st.lists(times, max_size=9))]
    return count, edges, performed


def graph_of(count: int, edges: list[Edge]) -> Graph:
    steps = [Step(node, f"Do-Do {node}") for node in range(1, count + 1)]
    ends = [(0, node) for node in range(1, count + 1)] + [(node, 99) for node in range(1, count + 1)]
    return Graph("made.json", (Step(0, "START"), *steps, Step(99, "END")), (*edges, *ends))


def path_exists(edges: list[Edge], u: int, v: int) -> bool:
    return any(b == v or path_exists(edges, b, v) for a, b in edges if a == u)


@examples(300)
@given(cooked())
def test_violations_are_as_defined(case: tuple[int, list[Edge], Timed]) -> None:
    count, edges, performed = case
    judged = judge(Prerequisites(graph_of(count, edges)), by_time(Performed(*times) for times in performed))
    first: dict[int, tuple[int, int]] = {}
    sequence = sorted(performed, key=lambda times: times[1:])
    for node, start, end in sequence:
        first.setdefault(node, (start, end))
    order = list(first)
    late = {(u, v) for j, u in enumerate(order) for v in order[:j] if path_exists(edges, u, v)}
    assert set(judged.late_pairs) == late
    hard = {(u, v) for u, v in late if first[v][1] <= first[u][0]}
    assert {pair for pair, state in judged.late_pairs.items() if state == "hard"} == hard
    assert set(judged.late_edges) == late & set(edges)
    assert set(judged.unmet) == {(u, v) for u, v in edges if v in first and u not in first}
    overlapped = {(u, v) for u, v in edges if u in first and v in first and first[v][0] < first[u][1]}
    assert {e for e, state in judged.edges.items() if state != "kept"} >= overlapped
    assert {e for e, state in judged.edges.items() if state == "overlapped"} == overlapped - late
    assert judged.missing == [node for node in range(1, count + 1) if node not in first]
    assert sorted(judged.repeated) == sorted(
        n for n in first for _ in range(sum(p[0] == n for p in performed) - 1)
    )


@examples(300)
@given(cooked())
def test_next_and_missing_sets_are_as_defined(case: tuple[int, list[Edge], Timed]) -> None:
    count, edges, performed = case
    judged = judge(Prerequisites(graph_of(count, edges)), by_time(Performed(*times) for times in performed))
    for prefix in judged.prefixes():
        done, remaining = set(prefix.done), set(range(1, count + 1)) - set(prefix.done)
        skipped = {u for u in remaining if any(path_exists(edges, u, v) for v in done)}
        assert prefix.missing == skipped
        ready = {v for v in remaining if all(a in done for a, b in edges if b == v)}
        assert prefix.next == ready - skipped
    assert [len(prefix.done) for prefix in judged.prefixes()] == list(range(1, len(judged.first) + 1))


def test_steps_with_the_same_text_are_matched_in_order() -> None:
    labels = ["Stir-Stir it", "Wait-Wait", "Stir-Stir it"]
    nodes = (
        Step(0, "START"),
        *(Step(n, label) for n, label in zip((7, 2, 3), labels, strict=True)),
        Step(9, "END"),
    )
    edges = tuple(pairwise((0, 7, 2, 3, 9)))
    order = Prerequisites(Graph("made.json", nodes, edges))
    texts = ["Stir-Stir it", "Stir-Stir it", "Sing-Sing", "Stir-Stir it"]
    assert match_texts(order, texts) == [7, 3, None, 3]


def test_unknown_steps_are_counted_and_otherwise_ignored() -> None:
    order = Prerequisites(graph_of(2, [(1, 2)]))
    judged = judge(
        order, [Performed(None, 0, 1), Performed(1, 1, 2), Performed(77, 2, 3), Performed(2, 3, 4)]
    )
    assert (judged.unknown, judged.missing, judged.late_pairs) == (2, [], {})


def small_folder(root: Path, activity: str = "Tea") -> Path:
    """Write a folder with one recipe and one recording."""
    (root / "task_graphs").mkdir()
    (root / "annotation_json").mkdir()
    steps = {"0": "START", "1": "Boil-Boil water", "2": "Pour-Pour it", "3": "END"}
    graph = {"steps": steps, "edges": [[0, 1], [1, 2], [2, 3]]}
    (root / "task_graphs" / "tea.json").write_text(json.dumps(graph))
    texts = {"10": "Boil-Boil water", "11": "Pour-Pour it", "12": "Sing-Sing"}
    entries: list[dict[str, Any]] = [
        {"description": texts[key], "step_id": int(key), "start_time": start, "end_time": start + 5.0}
        for key, start in (("11", 1.0), ("10", 4.0), ("12", 20.0))
    ]
    entries[0] = {**entries[0], "errors": [{"tag": "Technique Error", "description": "spilled"}]}
    complete = {
        "7_1": {
            "recording_id": "7_1",
            "activity_id": 7,
            "activity_name": activity,
            "person_id": 1,
            "environment": 2,
        }
    }
    steps_only = [{k: e[k] for k in ("step_id", "start_time", "end_time", "description")} for e in entries]
    complete["7_1"]["steps"] = [
        {**s, "has_errors": "errors" in e} for s, e in zip(steps_only, entries, strict=True)
    ]
    errors = [{"recording_id": "7_1", "activity_id": 7, "is_error": True, "step_annotations": entries}]
    (root / "annotation_json" / "complete_step_annotations.json").write_text(json.dumps(complete))
    (root / "annotation_json" / "error_annotations.json").write_text(json.dumps(errors))
    (root / "annotation_json" / "step_idx_description.json").write_text(json.dumps(texts))
    return root


def test_a_folder_of_another_recipe_is_scored_with_its_unknown_steps(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["graph", "score", str(small_folder(tmp_path)), "--json"])
    assert (result.exit_code, result.stderr) == (0, "")
    numbers = json.loads(result.stdout)["recipes"]["tea"]
    assert (numbers["entries"], numbers["entries_without_node"], numbers["windows_of_3"]) == (3, 1, 1)
    assert (numbers["late_pairs"], numbers["late_pairs_hard"], numbers["late_edges"]) == (1, 0, 1)
    assert json.loads(result.stdout)["lists"]["order_violation_without_tag"] == ["7_1"]


def test_recordings_without_a_graph_are_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        main, ["graph", "score", str(small_folder(tmp_path, activity="Green Soup")), "--json"]
    )
    assert result.exit_code == 0
    assert "no task graph for: greensoup" in result.stderr
    assert json.loads(result.stdout)["totals"]["graphs"] == 1


def test_score_for_people_is_a_table(folder: Path) -> None:
    result = CliRunner().invoke(main, ["graph", "score", str(folder)])
    assert result.exit_code == 0
    assert "coffee" in result.stdout
    assert "9,900" in result.stdout


def test_contradicting_files_are_noted_and_not_written(tmp_path: Path) -> None:
    root = small_folder(tmp_path)
    path = root / "annotation_json" / "complete_step_annotations.json"
    path.write_text(path.read_text().replace("20.0", "21.0"))
    result = CliRunner().invoke(main, ["graph", "score", str(root), "--json"])
    assert result.exit_code == 0
    assert "the two step files disagree on 7_1" in result.stderr
    refused = CliRunner().invoke(main, ["graph", "convert", str(root), "--out", str(tmp_path / "copy")])
    assert refused.exit_code == 1
    assert "two files disagree" in refused.stderr


@pytest.mark.parametrize(
    "breakage", ["no folder", "no graphs", "no annotations", "two releases", "a time in words"]
)
def test_invalid_folders_are_reported_in_one_line(tmp_path: Path, breakage: str) -> None:
    root = small_folder(tmp_path)
    errors = root / "annotation_json" / "error_annotations.json"
    if breakage == "no folder":
        root = tmp_path / "absent"
    elif breakage == "no graphs":
        (root / "task_graphs" / "tea.json").unlink()
    elif breakage == "no annotations":
        errors.unlink()
    elif breakage == "two releases":
        errors.write_text(errors.read_text().replace("7_1", "7_2"))
    else:
        errors.write_text(errors.read_text().replace("20.0", '"late"'))
    result = CliRunner().invoke(main, ["graph", "score", str(root), "--json"])
    assert result.exit_code == (2 if breakage == "no folder" else 1)
    assert len(result.stderr.splitlines()) == 1
    assert "reason" in json.loads(result.stdout)
