"""The labelling configuration: any text of a step goes through it unchanged."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kitchensync.dataset.annotation.forms.label_config import audio_config, parse_labels, timeline_config
from kitchensync.dataset.annotation.labels import labels_of

TEXTS = ["salt & pepper", "heat < 180 °C > 5 min", 'say "done"', "stir 🍳 twice", "x" * 282, "it's ]]> --"]
LETTERS = st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="\ufffe\uffff")


@pytest.mark.parametrize("write", [timeline_config, audio_config])
def test_hard_texts_are_read_back_by_another_reader(write) -> None:
    labels = [f"S{number:02} · {text}" for number, text in enumerate(TEXTS, 1)]
    content = write(labels, shows_errors=False)
    assert [one.get("value") for one in fromstring(content).iter("Label")] == labels
    assert parse_labels(content, "config.xml") == set(labels)
    assert b"$errors" not in content


@given(st.lists(st.text(LETTERS, min_size=1, max_size=300), min_size=1, max_size=20, unique=True))
def test_any_text_is_read_back(texts: list[str]) -> None:
    labels = [f"S{number} · {text}" for number, text in enumerate(texts)]
    assert parse_labels(timeline_config(labels, shows_errors=True), "config.xml") == set(labels)


def test_two_steps_of_one_text_have_two_labels() -> None:
    steps = {"4": {"label": "Stir-Stir it"}, "11": {"label": "Stir-Stir\x0b\n it"}}
    assert labels_of({"steps": steps}) == {4: "S01 · Stir it", 11: "S02 · Stir it"}
