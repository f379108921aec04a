"""Conversions between formats and back keep everything that a format can hold, and list the rest."""

from __future__ import annotations

import json
import re
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
from kitchensync.task_graphs.errors import BadGraph, NotFound
from kitchensync.task_graphs.formats import assembly
from kitchensync.task_graphs.formats.by_name import format_dot, kind_of
from kitchensync.task_graphs.formats.graph_files import read_graph
from kitchensync.task_graphs.formats.graph_json import (
    EDGE_KINDS,
    SPAN_KINDS,
    format_graph_json,
    parse_graph_json,
)
from kitchensync.task_graphs.model import Graph, Link, RecipeVersion, Span, Step, Wording

LABEL = st.text(min_size=1, max_size=30).filter(
    lambda t: t.strip() and t.strip().upper() not in ("START", "END")
)
WORD = st.text(max_size=12)


@st.composite
def steps(draw: st.DrawFn, node: int) -> Step:
    label = draw(LABEL)
    spans = []
    for _ in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, len(label) - 1))
        spans.append(Span(draw(st.sampled_from(SPAN_KINDS)), start, draw(st.integers(start + 1, len(label)))))
    hazards = tuple(draw(st.lists(WORD, max_size=2)))
    return Step(node, label, tuple(spans), draw(st.integers(0, 5000)), draw(st.booleans()), hazards)


