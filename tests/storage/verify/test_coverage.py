"""The verdict takes in what each stream covers of the session; the truth is counted millisecond by millisecond."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from timed_recordings import HZ, Stream, host_ns, make, steady

from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.verify import verify

STOP_S = 25.0


def whole(**changed: Stream) -> dict[str, Stream]:
    """Three streams of one headset that come to the end; some of them otherwise."""
    names = ("pv", "depth_ahat", "gyroscope")
    return {name: Stream(steady(HZ[name], 0.1, STOP_S)) for name in names} | changed


def counted(at_s: np.ndarray, start_s: float, stop_s: float, step_s: float) -> float:
    """The share of the session's milliseconds that lie between two packets no further apart than the limit."""
    covered = 0
    instants = np.arange(start_s, stop_s, 0.001)
    for instant in instants:
        before, after = at_s[at_s <= instant], at_s[at_s > instant]
        right = after.min() if len(after) else stop_s
        covered += len(before) > 0 and right - before.max() <= step_s
    return covered / len(instants)


def test_a_whole_recording_passes_and_is_good_for_all(tmp_path):
    answer = verify(make(tmp_path / "take", whole(), STOP_S))
    assert (answer["status"], answer["reasons"], answer["notes"]) == ("PASS", [], [])
    assert all(facts["coverage"] == 1.0 for facts in answer["streams"].values())
    assert answer["good_for"] == ["everything covers 0:00 to 0:25: use it for all of it"]


def test_a_headset_that_was_changed_keeps_its_rate_and_its_place(tmp_path):
    """Its clock counts anew: what lies between is a gap of that cause, and every packet stands where it came."""
    at_s = np.concatenate([steady(HZ["pv"], 0.1, 10), steady(HZ["pv"], 13, STOP_S)])
    second = at_s >= 13
    changed = Stream(
        np.where(second, at_s - 5_000.0, at_s),
        arrived_s=at_s + 0.02,
        connection=1 + second,
        closed=[(int(np.flatnonzero(second)[0]), "network")],
        ticks0=10**11,
    )
    facts = verify(make(tmp_path / "take", {"pv": changed}, STOP_S))["streams"]["hololens/pv"]
    assert [gap["cause"] for gap in facts["gaps"]] == ["device_swap"]
    assert facts["coverage"] == pytest.approx(counted(at_s, 0.12, STOP_S, 0.1), abs=0.002)
    assert facts["rate_hz"] == pytest.approx((len(at_s) - 1) / (at_s[-1] - at_s[0]), abs=0.01)


@pytest.mark.parametrize("reason", ["stopped", "ended_by_device"])
def test_a_camera_that_gives_nothing_after_a_third_fails(tmp_path, reason):
    """A stall to the end, and a port that dies: received is stored, and most of the session is not there."""
    at_s = steady(30, 0.1, 8)
    answer = verify(make(tmp_path / "take", whole(pv=Stream(at_s, reason=reason)), STOP_S))
    facts = answer["streams"]["hololens/pv"]
    assert facts["received"] == facts["stored"]
    assert answer["status"] == "FAIL"
    assert "hololens/pv: covers 31 % of the session, nothing after 0:08" in answer["reasons"]
    assert facts["coverage"] == pytest.approx(counted(at_s, 0.12, STOP_S, 0.1), abs=0.002)
    assert facts["longest_silence_s"] == pytest.approx(17.0, abs=0.1)
    assert answer["good_for"] == ["pv ends at 0:08: do not use it after that"]


@pytest.mark.parametrize(("hole_s", "status"), [(1.0, "WARN"), (5.0, "WARN"), (15.0, "FAIL")])
def test_a_hole_lowers_coverage_by_its_length(tmp_path, hole_s, status):
    at_s = np.concatenate((steady(30, 0.1, 5), steady(30, 5 + hole_s, STOP_S)))
    answer = verify(make(tmp_path / "take", whole(pv=Stream(at_s)), STOP_S))
    assert answer["status"] == status
    found = answer["streams"]["hololens/pv"]["coverage"]
    assert found == pytest.approx(counted(at_s, 0.12, STOP_S, 0.1), abs=0.003)
    assert answer["good_for"][0].startswith("pv has nothing from 0:05 to 0:")


