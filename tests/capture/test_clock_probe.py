"""Clock exchanges keep their rate of one round a second however slow the network answers."""

from __future__ import annotations

import numpy as np
import pytest

from capture.produce.probe_clock import LEAST_PAUSE_S, PERIOD_S, next_round_s


@pytest.mark.parametrize("slowest_s", [0.0, 0.4, 0.85])
def test_slow_answers_do_not_make_rounds_rarer(slowest_s):
    rng = np.random.default_rng(3)
    began = due = 100.0
    starts = []
    for _ in range(1000):
        starts.append(due)
        due = next_round_s(due, due + rng.uniform(0.0, slowest_s))
    assert np.diff(starts) == pytest.approx(np.full(999, PERIOD_S))
    assert starts[0] == began
    assert PERIOD_S == 1.0


def test_after_a_dead_network_there_is_no_burst_of_rounds():
    due = next_round_s(100.0, 109.0)
    assert due == pytest.approx(109.0 + LEAST_PAUSE_S)
    assert next_round_s(due, due) == pytest.approx(due + PERIOD_S)
