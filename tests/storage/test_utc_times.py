"""UTC of a computer whose clock is set and that sleeps while it records: against a model that always knows it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kitchensync.storage.timeline.utc_times import STEP_NS, UtcTimes, moment_utc_ns, utc_times

SECOND = 10**9
HOUR = 3600 * SECOND
UTC0 = 1_700_000_000 * SECOND


class Computer:
    """Host time begins at 100 s; `sets` and `sleeps` are (host ns, by ns)."""

    def __init__(self, sets: list[tuple[int, int]], sleeps: list[tuple[int, int]] = ()) -> None:
        self.sets, self.sleeps = sets, sleeps

    def slept_ns(self, host_ns: int) -> int:
        return sum(length for at, length in self.sleeps if host_ns >= at)

    def utc_ns(self, host_ns: int) -> int:
        return UTC0 + host_ns + self.slept_ns(host_ns) + sum(by for at, by in self.sets if host_ns >= at)

    def anchor(self, host_ns: int, **more: Any) -> dict[str, Any]:
        return {
            "host_ns": host_ns,
            "utc_ns": self.utc_ns(host_ns),
            "bound_ns": 0,
            "slept_ns": self.slept_ns(host_ns),
        } | more

    def anchors(self, times_s: np.ndarray) -> list[dict[str, Any]]:
        return [self.anchor(round(at * SECOND)) for at in times_s]


EVERY_S = np.arange(100, 400, 0.25)
CASES = {
    "never": ([], []),
    "forward": ([(112 * SECOND, HOUR)], []),
    "backward": ([(112 * SECOND, -HOUR)], []),
    "twice": ([(112 * SECOND, HOUR), (250 * SECOND, -HOUR - 7 * SECOND)], []),
    "asleep": ([], [(200 * SECOND, 600 * SECOND)]),
    "while asleep": ([(200 * SECOND, -HOUR)], [(200 * SECOND, 600 * SECOND)]),
    "a little": ([(150 * SECOND, 40_000_000)], []),
}


@pytest.mark.parametrize("case", CASES)
def test_utc_is_that_of_the_computer_but_where_its_anchors_cannot_tell(case):
    computer = Computer(*CASES[case])
    times = UtcTimes(computer.anchors(EVERY_S))
    asked = np.random.default_rng(7).integers(100 * SECOND, 400 * SECOND, 4000)
    off_ns = np.abs(times.to_utc(asked) - [computer.utc_ns(int(at)) for at in asked])
    bound_ns = times.bound_ns(asked)
    assert (off_ns <= bound_ns).all()
    changes = [at for at, _ in [*computer.sets, *computer.sleeps]]
    is_clear = np.array([all(abs(int(at) - change) > SECOND for change in changes) for at in asked])
    assert off_ns[is_clear].max() == 0
    assert bound_ns[is_clear].max() < 1_000_000


@pytest.mark.parametrize("case", CASES)
def test_what_was_set_is_named_and_a_sleep_is_not(case):
    sets, _ = CASES[case]
    found = UtcTimes(Computer(*CASES[case]).anchors(EVERY_S)).steps()
    wanted = [(at, by) for at, by in sets if abs(by) > STEP_NS]
    assert [one.by_ns for one in found] == [by for _, by in wanted]
    assert all(
        one.before_host_ns < at <= one.after_host_ns for one, (at, _) in zip(found, wanted, strict=True)
    )


def test_a_step_is_said_with_its_size_and_time():
    (step,) = UtcTimes(Computer([(112 * SECOND, HOUR)]).anchors(EVERY_S)).steps()
    assert step.words("0:12") == "the computer's clock was set by +3600.0 s at 0:12"
    (back,) = UtcTimes(Computer([(112 * SECOND, -HOUR // 1000)]).anchors(EVERY_S)).steps()
    assert back.words("0:12") == "the computer's clock was set by -3.6 s at 0:12"


def test_until_a_network_sets_its_clock_a_laptop_is_not_trusted():
    """It booted an hour slow and slept; from the first synchronized anchor on UTC is known, and so it is before."""
    slow = Computer([(300 * SECOND, HOUR)], [(200 * SECOND, 60 * SECOND)])
    anchors = [
        one | {"synchronized": one["host_ns"] > 310 * SECOND} for one in slow.anchors(np.arange(100, 400, 5))
    ]
    true = Computer([(0, HOUR)], slow.sleeps)
    asked = [150 * SECOND, 250 * SECOND, 305 * SECOND, 390 * SECOND]
    assert UtcTimes(anchors).to_utc(asked).tolist() == [true.utc_ns(at) for at in asked]
    manifest = {"started": {"host_ns": 100 * SECOND, "utc_ns": slow.utc_ns(100 * SECOND)}}
    assert moment_utc_ns(manifest | {"utc_anchors": anchors}) == true.utc_ns(100 * SECOND)


def test_the_other_way_round_each_setting_has_its_time():
    computer = Computer(*CASES["twice"])
    times = UtcTimes(computer.anchors(EVERY_S))
    for at in (105 * SECOND, 200 * SECOND, 390 * SECOND):
        assert at in times.host_times(computer.utc_ns(at))
        assert computer.utc_ns(at) in times.readings(at)
    assert len(times.readings(105 * SECOND)) == 3
    asleep = UtcTimes(Computer(*CASES["while asleep"]).anchors(EVERY_S))
    assert 300 * SECOND in asleep.host_times(Computer(*CASES["while asleep"]).utc_ns(300 * SECOND))


def test_anchors_that_are_read_less_exactly_do_not_move_utc():
    noise = np.random.default_rng(3).integers(-300_000, 300_000, len(EVERY_S)).tolist()
    still = Computer([])
    anchors = [
        one | {"utc_ns": one["utc_ns"] + by}
        for one, by in zip(still.anchors(EVERY_S), [0, *noise[1:]], strict=True)
    ]
    times = UtcTimes(anchors)
    asked = np.arange(100 * SECOND, 400 * SECOND, SECOND // 3)
    assert set((times.to_utc(asked) - asked).tolist()) == {UTC0}


def test_a_recording_of_an_earlier_version_has_its_start_and_its_end():
    computer = Computer([(112 * SECOND, HOUR)])
    ends = [{"host_ns": at, "utc_ns": computer.utc_ns(at)} for at in (100 * SECOND, 200 * SECOND)]
    times = utc_times({"started": ends[0], "stopped": ends[1]})
    assert times.to_utc([101 * SECOND, 199 * SECOND]).tolist() == [
        computer.utc_ns(at) for at in (101 * SECOND, 199 * SECOND)
    ]
    assert times.bound_ns(140 * SECOND) >= HOUR
    (step,) = times.steps()
    assert (
        step.words("1:40")
        == "the computer's clock was set by +3600.0 s before 1:40, unless the computer slept"
    )
    assert times.where_set() == ends
    assert utc_times({"started": {}, "stopped": ends[1]}) is None
    assert utc_times({"started": None}) is None
