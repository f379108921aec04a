"""What clocks say before any motion is compared."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sync.prior import Start, prior_of, start_from_camera_clock, start_from_shutter

STARTED = {
    "host_ns": 5_000_000_000_000,
    "utc_ns": int(datetime(2019, 11, 18, 15, 45, 0, tzinfo=UTC).timestamp()) * 10**9,
}


def host_s(start):
    """Seconds after the recording's anchor."""
    return (start.host_ns - STARTED["host_ns"]) / 1e9


def camera(creation, tmcd_s, *, zone_s=0, near_s=32.0):
    return start_from_camera_clock(
        creation, tmcd_s, STARTED, zone_offset_s=zone_s, near_host_ns=STARTED["host_ns"] + round(near_s * 1e9)
    )


def test_a_real_time_code_counts_frames_since_midnight():
    """1 700 260 frames are 15:45:32.009, which agrees with the creation time; read as a label they are 57 s off."""
    start = camera("2019-11-18T15:45:32.000000Z", 1_700_260 * 1001 / 30000)
    assert host_s(start) == pytest.approx(32.009, abs=0.001)
    assert start.note == "tmcd frames"


def test_a_time_code_far_from_the_creation_time_is_not_used():
    start = camera("2019-11-18T15:45:32.000000Z", 15 * 3600 + 44 * 60 + 35.0)
    assert host_s(start) == 32.0
    assert start.note == "tmcd unusable"


def test_midnight_between_time_code_and_creation_time():
    start = camera("2019-11-19T00:00:00.000000Z", 86_399.5, near_s=8 * 3600 + 900)
    assert host_s(start) == pytest.approx(8 * 3600 + 899.5)


@pytest.mark.parametrize("hours", [1, -5, 5.75])
def test_a_camera_in_another_zone_is_brought_near(hours):
    local = datetime.fromtimestamp(STARTED["utc_ns"] / 1e9 + 32 + hours * 3600, tz=UTC)
    start = camera(local.strftime("%Y-%m-%dT%H:%M:%S.000000Z"), None)
    assert host_s(start) == pytest.approx(32.0)
    assert "zone off" in start.note
    known = camera(local.strftime("%Y-%m-%dT%H:%M:%S.000000Z"), None, zone_s=int(hours * 3600))
    assert host_s(known) == pytest.approx(32.0)
    assert known.note == "tmcd absent"


def test_a_camera_reset_to_its_factory_date_is_left_where_it_is():
    start = camera("2016-01-01T00:01:00.000000Z", None)
    assert "another day" in start.note


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
    starts = [Start("creation_time", 10**9, 1.1), Start("shutter", 2 * 10**9, 0.2)]
    prior, evidence = prior_of(starts, ticks_of_host=lambda ns: ns // 100, epoch_ticks=5_000_000)
    assert (prior.source, prior.tau0_s, prior.sigma_s) == ("shutter", 1.5, 0.2)
    assert prior.half_width_s == 6.0
    assert [said["prior_s"] for said in evidence["statements"]] == [0.5, 1.5]


def test_no_statement_no_prior():
    prior, evidence = prior_of([], ticks_of_host=None, epoch_ticks=0)
    assert prior is None
    assert evidence["source"] == "none"
