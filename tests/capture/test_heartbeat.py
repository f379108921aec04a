"""The sign of life on the disk."""

from __future__ import annotations

import time

from kitchensync.capture.process import heartbeat
from kitchensync.capture.process.heartbeat import PERIOD_NS, Heartbeat, last_beat, was_held
from kitchensync.sensors.host_clock import UtcAnchor

SECOND = 10**9


def test_the_last_beat_is_read_back_and_outlives_a_second_start(tmp_path):
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


def test_a_torn_beat_is_none(tmp_path):
    (tmp_path / "alive").write_bytes(b"1234567")
    assert last_beat(tmp_path) is None


def test_a_recorder_that_was_held_says_when(tmp_path, monkeypatch):
    now_ns = 100 * SECOND
    monkeypatch.setattr(heartbeat, "utc_anchor", lambda: UtcAnchor(now_ns, 0))
    heart = Heartbeat(tmp_path)
    heart.beat()
    now_ns += SECOND
    heart.beat()
    assert not was_held(tmp_path, 100 * SECOND, 101 * SECOND)
    now_ns += 20 * SECOND
    heart.beat()
    heart.close()
    assert was_held(tmp_path, 101 * SECOND, 121 * SECOND)
    assert was_held(tmp_path, 103 * SECOND, 122 * SECOND)
    assert not was_held(tmp_path, 60 * SECOND, 105 * SECOND), "who was held for much longer was held alone"
    assert not was_held(tmp_path, 121 * SECOND, 130 * SECOND)
