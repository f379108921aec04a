"""Task-graph files are checked when read and written back byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.captaincook4d import (
    LAYOUTS,
    format_captaincook4d,
    layout_of,
    parse_captaincook4d,
)
from kitchensync.task_graphs.formats.graph_files import MAX_BYTES, read_graph
from kitchensync.task_graphs.model import Graph, Step

TWO_EQUAL_TEXTS = "mezze_platter"
EXAMPLES = Path(__file__).resolve().parents[2] / "kitchensync" / "examples" / "recipes"


def test_published_files_are_written_back_byte_for_byte(shared_data: Callable[[str], Path]) -> None:
    layouts = {}
    for path in sorted(shared_data("captaincook4d/task_graphs").glob("*.json")):
        text = path.read_bytes().decode()
        graph = read_graph(path)
        layouts[path.stem] = layout_of(text, graph)
        assert json.loads(format_captaincook4d(graph)) == json.loads(text)
    assert set(layouts.values()) <= set(LAYOUTS)
    assert layouts["pinwheels"] == "line-and-pairs"


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    ids = draw(st.lists(st.integers(0, 999), min_size=1, max_size=8, unique=True))
    label = st.text(min_size=1, max_size=30).filter(lambda t: t.strip() and t not in ("START", "END"))
    pairs = st.tuples(st.sampled_from(ids), st.sampled_from(ids))
    edges = draw(st.lists(pairs, unique=True, max_size=10))
    return Graph("made.json", tuple(Step(node, draw(label)) for node in ids), tuple(edges))


@pytest.mark.slow
@given(graphs(), st.sampled_from(sorted(LAYOUTS)))
def test_every_layout_reads_back_as_the_same_graph(graph: Graph, layout: str) -> None:
    text = format_captaincook4d(graph, layout=layout)
    assert parse_captaincook4d(text, name="made.json") == graph


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "tea.json: line 1: not JSON"),
        ("[1, 2]", "tea.json: not a task graph"),
        ('{"steps": {"1": "egg \\ud83d"}, "edges": []}', "tea.json: has half a character"),
        ('{"steps": {"0": "START"}}', 'tea.json: no "edges"'),
        ('{"steps": {"1": "A"}, "edges": [], "title": "x"}', "tea.json: 'title': unknown key"),
        ('{"steps": {"1": "A", "1": "B"}, "edges": []}', "tea.json: '1': appears twice"),
        ('{"steps": ["A"], "edges": []}', "tea.json: steps: not an object"),
        ('{"steps": {}, "edges": []}', "tea.json: steps: 0 steps"),
        ('{"steps": {"one": "A"}, "edges": []}', 'tea.json: step "one": an id is a whole number'),
        ('{"steps": {"01": "A"}, "edges": []}', 'tea.json: step "01": an id is a whole number'),
        ('{"steps": {"1": " "}, "edges": []}', 'tea.json: step "1": has no text'),
        ('{"steps": {"1": "START", "2": "START"}, "edges": []}', 'tea.json: step "2": a second START'),
        ('{"steps": {"1": "A"}, "edges": {}}', "tea.json: edges: not a list"),
        ('{"steps": {"1": "A"}, "edges": [[1]]}', "tea.json: edges[0]: not a pair"),
        ('{"steps": {"1": "A"}, "edges": [[1, true]]}', "tea.json: edges[0]: not a pair"),
        ('{"steps": {"1": "A"}, "edges": [[1, 7]]}', "tea.json: edges[0]: there is no step 7"),
        (
            '{"steps": {"1": "A", "2": "B"}, "edges": [[1, 2], [1, 2]]}',
            "tea.json: edges[1]: [1, 2] appears already",
        ),
    ],
)
def test_errors_are_one_line_with_file_and_place(text: str, message: str) -> None:
    with pytest.raises(BadGraph) as caught:
        parse_captaincook4d(text, name="tea.json")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_unreadable_files_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadGraph, match=r"absent\.json: cannot be read"):
        read_graph(tmp_path / "absent.json")
    latin = tmp_path / "latin.json"
    latin.write_bytes(b'{"steps": {"1": "cr\xe8me"}}')
    with pytest.raises(BadGraph, match=r"latin\.json: byte 19: not UTF-8"):
        read_graph(latin)
    large = tmp_path / "large.json"
    large.write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(BadGraph, match="too large"):
        read_graph(large)
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 200_000)
    with pytest.raises(BadGraph, match="nested too deeply"):
        read_graph(deep)


def test_example_recipes_have_no_findings() -> None:
    from kitchensync.task_graphs.scoring.validate import check_graph

    paths = sorted(EXAMPLES.glob("*.json"))
    assert len(paths) >= 4
    for path in paths:
        findings = [(finding.level, finding.code) for finding in check_graph(read_graph(path))]
        assert findings == ([("note", "shared-text")] if path.stem == TWO_EQUAL_TEXTS else []), path.name
