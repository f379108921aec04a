"""A camera whose battery or card was changed has several clips: each has its own shutter, place and alignment."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from camera_films import FilmPlan, synthesize
from small_recordings import HOST0_NS, SEED, UTC0_NS, truth_ticks, write_headset, write_manifest

import kitchensync as ks
from kitchensync.dataset.films.film_lanes import motion_levels
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.storage.events import EventLog
from kitchensync.storage.exports.hidden_films import hidden_in_film
from kitchensync.storage.manifest import write_json
from kitchensync.storage.recording import open_recording
from kitchensync.storage.timeline.clock_map import ClockMap
from kitchensync.storage.verify.camera_account import camera_cover
from kitchensync.storage.verify.deep import CAMERA_PICTURES, decode
from kitchensync.storage.verify.findings import Findings
from kitchensync.storage.verify.session_span import SessionTimes
from kitchensync.sync.report.cameras import read_cameras
from kitchensync.sync.synchronize import synchronize
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world.motion import simulated_motion

pytestmark = pytest.mark.slow

BEGINS_S, FRAMES = (1.5, 13.5), (270, 330)
FAST_S = 400.0
"""The camera's clock is wrong by this, and no zone explains it."""
PERIOD_S = 1001 / 30000


@pytest.fixture(scope="module")
def swapped(tmp_path_factory):
    """A recording of 26 s with clips of 9 and 11 s, and the kitchen it was made in."""
    recording = tmp_path_factory.mktemp("swapped") / "take1"
    (recording / "gopro").mkdir(parents=True)
    kitchen = Kitchen(SEED, simulated_motion(SEED), Truth(recording, SEED))
    for number, (begin_s, frames) in enumerate(zip(BEGINS_S, FRAMES, strict=True), start=1):
        local_s = UTC0_NS / 1e9 + begin_s + FAST_S
        clip = {"number": number, "local_s": local_s, "start_world_s": begin_s}
        film = FilmPlan(frames, 320, 180, seed=SEED, zone_minutes=0, **clip)
        synthesize(recording / "gopro", film, kitchen.motion)
    write_manifest(recording, write_headset(recording, kitchen), {"hololens": "hololens", "gopro": "gopro"})
    return recording, kitchen


@pytest.fixture
def take(swapped, tmp_path) -> Path:
    shutil.copytree(swapped[0], tmp_path / "take1")
    write_media(tmp_path / "take1", {"GX010001.MP4": BEGINS_S[0], "GX010002.MP4": BEGINS_S[1]})
    return tmp_path / "take1"


def opening(begin_s: float) -> dict[str, int]:
    pressed = HOST0_NS + round(begin_s * 1e9) - 150_000_000
    return {
        "before_host_ns": pressed,
        "after_host_ns": pressed + 10**7,
        "observed_host_ns": pressed + 4 * 10**8,
    }


def write_media(recording: Path, films: dict[str, float], *, tells_created: bool = True) -> None:
    """Write media.json of films that began so, by name; the shutter opened twice in any case."""
    entries = []
    for name, begin_s in films.items():
        created_s = round(UTC0_NS / 1e9 + begin_s + FAST_S) if tells_created else None
        entries.append({"file": name, "bytes": 0, "created_s": created_s})
    body = {
        "schema": "media/1",
        "anchor": {"host_ns": HOST0_NS, "utc_ns": UTC0_NS},
        "clock": {"start": {"offset_ns": round(FAST_S * 1e9)}},
        "shutter_on": opening(BEGINS_S[0]),
        "shutters_on_again": [opening(BEGINS_S[1])],
        "files": entries,
    }
    write_json(recording / "gopro" / "media.json", body)


def prior_of(pair) -> float:
    """How far the stated start is from the map that was found, seconds."""
    return abs(pair["evidence"]["timestamps"]["prior_s"] - ClockMap.from_object(pair).tau_s(0.0))


def check_map(pair, kitchen, begin_s: float, frames: int) -> None:
    assert pair["status"] == "aligned", pair["reasons"]
    samples = np.array([row for row in pair["samples"] if row[0] <= frames * PERIOD_S])
    away = samples[:, 1] - truth_ticks(kitchen, samples[:, 0], begin_s)
    assert np.abs(away).max() < 2e4  # 2 ms, in units of 100 ns


@pytest.mark.parametrize("tells_created", [True, False])
def test_each_clip_is_searched_where_its_own_shutter_opened(swapped, take, tells_created):
    write_media(take, {"GX010001.MP4": BEGINS_S[0], "GX010002.MP4": BEGINS_S[1]}, tells_created=tells_created)
    pairs = synchronize(take)["pairs"]
    assert [pair["source"] for pair in pairs] == ["gopro/GX010001.MP4", "gopro/GX010002.MP4"]
    for pair, begin_s, frames in zip(pairs, BEGINS_S, FRAMES, strict=True):
        check_map(pair, swapped[1], begin_s, frames)
        assert pair["evidence"]["timestamps"]["source"] == "shutter"
        assert prior_of(pair) < 0.5


def test_cards_that_count_in_any_order_are_told_apart_by_the_clock(swapped, take):
    films = take / "gopro"
    (films / "GX010001.MP4").rename(films / "GX010050.MP4")
    write_media(take, {"GX010002.MP4": BEGINS_S[1], "GX010050.MP4": BEGINS_S[0]})
    second, first = synchronize(take)["pairs"]
    assert (prior_of(first) < 0.5, prior_of(second) < 0.5) == (True, True)
    check_map(first, swapped[1], BEGINS_S[0], FRAMES[0])
    check_map(second, swapped[1], BEGINS_S[1], FRAMES[1])


