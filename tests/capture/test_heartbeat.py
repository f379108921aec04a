"""The heartbeat on disk."""

from __future__ import annotations

import time
from dataclasses import asdict

import numpy as np

from kitchensync.capture.process import heartbeat
from kitchensync.capture.process.heartbeat import (
    ANCHOR_PERIOD_NS,
    ANCHORS,
    PERIOD_NS,
    Heartbeat,
    kept_anchors,
    last_beat,
    was_paused,
)
from kitchensync.shell.host_clock import UtcAnchor

SECOND = 10**9


def test_the_last_heartbeat_is_read_back_and_survives_a_second_start(tmp_path):
    assert last_beat(tmp_path) is None
    before_ns = time.monotonic_ns()
    heart = Heartbeat(tmp_path)
    heart.beat()
    heart.beat()
    heart.close()
    beat = last_beat(tmp_path)
    assert before_ns <= beat.host_ns <= time.monotonic_ns()
    assert abs(beat.utc_ns - time.time_ns()) < 60 * 10**9
    Heartbeat(tmp_path).close()
    assert last_beat(tmp_path) == beat
    assert PERIOD_NS < 10**9


def test_a_truncated_heartbeat_is_ignored(tmp_path):
    (tmp_path / "alive").write_bytes(b"1234567")
    assert last_beat(tmp_path) is None


def test_a_suspended_recorder_reports_when(tmp_path, monkeypatch):
    now_ns = 100 * SECOND
    monkeypatch.setattr(heartbeat, "utc_anchor", lambda: UtcAnchor(now_ns, 0))
    heart = Heartbeat(tmp_path)
    heart.beat()
    now_ns += SECOND
    heart.beat()
    assert not was_paused(tmp_path, 100 * SECOND, 101 * SECOND)
    now_ns += 20 * SECOND
    heart.beat()
    heart.close()
    assert was_paused(tmp_path, 101 * SECOND, 121 * SECOND)
    assert was_paused(tmp_path, 103 * SECOND, 122 * SECOND)
    assert not was_paused(tmp_path, 60 * SECOND, 105 * SECOND), (
        "a much longer pause is not one of the recorder"
    )
    assert not was_paused(tmp_path, 121 * SECOND, 130 * SECOND)


def test_anchors_around_each_clock_change_are_kept_and_few_others(tmp_path, monkeypatch):
    """Ten minutes of heartbeats: the clock is set forward, set back during sleep, and slewed slightly."""
    now, at_s = {}, iter(range(600))
    sets = {100: 3600 * SECOND, 350: -7200 * SECOND}

    def anchor() -> UtcAnchor:
        second = next(at_s)
        by_ns = sum(by for at, by in sets.items() if second >= at)
        slept_ns = 60 * SECOND if second >= 350 else 0
        now[second] = UtcAnchor(
            second * SECOND, second * SECOND + slept_ns + by_ns + second * 1000, 500, slept_ns
        )
        return now[second]

    monkeypatch.setattr(heartbeat, "utc_anchor", anchor)
    heart = Heartbeat(tmp_path)
    for _ in range(600):
        heart.beat()
    heart.close()
    assert [round(step.by_ns / SECOND) for step in heart.clock_steps] == [3600, -7200]
    anchors = kept_anchors(tmp_path)
    times = [anchor["host_ns"] // SECOND for anchor in anchors]
    assert {99, 100, 349, 350} <= set(times)
    assert times[0] <= 1
    assert times == sorted(set(times))
    assert max(np.diff(times)) <= ANCHOR_PERIOD_NS // SECOND
    assert len(times) < 30
    assert [UtcAnchor(**anchor) for anchor in anchors] == [now[at] for at in times]
    with (tmp_path / ANCHORS).open("ab") as file:
        file.write(b"torn")
    assert kept_anchors(tmp_path) == anchors
    again = Heartbeat(tmp_path)  # it continues after the last complete line
    at_s = iter([600])
    again.beat()
    again.close()
    assert kept_anchors(tmp_path) == [*anchors, asdict(now[600])]
    assert (tmp_path / ANCHORS).stat().st_mode & 0o077 == 0
    assert kept_anchors(tmp_path / "none") == []
