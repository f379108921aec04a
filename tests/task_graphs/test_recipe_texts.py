"""A recipe's text becomes a graph: selected lines, steps and proposed edges."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.graph_files import read_graph
from kitchensync.task_graphs.formats.recipe_sources import select_cooklang, select_json_ld, select_plain
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.scoring.validate import check_graph
from kitchensync.task_graphs.text.recipe_text import _without_tail, accept, develop, identify, new_graph

PLAIN = """Egg on toast

Ingredients:
- 1 egg
- 2 slices of bread

Method
1. Crack the egg into a bowl and whisk it well.
2. Heat 1 tbsp oil in a pan over medium heat.
3. Pour the egg into the pan; then cook for 2-3 minutes until it sets.
4. Toast the bread.
5. Serve everything together.
"""

COOK = """---
title: Pancakes
source: https://example.org/pancakes
locale: en_GB
---
Crack the @eggs{3} into a #large bowl{}. -- a comment
Add @flour{125%g} and @sea salt{1%pinch} [- another -] to the large bowl.

Let it stand for ~{15%minutes}, then serve with @lemon{1}(cut into wedges).

== Notes ==
> Best on Sundays.
"""

BOIL = {"@type": "HowToStep", "text": "Boil the <b>water</b> in a kettle."}
PAGE = {
    "@context": "https://schema.org",
    "@graph": [
        {"@type": "WebPage"},
        {
            "@type": ["Recipe"],
            "name": "Tea &amp; toast",
            "recipeIngredient": ["1 tea bag", "200 ml water"],
            "inLanguage": "en-GB",
            "recipeInstructions": [
                {"@type": "HowToSection", "name": "Tea", "itemListElement": [BOIL]},
                {"@type": "HowToStep", "text": "Pour the water from the kettle into a mug."},
                "Toast the bread.",
            ],
        },
    ],
}  # fmt: skip


def texts(graph: Graph) -> list[str]:
    return [step.text for step in graph.steps]


def suggested(graph: Graph) -> set[tuple[str, str]]:
    return {
        (graph.by_node[u].text, graph.by_node[v].text) for u, v in (link.edge for link in graph.suggested)
    }


def test_plain_text_becomes_one_action_per_step() -> None:
    selected = select_plain(PLAIN, name="egg.txt")
    assert (selected.title, selected.ingredients) == ("Egg on toast", ("1 egg", "2 slices of bread"))
    graph = new_graph(selected, name="egg.txt")
    assert texts(graph) == [
        "Crack the egg into a bowl",
        "Whisk it well",
        "Heat 1 tbsp oil in a pan over medium heat",
        "Pour the egg into the pan",
        "Cook for 2-3 minutes until it sets",
        "Toast the bread",
        "Serve everything together",
    ]
    assert [step.action for step in graph.steps][:3] == ["Crack", "Whisk", "Heat"]
    assert graph.by_node[5].est_s == 120
    assert not [finding for finding in check_graph(graph) if finding.code == "several-actions"]


def test_proposed_edges_have_reasons_and_do_not_order_steps() -> None:
    graph = new_graph(select_plain(PLAIN, name="egg.txt"), name="egg.txt")
    assert ("Crack the egg into a bowl", "Whisk it well") in suggested(graph)
    assert ("Heat 1 tbsp oil in a pan over medium heat", "Pour the egg into the pan") in suggested(graph)
    assert ("Crack the egg into a bowl", "Toast the bread") not in suggested(graph)
    assert all(link.why and link.origin.startswith("rule: ") for link in graph.suggested)
    assert graph.inner_edges == ()
    assert "suggested" in {finding.code for finding in check_graph(graph)}


def test_accepted_suggestions_keep_their_origin_and_make_a_sound_graph() -> None:
    graph = new_graph(select_plain(PLAIN, name="egg.txt"), name="egg.txt")
    taken = accept(graph)
    assert set(taken.inner_edges) == {link.edge for link in graph.suggested}
    assert taken.suggested == ()
    assert {link.origin for link in taken.links} == {link.origin for link in graph.suggested}
    assert {finding.level for finding in check_graph(taken)} <= {"note"}
    edge = graph.suggested[0].edge
    assert accept(graph, [edge]).inner_edges == (edge,)
    assert len(accept(graph, [edge]).suggested) == len(graph.suggested) - 1


def test_cooklang_marks_become_typed_pieces() -> None:
    selected = select_cooklang(COOK, name="pancakes.cook")
    assert (selected.title, selected.source, selected.language) == (
        "Pancakes",
        "https://example.org/pancakes",
        "en",
    )
    assert selected.ingredients == ("3 eggs", "125 g flour", "1 pinch sea salt", "1 lemon (cut into wedges)")
    graph = new_graph(selected, name="pancakes.cook")
    assert texts(graph) == [
        "Crack the 3 eggs into a large bowl",
        "Add 125 g flour and 1 pinch sea salt to the large bowl",
        "Let it stand for 15 minutes",
        "Serve with 1 lemon (cut into wedges)",
    ]
    pieces = [(span.kind, step.label[span.start : span.end]) for step in graph.steps for span in step.spans]
    for piece in [
        ("amount", "3"),
        ("ingredient", "eggs"),
        ("tool", "large bowl"),
        ("unit", "pinch"),
        ("ingredient", "sea salt"),
        ("duration", "15 minutes"),
        ("ingredient", "lemon"),
    ]:
        assert piece in pieces
    assert (graph.by_node[3].est_s, graph.by_node[3].passive) == (900, True)


def test_old_cooklang_metadata_and_short_marks_are_read() -> None:
    selected = select_cooklang(
        ">> title: Soup\nChop @onion and put it in the #pot with @&salt.\n", name="x.cook"
    )
    assert (selected.title, selected.ingredients) == ("Soup", ("onion", "salt"))
    assert selected.passages[0].text == "Chop onion and put it in the pot with salt."


def test_json_ld_alone_or_in_a_page_is_read() -> None:
    bare = json.dumps(PAGE)
    page = f'<html><head><script type="application/ld+json">{bare}</script></head><body>x</body></html>'
    for text in (bare, page, json.dumps(PAGE["@graph"])):
        graph = new_graph(select_json_ld(text, name="tea.json"), name="tea.json")
        assert texts(graph) == [
            "Boil the water in a kettle",
            "Pour the water from the kettle into a mug",
            "Toast the bread",
        ]
        assert (graph.recipe.title, graph.recipe.recipe, graph.language) == ("Tea & toast", "tea-toast", "en")
        assert ("Boil the water in a kettle", "Pour the water from the kettle into a mug") in suggested(graph)


@pytest.mark.parametrize(
    "instructions",
    ["Boil water.<br/>Pour it.", "1. Boil water.\n2. Pour it.", ["Boil water.", {"name": "Pour it."}]],
)
def test_json_ld_instructions_come_in_many_shapes(instructions: object) -> None:
    text = json.dumps({"@type": "https://schema.org/Recipe", "recipeInstructions": instructions})
    assert len(identify(select_json_ld(text, name="a.jsonld"))) == 2


HALF = '{"@type": "Recipe", "recipeInstructions": "Boil \\udc00 water."}'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.txt", " \n", "has no text"),
        ("a.txt", "Ingredients\nsalt\n", "has no instructions"),
        ("a.cook", ">> title: x\n", "has no instructions"),
        ("a.jsonld", "{", "not JSON"),
        ("a.jsonld", '{"@type": "WebPage"}', "no schema.org Recipe"),
        ("a.html", '<script type="application/ld+json">{</script>', "is not JSON"),
        ("a.html", f'<script type="application/ld+json">{HALF}</script>', "half a character"),
        ("a.txt", "Mix.\n" * 600, "the limit is 500"),
        ("a.txt", "Stir it. Mix it. " * 300, "602 steps; it must have 1 to 500"),
        ("a.txt", f"Stir {'x' * 1200}.", "text longer than 1000"),
        ("a.cook", "@" * 300_000, "this is not a recipe"),
    ],
)
def test_files_without_a_recipe_are_refused_in_one_line(
    tmp_path: Path, name: str, text: str, why: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadGraph, match=why):
        read_graph(tmp_path / name)


def test_a_hyphen_in_a_sentence_is_not_an_action() -> None:
    graph = new_graph(select_plain("Warm the oven to 180-200 degrees C.\n", name="a.txt"), name="a.txt")
    assert texts(graph) == ["Warm the oven to 180-200 degrees C"]


def test_steps_without_a_known_verb_keep_their_first_word() -> None:
    [step] = develop(identify(select_plain("Julienne the carrots.\n", name="a.txt")))
    assert (step.action, step.text) == ("Julienne", "Julienne the carrots")


def test_the_command_makes_and_accepts(tmp_path: Path) -> None:
    path, out = tmp_path / "egg.txt", tmp_path / "egg.json"
    path.write_text(PLAIN)
    result = CliRunner().invoke(main, ["graph", "convert", str(path), "--out", str(out), "--json"])
    answer = json.loads(result.stdout)
    assert (answer["from"], answer["to"], answer["suggested"] > 3) == ("text", "graph", True)
    assert read_graph(out).suggested
    again = ["convert", str(out), "--accept", "--out", str(out)]
    assert CliRunner().invoke(main, ["graph", *again]).exit_code == 1
    assert CliRunner().invoke(main, ["graph", *again, "--force"]).exit_code == 0
    assert read_graph(out).inner_edges
    assert (
        json.loads(CliRunner().invoke(main, ["graph", "check", str(out), "--json"]).stdout)["status"]
        == "PASS"
    )


LISTING = (
    "Melt the butter with the brown sugar in the small pan over low heat, stir the oats, the raisins and the "
    "chopped nuts into it, press the mixture into the lined tin with the back of a spoon, let it cool."
)


def test_a_long_sentence_is_split_between_its_actions() -> None:
    steps = develop(identify(select_plain(LISTING + "\n", name="bars.txt")))
    instructions = [step.instruction for step in steps]
    assert instructions == [
        "Melt the butter with the brown sugar in the small pan over low heat",
        "Stir the oats, the raisins and the chopped nuts into it",
        "Press the mixture into the lined tin with the back of a spoon, let it cool",
    ]
    assert [step.action for step in steps] == ["Melt", "Stir", "Press"]
    for step in steps:
        for span in step.spans:
            assert step.label[span.start : span.end] in LISTING


def test_short_sentences_and_lists_of_things_are_not_split() -> None:
    short = "Rinse the rice, drain it"
    things = "Add " + ", ".join(f"a heaped tablespoon of spice number {n}" for n in range(1, 5))
    for text in (short, things):
        assert [step.instruction for step in develop(identify(select_plain(f"{text}.\n", name="a.txt")))] == [
            text
        ]


def test_ends_of_steps_are_trimmed_in_linear_time() -> None:
    pattern = re.compile(r"(?:[\s;,.]|\b(?:and|then)\b)+$")
    rng = random.Random(7)
    pieces = ["and", "then", " ", ";", ",", ".", "a", "stir", "\n", "_", "\xe9", "than", "\t"]
    for _ in range(20_000):
        text = "".join(rng.choice(pieces) for _ in range(rng.randrange(9)))
        assert _without_tail(text) == pattern.sub("", text)
    assert _without_tail("stir" + " ;" * 200_000) == "stir"  # the pattern alone would take hours
