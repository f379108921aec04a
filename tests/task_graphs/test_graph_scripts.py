"""Error scripts have exactly their stated errors: an independent checker agrees, for all graphs and requests."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from property_runs import examples
from script_checker import complaints, truth

from kitchensync.cli import main
from kitchensync.task_graphs.errors import CyclicGraph, NoSuchScript
from kitchensync.task_graphs.formats.captaincook4d import parse_captaincook4d
from kitchensync.task_graphs.formats.graph_files import read_graph
from kitchensync.task_graphs.mistakes import certificate
from kitchensync.task_graphs.mistakes.scripts import (
    Script,
    ScriptRequest,
    cautions,
    draw_script,
    script_sentences,
)

EXAMPLES = Path(__file__).resolve().parents[2] / "kitchensync" / "examples" / "recipes"


def shown(script: Script) -> dict[str, Any]:
    return {
        "missing": script.missing,
        "broken": script.broken,
        "steps": [{"node": node} for node in script.order],
    }


def document(count: int, edges: list[tuple[int, int]]) -> dict[str, Any]:
    steps = {"0": "START", **{str(n): f"Do-Do thing {n}" for n in range(1, count + 1)}, str(count + 1): "END"}
    ends = [(0, n) for n in range(1, count + 1)] + [(n, count + 1) for n in range(1, count + 1)]
    return {"steps": steps, "edges": [list(edge) for edge in [*edges, *ends]]}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw small graphs, some with redundant edges."""
    count = draw(st.integers(2, 7))
    names = draw(st.permutations(range(1, count + 1)))
    pairs = list(itertools.combinations(names, 2))
    return document(count, draw(st.lists(st.sampled_from(pairs), unique=True, max_size=12)))


@examples(300)
@given(documents(), st.integers(0, 3), st.integers(0, 4), st.integers(0, 2**40))
def test_a_script_of_any_graph_is_exact_or_refused(
    made: dict[str, Any], missing: int, flips: int, seed: int
) -> None:
    graph = parse_captaincook4d(json.dumps(made), name="made.json")
    try:
        script = draw_script(graph, ScriptRequest(missing, flips), seed=seed)
    except NoSuchScript:
        assert missing >= len(graph.steps) or flips > 0
        return
    assert complaints(made, shown(script)) == []
    assert (len(script.missing), len(script.broken)) == (missing, flips)
    assert (
        certificate.faults(
            [s.node for s in graph.steps],
            graph.inner_edges,
            script.order,
            missing=script.missing,
            broken=script.broken,
        )
        == []
    )


@pytest.mark.parametrize(("missing", "flips"), [(0, 0), (0, 1), (1, 0), (1, 2), (2, 1), (0, 5), (3, 3)])
def test_scripts_of_every_published_graph_are_exact(
    shared_data: Callable[[str], Path], missing: int, flips: int
) -> None:
    for path in sorted(shared_data("captaincook4d/task_graphs").glob("*.json")):
        made = json.loads(path.read_text())
        graph = parse_captaincook4d(path.read_text(), name=path.name)
        for seed in range(10):
            script = draw_script(graph, ScriptRequest(missing, flips), seed=seed)
            assert complaints(made, shown(script)) == [], (path.name, seed)
            assert (len(script.missing), len(script.broken)) == (missing, flips)


@pytest.mark.promise("Task graphs, orders and error scripts are what the published definitions say")
@pytest.mark.slow
def test_every_number_of_edges_up_to_all_can_be_broken(shared_data: Callable[[str], Path]) -> None:
    for path in sorted(shared_data("captaincook4d/task_graphs").glob("*.json")):
        graph = parse_captaincook4d(path.read_text(), name=path.name)
        for flips in range(len(graph.inner_edges) + 1):
            script = draw_script(graph, ScriptRequest(flips=flips), seed=flips)
            assert complaints(json.loads(path.read_text()), shown(script)) == []
            assert len(script.broken) == flips


def plain(path: Path) -> dict[str, Any]:
    """Return a graph file in the form of the published ones: labels by id, edges as pairs."""
    document = json.loads(path.read_text())
    steps = {str(node["id"]): node["label"] for node in document["nodes"]}
    return {"steps": steps, "edges": [[edge["from"], edge["to"]] for edge in document["edges"]]}


@pytest.fixture
def tea() -> Any:
    return read_graph(EXAMPLES / "tea_and_toast.json")


