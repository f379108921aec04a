"""What clocks say before any motion is compared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kitchensync.storage.timeline.utc_times import UtcTimes, utc_times
from kitchensync.sync.align.prior import (
    StatedCameraClock,
    StatedStart,
    prior_of,
    start_from_camera_clock,
    start_from_shutter,
)

ANCHOR = datetime(2019, 11, 18, 15, 45, 0, tzinfo=UTC)
FRAME_S = 1001 / 30000


def started_at(moment: datetime):
    return {"host_ns": 5_000_000_000_000, "utc_ns": round(moment.timestamp()) * 10**9}


STARTED = started_at(ANCHOR)


def host_s(start):
    """Seconds after the recording's anchor."""
    return (start.host_ns - STARTED["host_ns"]) / 1e9


def camera(creation, frames_s=None, *, label_s=None, zone_s=0, pressed_s=32.0, started=STARTED, **more):
    """A camera whose shutter fell `pressed_s` after the anchor (None: nobody knows)."""
    pressed = None if pressed_s is None else STARTED["host_ns"] + round(pressed_s * 1e9)
    clock = StatedCameraClock(creation, frames_s, label_s)
    utc = utc_times({"started": started})
    return start_from_camera_clock(clock, utc, zone_offset_s=zone_s, pressed_host_ns=pressed, **more)


def written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000000Z")


def test_a_real_time_code_counts_frames_since_midnight():
    """1 700 260 frames are 15:45:32.009, which agrees with the creation time; read as a label they are 57 s off."""
    label_s = 15 * 3600 + 44 * 60 + 35 + 10 * FRAME_S
    start = camera("2019-11-18T15:45:32.000000Z", 1_700_260 * FRAME_S, label_s=label_s)
    assert host_s(start) == pytest.approx(32.009, abs=0.001)
    assert (start.note, start.tmcd, start.serves) == ("tmcd frames", "frames", True)


def test_a_label_that_follows_the_clock_is_read_as_one():
    """A camera that sets the printed label by its clock: then counting frames is 57 s late."""
    label_s = 15 * 3600 + 45 * 60 + 32 + 14 * FRAME_S
    start = camera("2019-11-18T15:45:32.000000Z", label_s * 1.001, label_s=label_s)
    assert host_s(start) == pytest.approx(32 + 14 * FRAME_S, abs=0.001)
    assert start.tmcd == "label"


def test_a_time_code_far_from_the_creation_time_is_not_used():
    start = camera("2019-11-18T15:45:32.000000Z", 15 * 3600 + 44 * 60 + 35.0)
    assert host_s(start) == 32.0
    assert start.note == "tmcd unusable"


def test_midnight_between_time_code_and_creation_time():
    start = camera("2019-11-19T00:00:00.000000Z", 86_399.5, pressed_s=8 * 3600 + 900)
    assert host_s(start) == pytest.approx(8 * 3600 + 899.5)
    after = camera("2019-11-18T23:59:59.000000Z", 0.25, pressed_s=8 * 3600 + 900)
    assert host_s(after) == pytest.approx(8 * 3600 + 900.25)


@given(st.integers(-13 * 4, 13 * 4), st.floats(0, 86_399), st.integers(-12 * 4, 14 * 4))
def test_any_zone_is_found_at_any_time_of_day(camera_quarters, day_s, place_quarters):
    """The camera's clock runs in one zone, the place lies in another, the time code counts from local midnight."""
    taken = datetime(2024, 2, 28, tzinfo=UTC) + timedelta(seconds=day_s)
    shown = taken + timedelta(minutes=15 * camera_quarters)
    code_s = (shown - shown.replace(hour=0, minute=0, second=0, microsecond=0)).total_seconds()
    place_s = 900 * place_quarters
    quarters = (900 * camera_quarters - place_s) // 900
    began = started_at(taken.replace(microsecond=0))
    expected_s = taken.timestamp() - began["utc_ns"] / 1e9
    clock = StatedCameraClock(written(shown), code_s)
    pressed = began["host_ns"] + round(expected_s * 1e9) + 200_000_000
    start = start_from_camera_clock(
        clock, utc_times({"started": began}), zone_offset_s=place_s, pressed_host_ns=pressed
    )
    if abs(quarters) > 26 * 4:
        assert not start.serves
        return
    assert (start.host_ns - began["host_ns"]) / 1e9 == pytest.approx(expected_s, abs=2e-3)
    assert bool(start.warning) == (quarters != 0)


