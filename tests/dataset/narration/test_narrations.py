"""Narrations: words as they are spoken, what one person said, where it lies in the film, and sounds kept once."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kitchensync.dataset.narration.narrations import NARRATED, draw_recordings, fine_grained, narrations_of
from kitchensync.dataset.narration.sounds import add_part, finish, sound_file
from kitchensync.dataset.narration.spoken import grammar_of, number_in_words, parse, spoken_words
from kitchensync.operations.errors import NotNow
from kitchensync.task_graphs.errors import NotFound


def told(actor: str, **body: Any) -> dict[str, Any]:
    return {"kind": NARRATED, "actor": actor, "body": {"removed": None, **body}}


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "zero"),
        (13, "thirteen"),
        (40, "forty"),
        (300, "three hundred"),
        (1101, "one thousand one hundred one"),
    ],
)
def test_numbers_are_spoken(number: int, words: str) -> None:
    assert number_in_words(number) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Fill the kettle with 300 ml of water", "fill the kettle with three hundred milliliters of water"),
        ("Peel-Peel 1 tsp ginger", "peel one teaspoon ginger"),
        ("Add 1/2 cup, then wait 2 min.", "add half cup then wait two minutes"),
        ("<b>&", "b"),
        ("Take 10 cm\u00b2 of puff pastry", "take ten cm\u00b2 of puff pastry"),
        ("Add \u00b2 eggs", "add \u00b2 eggs"),
    ],
)
def test_steps_are_spoken(text: str, words: str) -> None:
    assert " ".join(spoken_words(text)) == words


def test_words_that_cannot_be_recognized_are_named_and_left_out() -> None:
    grammar = grammar_of(["Sieve the quark", "Quark"], lambda word: word != "quark")
    assert grammar.unknown == ("quark",)
    assert "quark" not in grammar.text
    assert grammar_of(["Quark"], lambda _: False).text == ""


@pytest.mark.parametrize(
    ("text", "verb", "noun"),
    [
        ("now pour the hot water into the cup", "pour", "hot water"),
        ("place one tea bag", "place", "tea bag"),
        ("the water", "", ""),
        ("", "", ""),
    ],
)
def test_verb_and_noun_are_those_of_the_steps(text: str, verb: str, noun: str) -> None:
    found = parse(text, ["Pour the hot water into the cup", "Place one tea bag in the cup"])
    assert (found.verb, found.noun) == (verb, noun)


def test_a_person_has_their_own_narrations_as_they_were_last() -> None:
    one, other = f"{1:016x}", f"{2:016x}"
    ops = [
        told("a", narration=one, frame=90),
        told("a", narration=other, frame=30, text="boil"),
        told("b", narration=one, frame=7),
        told("a", narration=one, text="pour"),
        told("a", narration=one, text="pour water"),
    ]
    assert [(x["frame"], x["text"]) for x in narrations_of(ops, "a")] == [(30, "boil"), (90, "pour water")]
    ops.append(told("a", narration=other, removed=True))
    assert [x["narration"] for x in narrations_of(ops, "a")] == [one]


def test_each_narration_lies_in_its_step() -> None:
    steps = {4: "Boil the water", 5: "Pour the water", 6: "Serve"}
    spans = [(4, 0.0, 10.0), (5, 8.0, 20.0), (6, 30.0, 40.0)]
    said = [
        {"frame": 30, "text": "boil the water", "source": "pocketsphinx"},
        {"frame": 270, "text": "pour the water"},
        {"frame": 300, "text": "pour more", "end_frame": 329},
        {"frame": 750, "text": "nothing is done"},
    ]
    first, second, third, fourth = fine_grained(said, spans, steps, Fraction(30))
    assert (first["step"], first["start"], first["end"], first["source"]) == (4, 1.0, 9.0, "pocketsphinx")
    assert (second["step"], second["verb"], second["noun"]) == (5, "pour", "water")
    assert (second["end"], third["end"], third["source"]) == (10.0, 11.0, "typed")
    assert (fourth["step"], fourth["start"], fourth["end"]) == (None, 25.0, 25.0)


@given(st.dictionaries(st.text("abc", min_size=1), st.sampled_from("xyz"), max_size=40), st.integers())
def test_a_fifth_of_each_recipe_is_drawn(recordings: dict[str, str], seed: int) -> None:
    found = draw_recordings(recordings, seed)
    assert found == draw_recordings(dict(reversed(recordings.items())), seed)
    for recipe in set(recordings.values()):
        its = [name for name, one in recordings.items() if one == recipe]
        assert len(found & set(its)) == -(-len(its) // 5)


@given(st.lists(st.text("abc", min_size=1), unique=True, max_size=40), st.integers())
def test_a_recording_that_arrives_displaces_one_at_most(names: list[str], seed: int) -> None:
    before: frozenset[str] = frozenset()
    for count, name in enumerate(names, 1):
        found = draw_recordings(dict.fromkeys(names[:count], "tea"), seed)
        displaced = before - found
        assert len(displaced) <= 1
        assert not displaced or name in found
        before = found


@given(
    st.binary(min_size=1, max_size=60),
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=12),
)
def test_parts_that_come_twice_or_late_make_one_sound(tmp_path_factory, whole: bytes, tries: list) -> None:
    recording = tmp_path_factory.mktemp("recording")
    file = sound_file(recording, "one", ".webm")
    there = 0
    for at, length in tries:
        content = whole[at : at + length]
        if at > there:
            with pytest.raises(NotNow):
                add_part(recording, file, at, content)
            continue
        there = max(there, at + len(content))
        assert add_part(recording, file, at, content) == there
        if content:
            with pytest.raises(NotNow, match="another one"):
                add_part(recording, file, at, bytes([content[0] ^ 1]) + content[1:])
    add_part(recording, file, there, whole[there:])
    assert finish(recording, file) == (hashlib.sha256(whole).hexdigest(), len(whole))
    assert finish(recording, file) == (hashlib.sha256(whole).hexdigest(), len(whole))
    with pytest.raises(NotNow, match="finished"):
        add_part(recording, file, 0, whole)
    with pytest.raises(NotFound):
        finish(recording, sound_file(recording, "other", ".webm"))
    assert [path.name for path in file.parent.iterdir()] == ["one.webm"]
