"""A headset that loses itself: every span is named where the virtual one lost itself, and none where it did not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.sensors.hololens.streams.inertial_samples import RepeatedSamples
from kitchensync.storage.verify.tracking import GAZE, HEAD, STILL, Tracking, spans_of, united
from kitchensync.virtual_kitchen.faults import parse_faults
from kitchensync.virtual_kitchen.headset.blind import SensorFaults
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.streams.imu_streams import ACCELEROMETER, GYROSCOPE, ImuFeed
from kitchensync.virtual_kitchen.headset.streams.spatial_stream import EyeFeed, SpatialFeed
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world.motion import simulated_motion

SECONDS = 40.0
WITHIN_S = 0.2


def found(folder: Path, seed: int, *faults: str) -> dict[str, list[tuple[float, float]]]:
    """Spans that the packets of a virtual headset with faults give, by what is lost, in world seconds."""
    kitchen = Kitchen(seed, simulated_motion(seed), Truth(folder, seed))
    plan = parse_faults(faults)
    headset = HeadsetState(kitchen, plan)
    feeds = {
        "spatial_input": SpatialFeed(headset),
        "eye_tracking": EyeFeed(headset, 30),
        "gyroscope": ImuFeed(
            headset, GYROSCOPE, lambda t: np.random.default_rng(1).normal(size=(len(t), 3)), True
        ),
        "accelerometer": ImuFeed(headset, ACCELEROMETER, lambda t: np.ones((len(t), 3)), False),
    }
    spans: dict[str, list[tuple[float, float]]] = {}
    for name, feed in feeds.items():
        spoiler, tracking, still = SensorFaults(plan, name), Tracking(STREAMS[name]), RepeatedSamples()
        at_s, poses = [], []
        k = feed.first_k(0.0)
        while feed.due_s(k) < SECONDS:
            packet = feed.packet(k)
            spoiled = spoiler.spoil(packet, feed.due_s(k))
            packet = packet if spoiled is None else spoiled[0]
            if tracking.is_inertial:
                tracking.take_still(still.repeats(packet.payload))
            else:
                tracking.take(packet.payload)
            if packet.pose:
                poses.append(np.frombuffer(packet.pose, "<f4").reshape(4, 4))
            at_s.append(feed.due_s(k))
            k += 1
        tracking.finish(len(at_s), np.array(poses) if poses else None, is_sound=True)
        for kind, rows in tracking.rows().items():
            what = name if kind == STILL else kind
            spans[what] = united([*spans.get(what, []), *spans_of(rows, np.array(at_s))])
    return {what: some for what, some in spans.items() if some}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_every_span_is_found_where_it_was(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    first, second = np.sort(random.uniform(1.0, 30.0, 2)).round(2)
    lengths = random.uniform(1.3, 5.0, 2).round(2)
    windows = [(first, first + lengths[0]), (second, second + lengths[1])]
    spans = found(tmp_path, seed, *(f"lost_tracking:@{a}+{round(b - a, 2)}" for a, b in windows))
    assert set(spans) == {HEAD}
    for mine, true in zip(spans[HEAD], united(windows), strict=True):
        assert mine == pytest.approx(true, abs=WITHIN_S)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "what"),
    [
        ("frozen_gaze:@12+6", GAZE),
        ("still_sensor:gyroscope@12+6", "gyroscope"),
        ("still_sensor:accelerometer@12+6", "accelerometer"),
    ],
)
def test_values_that_repeat_are_found(tmp_path: Path, fault: str, what: str) -> None:
    spans = found(tmp_path, 5, fault)
    assert set(spans) == {what}
    ((first, last),) = spans[what]
    assert (first, last) == pytest.approx((12.0, 18.0), abs=WITHIN_S)


@pytest.mark.promise("What is missing is named, with its cause")
@pytest.mark.slow
def test_faults_at_the_same_time_are_all_found(tmp_path: Path) -> None:
    faults = ("lost_tracking:@10+6", "still_sensor:gyroscope@12+6", "frozen_gaze:@20+3")
    spans = {what: some[0] for what, some in found(tmp_path, 6, *faults).items()}
    expected = {HEAD: (10.0, 16.0), "gyroscope": (12.0, 18.0), GAZE: (20.0, 23.0)}
    assert spans.keys() == expected.keys()
    for what, span in spans.items():
        assert span == pytest.approx(expected[what], abs=WITHIN_S)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_headset_that_knows_itself_has_no_span(tmp_path: Path, seed: int) -> None:
    assert found(tmp_path, 100 + seed, "lost_tracking:@10+0.8") == {}


@given(st.lists(st.booleans(), max_size=60), st.floats(0.1, 3.0))
def test_spans_are_what_counting_finds(marked: list[bool], least_s: float) -> None:
    at_s = np.arange(len(marked)) * 0.25
    expected, begun = [], None
    for k, is_lost in enumerate([*marked, False]):
        if is_lost and begun is None:
            begun = k
        if not is_lost and begun is not None:
            end = at_s[min(k, len(marked) - 1)]
            expected += [(at_s[begun], end)] if end - at_s[begun] >= least_s else []
            begun = None
    assert spans_of(np.array(marked, bool), at_s, least_s) == expected


def test_a_hole_in_the_packets_is_not_lost_tracking() -> None:
    at_s = np.array([9.8, 9.9, 10.0, 610.0, 610.1])
    assert spans_of(np.array([False, False, True, False, False]), at_s) == []
    assert spans_of(np.array([True] * 5), np.array([8.0, 9.0, 10.0, 610.0, 611.5])) == [
        (8.0, 10.0),
        (610.0, 611.5),
    ]


def test_a_damaged_file_says_nothing_and_shifts_no_row() -> None:
    tracking = Tracking(STREAMS["spatial_input"])
    for is_sound in (True, False, True):
        tracking.begin()
        for _ in range(3 if is_sound else 1):
            tracking.take(bytes(1936))
        tracking.finish(3, None, is_sound=is_sound)
    assert tracking.rows()[HEAD].tolist() == [True] * 3 + [False] * 3 + [True] * 3