@st.composite
def links(draw: st.DrawFn, edges: list[tuple[int, int]]) -> tuple[Link, ...]:
    chosen = draw(st.lists(st.sampled_from(edges), unique=True)) if edges else []
    made = [Link(edge, draw(st.sampled_from(EDGE_KINDS)), draw(WORD), draw(WORD)) for edge in chosen]
    return tuple(made)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Draw graphs with all optional content."""
    ids = draw(st.lists(st.integers(1, 99), min_size=1, max_size=5, unique=True))
    nodes = (Step(0, "START"), *(draw(steps(node)) for node in ids), Step(100, "END"))
    pairs = draw(
        st.lists(st.tuples(st.sampled_from([0, *ids]), st.sampled_from([*ids, 100])), unique=True, max_size=9)
    )
    cut = draw(st.integers(0, len(pairs)))
    link_of = {link.edge: link for link in draw(links(pairs[:cut])) if link != Link(link.edge)}
    wordings = [
        Wording(language, tuple((node, draw(LABEL)) for node in ids))
        for language in draw(st.lists(st.sampled_from(["de", "ja", "ar"]), unique=True))
    ]
    return Graph(
        "made.json",
        nodes,
        tuple(pairs[:cut]),
        links=tuple(link_of[edge] for edge in pairs[:cut] if edge in link_of),
        suggested=tuple(Link(edge, "quality", "uses the bowl", "rule: tool") for edge in pairs[cut:]),
        recipe=RecipeVersion(*(draw(WORD) for _ in range(5))),
        language=draw(st.sampled_from(["", "en"])),
        wordings=tuple(wordings),
    )


@pytest.mark.slow
@examples(200)
@given(graphs())
def test_graph_json_keeps_everything(graph: Graph) -> None:
    text = format_graph_json(graph)
    read = parse_graph_json(text, name="made.json")
    assert read == graph
    assert format_graph_json(read) == text
    assert read.content_hash == graph.content_hash


def test_published_graphs_survive_every_format(shared_data: Callable[[str], Path], tmp_path: Path) -> None:
    for path in sorted(shared_data("captaincook4d/task_graphs").glob("*.json")):
        published = read_graph(path)
        for target in ("graph", "captaincook4d"):
            out = tmp_path / f"{path.stem}.{target}.json"
            result = CliRunner().invoke(
                main, ["graph", "convert", str(path), "--to", target, "--out", str(out)]
            )
            assert (result.exit_code, result.stderr) == (0, "")
            assert read_graph(out).content_hash == published.content_hash
        assert (tmp_path / f"{path.stem}.captaincook4d.json").read_bytes() == path.read_bytes()


@pytest.mark.slow
def test_a_whole_folder_is_written_back_byte_for_byte(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shared_data("captaincook4d")
    result = CliRunner().invoke(
        main, ["graph", "convert", str(folder), "--out", str(tmp_path / "copy"), "--json"]
    )
    assert result.exit_code == 0
    written = json.loads(result.stdout)["written"]
    assert set(written) == {str(path.relative_to(folder)) for path in folder.glob("*/*")}
    for path in written:
        assert (tmp_path / "copy" / path).read_bytes() == (folder / path).read_bytes(), path


NAME = r'("(?:[^"\\]|\\.)*"|\d+)'
STATEMENT = re.compile(rf"  {NAME}(?: -> {NAME}| \[label={NAME}\])?;", re.DOTALL)


def unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: {"n": "\n"}.get(match[1], match[1]), text[1:-1], flags=re.DOTALL)


@pytest.mark.slow
@given(graphs())
def test_dot_has_every_step_and_every_edge(graph: Graph) -> None:
    by_id = STATEMENT.findall(format_dot(graph))
    assert {int(node): label for node, _, label in by_id if label}.keys() == {
        step.node for step in graph.nodes
    }
    assert [(int(a), int(b)) for a, b, label in by_id if b] == list(graph.edges)


@pytest.mark.parametrize("name", ["mine.dot", "mine.GV"])
def test_dot_is_not_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("digraph { 0 -> 1; }")
    for verb in ("check", "orders", "convert"):
        refused = CliRunner().invoke(main, ["graph", verb, str(tmp_path / name)])
        assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
        assert f"{name}: DOT cannot be read; give the graph as JSON" in refused.stderr


GOOD = {
    "schema": "graph/1",
    "nodes": [{"id": 1, "label": "Boil-Boil water"}, {"id": 2, "label": "B"}],
    "edges": [],
}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"schema": "graph/9"}, "schema: not 'graph/1'"),
        ({"title": "x"}, "unknown key 'title'"),
        ({"nodes": []}, "nodes: 0 steps"),
        ({"nodes": {}}, "nodes: not a list"),
        ({"nodes": [{"id": 1, "label": "A"}, {"id": 1, "label": "B"}]}, "a second step 1"),
        ({"nodes": [{"id": True, "label": "A"}]}, "not a whole number"),
        ({"nodes": [{"id": 1, "label": ""}]}, "has no text"),
        ({"nodes": [{"id": 1, "label": "A-b", "text": "C"}]}, "is not that of the label"),
        (
            {"nodes": [{"id": 1, "label": "A", "spans": [{"kind": "x", "start": 0, "end": 1}]}]},
            "unknown kind 'x'",
        ),
        (
            {"nodes": [{"id": 1, "label": "A", "spans": [{"kind": "tool", "start": 0, "end": 9}]}]},
            "not inside the label",
        ),
        ({"edges": [{"from": 1, "to": 7}]}, "there is no step 7"),
        ({"edges": [{"from": 1, "to": 2, "kind": "magic"}]}, "unknown kind 'magic'"),
        ({"edges": [{"from": 1, "to": 2}, {"from": 1, "to": 2}]}, "appears already"),
        ({"edges": [{"from": 1, "to": 2}], "suggested": [{"from": 1, "to": 2}]}, "is an edge already"),
        ({"languages": {"de": {"1": "Wasser kochen"}}}, "has no text for step 2"),
        ({"languages": {"de": {"1": "A", "2": "B", "3": "C"}}}, "there is no step 3"),
        ({"languages": {"de": {"1": "A", "2": "B", "²": "C"}}}, "there is no step ²"),
        ({"hash": "0" * 64}, "changed by hand"),
    ],
)
def test_bad_graph_json_is_one_line_with_its_place(change: dict[str, Any], why: str) -> None:
    assert parse_graph_json(json.dumps(GOOD), name="tea.json").steps
    with pytest.raises(BadGraph, match=why) as caught:
        parse_graph_json(json.dumps(GOOD | change), name="tea.json")
    assert str(caught.value).startswith("tea.json: ")


def test_texts_can_be_switched_to_another_language_and_back() -> None:
    german = Wording("de", ((1, "Koche-Koche Wasser"), (2, "B")))
    graph = Graph(
        "tea.json", (Step(1, "Boil-Boil water"), Step(2, "B")), ((1, 2),), language="en", wordings=(german,)
    )
    other = graph.in_language("de")
    assert other.by_node[1].text == "Koche Wasser"
    assert other.in_language("en").nodes == graph.nodes
    assert other.content_hash != graph.content_hash
    with pytest.raises(NotFound, match="no language 'fr'; tea.json has en, de"):
        graph.in_language("fr")


def toys(ids: tuple[str, ...] = ("0", "1", "2", "100")) -> dict[str, Any]:
    """Return a file as saved by the editor, with keys of the editor."""
    labels = ["START", "attach wheel", "attach “roof”", "END"]
    nodes = [
        {
            "width": 150,
            "id": node,
            "data": {"label": label, "checked": place == 1},
            "position": {"x": 10.5 * place, "y": 7},
            "selected": False,
        }
        for place, (node, label) in enumerate(zip(ids, labels, strict=True))
    ]
    edges = [
        {"id": f"xy-edge__{a}-{b}", "source": a, "target": b, "animated": True} for a, b in pairwise(ids)
    ]
    videos = {"seq_1": {"angles": ["a.mp4"], "w-error": False, "start": 1.5, "caption": "WEBVTT"}}
    examples = [
        {"toy_id": "a01", "nodes": nodes, "edges": edges, "filepath_image": "a01.png", "videos": videos},
        {"toy_id": "b02", "nodes": nodes, "edges": edges[:1], "filepath_image": "b02.png", "videos": {}},
    ]
    metadata = {"data-created": "2025-01-01", "annotator_id": "x", "total": 2, "toy_ids": ["a01", "b02"]}
    return {"metadata": metadata, "examples": examples}


@pytest.mark.slow
@pytest.mark.parametrize("ids", [("0", "1", "2", "100"), ("0", "dnd_1", "7", "100")])
@pytest.mark.parametrize("layout", assembly.LAYOUTS, ids=str)
def test_assembly_files_are_written_back_byte_for_byte(ids: tuple[str, ...], layout: assembly.Layout) -> None:
    indent, ascii_only, end = layout
    text = json.dumps(toys(ids), indent=indent, ensure_ascii=ascii_only) + end
    read = assembly.parse_assembly(text, name="all.json")
    assert assembly.layout_of(text, read) == layout
    for graph in read.graphs:  # and through our own formats
        assert parse_graph_json(format_graph_json(graph), name=graph.name) == graph


def test_one_of_several_toys_is_chosen_by_name(tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    path.write_text(json.dumps(toys()))
    assert [step.label for step in read_graph(path, toy="b02").nodes][1] == "attach wheel"
    with pytest.raises(BadGraph, match=r"has 2 graphs \(a01, b02\); choose one with"):
        read_graph(path)
    result = CliRunner().invoke(
        main, ["graph", "convert", str(path), "--toy", "a01", "--to", "captaincook4d"]
    )
    assert json.loads(result.stdout)["edges"] == [[0, 1], [1, 2], [2, 100]]


def test_a_kitchen_graph_becomes_a_toy_file(tmp_path: Path) -> None:
    path = tmp_path / "tea.json"
    steps = {"0": "START", "100": "Boil-Boil", "7": "Pour-Pour", "8": "END"}
    path.write_text(json.dumps({"steps": steps, "edges": [[0, 100], [100, 7], [7, 8]]}))
    out = tmp_path / "toy.json"
    assert (
        CliRunner()
        .invoke(main, ["graph", "convert", str(path), "--to", "assembly", "--out", str(out)])
        .exit_code
        == 0
    )
    document = json.loads(out.read_text())
    assert [node["id"] for node in document["examples"][0]["nodes"]] == ["0", "step-100", "7", "100"]
    assert [step.label for step in read_graph(out).nodes] == list(steps.values())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda d: d["examples"][0].pop("toy_id"), "toy_id: not a text"),
        (lambda d: d["examples"][0]["nodes"].append(d["examples"][0]["nodes"][0]), "two nodes with one id"),
        (lambda d: d["examples"][0]["edges"][0].update(source="9"), "there is no node '9'"),
        (lambda d: d["examples"][0]["nodes"][1]["data"].update(label=3), "node 1: has no text"),
    ],
)
def test_bad_assembly_files_are_one_line(change: Callable[[dict[str, Any]], Any], why: str) -> None:
    document = toys()
    change(document)
    with pytest.raises(BadGraph, match=why):
        assembly.parse_assembly(json.dumps(document), name="all.json")


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.cook", "", "cooklang"),
        ("a.txt", "", "text"),
        ("a.html", "<html>", "jsonld"),
        ("a.json", '{"@context": "https://schema.org", "@type": "Recipe"}', "jsonld"),
        ("a.json", '{"metadata": {}, "examples": [{"toy_id": "a"}]}', "assembly"),
        ("a.json", '{"schema": "graph/1"}', "graph"),
        ("a.json", '{"steps": {}, "edges": []}', "captaincook4d"),
    ],
)
def test_the_format_is_detected(name: str, text: str, kind: str) -> None:
    assert kind_of(name, text) == kind


def test_losses_of_a_format_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "tea.txt"
    path.write_text("Tea\n\nBoil the water in a kettle for 2 minutes. Pour it into a mug.\n")
    result = CliRunner().invoke(main, ["graph", "convert", str(path), "--to", "captaincook4d"])
    assert result.exit_code == 0
    assert "cannot hold suggested edges" in result.stderr
    assert CliRunner().invoke(main, ["graph", "convert", str(path), "--to", "graph"]).stderr == ""


def test_the_command_refuses_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    folder = str(tmp_path / "folder")
    for arguments, code in ((["absent.json"], 2), ([folder], 1), ([folder, "--out", str(tmp_path / "x")], 1)):
        result = CliRunner().invoke(main, ["graph", "convert", *arguments, "--json"])
        assert result.exit_code == code
        assert len(result.stderr.splitlines()) == 1
        assert json.loads(result.stdout)["schema"] == "convert/1"
