"""Hints for real step texts: their changes, known pitfalls, and hints refused for safety."""

from __future__ import annotations

import functools
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from kitchensync.cli import main
from kitchensync.task_graphs.errors import NoSuchScript
from kitchensync.task_graphs.formats.graph_files import read_graph
from kitchensync.task_graphs.mistakes.hints import (
    CATEGORY_NAMES,
    Hint,
    accepted,
    graph_hints,
    step_hints,
    texts_after,
    why_refused,
)
from kitchensync.task_graphs.mistakes.induced import INDUCIBLE, in_turn, induce
from kitchensync.task_graphs.model import Step
from kitchensync.task_graphs.text.safety import hazards_of, must_stay, why_misused, why_unsafe
from kitchensync.task_graphs.text.spans import find_spans, pieces, plural
from kitchensync.task_graphs.text.written_numbers import scaled, value_of, write

EXAMPLES = Path(__file__).resolve().parents[2] / "kitchensync" / "examples" / "recipes"


def texts(label: str, category: str) -> set[str]:
    return {hint.text for hint in step_hints(Step(1, label)) if hint.category == category}


@pytest.mark.parametrize(
    ("label", "category", "text"),
    [
        ("Slice-Slice 1/8 medium onion", "Measurement", "Slice 1/4 medium onion"),
        ("Slice-Slice 1/8 medium onion", "Measurement", "Slice 1/16 medium onion"),
        ("add-1/2 tsp baking powder to a blender", "Measurement", "Add 1/2 tbsp baking powder to a blender"),
        ("Pour-Pour 1 egg into the ramekin cup", "Measurement", "Pour 2 eggs into the ramekin cup"),
        ("Add-Add 2 tbsp flour", "Measurement", "Add some flour by eye, without measuring"),
        ("blitz-blitz the blender for 20 seconds", "Timing", "Blitz the blender for 10 seconds"),
        (
            "Cook-Cook for 1 min or until the tops start to bubble",
            "Timing",
            "Cook for 1 min, not checking",
        ),
        ("Microwave-Microwave for 1 minute 20 seconds", "Timing", "Microwave for 2 minutes 40 seconds"),
        ("Microwave-Microwave for 1 minute 20 seconds", "Timing", "Microwave for 40 seconds"),
        ("Melt-Melt the butter over low-medium heat", "Temperature", "Melt the butter over high heat"),
        (
            "Microwave-Microwave the cup on high for 30 seconds",
            "Temperature",
            "Microwave the cup on medium for 30 seconds",
        ),
        ("Flip-Flip it with a fork", "Preparation", "Flip it with a spoon"),
        ("Cut -Cut the English muffin with a knife", "Preparation", "Cut the English muffin with hands"),
        ("Chop-Chop 1 strawberry", "Technique", "Slice 1 strawberry"),
        ("stir-stir the ramekin cup", "Technique", "Stir the ramekin cup, too fast"),
        ("Sprinkle-Sprinkle 1 tbsp cheese", "Technique", "Sprinkle 1 tbsp cheese, spilling some"),
        ("Wait-Wait for 15-30 more seconds", "Timing", "Wait for 30-60 more seconds"),
    ],
)
def test_a_real_step_gives_the_hint(label: str, category: str, text: str) -> None:
    assert text in texts(label, category)


def test_a_ramekin_cup_is_not_a_unit() -> None:
    spans = {
        (span.kind, "Pour 1 egg into the ramekin cup"[span.start : span.end])
        for span in find_spans("Pour 1 egg into the ramekin cup")
    }
    assert ("tool", "ramekin cup") in spans
    assert not any(kind == "unit" for kind, _ in spans)
    assert pieces("Coat a 6-oz. ramekin cup", "unit") == ["oz."]
    assert not texts("Coat-Coat a 6-oz. ramekin cup", "Measurement")


def test_a_fish_slice_is_not_a_verb() -> None:
    texts = " ".join(hint.text for hint in step_hints(Step(1, "Flip-Flip the egg with a fish slice spatula")))
    assert "fish chop" not in texts
    assert "with a spoon" in texts


def test_a_frying_pan_never_becomes_a_frying_wok() -> None:
    texts = " ".join(
        hint.text for hint in step_hints(Step(1, "Heat-Heat 1 tbsp oil in a non-stick frying pan"))
    )
    assert "frying saucepan" not in texts
    assert "frying wok" not in texts