@pytest.mark.parametrize(("hours", "words"), [(1, "1 h fast"), (-5, "5 h slow"), (5.75, "5.75 h fast")])
def test_a_camera_in_another_zone_is_brought_near_and_said(hours, words):
    local = ANCHOR + timedelta(seconds=32 + hours * 3600)
    start = camera(written(local))
    assert host_s(start) == pytest.approx(32.0)
    assert "zone off" in start.note
    assert words in start.warning
    known = camera(written(local), zone_s=int(hours * 3600))
    assert host_s(known) == pytest.approx(32.0)
    assert (known.note, known.warning) == ("tmcd absent", "")


@pytest.mark.parametrize("pressed_s", [32.0, None])
@pytest.mark.parametrize("zone_s", [7200, -18_000, 20_700])
def test_a_camera_that_writes_utc_is_in_no_other_zone(pressed_s, zone_s):
    """Newer cameras write the creation time in UTC; the time code counts from local midnight on all."""
    code_s = (15 * 3600 + 45 * 60 + 32.4 + zone_s) % 86_400
    start = camera(
        "2019-11-18T15:45:32.000000Z", code_s, zone_s=zone_s, pressed_s=pressed_s,
        stopped_host_ns=STARTED["host_ns"] + 7200 * 10**9, seconds=600.0,
    )  # fmt: skip
    assert host_s(start) == pytest.approx(32.4)
    assert (start.serves, start.warning) == (True, "")


@pytest.mark.parametrize(
    ("change", "before_s", "after_s"),
    [
        (datetime(2025, 3, 30, 1, 0, tzinfo=UTC), 3600, 7200),  # clocks go forward
        (datetime(2025, 10, 26, 1, 0, tzinfo=UTC), 7200, 3600),  # clocks go back
    ],
)
@pytest.mark.parametrize("follows", [True, False])
@pytest.mark.parametrize("knows_shutter", [True, False])
def test_summer_time_begins_and_ends_while_recording(change, before_s, after_s, follows, knows_shutter):
    """The recording begins ten minutes before the change, the camera ten after; its clock follows or does not."""
    zone = ZoneInfo("Europe/Berlin")
    began, taken = change - timedelta(minutes=10), change + timedelta(minutes=10)
    assert began.astimezone(zone).utcoffset() == timedelta(seconds=before_s)
    assert taken.astimezone(zone).utcoffset() == timedelta(seconds=after_s)
    shown = taken + timedelta(seconds=after_s if follows else before_s)
    midnight = shown.replace(hour=0, minute=0, second=0)
    clock = StatedCameraClock(written(shown), (shown - midnight).total_seconds() + 0.4)
    started = started_at(began)
    more = (
        {"pressed_host_ns": started["host_ns"] + 1200 * 10**9}
        if knows_shutter
        else {"stopped_host_ns": started["host_ns"] + 1800 * 10**9, "seconds": 300.0}
    )
    start = start_from_camera_clock(clock, utc_times({"started": started}), zone_offset_s=before_s, **more)
    assert (start.host_ns - started["host_ns"]) / 1e9 == pytest.approx(1200.4, abs=1e-3)
    assert start.serves
    assert bool(start.warning) == follows


def test_a_file_that_began_long_after_the_recording_is_left_where_its_clock_says():
    """Without the shutter a start in the middle of the recording is no zone."""
    at = written(ANCHOR + timedelta(minutes=16))
    start = camera(at, pressed_s=None, stopped_host_ns=STARTED["host_ns"] + 3600 * 10**9, seconds=600.0)
    assert host_s(start) == 960.0
    assert start.warning == ""


def test_without_the_shutter_several_zones_may_fit_and_then_none_is_taken():
    at = written(ANCHOR + timedelta(hours=9))
    start = camera(at, pressed_s=None, stopped_host_ns=STARTED["host_ns"] + 3 * 3600 * 10**9, seconds=600.0)
    assert not start.serves
    assert "zones would fit" in start.warning


