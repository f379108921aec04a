"""Reports on a running recording for the tablet and the desk."""

from __future__ import annotations

from typing import Any

import pytest
from told_states import SECOND, told_state

from kitchensync.capture.plan import runtime_folder
from kitchensync.capture.station import Station
from kitchensync.shell.host_clock import host_ns
from kitchensync.storage.manifest import write_json

PV = told_state(host_ns())["streams"]["hololens/pv"]


def report_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, **changes: Any) -> dict[str, Any]:
    """Return the report of a recording whose state has these changes."""
    station = Station(tmp_path)
    for stream in changes.get("streams", {}).values():
        stream["last_host_ns"] = host_ns()  # the module was imported long before
    monkeypatch.setattr(station, "_state", lambda recording: told_state(host_ns(), **changes))
    return station.report("take-1")


@pytest.mark.parametrize(
    ("changes", "message", "alarm"),
    [
        ({"last_host_ns": PV["last_host_ns"] - 9 * SECOND}, "hololens/pv: nothing has come for", "headset"),
        (
            {"streams": {"hololens/pv": PV | {"state": "rate low", "rate_hz": 9.0}}},
            "9.0 packets/s",
            "recording",
        ),
        ({"streams": {"hololens/pv": PV | {"state": "reconnecting", "problem": "cut"}}}, "(cut)", "headset"),
        ({"problem": "no room", "losses": 3}, "3 packets found no room", "recording"),
    ],
)
def test_a_stream_with_a_problem_is_reported_to_operator_and_cook(
    monkeypatch, tmp_path, changes, message, alarm
):
    report = report_of(monkeypatch, tmp_path, **changes)
    assert (report["health"], report["alarm"]) == ("problem", alarm)
    assert [reason for reason in report["reasons"] if message in reason]
    assert [line for line in report["cook"] if "Please tell the operator" in line]


def test_the_cook_gets_one_message_for_any_number_of_missing_streams(monkeypatch, tmp_path):
    gone = {name: PV | {"state": "refused", "problem": "refused"} for name in ("hololens/pv", "hololens/eye")}
    report = report_of(monkeypatch, tmp_path, streams=gone)
    assert (len(report["reasons"]), len(report["cook"])) == (2, 1)


@pytest.mark.parametrize("state", ["streaming", "slow by the device"])
def test_a_stream_within_its_limits_is_not_a_problem(monkeypatch, tmp_path, state):
    streams = {"hololens/depth_ahat": PV | {"state": state, "last_host_ns": host_ns()}}
    report = report_of(monkeypatch, tmp_path, streams=streams)
    assert (report["health"], report["reasons"], report["cook"]) == ("recording", [], [])


def test_a_warning_is_shown_to_the_operator_only_and_is_no_alarm(monkeypatch, tmp_path):
    report = report_of(monkeypatch, tmp_path, battery_percent=12)
    assert (report["health"], report["reasons"], report["cook"]) == (
        "recording",
        ["gopro: battery at 12 %"],
        [],
    )


def test_a_camera_with_a_problem_is_an_alarm(monkeypatch, tmp_path):
    camera = {"problem": "it does not record", "battery_percent": None, "minutes_left": None}
    assert report_of(monkeypatch, tmp_path, cameras={"gopro": camera})["alarm"] == "camera"


def left_behind(tmp_path, **fields):
    folder = tmp_path / "take-1"
    folder.mkdir()
    write_json(folder / "recording.json", {"schema": "recording/1", "recording": "take-1", **fields})
    return Station(tmp_path).report("take-1")


def test_a_dead_recorder_is_a_problem_and_not_an_end(tmp_path):
    assert not runtime_folder(tmp_path / "take-1").exists()
    report = left_behind(tmp_path, state="recording")
    assert (report["health"], report["alarm"]) == ("problem", "stopped")
    assert "recorder is gone" in report["reasons"][0]


@pytest.mark.parametrize(
    ("why", "alarm"),
    [
        ("requested", ""),
        ("aborted", ""),
        ("signal", ""),
        ("no_space", "stopped"),
        ("ended_by_device", "stopped"),
    ],
)
def test_an_unrequested_end_is_an_alarm(monkeypatch, tmp_path, why, alarm):
    ending = report_of(monkeypatch, tmp_path, phase="stopping", stop_asked=why)
    assert (ending["health"], ending["alarm"]) == ("stopped", alarm)
    report = left_behind(tmp_path, state="complete", stopped={"host_ns": 1, "utc_ns": 1, "reason": why})
    assert (report["health"], report["alarm"], bool(report["reasons"])) == ("stopped", alarm, bool(alarm))
