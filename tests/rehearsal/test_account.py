"""How long a gap is beyond its faults: against a count of milliseconds, one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rehearsal.account import SLACK_NS, Account, excess_of, met_by, settle_stream

from kitchensync.storage.chunks.layout import INDEX

MS = 1_000_000
windows = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=4)


def index_of(*arrivals_ms: int) -> np.ndarray:
    index = np.zeros(len(arrivals_ms), INDEX)
    index["device_ticks"] = range(len(arrivals_ms))
    index["host_ns"] = [MS * arrival for arrival in arrivals_ms]
    return index


@given(st.integers(0, 40), st.integers(1, 40), windows)
def test_the_excess_is_every_millisecond_of_the_gap_in_no_window(start, length, drawn):
    faults = [{"start_host_ns": MS * at, "end_host_ns": MS * (at + lasts)} for at, lasts in drawn]
    gap = {"start_ticks": 0, "end_ticks": 1}
    covered = {ms for at, lasts in drawn for ms in range(at, at + lasts)}
    expected = len(set(range(start, start + length)) - covered)
    assert excess_of(gap, index_of(start, start + length), faults) == expected * MS


def test_a_gap_without_a_packet_after_it_ends_when_its_last_stamp_would_have_come():
    gap = {"start_ticks": 1, "end_ticks": 1 + 10_000_000}
    quickest_ns = 5 * MS
    late_ns = 9 * MS - 100 - quickest_ns
    assert excess_of(gap, index_of(5, 9), []) == 10**9 - late_ns
    whole = {"start_host_ns": 9 * MS, "end_host_ns": 2 * 10**9}
    assert excess_of(gap, index_of(5, 9), [whole]) == 0


def test_a_gap_meets_the_faults_in_it_and_those_just_before():
    slack_ms = SLACK_NS // MS
    index, gap = index_of(slack_ms + 100, slack_ms + 900), {"start_ticks": 0, "end_ticks": 1}

    def meets(start_ms: int, end_ms: int) -> int:
        return len(met_by(gap, index, [{"start_host_ns": start_ms * MS, "end_host_ns": end_ms * MS}]))

    assert meets(slack_ms + 500, slack_ms + 500) == 1
    assert meets(0, 100) == 1
    assert meets(0, 99) == 0
    assert meets(slack_ms + 901, slack_ms + 2000) == 0


@pytest.mark.parametrize(("after_ms", "slow", "unexplained"), [(1_500, 0, 0), (3_000, 1, 0), (16_000, 0, 1)])
def test_a_slow_restart_is_no_loss_and_one_that_hangs_is(after_ms: int, slow: int, unexplained: int) -> None:
    faults = [{"kind": "kill_queue", "start_host_ns": 1_000 * MS, "end_host_ns": 2_000 * MS}]
    index = index_of(990, 1_000, 2_000 + after_ms)
    gap = {"start_ticks": 1, "end_ticks": 2, "cause": "queue_loss"}
    account = Account("001-kill_queue")
    facts = {"gaps": [gap], "duplicates": 0, "ended": None}
    sent = Counter(index["device_ticks"].tolist())
    assert settle_stream(account, "pv", index, sent, facts, faults) == 0
    assert (account.slow_restarts, account.unexplained, account.wrong_causes) == (slow, unexplained, 0)
    assert ("longer than the faults" in account.notes) == bool(slow or unexplained)
