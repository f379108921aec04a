"""Events in the pictures of headset and camera, against the true clocks of a kitchen."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from small_recordings import FRAMES, HOST0_NS, SECONDS, START_WORLD_S, pv_times_s

from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest
from kitchensync.sync.synchronize import synchronize

pytestmark = pytest.mark.slow


def touch(take, world_s, *, uncertainty_ms=2.0, writer="tablet", **body):
    """Log an error at a second of the world."""
    return EventLog(take, writer).append(
        "error",
        host_ns=HOST0_NS + round(world_s * 1e9),
        uncertainty_ns=round(uncertainty_ms * 1e6),
        op_id=f"op-{world_s}-{writer}",
        body=body,
    )


def written(take):
    """The file, read without our code."""
    content = json.loads((take / "sync" / "events.json").read_text())
    assert content["schema"] == "event-frames/1"
    return content["events"]


def camera_world_s(kitchen):
    times = [kitchen.camera_clock.world_s_at(k * 1001 / 30000, START_WORLD_S) for k in range(FRAMES)]
    return np.array(times)


def test_each_event_has_its_place_in_both_cameras(made, take):
    moments = np.random.default_rng(3).uniform(4.0, 23.0, 40)
    for moment in moments:
        touch(take, moment, step=4, error_id="e")
    answer = synchronize(take)
    assert answer["events"] == {"events": 40, "placed": 40}
    truth = {"hololens/pv": pv_times_s(), "gopro/video": camera_world_s(made[1])}
    events = written(take)
    assert [event["host_ns"] for event in events] == sorted(event["host_ns"] for event in events)
    for event in events:
        assert (event["step"], event["error_id"], event["writer"]) == (4, "e", "tablet")
        world_s = (event["host_ns"] - HOST0_NS) / 1e9
        for stream, taken_s in truth.items():
            place = event["frames"][stream]
            away_ms = (taken_s[place["frame"]] - world_s) * 1e3
            least_ms = np.abs(taken_s - world_s).min() * 1e3
            assert abs(place["dt_ms"] - away_ms) < place["uncertainty_ms"]
            assert abs(away_ms) <= least_ms + 1.0  # the clocks of this take are known to better than that
            assert place["first"] <= int(np.abs(taken_s - world_s).argmin()) <= place["last"]
        assert event["frames"]["gopro/video"]["file"] == "gopro/GX010001.MP4"
        frame = event["frames"]["gopro/video"]
        assert frame["media_s"] == round(frame["frame"] * 1001 / 30000, 4)


def test_what_no_picture_shows_is_said(take):
    in_gap_s = float(pv_times_s()[99] + 0.05)  # two pictures are missing here
    for moment in (0.001 - 1.0, in_gap_s, SECONDS + 1.0):
        touch(take, moment)
    synchronize(take)
    before, gap, after = (event["frames"] for event in written(take))
    assert before["hololens/pv"]["why"] == "before the first picture"
    assert before["gopro/video"]["why"] == "before the first picture"
    assert (gap["hololens/pv"]["frame"], gap["hololens/pv"]["why"]) == (None, "no picture near it")
    assert gap["gopro/video"]["frame"] is not None
    assert after["hololens/pv"]["why"] == "after the last picture"


def test_a_touch_of_unknown_time_may_be_in_any_picture(take):
    touch(take, 12.0, uncertainty_ms=3_600_000.0)
    synchronize(take)
    place = written(take)[0]["frames"]["hololens/pv"]
    assert (place["first"], place["last"]) == (0, len(pv_times_s()) - 1)


def test_a_camera_alone_is_placed_by_its_shutter(take, made):
    shutil.rmtree(take / "hololens")
    shutil.rmtree(take / "clock")
    with edit_manifest(take) as manifest:
        manifest["devices"], manifest["streams"] = {"gopro": {"kind": "gopro"}}, {}
    touch(take, 12.0)
    assert synchronize(take)["events"]["placed"] == 1
    place = written(take)[0]["frames"]["gopro/video"]
    true = int(np.abs(camera_world_s(made[1]) - 12.0).argmin())
    assert place["first"] <= true <= place["last"]


def test_nothing_is_left_of_events_that_are_gone(take):
    touch(take, 12.0)
    synchronize(take)
    shutil.rmtree(take / "events")
    assert synchronize(take)["events"] == {"events": 0, "placed": 0}
    assert not (take / "sync" / "events.json").exists()
