"""Amounts and times as people write them: read as the number that stands there, or not at all."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recipe_lines import AMOUNTS, SECONDS, numbers

from kitchensync.task_graphs.text.spans import pieces, timers
from kitchensync.task_graphs.text.written_numbers import scaled, value_of, values_of, write


@pytest.mark.parametrize("text", AMOUNTS)
def test_an_amount_is_the_number_that_stands_there(text: str) -> None:
    said = pieces(text, "amount")
    assert [value for one in said for value in values_of(one)] == numbers(AMOUNTS[text])
    for one in said:
        for factor in (Fraction(2), Fraction(1, 2)):
            assert values_of(scaled(one, factor)) == [value * factor for value in values_of(one)]


@pytest.mark.parametrize("text", SECONDS)
def test_a_time_is_the_number_that_stands_there(text: str) -> None:
    expected = SECONDS[text]
    assert [(one.seconds, one.most_seconds) for one in timers(text)] == ([expected] if expected else [])


LIKE = st.sampled_from(["1/8", "1.5", "2", "two", "1½", "0,5", "1,000"])


@given(st.integers(1, 5000), st.sampled_from([1, 2, 3, 4, 8]), LIKE)
def test_what_is_written_is_read_again(above: int, below: int, like: str) -> None:
    value = Fraction(above, below)
    assert value_of(write(value, like=like)) == value


@given(st.text("0123456789½¼/⁄.,- \u00a0one and half", max_size=12))
def test_any_text_is_a_number_or_none(text: str) -> None:
    for amount in pieces(f"Add {text} cups", "amount"):
        assert values_of(amount)