@given(st.integers(1, 64), st.sampled_from([2, 3, 4, 8, 16]))
def test_fractions_stay_exact_kitchen_fractions(top: int, bottom: int) -> None:
    for factor in (Fraction(2), Fraction(1, 2)):
        amount = scaled(f"{top}/{bottom}", factor)
        assert "." not in amount
        assert value_of(amount) == Fraction(top, bottom) * factor


@pytest.mark.parametrize(
    ("value", "like", "text"),
    [
        (Fraction(3, 4), "1.5", "0.75"),
        (Fraction(1, 16), "1/8", "1/16"),
        (Fraction(5, 2), "1/2", "2 1/2"),
        (Fraction(4), "two", "four"),
        (Fraction(3), "1", "3"),
        (Fraction(2, 3), "1.0", "2/3"),
    ],
)
def test_numbers_keep_their_style(value: Fraction, like: str, text: str) -> None:
    assert write(value, like=like) == text


@pytest.mark.parametrize(
    ("singular", "plural_form"),
    [
        ("egg", "eggs"),
        ("tomato", "tomatoes"),
        ("strawberry", "strawberries"),
        ("pinch", "pinches"),
        ("loaf", "loaves"),
        ("noodles", "noodles"),
    ],
)
def test_plurals(singular: str, plural_form: str) -> None:
    assert plural(singular) == plural_form


@pytest.mark.slow
def test_nearly_every_published_step_gets_a_hint_and_each_passes_the_gate(
    shared_data: Callable[[str], Path],
) -> None:
    published = json.loads(shared_data("captaincook4d/annotation_json/step_idx_description.json").read_text())
    with_hint = 0
    for key, label in published.items():
        step = Step(int(key), label)
        hints = step_hints(step)
        with_hint += bool(hints)
        assert len({hint.text.lower() for hint in hints}) == len(hints)
        for hint in hints:
            assert why_refused(step, hint) is None
            assert hint.text[0].isupper() or not hint.text[0].isalpha()
            assert "  " not in hint.text
    assert with_hint / len(published) > 0.97


def test_rules_match_errors_of_participants(shared_data: Callable[[str], Path]) -> None:
    """Check shares of the published errors whose step has a hint of that category, against measured figures."""
    errors = json.loads(shared_data("captaincook4d/annotation_json/error_annotations.json").read_text())
    fired, made = Counter[str](), Counter[str]()

    @functools.cache
    def offered_for(label: str) -> set[str]:
        return {hint.category for hint in step_hints(Step(1, label))}

    for recording in errors:
        for entry in recording["step_annotations"]:
            offered = offered_for(entry["description"])
            for category in {error["tag"].removesuffix(" Error") for error in entry.get("errors", [])}:
                made[category] += 1
                fired[category] += category in offered
    floors = {"Timing": 0.94, "Measurement": 0.9, "Technique": 0.79, "Preparation": 0.7, "Temperature": 0.67}
    shares = {category: fired[category] / made[category] for category in floors}
    assert {c: share for c, share in shares.items() if share < floors[c]} == {}


