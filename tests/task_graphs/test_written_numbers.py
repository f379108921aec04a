"""Amounts and times in recipe texts are read as the written number, or not at all."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recipe_lines import AMOUNTS, SECONDS, numbers

from kitchensync.task_graphs.text.spans import pieces, timers
from kitchensync.task_graphs.text.written_numbers import scaled, value_of, values_of, write


@pytest.mark.parametrize("text", AMOUNTS)
def test_amounts_have_the_written_number(text: str) -> None:
    amounts = pieces(text, "amount")
    assert [value for amount in amounts for value in values_of(amount)] == numbers(AMOUNTS[text])
    for amount in amounts:
        for factor in (Fraction(2), Fraction(1, 2)):
            assert values_of(scaled(amount, factor)) == [value * factor for value in values_of(amount)]


@pytest.mark.parametrize("text", SECONDS)
def test_times_have_the_written_number(text: str) -> None:
    expected = SECONDS[text]
    assert [(timer.seconds, timer.most_seconds) for timer in timers(text)] == ([expected] if expected else [])


LIKE = st.sampled_from(["1/8", "1.5", "2", "two", "1½", "0,5", "1,000"])


@given(st.integers(1, 5000), st.sampled_from([1, 2, 3, 4, 8]), LIKE)
def test_written_amounts_are_read_unchanged(above: int, below: int, like: str) -> None:
    value = Fraction(above, below)
    assert value_of(write(value, like=like)) == value


@given(st.text("0123456789½¼/⁄.,- \u00a0one and half", max_size=12))
def test_any_text_is_a_number_or_none(text: str) -> None:
    for amount in pieces(f"Add {text} cups", "amount"):
        assert values_of(amount)
