"""A recipe in plain text: every line is classified and shown, in the order of the text."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kitchensync.task_graphs.errors import RecipeError
from kitchensync.task_graphs.formats.by_name import written_graph, written_lines
from kitchensync.task_graphs.order.orders import count_orders
from kitchensync.task_graphs.scoring.validate import check_graph
from kitchensync.task_graphs.text.plain_lines import LINE_KINDS, read_lines

TEA = """Tea for guests
Serves 4

Ingredients:
- 4 tea bags
For the tea:
1. Boil 1 l of water.
2. Pour the water over the tea bags and wait for 3 minutes.
Tip: warm the cups first
----
Serve
"""


def kinds(text: str) -> list[str]:
    return [line.kind for line in read_lines(text)]


def test_kinds_of_lines_are_recognized() -> None:
    assert [(line.number, line.kind, line.text) for line in read_lines(TEA)] == [
        (1, "title", "Tea for guests"),
        (2, "yield", "Serves 4"),
        (4, "heading", "Ingredients:"),
        (5, "ingredient", "4 tea bags"),
        (6, "heading", "For the tea:"),
        (7, "step", "Boil 1 l of water."),
        (8, "step", "Pour the water over the tea bags and wait for 3 minutes."),
        (9, "note", "Tip: warm the cups first"),
        (10, "note", "----"),
        (11, "step", "Serve"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Cut a lemon\nPour water\nServe\n", "step step step"),  # a first step is no title
        ("Fill the kettle with 300 ml of water\n\nBoil it\n\nServe\n", "step step step"),
        ("Wasser kochen\nTee aufgießen\nServieren\n", "step step step"),
        ("Toast with egg\nServes 2\nToast the bread\n", "title yield step"),
        ("# Toast\nToast the bread\n", "title step"),
        ("Lemon water\nCut a lemon\nServe 4 pieces\n", "title step step"),
        ("Linsensuppe\nFür 4 Personen\nZutaten\n200 g Linsen\nZubereitung\nLinsen kochen\n",
         "title yield heading ingredient heading step"),
        ("شاي\nيكفي 4\nالطريقة\nاغلِ الماء\n", "title yield heading step"),
        ("For the sauce, melt 2 spoons of butter\nServe\n", "step step"),
        ("Stir the following: oil, salt\nServe\n", "step step"),
        ("Cut a lemon", "step"),
    ],
)  # fmt: skip
def test_a_title_is_recognized_by_its_form(text: str, expected: str) -> None:
    assert kinds(text) == expected.split()


def test_kinds_chosen_by_a_person_are_used() -> None:
    line_kinds = ["step", "note", *kinds(TEA)[2:]]
    graph = written_graph(TEA, name="tea.txt", kinds=line_kinds)
    assert graph.steps[0].text.endswith("Tea for guests")
    assert ["note", "Serves 4"] in json.loads(graph.extra)["written"]


def test_the_steps_stay_in_the_order_as_written() -> None:
    graph = written_graph(TEA, name="tea.txt")
    assert [step.text for step in graph.steps] == [
        "Boil 1 l of water",
        "Pour the water over the tea bags",
        "Wait for 3 minutes",
        "Serve",
    ]
    assert graph.edges == ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5))
    assert (count_orders(graph), graph.recipe.title, graph.suggested) == (1, "Tea for guests", ())
    assert not [finding for finding in check_graph(graph) if finding.level != "note"]


WORDS = st.sampled_from(
    [
        "Tea",
        "Serves 4",
        "# Soup",
        "Ingredients:",
        "For the sauce:",
        "- 1 egg",
        "1. Boil water",
        "Stir and serve",
        "Serve",
        "***",
        "Note: hot",
        "و",
        "Wasser kochen",
        " ",
        ";",
        "and then",
        "Makes 2\u2028cups",
        "Step 3. Wait",
        "x",
    ]
)
TEXTS = st.lists(st.one_of(WORDS, st.text(max_size=30)), min_size=1, max_size=14).map("\n".join)


@pytest.mark.slow
@example("and then. Stir")
@example("ß")
@given(text=TEXTS)
def test_all_lines_and_all_words_of_steps_are_kept(text: str) -> None:
    rows = re.split("\r\n|\r|\n", text)
    try:
        lines = written_lines(text, name="any.txt")
    except RecipeError:
        return  # refused whole, with its reason
    assert [line.number for line, _ in lines] == [n for n, row in enumerate(rows, 1) if row.strip()]
    for line, steps in lines:
        assert line.kind in LINE_KINDS
        assert line.text in rows[line.number - 1]
        assert line.text.strip()
        assert bool(steps) == (line.kind == "step")
        joining = {"AND", "THEN"}
        shown = " ".join(step.label.upper() for step in steps)
        if steps:
            words = set(re.findall(r"\w+", line.text.upper())) - joining
            assert words <= set(re.findall(r"\w+", shown))
    nodes = [step.node for _, steps in lines for step in steps]
    assert nodes == list(range(1, len(nodes) + 1))
