"""Holes in a stream, against holes that were made on purpose and against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kitchensync.storage.chunks.layout import INDEX
from kitchensync.storage.verify.coverage import is_stamped_here
from kitchensync.storage.verify.gaps import (
    early_end,
    find_gaps,
    missing_ranges,
    stamps_that_go_back,
    uncovered,
)


def index_of(ticks: list[int]) -> np.ndarray:
    """A stream of one connection with these stamps."""
    index = np.zeros(len(ticks), INDEX)
    index["seq"] = np.arange(len(ticks))
    index["device_ticks"] = ticks
    index["connection"] = 1
    return index


def test_a_steady_stream_has_no_gaps():
    jitter = np.random.default_rng(1).integers(-30_000, 30_000, 100)
    assert find_gaps(index_of((np.arange(100) * 333_333 + jitter).tolist()), []) == []


def test_frames_that_the_device_left_out_are_named_device_rate():
    ticks = [333_333 * k for k in range(60) if k not in (20, 21, 40)]
    assert find_gaps(index_of(ticks), []) == [
        {"start_ticks": 333_333 * 19, "end_ticks": 333_333 * 22, "cause": "device_rate"},
        {"start_ticks": 333_333 * 39, "end_ticks": 333_333 * 41, "cause": "device_rate"},
    ]


def test_only_stamps_that_are_always_those_of_the_arrival_are_this_computers():
    arrived_ns = (
        7_000 * SECOND + 100_000_000 * np.arange(50) + np.random.default_rng(3).integers(0, 90_000_000, 50)
    )
    index = index_of((arrived_ns // 100).tolist())
    index["host_ns"] = arrived_ns + 40_000
    assert is_stamped_here(index)
    index["host_ns"][7] += 5 * SECOND  # this process was held between stamp and arrival
    assert is_stamped_here(index)
    for off_ns in (-SECOND, 20_000_000, 3600 * SECOND):  # another clock, or sent over a network
        other = index_of(((arrived_ns - off_ns) // 100).tolist())
        other["host_ns"] = arrived_ns
        assert not is_stamped_here(other)
    film = index_of((arrived_ns[0] // 100 + 1_000_000 * np.arange(50)).tolist())
    film["host_ns"] = arrived_ns  # the device counts from the first arrival on: early and late ones
    assert not is_stamped_here(film)
    assert not is_stamped_here(index[:0])


def test_new_connections_take_their_noted_cause_and_a_new_run_is_a_restart():
    index = index_of([100 * k for k in range(40)])
    index["connection"][10:] = 2
    index["connection"][20:] = 3
    index["connection"][30:] = 1
    index["epoch_ms"][30:] = 9
    causes = [gap["cause"] for gap in find_gaps(index, [(10, "network"), (20, "corrupt_packet")])]
    assert causes == ["network", "corrupt_packet", "restart"]


def test_a_connection_that_gave_no_packet_does_not_shift_the_causes_of_later_gaps():
    index = index_of([100 * k for k in range(40)])
    index["connection"][10:] = 3  # the second gave nothing
    index["epoch_ms"][20:] = 9  # closed, and killed before it was opened again
    index["connection"][20:] = 1
    index["connection"][30:] = 2
    closings = [(10, "network"), (10, "reconnect"), (20, "network"), (30, "corrupt_packet")]
    causes = [gap["cause"] for gap in find_gaps(index, closings)]
    assert causes == ["network", "restart", "corrupt_packet"]


def test_a_hole_in_the_sequence_is_a_declared_loss():
    index = index_of([100 * k for k in range(20)])
    index["seq"][12:] += 3
    assert find_gaps(index, []) == [{"start_ticks": 1100, "end_ticks": 1200, "cause": "declared_loss"}]


@pytest.mark.parametrize(
    ("losses", "cause"),
    [
        ([(0, 14, "queue_loss")], "queue_loss"),
        ([(12, 13, "declared_loss"), (0, 14, "queue_loss")], "declared_loss"),
        ([(3, 8, "queue_loss")], "declared_loss"),
        ([(0, 11, "queue_loss")], "declared_loss"),
        ([(15, 19, "queue_loss")], "declared_loss"),
    ],
)
def test_a_hole_in_the_sequence_takes_the_cause_of_the_loss_that_meets_it(losses, cause):
    """Packets 12 to 14 are missing."""
    index = index_of([100 * k for k in range(20)])
    index["seq"][12:] += 3
    assert [gap["cause"] for gap in find_gaps(index, [], losses=losses)] == [cause]


def test_too_few_packets_say_nothing_about_a_usual_step():
    assert find_gaps(index_of([0, 1, 1000]), []) == []
    assert find_gaps(index_of([5]), []) == []


def test_stamps_that_repeat_or_go_back_are_counted():
    assert stamps_that_go_back(index_of([1, 2, 2, 5, 4, 6])) == 2


SECOND = 10**9


def held_up(*, arrives_together: bool) -> np.ndarray:
    """Thirty packets a second; seconds 4 to 8 were never sent, second 3 to 4 came at 8 with what followed."""
    ticks = [333_333 * k for k in range(600) if not 120 < k < 240]
    index = index_of(ticks)
    index["host_ns"] = index["device_ticks"] * 100 + 5 * SECOND
    late = slice(90, 121) if arrives_together else slice(0, 0)
    index["host_ns"][late] = index["host_ns"][121] - 1000
    return index


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("cause", ["suspend", "device_swap", "restart", "backpressure"])
def test_what_a_device_left_out_while_nobody_received_takes_the_cause_of_that(together, cause):
    index = held_up(arrives_together=together)
    expected = [{"start_ticks": 333_333 * 120, "end_ticks": 333_333 * 240, "cause": cause}]
    assert find_gaps(index, [], [(8 * SECOND, 13 * SECOND - 2000, cause)]) == expected
    elsewhere = [(16 * SECOND, 20 * SECOND, cause), (1 * SECOND, 5 * SECOND, cause)]
    assert [gap["cause"] for gap in find_gaps(index, [], elsewhere)] == ["device_rate"]


@pytest.mark.parametrize("begins_at", [20_000_000, 10**12])
def test_a_device_whose_clock_begins_anew_was_off_or_is_another_one(begins_at):
    """It comes back after ten seconds; its own stamps say something else, or just that."""
    index = index_of([10**10 + 333_333 * k for k in range(80)])
    index["host_ns"] = (index["device_ticks"] - 10**10) * 100
    index["host_ns"][40:] += 10 * SECOND
    index["connection"][40:] = 2
    index["device_ticks"][40:] += 100_000_000
    broke = [gap["cause"] for gap in find_gaps(index, [(40, "network")])]
    index["device_ticks"][40:] = begins_at + 333_333 * np.arange(40)
    assert (broke, [gap["cause"] for gap in find_gaps(index, [(40, "network")])]) == (
        ["network"],
        ["device_swap"],
    )
    garbage = find_gaps(index, [(40, "corrupt_packet")])
    assert [gap["cause"] for gap in garbage] == ["corrupt_packet"]


def test_of_several_holds_sleep_is_believed_first_and_a_held_queue_last():
    index = held_up(arrives_together=False)
    holds = [(8 * SECOND, 13 * SECOND, cause) for cause in ("backpressure", "restart", "suspend")]
    assert [gap["cause"] for gap in find_gaps(index, [], holds)] == ["suspend"]
    assert [gap["cause"] for gap in find_gaps(index, [], holds[:2])] == ["restart"]


@pytest.mark.parametrize(
    ("noted", "expected"), [("network", "restart"), ("corrupt_packet", "corrupt_packet")]
)
def test_a_connection_that_closed_while_its_process_was_held_closed_for_that(noted, expected):
    index = held_up(arrives_together=False)
    index["connection"][121:] = 2
    gaps = find_gaps(index, [(121, noted)], [(8 * SECOND, 13 * SECOND, "restart")])
    assert [gap["cause"] for gap in gaps] == [expected]


def test_an_early_end_covers_what_a_late_device_still_had_to_send():
    index = index_of([1000 * k for k in range(20)])
    index["host_ns"] = index["device_ticks"] * 100 + 5_000_000
    index["host_ns"][-5:] += 70_000_000  # a busy device: what left late has an old stamp
    closed_ns = int(index["host_ns"][-1]) + 1_000_000
    gap = early_end(index, closed_ns, 0.0, "restart")
    device_ticks_then = (closed_ns - 5_000_000) // 100
    assert gap == {"start_ticks": 19_000, "end_ticks": device_ticks_then + 2000, "cause": "restart"}


def test_an_early_end_of_a_few_packets_goes_by_the_nominal_rate():
    index = index_of([0, 2_000_000, 4_000_000])
    index["host_ns"] = index["device_ticks"] * 100
    assert early_end(index, 400_000_000, 5.0, "no_space")["end_ticks"] == 4_000_000 + 2 * 2_000_000
    assert early_end(index, 0, 5.0, "no_space")["end_ticks"] == 4_000_000 + 2 * 2_000_000


@given(st.sets(st.integers(0, 60)), st.integers(0, 60))
def test_missing_ranges_agree_with_brute_force(present, received):
    ranges = missing_ranges(np.array(sorted(present), np.uint64), received)
    missing = {seq for first, last in ranges for seq in range(first, last + 1)}
    assert missing == set(range(received)) - present
    assert all(last + 1 < first for (_, last), (first, _) in itertools.pairwise(ranges))


@given(
    st.tuples(st.integers(0, 20), st.integers(0, 20)).map(sorted),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20))),
)
def test_uncovered_agrees_with_brute_force(part, ranges):
    covered = {seq for first, last in ranges for seq in range(first, last + 1)}
    assert uncovered(part, ranges) == bool(set(range(part[0], part[1] + 1)) - covered)