def test_named_steps_and_edges_are_used(tea: Any) -> None:
    edge = tea.inner_edges[2]
    free = next(step.node for step in tea.steps if step.node not in edge)
    script = draw_script(tea, ScriptRequest(skip=frozenset({free}), flip=frozenset({edge})), seed=5)
    assert (script.missing, script.broken) == ((free,), (edge,))


def test_protected_steps_keep_their_place_among_all_others(tea: Any) -> None:
    before = {(u, v) for u, v in certificate.reachable([s.node for s in tea.steps], tea.inner_edges)}
    for seed, node in itertools.product(range(5), (step.node for step in tea.steps)):
        script = draw_script(tea, ScriptRequest(missing=1, flips=1, protected=frozenset({node})), seed=seed)
        assert node in script.order
        place = {node: index for index, node in enumerate(script.order)}
        for u, v in before:
            if node in (u, v) and u in place and v in place:
                assert place[u] < place[v]


def test_distance_counts_reversed_pairs(tea: Any) -> None:
    for seed in range(20):
        script = draw_script(tea, ScriptRequest(flips=1), seed=seed)
        pairs = certificate.late_pairs([s.node for s in tea.steps], tea.inner_edges, script.order)
        assert len(pairs) == script.distance


def test_reparable_means_nothing_was_built_on_the_error(tea: Any) -> None:
    steps, edges = [s.node for s in tea.steps], tea.inner_edges
    needs = certificate.reachable(steps, edges)
    answers = set()
    for seed in range(40):
        script = draw_script(tea, ScriptRequest(missing=1, flips=1), seed=seed)
        place = {node: index for index, node in enumerate(script.order)}
        built_on = [
            user
            for u, v in script.broken
            for user in steps
            if (v, user) in needs and place.get(user, 99) < place[u]
        ]
        needed = [user for node in script.missing for user in script.order if (node, user) in needs]
        assert script.reparable == (not built_on and not needed)
        answers.add(script.reparable)
    assert answers == {True, False}


def test_the_unmet_prerequisites_are_named(tea: Any) -> None:
    for seed in range(20):
        script = draw_script(tea, ScriptRequest(missing=2), seed=seed)
        assert set(script.unmet) == {
            (u, v) for u, v in tea.inner_edges if u in script.missing and v in script.order
        }


def test_scripts_depend_only_on_the_seed(tea: Any) -> None:
    wish = ScriptRequest(1, 2)
    assert draw_script(tea, wish, seed=1) == draw_script(tea, wish, seed=1)
    assert len({draw_script(tea, wish, seed=seed).order for seed in range(20)}) > 15


def test_a_wide_graph_uses_the_perfect_sampler_with_a_note() -> None:
    rng = random.Random(3)
    edges = [(a, b) for a, b in itertools.combinations(range(1, 41), 2) if rng.random() < 0.08]
    made = document(40, edges)
    script = draw_script(parse_captaincook4d(json.dumps(made), name="wide.json"), ScriptRequest(1, 2), seed=1)
    assert script.sampler == "huber"
    assert complaints(made, shown(script)) == []


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (ScriptRequest(missing=11), "cannot be left out"),
        (ScriptRequest(flips=99), "no script with 0 missing steps and 99 broken edges"),
        (ScriptRequest(skip=frozenset({77})), "there is no step 77"),
        (ScriptRequest(skip=frozenset({1}), protected=frozenset({1})), "step 1 is protected"),
        (ScriptRequest(flip=frozenset({(1, 11)})), "no script"),
    ],
)
def test_impossible_scripts_are_refused_with_the_reason(tea: Any, wish: ScriptRequest, why: str) -> None:
    with pytest.raises(NoSuchScript, match=why) as caught:
        draw_script(tea, wish, seed=1)
    assert str(caught.value).startswith("tea_and_toast.json: ")


def test_a_cycle_is_refused() -> None:
    made = document(2, [(1, 2), (2, 1)])
    with pytest.raises(CyclicGraph):
        draw_script(parse_captaincook4d(json.dumps(made), name="loop.json"), ScriptRequest(), seed=1)


def test_the_certificate_finds_each_kind_of_false_statement() -> None:
    steps, edges = [1, 2, 3], [(1, 2), (2, 3)]

    def faults(order: list[int], missing: list[int], broken: list[tuple[int, int]]) -> list[str]:
        return certificate.faults(steps, edges, order, missing=missing, broken=broken)

    assert faults([1, 2, 3], [], []) == []
    assert faults([2, 1, 3], [], [(1, 2)]) == []
    assert "twice" in faults([1, 2, 3, 3], [], [])[0]
    assert "not in the graph" in faults([1, 2, 3, 4], [], [])[0]
    assert "missing are [3]" in faults([1, 2], [], [])[0]
    assert "broken edges of the reduced order are [(1, 2)]" in faults([2, 1, 3], [], [])[0]
    assert any("broken edges of the reduced order are [(1, 3)]" in fault for fault in faults([3, 1], [2], []))