@pytest.mark.parametrize("pressed_s", [32.0, None])
def test_a_camera_reset_to_its_factory_date_is_said_and_does_not_serve(pressed_s):
    stopped = STARTED["host_ns"] + 900 * 10**9
    start = camera("2016-01-01T00:01:00.000000Z", pressed_s=pressed_s, stopped_host_ns=stopped)
    assert not start.serves
    assert "2016-01-01 00:01:00" in start.warning
    assert "days before the recording; it was probably reset" in start.warning
    pressed = StatedStart("shutter", STARTED["host_ns"], 0.2)
    prior, evidence = prior_of([start, pressed], ticks_of_host=lambda ns: ns // 100, epoch_ticks=0)
    assert prior.source == "shutter"
    assert [said.serves for said in evidence.statements] == [False, True]
    assert prior_of([start], ticks_of_host=lambda ns: ns // 100, epoch_ticks=0)[0] is None


def test_a_clock_that_is_simply_wrong_is_said():
    start = camera(written(ANCHOR + timedelta(seconds=32 - 200)))
    assert not start.serves
    assert "200 s slow by the shutter" in start.warning


@pytest.mark.parametrize("creation", [None, "yesterday"])
def test_no_creation_time_no_statement(creation):
    assert camera(creation, 1.0) is None


def test_the_shutter_fell_between_press_and_first_sight():
    shutter = {"before_host_ns": 10**9, "after_host_ns": 11 * 10**8, "observed_host_ns": 2 * 10**9}
    start = start_from_shutter(shutter, earlier_s=0.0)
    assert start.host_ns == 15 * 10**8
    assert 0.15 < start.sigma_s < 0.5
    later = start_from_shutter(shutter, earlier_s=530.0)
    assert later.host_ns - start.host_ns == 530 * 10**9
    assert start_from_shutter(None, earlier_s=0.0) is None


def test_the_best_statement_centres_the_search_and_never_narrows_it():
    starts = [StatedStart("creation_time", 10**9, 1.1, tmcd="frames"), StatedStart("shutter", 2 * 10**9, 0.2)]
    prior, evidence = prior_of(starts, ticks_of_host=lambda ns: ns // 100, epoch_ticks=5_000_000)
    assert (prior.source, prior.tau0_s, prior.sigma_s) == ("shutter", 1.5, 0.2)
    assert prior.half_width_s == 6.0
    assert [said.prior_s for said in evidence.statements] == [0.5, 1.5]
    assert evidence.tmcd_reading == "frames"


def test_no_statement_no_prior():
    prior, evidence = prior_of([], ticks_of_host=None, epoch_ticks=0)
    assert prior is None
    assert evidence.source == "none"


@pytest.mark.parametrize("lost", ["host_ns", "utc_ns"])
def test_a_start_that_says_one_clock_alone_bridges_none(lost):
    started = {key: one for key, one in STARTED.items() if key != lost}
    assert camera(written(ANCHOR), started=started) is None


@pytest.mark.parametrize("by_s", [3600, -3600, 500])
@pytest.mark.parametrize("is_set_by_the_later_time", [False, True])
@pytest.mark.parametrize("pressed_s", [32.0, None])
def test_a_camera_is_placed_where_the_computers_clock_was_set_meanwhile(
    by_s, is_set_by_the_later_time, pressed_s
):
    """The camera has the time of before or that of after: both are tried, and no zone or fault is blamed."""
    zero = STARTED | {"slept_ns": 0}
    later = {
        name: STARTED[name] + (60 + shift_s) * 10**9 for name, shift_s in (("host_ns", 0), ("utc_ns", by_s))
    }
    shown = ANCHOR + timedelta(seconds=32 + (by_s if is_set_by_the_later_time else 0))
    pressed = None if pressed_s is None else STARTED["host_ns"] + 32 * 10**9
    start = start_from_camera_clock(
        StatedCameraClock(written(shown), None, None),
        UtcTimes([zero, later]),
        zone_offset_s=0,
        pressed_host_ns=pressed,
        stopped_host_ns=STARTED["host_ns"] + 90 * 10**9,
        seconds=50.0,
    )
    assert host_s(start) == 32.0
    assert (start.serves, start.warning) == (True, "")