UNSAFE = [
    ("Microwave the chicken for 10 minutes", "Microwave the chicken for 5 minutes"),
    ("Fry the beef on high heat", "Fry the beef on low heat"),
    ("Fry the egg and serve", "Serve the egg raw"),
    ("Serve the meatballs", "Serve the meatballs undercooked"),
    ("Take the pan off the heat", "Take the hot pan off the heat with bare hands"),
    (
        "Remove the bowl from the microwave",
        "Remove the bowl from the microwave using your hands without gloves",
    ),
    ("Heat the oil", "Heat the oil and leave the kitchen"),
    ("Heat the oil", "Heat the oil unattended"),
    ("Simmer for 5 minutes", "Simmer for 5 minutes and forget the stove"),
    ("Cut the onion", "Cut the onion holding it in your hand towards your thumb"),
    ("Chop the tomato with a knife", "Chop the tomato with a knife with eyes closed"),
    ("Slice the bread", "Slice the bread against your chest"),
    ("Add water", "Add peanut butter"),
    ("Add 1 tbsp oil", "Add 1 tbsp sesame oil"),
    ("Add water to the bowl", "Add milk to the bowl"),
    ("Microwave the bowl for 2 minutes", "Microwave the bowl covered with foil for 2 minutes"),
    ("Microwave the mug", "Microwave the mug with a spoon inside"),
    ("Microwave the mug", "Microwave a metal cup"),
    ("Heat 2 tbsp oil", "Heat 2 tbsp oil until it smokes"),
    ("Add the onions", "Pour water into the hot oil"),
    ("Blend the tomatoes", "Blend the tomatoes without the lid"),
    ("Rinse a tomato", "Rinse a tomato with soap"),
    ("Fill the kettle with 300 ml of water", "Fill the kettle with 300 ml of juice"),
    ("Fill the kettle with 300 ml of water", "Fill the kettle with water and a tea bag"),
    ("Fill the kettle with 300 ml of water", "Fill the kettle with 300 ml of broth"),
    ("Boil the water in the kettle", "Boil the milk in the kettle"),
    ("Boil the water in the kettle", "Boil the eggs in the kettle"),
    ("Pour the water into the pot", "Pour the soup into the electric kettle"),
    ("Boil the water in the kettle", "Switch the kettle on without water"),
    ("Boil the water in the kettle", "Boil the water in the kettle on the stove"),
    ("Microwave the bowl for 2 minutes", "Microwave the pan for 2 minutes"),
    ("Microwave the bowl for 2 minutes", "Microwave the tin for 2 minutes"),
    ("Put the bowl in the microwave", "Put the saucepan in the microwave"),
    ("Microwave the egg", "Microwave the egg in its shell"),
    ("Microwave the jar", "Microwave the tightly sealed jar"),
    ("Put the bread into the toaster", "Put the bread with butter into the toaster"),
    ("Put the bread into the toaster", "Push the bread down with a fork in the toaster"),
    ("Add the tomatoes to the blender", "Add the boiling tomatoes to the blender"),
    ("Put the tray into the oven", "Put the plastic tray into the oven"),
]
SAFE = [
    ("Fill the kettle with 300 ml of water", "Fill the kettle with 600 ml of water"),
    ("Boil the water in the kettle", "Boil the water in the kettle for 1 minute only"),
    ("Pour the hot water from the kettle over the tea bag", "Pour the hot water from the kettle beside the tea bag"),
    ("Microwave the bowl for 2 minutes", "Microwave the mug for 2 minutes"),
    ("Put the bread into the toaster", "Put the bread into the toaster upside down"),
    ("Put the toast on a plate", "Put the toast with butter on a plate"),
]  # fmt: skip
"""Harmless changes with the same equipment; a check that refuses everything would pass the list above."""


@pytest.mark.parametrize(("original", "changed"), UNSAFE, ids=[changed for _, changed in UNSAFE])
def test_the_corpus_of_bad_hints_is_refused(original: str, changed: str) -> None:
    assert why_unsafe(original, changed) is not None
    for category in CATEGORY_NAMES:
        hint = Hint(1, category, "", "", "", changed, "")
        assert why_refused(Step(1, f"Do-{original}"), hint) is not None


@pytest.mark.parametrize(("original", "changed"), SAFE, ids=[changed for _, changed in SAFE])
def test_safe_uses_of_the_same_equipment_are_accepted(original: str, changed: str) -> None:
    assert why_misused(original, changed) is None


def test_metal_vessels_are_refused_before_a_microwave() -> None:
    step, hint = Step(1, "Place-Place the egg in a cup"), "Place the egg in a metal bowl"
    made = Hint(1, "Preparation", "", "", "", hint, "a metal bowl instead of a cup")
    assert why_refused(step, made, ["Stir it", "Fry it"]) is None
    assert why_refused(step, made, ["Stir it", "Microwave it for 30 seconds"]) == "metal in the microwave"


def test_no_rule_proposes_another_filling_for_the_kettle_nor_metal_before_the_microwave() -> None:
    vessels = re.compile(r"\b(?:metal|pan|saucepan|pot|tin|foil|wok)\b", re.IGNORECASE)
    for path in sorted(EXAMPLES.glob("*.json")):
        graph = read_graph(path)
        microwaved = any("microwave" in step.text.lower() for step in graph.steps)
        for step in graph.steps:
            for hint in step_hints(step, texts_after(graph, step.node)):
                if "kettle with" in hint.text or "in the kettle" in hint.text:
                    assert "water" in hint.text
                if microwaved and "microwave" in step.text.lower():
                    assert set(vessels.findall(hint.text)) <= set(vessels.findall(step.text))


