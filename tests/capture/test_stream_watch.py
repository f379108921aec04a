"""Conditions of a stream computed from its rate and timestamps."""

from __future__ import annotations

import numpy as np
import pytest

from kitchensync.capture.produce.stream_watch import (
    RATE_LOW,
    SLOW_BY_ITSELF,
    STALLED,
    STREAMING,
    RateWatch,
    StampWatch,
    head_check,
    since,
)
from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.sensors.hololens.streams.inertial_samples import SAMPLE, RepeatedSamples

S = 1_000_000_000


def conditions(hz_by_second: list[float], nominal_hz: float, *, adaptive: bool) -> list[str]:
    """Update the watch every quarter second; return the condition of each second of a stream with these rates."""
    watch, received, last_ns, per_second = RateWatch(nominal_hz, adaptive=adaptive), 0.0, 0, []
    for second, hz in enumerate(hz_by_second):
        for quarter in range(4):
            now_ns = (second * 4 + quarter + 1) * S // 4
            received += hz / 4
            last_ns = now_ns if hz else last_ns
            watch.update(now_ns, int(received), last_ns)
        per_second.append(watch.condition)
    return per_second


def test_a_steady_stream_is_streaming() -> None:
    assert set(conditions([30.0] * 20, 30.0, adaptive=False)) == {STREAMING}


def test_a_slow_stream_is_named_and_recovers() -> None:
    per_second = conditions([30.0] * 8 + [15.0] * 10 + [30.0] * 10, 30.0, adaptive=False)
    assert per_second[17] == RATE_LOW
    assert per_second[-1] == STREAMING


def test_depth_slowed_by_the_device_is_not_an_error() -> None:
    assert conditions([45.0] * 8 + [5.0] * 10, 45.0, adaptive=True)[-1] == SLOW_BY_ITSELF


def test_silence_is_a_stall_and_ends() -> None:
    per_second = conditions([30.0] * 8 + [0.0] * 4 + [30.0] * 4, 30.0, adaptive=False)
    assert STALLED in per_second[8:12]
    assert per_second[-1] == STREAMING


def test_a_slow_sensor_is_not_stalled_between_its_packets() -> None:
    watch = RateWatch(0.5, adaptive=False)
    assert watch.update(3 * S, 1, 1 * S) is None


def test_suspicious_timestamps_are_flagged() -> None:
    watch = StampWatch()
    assert watch.flag(100, 0) is None
    assert watch.flag(330_100, S // 30) is None
    assert watch.flag(330_100, S // 15) == ("same", 330_100)
    assert watch.flag(100, S // 10) == ("back", 330_100)
    assert watch.flag(100 + 5 * 10_000_000, S // 10 + S // 30) == ("jump", 100)
    assert watch.flag(100 + 7 * 10_000_000, 3 * S) is None, "two seconds in two seconds"


POSE, NO_POSE = np.eye(4, dtype="<f4").tobytes(), bytes(64)


def head(*, is_known: bool) -> bytes:
    return int(is_known).to_bytes(4, "little") + bytes(1932)


def batch(*rates: float) -> bytes:
    samples = np.zeros(len(rates), SAMPLE)
    samples["xyz"] = np.array(rates)[:, None]
    return samples.tobytes()


@pytest.mark.parametrize(
    ("name", "pose_bytes", "without_head", "with_head"),
    [
        ("spatial_input", 0, head(is_known=False), head(is_known=True)),
        ("pv", 64, b"picture" + NO_POSE, b"picture" + POSE),
    ],
)
def test_an_untracked_head_is_detected(
    name: str, pose_bytes: int, without_head: bytes, with_head: bytes
) -> None:
    knows = head_check(STREAMS[name], pose_bytes)
    assert knows is not None
    assert [knows(memoryview(body)) for body in (with_head, without_head, with_head)] == [True, False, True]


@pytest.mark.parametrize("name", ["microphone", "vlc_leftfront", "eye_tracking", "gyroscope"])
def test_other_streams_have_no_head_check(name: str) -> None:
    assert head_check(STREAMS[name], 64) is None


def test_start_of_a_condition() -> None:
    began, starts_ns = 0, []
    for second, holds in enumerate([False, True, True, False, True]):
        began = since(began, second * S + 1, holds=holds)
        starts_ns.append(began)
    assert starts_ns == [0, S + 1, S + 1, 0, 4 * S + 1]


def test_a_gyroscope_that_repeats_one_value_is_detected() -> None:
    watch = RepeatedSamples()
    batches = [batch(1, 2), batch(2, 2), batch(2, 2), b"", batch(2, 3), batch(3, 3), bytes(7)]
    assert [watch.repeats(body) for body in batches] == [False, True, True, False, False, True, False]