@pytest.mark.parametrize("tells_created", [True, False])
def test_the_clip_of_a_card_that_is_not_here_yet_lends_no_shutter(swapped, take, tells_created):
    (take / "gopro" / "GX010001.MP4").unlink()
    write_media(take, {"GX010002.MP4": BEGINS_S[1]}, tells_created=tells_created)
    [pair] = synchronize(take)["pairs"]
    check_map(pair, swapped[1], BEGINS_S[1], FRAMES[1])
    assert pair["evidence"]["timestamps"]["source"] == ("shutter" if tells_created else "none")


def test_an_instant_names_the_clip_that_its_picture_is_of(swapped, take):
    synchronize(take)
    with open_recording(take) as recording:
        at_s = recording.instants.seconds
        for clip, begin_s in enumerate(BEGINS_S):
            here = recording.at(int(np.searchsorted(at_s, begin_s + 4.0)))
            media_s = recording.camera("gopro/video", here.clips["gopro"]).t_s[here.rows["gopro"]]
            assert here.clips == {"gopro": clip}
            truth = truth_ticks(swapped[1], media_s, begin_s)
            assert abs(int(truth) - here.ticks) < 0.6 * PERIOD_S * 1e7


def test_the_report_places_each_clip_by_its_shutter(take):
    with open_recording(take) as recording:
        files = read_cameras(recording, [], {})
    for file, begin_s in zip(files, BEGINS_S, strict=True):
        assert (file.start_host_ns - HOST0_NS) / 1e9 == pytest.approx(begin_s + 0.25, abs=1e-6)


def test_the_verdict_names_the_hole_between_the_clips_and_no_more(take):
    findings, second = Findings(), 10**9
    session = SessionTimes(HOST0_NS, HOST0_NS, HOST0_NS + 25 * second)
    found = camera_cover(take, "gopro", session, findings)["gopro"]
    ends = [(BEGINS_S[0] + FRAMES[0] * PERIOD_S + 0.25, BEGINS_S[1] + 0.25)]
    assert [pytest.approx(hole, abs=0.05) for hole in ends] == found.holes
    [said] = findings.reasons
    assert said == "gopro: its films cover 87 % of the session, nothing from 0:11 to 0:14"
    long = SessionTimes(HOST0_NS, HOST0_NS, HOST0_NS + 40 * second)
    camera_cover(take, "gopro", long, findings)
    assert findings.reasons[-1].endswith("nothing from 0:11 to 0:14 and after 0:25")


def test_a_pause_hides_pictures_of_the_clip_that_covers_it(take):
    for kind, at_s in (("pause", 19.0), ("resume", 20.0)):
        EventLog(take, "operator").append(
            kind, host_ns=HOST0_NS + round(at_s * 1e9), uncertainty_ns=0, op_id=kind, body={}
        )
    with open_recording(take) as recording:
        first, second = recording.gopro_files["gopro"]
        moments = np.array([0.5, 6.0, 10.9])
        assert hidden_in_film(recording, second, moments).tolist() == [False, True, False]
        assert not hidden_in_film(recording, first, moments[:2]).any()


def test_an_event_is_shown_by_the_clip_that_covers_it(take):
    for at_s in (6.0, 12.0, 20.0):
        EventLog(take, "tablet").append(
            "error", host_ns=HOST0_NS + round(at_s * 1e9), uncertainty_ns=10**6, op_id=f"op-{at_s}", body={}
        )
    synchronize(take)
    places = [
        one["frames"]["gopro/video"] for one in json.loads((take / "sync/events.json").read_text())["events"]
    ]
    assert [place["file"] for place in places if place["frame"] is not None] == [
        "gopro/GX010001.MP4",
        "gopro/GX010002.MP4",
    ]
    assert places[0]["media_s"] == pytest.approx(6.0 - BEGINS_S[0], abs=0.05)
    assert places[2]["media_s"] == pytest.approx(20.0 - BEGINS_S[1], abs=0.05)
    assert places[1]["frame"] is None


def test_the_film_of_a_recording_is_both_clips_with_a_hole_between(take):
    """What a release, the step reviewer and its lanes see: each moment in the clip that covers it."""
    synchronize(take)
    with ks.open(take) as recording:
        own = OwnRecording(recording, {}, [])
        assert (len(own.frames), own.others) == (sum(FRAMES), [])
        for at_s, film_s in ((6.0, 6.0 - BEGINS_S[0]), (20.0, 20.0 - BEGINS_S[1] + FRAMES[0] * PERIOD_S)):
            place = own.place(HOST0_NS + round(at_s * 1e9))
            assert (place.film_s, place.outside) == (pytest.approx(film_s, abs=0.05), "")
        assert own.place(HOST0_NS + 12 * 10**9).outside == "no picture near it"
        assert all(level > 0 for level in motion_levels(own)[1:-1])


def test_every_clip_is_decoded_when_all_is_looked_at(take):
    _, cameras = decode(take, ["gopro/GX010001.MP4", "gopro/GX010002.MP4"], Findings())
    looked_at = {"asked": 2 * CAMERA_PICTURES, "pictures": 2 * CAMERA_PICTURES, "undecodable": 0}
    assert cameras["gopro"]["decoded"] == looked_at