@pytest.mark.parametrize(
    "wording",
    [
        "with bare hands on the hot stove",
        "ask at www.example.org",
        "see https://example.org",
        "<b>now</b>",
        "a\nb",
        "evil\u202egnirts",
    ],
)
def test_wordings_of_hints_are_checked_too(wording: str) -> None:
    hint = Hint(1, "Measurement", "", "", "", "Add 2 tsp salt", wording)
    assert why_refused(Step(1, "Add-Add 1 tsp salt"), hint) is not None


def test_hazards_of_the_recipe_itself_are_accepted() -> None:
    original = "Cover the bowl with foil and microwave it for 2 minutes"
    assert why_unsafe(original, original.replace("2", "4")) is None


@pytest.mark.parametrize(
    ("category", "text"),
    [
        ("Weather", "Add 2 tsp salt"),
        ("Measurement", "  "),
        ("Measurement", "Add 1 tsp SALT"),
        ("Measurement", "Add 1 tsp sugar"),
        ("Timing", "Add 2 tsp salt"),
        ("Temperature", "Add 2 tsp salt"),
        ("Technique", "Add 1 tsp salt for 3 minutes"),
        ("Other", "x" * 500),
    ],
)
def test_hints_that_do_not_fit_their_category_are_refused(category: str, text: str) -> None:
    assert why_refused(Step(1, "Add-Add 1 tsp salt"), Hint(1, category, "", "", "", text, "")) is not None


def test_duplicates_are_shown_once() -> None:
    step = Step(1, "Add-Add 1 tsp salt")
    hint = Hint(1, "Measurement", "", "", "", "Add 2 tsp salt", "")
    assert accepted(step, [hint, Hint(1, "Measurement", "", "", "", "add 2 tsp salt!", "")]) == [hint]


def test_hazards_are_named() -> None:
    assert hazards_of("Chop the chicken and fry it") == ("heat", "blade", "raw meat")
    assert must_stay("Turn the stove off")
    assert must_stay("Remove from heat")
    assert not must_stay("Heat the pan")


def test_order_and_missing_hints_name_dependent_steps() -> None:
    graph = read_graph(EXAMPLES / "tea_and_toast.json")
    node = graph.inner_edges[0][1]
    hints = graph_hints(graph, node)
    assert {hint.category for hint in hints} == {"Order", "Missing step"}
    assert hints[0].wording.startswith("Do it before “")


def test_induced_errors_are_balanced_and_protected_steps_kept() -> None:
    graph = read_graph(EXAMPLES / "pan_quesadilla.json")
    order = [step.node for step in graph.steps]
    chosen = induce(graph, order, count=4, seed=3, protected=order[:2])
    assert len(chosen) == 4
    assert not set(chosen) & set(order[:2])
    assert len({hint.category for hint in chosen.values()}) >= 3
    assert induce(graph, order, count=4, seed=3, protected=order[:2]) == chosen
    by_step = {step.node: step_hints(step, texts_after(graph, step.node)) for step in graph.steps}
    only = in_turn(by_step, ["Technique"], count=2, rng=random.Random(1))
    assert len(only) == 2
    assert {hint.category for hint in only.values()} == {"Technique"}
    with pytest.raises(NoSuchScript, match="were requested; request fewer"):
        induce(graph, order, count=99, seed=1)
    assert set(INDUCIBLE) < set(CATEGORY_NAMES)


def test_the_command_proposes_errors_by_step() -> None:
    path = str(EXAMPLES / "pan_quesadilla.json")
    result = CliRunner().invoke(main, ["graph", "hints", path, "--json"])
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["schema"], answer["notes"]) == (0, "hints/1", [])
    categories = {hint["category"] for step in answer["steps"] for hint in step["hints"]}
    assert {"Technique"} < categories <= set(CATEGORY_NAMES)
    spoken = CliRunner().invoke(main, ["graph", "hints", path, "--step", str(answer["steps"][0]["node"])])
    assert answer["steps"][0]["text"] in spoken.stdout


def test_the_command_refuses_an_unknown_step() -> None:
    path = str(EXAMPLES / "pan_quesadilla.json")
    result = CliRunner().invoke(main, ["graph", "hints", path, "--step", "999"])
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
