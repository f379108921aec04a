"""When privacy pauses were, by the tablet's log, and which packets they hide: against brute force."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kitchensync.storage.chunks.layout import INDEX
from kitchensync.storage.privacy import FOR_EVER, hidden_packets, pauses_in
from kitchensync.storage.timeline.device_clock import constant_clock

SECOND = 1_000_000_000
BOUND_NS = 2_000_000


def touches(*told: tuple[str, float]) -> list[dict]:
    return [{"kind": kind, "host_ns": round(at_s * SECOND), "uncertainty_ns": 1} for kind, at_s in told]


def seconds(*told: tuple[str, float]) -> list[tuple[float, float | None]]:
    return [
        (start / SECOND, None if end == FOR_EVER else end / SECOND)
        for start, end in pauses_in(touches(*told))
    ]


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ([], []),
        ([("pause", 3), ("resume", 5), ("done", 6), ("pause", 8), ("resume", 9)], [(3, 5), (8, 9)]),
        ([("pause", 3)], [(3, None)]),
        ([("resume", 2), ("pause", 3), ("resume", 4), ("resume", 7)], [(3, 4)]),
        ([("pause", 3), ("pause", 4), ("resume", 5), ("resume", 6)], [(3, 6)]),
        ([("pause", 3), ("pause", 4), ("resume", 5)], [(3, 5)]),
        ([("pause", 8), ("resume", 5)], [(5, 8)]),
        ([("pause", 3), ("resume", 5), ("pause", 1), ("resume", 4)], [(3, 5), (1, 4)]),
        ([("pause", 3), ("undo", 4), ("resume", 5)], [(3, 5)]),
    ],
    ids=["none", "two", "unended", "lone", "nested", "twice-begun", "jumped-back", "late", "undone"],
)
def test_a_pause_is_what_was_touched_and_in_doubt_longer(told: list, found: list) -> None:
    answer = seconds(*told)
    assert [end is None for _, end in answer] == [end is None for _, end in found]
    for one, other in zip(answer, found, strict=True):
        assert one[0] == pytest.approx(other[0], abs=1e-8)
        assert one[1] == pytest.approx(other[1], abs=1e-8)


def test_the_doubt_of_each_touch_makes_a_pause_longer_at_both_ends() -> None:
    told = [("pause", 3_000, 70), ("pause", 3_050, 400), ("resume", 5_000, 900), ("resume", 5_100, 20)]
    events = [{"kind": kind, "host_ns": at, "uncertainty_ns": doubt} for kind, at, doubt in told]
    assert pauses_in(events) == ((2_650, 5_900),)
    without = [{**event, "uncertainty_ns": None} for event in events]
    assert pauses_in(without) == ((3_000, 5_100),)


def index_of(taken_s: np.ndarray, late_s: np.ndarray, ticks0: int) -> np.ndarray:
    index = np.zeros(len(taken_s), INDEX)
    index["device_ticks"] = ticks0 + np.rint(taken_s * 1e7).astype(np.int64)
    index["host_ns"] = np.rint((taken_s + late_s) * SECOND).astype(np.int64)
    return index


@pytest.mark.parametrize("seed", range(20))
def test_every_packet_of_a_pause_is_hidden_and_those_far_from_it_are_not(seed: int) -> None:
    rng = random.Random(seed)
    step_s = rng.choice((1 / 30, 0.2, 0.02))
    taken_s = np.arange(0.0, 40.0, step_s)
    late_s = np.array([rng.expovariate(10) for _ in taken_s])
    start_s = rng.uniform(-5, 45)
    end_s = start_s + rng.choice((0.0, 0.3, 6.0, 100.0))
    clock = constant_clock(10**12, 0, BOUND_NS)
    pause = (round(start_s * SECOND), round(end_s * SECOND))
    hidden = hidden_packets(index_of(taken_s, late_s, 10**12), clock, (pause,))
    inside = (taken_s + step_s >= start_s) & (taken_s - step_s <= end_s)
    far = (taken_s + 2.1 * step_s + 0.01 < start_s) | (taken_s - 2.1 * step_s - 0.01 > end_s)
    assert hidden[inside].all()
    assert not hidden[far].any()


def test_packets_whose_stamps_cannot_be_true_count_by_their_arrival_too() -> None:
    taken_s = np.arange(0.0, 100.0, 0.1)
    index = index_of(taken_s, np.full(len(taken_s), 0.05), 10**12)
    index["device_ticks"][300:600] += 10**10  # a clock that jumped by a thousand seconds, and back
    pause = (35 * SECOND, 40 * SECOND)
    hidden = hidden_packets(index, constant_clock(10**12, 0, BOUND_NS), (pause,))
    assert hidden[350:401].all()
    without_clock = hidden_packets(index, None, (pause,))
    assert without_clock[350:401].all()
    assert not without_clock[:340].any()