def test_pictures_lost_all_over_are_seen(tmp_path):
    """As under load: runs of missing pictures everywhere, each behind a packet that did come."""
    rng = np.random.default_rng(4)
    at_s = steady(30, 0.1, STOP_S)
    kept = at_s[np.repeat(rng.random(len(at_s) // 10 + 1) > 0.3, 10)[: len(at_s)]]
    answer = verify(make(tmp_path / "take", whole(pv=Stream(kept)), STOP_S))
    found = answer["streams"]["hololens/pv"]["coverage"]
    assert answer["status"] == "WARN"
    assert found == pytest.approx(counted(kept, 0.12, STOP_S, 0.1), abs=0.015)
    assert found < 0.95


def test_all_streams_of_a_headset_that_died_are_judged_up_to_the_stop(tmp_path):
    streams = {name: Stream(steady(HZ[name], 0.1, 8)) for name in ("pv", "gyroscope")}
    answer = verify(make(tmp_path / "take", streams, STOP_S))
    assert answer["status"] == "FAIL"
    assert all(facts["coverage"] < 0.35 for facts in answer["streams"].values())


def test_a_recording_that_its_devices_ended_is_judged_up_to_their_end(tmp_path):
    streams = {
        name: Stream(steady(HZ[name], 0.1, 8), reason="ended_by_device") for name in ("pv", "gyroscope")
    }
    assert verify(make(tmp_path / "take", streams, STOP_S))["status"] == "PASS"


def test_the_session_begins_when_every_stream_has_delivered(tmp_path):
    late = {name: Stream(steady(HZ[name], 0.1, STOP_S)) for name in ("pv", "gyroscope")}
    late["pv"] = Stream(np.concatenate(([0.1, 2.0], steady(30, 4, STOP_S))))
    late["magnetometer"] = Stream(steady(4.5, 6, STOP_S))
    answer = verify(make(tmp_path / "take", late, STOP_S))
    assert answer["streams"]["hololens/pv"]["coverage"] == 1.0
    assert answer["session_s"] == pytest.approx(19.0, abs=0.1)


def test_near_depth_that_slows_down_is_noted_and_loses_no_colour(tmp_path):
    at_s = np.concatenate((steady(45, 0.1, 10), steady(5, 10, 18), steady(45, 18, STOP_S)))
    answer = verify(make(tmp_path / "take", whole(depth_ahat=Stream(at_s)), STOP_S))
    assert (answer["status"], answer["reasons"]) == ("PASS", [])
    assert answer["streams"]["hololens/depth_ahat"]["coverage"] == 1.0
    assert "hololens/depth_ahat" in answer["notes"][0]
    assert "slows down by itself" in answer["notes"][0]


def test_near_depth_that_is_silent_for_longer_than_it_may_is_not_covered(tmp_path):
    at_s = np.concatenate((steady(45, 0.1, 10), steady(45, 14, STOP_S)))
    answer = verify(make(tmp_path / "take", whole(depth_ahat=Stream(at_s)), STOP_S))
    assert answer["status"] == "WARN"
    assert answer["streams"]["hololens/depth_ahat"]["coverage"] == pytest.approx(21 / 25, abs=0.01)


@pytest.mark.parametrize(("bunch_s", "status"), [(0.9, "PASS"), (2.5, "WARN")])
def test_lateness_is_noted_or_warned_of(tmp_path, bunch_s, status):
    """Packets due in 4 to 12 s leave in bunches; none is lost."""
    at_s = steady(30, 0.1, STOP_S)
    held = np.where((at_s > 4) & (at_s < 12), np.ceil((at_s - 4) / bunch_s) * bunch_s + 4, at_s)
    answer = verify(make(tmp_path / "take", whole(pv=Stream(at_s, held + 0.02)), STOP_S))
    assert answer["status"] == status
    assert answer["streams"]["hololens/pv"]["coverage"] == 1.0
    assert answer["streams"]["hololens/pv"]["latest_arrival_s"] == pytest.approx(bunch_s, abs=0.05)
    assert len(answer["notes" if status == "PASS" else "reasons"]) == 1


def test_packets_on_their_way_at_the_stop_are_no_loss(tmp_path):
    """The stop finds a busy computer 0.4 s behind with the pictures."""
    at_s = steady(30, 0.1, STOP_S - 0.4)
    arrived_s = at_s + np.linspace(0.02, 0.4, len(at_s))
    answer = verify(make(tmp_path / "take", whole(pv=Stream(at_s, arrived_s)), STOP_S))
    assert answer["status"] == "PASS"
    assert answer["streams"]["hololens/pv"]["coverage"] == 1.0


def test_a_headset_that_was_switched_on_again_is_placed_by_its_new_clock(tmp_path):
    """Its ticks begin anew: what was recorded before and after counts, the minutes between do not."""
    streams = {}
    for name in ("pv", "gyroscope"):
        before, after = steady(HZ[name], 0.1, 10), steady(HZ[name], 15, STOP_S)
        at_s = np.concatenate((before, after - 3000.0))
        connection = np.repeat([1, 2], [len(before), len(after)])
        arrived_s = np.concatenate((before, after)) + 0.02
        closed = [(len(before), "network")]
        streams[name] = Stream(at_s, arrived_s, connection=connection, closed=closed)
    answer = verify(make(tmp_path / "take", streams, STOP_S))
    assert answer["status"] == "WARN"
    for facts in answer["streams"].values():
        assert facts["coverage"] == pytest.approx(0.8, abs=0.02)
        assert facts["latest_arrival_s"] < 0.1


def test_stamps_that_jump_are_placed_by_the_other_streams(tmp_path):
    at_s = steady(30, 0.1, STOP_S)
    jumped = np.where(at_s < 10, at_s, at_s + 5)
    answer = verify(make(tmp_path / "take", whole(pv=Stream(jumped, at_s + 0.02)), STOP_S))
    assert answer["status"] == "WARN"
    assert answer["streams"]["hololens/pv"]["coverage"] == pytest.approx(0.8, abs=0.02)
    assert answer["streams"]["hololens/gyroscope"]["coverage"] == 1.0


def test_a_sensor_with_a_clock_of_its_own_is_judged_by_it(tmp_path):
    """Its clock is years off the headset's, and it died half-way; that it has no rate is no fault."""
    streams = whole()
    streams["glove/touch"] = Stream(steady(10, 0.2, 12), ticks0=9_000_000_000_000)
    path = make(tmp_path / "take", streams, STOP_S)
    answer = verify(path)
    assert answer["streams"]["glove/touch"]["coverage"] is None
    assert any("glove/touch: nothing arrived for 1" in reason for reason in answer["reasons"])
    assert answer["streams"]["hololens/pv"]["coverage"] == 1.0


def log_steps(path: Path, times_s: list[float]) -> None:
    log = EventLog(path, "tablet")
    for number, at_s in enumerate(times_s, start=1):
        body = {"position": number, "text": f"step {number}"}
        log.append("done", host_ns=host_ns(at_s), uncertainty_ns=0, body=body, op_id=f"op-{number}")


def test_the_steps_that_a_stream_lacks_are_named(tmp_path):
    path = make(tmp_path / "take", whole(pv=Stream(steady(30, 0.1, 8))), STOP_S)
    log_steps(path, [2.0 * number for number in range(1, 13)])
    assert verify(path)["good_for"] == ["pv ends at 0:08: do not use for steps 4 to 12"]


def test_what_was_paused_for_privacy_is_recommended_for_no_step(tmp_path):
    path = make(tmp_path / "take", whole(), STOP_S)
    log_steps(path, [4.0, 8.0, 12.0, 16.0])
    log = EventLog(path, "tablet")
    for kind, at_s in (("pause", 6.0), ("resume", 9.0)):
        log.append(kind, host_ns=host_ns(at_s), uncertainty_ns=0, body={}, op_id=kind)
    assert verify(path)["good_for"] == ["paused for privacy from 0:06 to 0:09: do not use for steps 2 and 3"]


def test_a_recording_of_somebody_who_withdrew_is_recommended_for_nothing(tmp_path):
    path = make(tmp_path / "take", whole(), STOP_S)
    with edit_manifest(path) as manifest:
        manifest["withdrawn"] = {"host_ns": 1}
    answer = verify(path)
    assert (answer["life"], answer["good_for"]) == ("withdrawn", [])


def test_a_step_that_was_taken_back_is_no_step(tmp_path):
    path = make(tmp_path / "take", whole(pv=Stream(steady(30, 0.1, 8))), STOP_S)
    log_steps(path, [3.0, 6.0, 12.0])
    body = {"undoes": "op-3", "undone_kind": "done"}
    EventLog(path, "tablet").append("undo", host_ns=host_ns(13), uncertainty_ns=0, body=body, op_id="op-9")
    assert verify(path)["good_for"] == ["pv ends at 0:08: no step lies there"]


def test_a_stream_that_is_seconds_behind_at_the_stop_lacks_them(tmp_path):
    at_s = steady(30, 0.1, STOP_S - 4)
    arrived_s = at_s + np.linspace(0.02, 4, len(at_s))
    answer = verify(make(tmp_path / "take", whole(pv=Stream(at_s, arrived_s)), STOP_S))
    assert answer["status"] == "WARN"
    assert answer["streams"]["hololens/pv"]["coverage"] == pytest.approx(21.5 / 25, abs=0.02)
