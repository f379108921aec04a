"""The sign of life on the disk."""

from __future__ import annotations

import time

from capture.heartbeat import PERIOD_NS, Heartbeat, last_beat


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
