"""What people write and other tools export: graphs, recipes, marks on films, lists, spoken words."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from media import written
from registry import parser

from kitchensync.calibration.estimate.board import Board
from kitchensync.dataset.annotation.forms.elan import parse_elan, write_elan
from kitchensync.dataset.annotation.forms.label_config import parse_labels, timeline_config
from kitchensync.dataset.annotation.forms.marked_steps import Marked, TimedMark, steps_of
from kitchensync.dataset.annotation.read_file import read_file
from kitchensync.dataset.measures.cases import CaseReader
from kitchensync.dataset.narration.spoken import parse as parse_spoken
from kitchensync.dataset.promqa.assembly_steps import parse_steps
from kitchensync.dataset.tables.localization import parse_split
from kitchensync.storage.geometry.errors import Refused
from kitchensync.task_graphs.errors import BadGraph, RecipeError
from kitchensync.task_graphs.formats import annotations
from kitchensync.task_graphs.formats.by_name import parse_graph, written_graph
from kitchensync.task_graphs.formats.graph_files import read_graph
from kitchensync.task_graphs.formats.graph_json import format_graph_json
from kitchensync.task_graphs.order.closure import relation
from kitchensync.task_graphs.scoring.score import read_recorded
from kitchensync.task_graphs.text.spans import find_spans, timers

RECIPES = sorted((Path(__file__).parents[2] / "kitchensync" / "examples" / "recipes").glob("*.json"))


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _graphs() -> list[bytes]:
    own = [format_graph_json(read_graph(path)).encode() for path in RECIPES[:1]]
    plain = {
        "steps": {"0": "START", "1": "Boil water", "2": "Add salt", "3": "END"},
        "edges": [[0, 1], [1, 2], [2, 3]],
    }
    return [*own, *(path.read_bytes() for path in RECIPES[:1]), json.dumps(plain).encode()]


def _graph_parser(kind: str, what: str, seeds: Callable[[], list[bytes]]) -> None:
    def read(content: bytes) -> None:
        found = parse_graph(_text(content), name=f"tea.{kind}", kind=kind)
        format_graph_json(found)

    read.__name__ = f"graph_{kind}"
    parser(what, RecipeError, seeds=seeds)(read)


_COOK = b"""---
title: Tea
source: https://example.org
locale: en
---
>> servings: 2
= Part
Boil @water{1/2%l} in a #pot{}. Wait ~tea{3-4%minutes}(long) and add @salt. -- a note
[- hidden -]

Pour into @&(1)cups{2}, then stir for ~{10%s}.
"""
_RECIPE = """# Tea

Ingredients:
- 1/2 l water
- 2 tsp. sugar
\u2022 3\u20134 leaves of mint