def test_sentences_name_steps_to_leave_out_and_to_swap(tea: Any) -> None:
    script = draw_script(tea, ScriptRequest(1, 1), seed=2)
    sentences = script_sentences(tea, script)
    assert sentences[0].startswith(f"Leave out: “{tea.by_node[script.missing[0]].text}”")
    u, v = script.broken[0]
    assert sentences[1] == f"Do “{tea.by_node[v].text}” before “{tea.by_node[u].text}”, not after it."


def test_moving_the_end_of_heating_has_a_caution() -> None:
    made = document(2, [(1, 2)])
    made["steps"] |= {"1": "Fry-Fry the egg", "2": "Remove-Remove from heat"}
    graph = parse_captaincook4d(json.dumps(made), name="egg.json")
    assert "must watch the heat" in cautions(graph, draw_script(graph, ScriptRequest(flips=1), seed=1))[0]
    result = CliRunner().invoke(main, ["graph", "script", "-"])
    assert result.exit_code == 2


def test_the_command_prints_a_script_that_the_checker_accepts(tmp_path: Path) -> None:
    path = EXAMPLES / "pan_quesadilla.json"
    document = plain(path)
    for seed in range(5):
        arguments = [
            "script",
            str(path),
            "--missing",
            "1",
            "--flips",
            "2",
            "--seed",
            str(seed),
            "--induce",
            "2",
            "--json",
        ]
        result = CliRunner().invoke(main, ["graph", *arguments])
        assert result.exit_code == 0, result.stderr
        answer = json.loads(result.stdout)
        assert complaints(document, answer) == []
        assert (answer["schema"], answer["seed"], answer["verified"]) == ("script/1", seed, True)
        changed = [step for step in answer["steps"] if "error" in step]
        assert len(changed) == 2
        assert all(step["text"] != step["original_text"] for step in changed)


def test_the_command_prints_sentences_and_protects_steps(tmp_path: Path) -> None:
    path = str(EXAMPLES / "tea_and_toast.json")
    result = CliRunner().invoke(
        main, ["graph", "script", path, "--skip", "2", "--flips", "1", "--protect", "3", "--safe"]
    )
    assert result.exit_code == 0
    assert "1 missing, 1 broken, checked" in result.stdout
    assert "Leave out: “Boil the water in the kettle”" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--flips", "999"], 1), (["--skip", "999"], 1), (["--break", "1-2"], 2), (["--missing", "-1"], 2)],
)
def test_the_command_refuses_in_one_line(arguments: list[str], code: int) -> None:
    path = str(EXAMPLES / "tea_and_toast.json")
    result = CliRunner().invoke(main, ["graph", "script", path, *arguments, "--json"])
    assert result.exit_code == code
    if code == 1:
        assert len(result.stderr.splitlines()) == 1
        assert json.loads(result.stdout)["schema"] == "script/1"


def test_the_independent_checker_finds_errors() -> None:
    made = document(3, [(1, 2), (2, 3)])
    assert truth(made, [2, 1, 3]) == (set(), {(1, 2)}, {(1, 2)})
    assert truth(made, [3, 1]) == ({2}, {(1, 3)}, set())
    assert complaints(made, {"missing": [], "broken": [], "steps": [{"node": n} for n in (2, 1, 3)]})


def test_sentences_number_steps_with_the_same_text(tmp_path: Path) -> None:
    steps = {"0": "START", "1": "Stir-the pot", "2": "Add-salt", "3": "Stir-the pot", "4": "END"}
    path = tmp_path / "stir.json"
    path.write_text(json.dumps({"steps": steps, "edges": [[0, 1], [0, 2], [1, 3], [2, 4], [3, 4]]}))
    run = CliRunner().invoke
    command = ["graph", "script", str(path), "--missing", "0", "--break", "1,3", "--json"]
    wording = json.loads(run(main, command).stdout)["wording"]
    assert "Do “Stir the pot #2” before “Stir the pot #1”, not after it." in wording
    hints = json.loads(run(main, ["graph", "hints", str(path), "--step", "3", "--json"]).stdout)
    text = json.dumps(hints, ensure_ascii=False)
    assert "“Stir the pot”" not in text
