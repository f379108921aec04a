"""Timers from the text of a step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kitchensync.task_graphs.text.spans import timers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Steep the tea for 3 minutes", [(180, 180)]),
        ("Microwave for 1 minute and 30 seconds", [(90, 90)]),
        ("Cook for 2-3 minutes", [(120, 180)]),
        ("Cook for 15 to 30 seconds, then wait 1 1/2 hours", [(15, 30), (5400, 5400)]),
        ("Add 2 eggs", []),
        ("Cook for 2 additional minutes", [(120, 120)]),
        ("Simmer for three quarters of an hour", [(2700, 2700)]),
        ("A quarter of an hour, then half an hour", [(900, 900), (1800, 1800)]),
    ],
)
def test_durations_become_timers(text: str, expected: list[tuple[int, int]]) -> None:
    assert [(timer.seconds, timer.most_seconds) for timer in timers(text)] == expected


def test_every_timer_of_the_published_texts_is_within_a_day(shared_data: Callable[[str], Path]) -> None:
    from kitchensync.task_graphs.formats.graph_files import read_task_graphs

    graphs = read_task_graphs(shared_data("captaincook4d/task_graphs").parent)
    texts = [step.text for graph in graphs.values() for step in graph.steps]
    found_timers = [timer for text in texts for timer in timers(text)]
    assert len(found_timers) > 20
    assert all(1 <= timer.seconds <= timer.most_seconds <= 3600 for timer in found_timers)