Method:
1. Boil the water for 3 to 4 minutes, then turn the heat off.
2) Add 2 teaspoons of sugar (brown, if there is some) and stir until it is dissolved.
Serve at 60 \u00b0C; it keeps for 2 hours.
""".encode()
_JSON_LD = b"""<html><script type="application/ld+json">{"@context": "https://schema.org", "@graph": [{
"@type": "Recipe",
"name": "Tea", "recipeIngredient": ["1 l water"], "recipeInstructions": [{"@type": "HowToSection", "itemListElement":
[{"@type": "HowToStep", "text": "Boil &amp; stir."}, {"@type": "HowToStep", "text": "Pour."}]}, "Serve."]}]}</script>
"""


def _toys() -> list[bytes]:
    nodes = [{"id": str(n), "data": {"label": label}} for n, label in enumerate(("START", "attach a", "END"))]
    edges = [{"id": "e", "source": "0", "target": "1"}, {"id": "f", "source": "1", "target": "2"}]
    toy = {"toy_id": "a01", "nodes": nodes, "edges": edges, "filepath_image": "a.png", "videos": {}}
    return [json.dumps({"metadata": {"total": 1}, "examples": [toy]}).encode()]


_graph_parser("graph", "our own graphs", _graphs)
_graph_parser("captaincook4d", "graphs of CaptainCook4D", _graphs)
_graph_parser("assembly", "graphs of toys", _toys)
_graph_parser("cooklang", "recipes in Cooklang", lambda: [_COOK])
_graph_parser("jsonld", "recipes in web pages", lambda: [_JSON_LD])
_graph_parser("text", "recipes in plain text", lambda: [_RECIPE])


@parser("the words of a recipe: lines, spans, timers, order", RecipeError, seeds=lambda: [_RECIPE])
def recipe_words(content: bytes) -> None:
    text = _text(content)[:20_000]
    find_spans(text)
    timers(text)
    relation(written_graph(text, name="tea.txt"))


@parser(
    "assembly mistakes, rows of a CSV", RecipeError, seeds=lambda: [b"0,30,attach,wheel,body,correct,\n" * 3]
)
def assembly_mistakes(content: bytes) -> None:
    parse_steps(_text(content))


def _orders() -> list[bytes]:
    nodes = [step.node for step in _tea().steps]
    return [
        json.dumps({"total": 1, "sampler": "dp", "orders": [nodes]}).encode(),
        json.dumps([nodes, [nodes[0]]]).encode(),
    ]


@parser("orders that were recorded", BadGraph, seeds=_orders)
def recorded_orders(content: bytes) -> None:
    read_recorded(written(content, "orders.json"), _tea())


@functools.cache
def _tea() -> Any:
    return read_graph(RECIPES[0])


def _annotations() -> dict[str, Any]:
    entry = {"step_id": 1, "start_time": 1.0, "end_time": 2.0, "description": "Boil"}
    wrong = entry | {"errors": [{"tag": "Timing Error", "description": "late"}]}
    one = {"recording_id": "1_7", "activity_id": 1, "activity_name": "Tea", "person_id": 1, "environment": 2}
    return {
        annotations.COMPLETE: {"1_7": {**one, "steps": [entry]}},
        annotations.ERRORS: [{**one, "is_error": True, "step_annotations": [wrong]}],
        annotations.STEP_TEXTS: {"1": "Boil"},
        annotations.CATEGORIES: {"Timing Error": 4},
    }


@parser(
    "a folder of annotations as published", RecipeError, seeds=lambda: [json.dumps(_annotations()).encode()]
)
def published_annotations(content: bytes) -> None:
    found = json.loads(content) if content[:1] == b"{" and _is_json(content) else {}
    texts = {path: json.dumps(found.get(path)) for path in _annotations() if path in found}
    texts |= {
        path: _text(content) for path in (annotations.COMPLETE, annotations.ERRORS) if path not in texts
    }
    annotations.parse_annotations({annotations.STEP_TEXTS: "{}", **texts})


def _is_json(content: bytes) -> bool:
    with contextlib.suppress(ValueError, RecursionError):
        return isinstance(json.loads(content), dict)
    return False


_MARKED = Marked(
    "take1", tuple(TimedMark(f"step {n}", n * 10**9, n * 10**9 + 7, "ann", "") for n in range(4)), "f" * 64
)


def _elans() -> list[bytes]:
    return [write_elan(_MARKED, "take1.mp4", utc_s=10**9)[0]]


@parser("marks of ELAN", BadGraph, seeds=_elans)
def elan(content: bytes) -> None:
    steps_of(parse_elan(content, None, "a.eaf"), frozenset({"step 1"}))


def _tasks() -> list[bytes]:
    span = {"type": "timelinelabels", "from_name": "step", "to_name": "video", "id": "a"}
    span |= {"value": {"ranges": [{"start": 1, "end": 30}], "timelinelabels": ["step 1"]}}
    said = {
        "type": "labels",
        "from_name": "action",
        "id": "b",
        "value": {"start": 0.5, "end": 2.0, "labels": ["step 1"]},
    }
    words = {
        "type": "textarea",
        "from_name": "transcription",
        "id": "b",
        "value": {"start": 0.5, "end": 2, "text": ["x"]},
    }
    flag = {"type": "choices", "from_name": "flag", "id": "c", "value": {"choices": ["sync off"]}}
    result = [span, said, words, flag]
    one = {"id": 1, "completed_by": {"id": 1, "email": "a"}, "was_cancelled": False, "result": result}
    data = {"recording_id": "take1", "frames": 100, "fps": 30, "video": "a.mp4"}
    return [json.dumps([{"id": 7, "data": data, "annotations": [one, one], "predictions": [one]}]).encode()]


@parser("exports of an annotation server", BadGraph, seeds=_tasks)
def server_export(content: bytes) -> None:
    read_file(written(content, "export.json"), None, None)


@parser(
    "a labelling configuration, XML", BadGraph, seeds=lambda: [timeline_config(["a", "b"], shows_errors=True)]
)
def label_config(content: bytes) -> None:
    parse_labels(content, "config.xml")


@parser(
    "cases to measure", BadGraph, seeds=lambda: [b'[{"predictions": [{"start": 1, "end": 2.5}], "gold": []}]']
)
def measured_cases(content: bytes) -> None:
    CaseReader("cases.json").cases(content)


@parser("lists of a split", BadGraph, seeds=lambda: [b'{"train": ["1_7"], "val": ["1_8"], "test": []}'])
def split_list(content: bytes) -> None:
    parse_split(_text(content), "split.json", ("1_7", "1_8"))


@parser("spoken words", seeds=lambda: [b"now i pour two hundred grams of the milk into the bowl"])
def spoken_words(content: bytes) -> None:
    parse_spoken(_text(content), ("Pour 200 g of milk into the bowl", "Stir"))


@parser("a board in words", Refused, seeds=lambda: [b"11x8:24mm/18mm:DICT_4X4_250", b"5x4:30mm/20mm"])
def board_words(content: bytes) -> None:
    board = Board.from_text(_text(content))
    if board.columns * board.rows < 100:
        board.text()
