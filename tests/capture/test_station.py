"""What the tablet and the desk are told of a running recording."""

from __future__ import annotations

import pytest

from capture.station import Station


def told(monkeypatch, tmp_path, streams):
    """Report of a recording whose streams are in these states."""
    state = {
        "phase": "recording",
        "problems": [],
        "restarts": [],
        "host_ns": 5,
        "streams": streams,
    }
    station = Station(tmp_path, None)
    monkeypatch.setattr(station, "_state", lambda recording: state)
    return station.report("take-1")


@pytest.mark.parametrize("state", ["stalled", "rate low", "silent", "reconnecting"])
def test_a_stream_in_trouble_is_told_though_its_recorder_names_no_problem(monkeypatch, tmp_path, state):
    report = told(monkeypatch, tmp_path, {"hololens/pv": {"state": state, "problem": ""}})
    assert (report["health"], report["reasons"]) == ("problem", [f"hololens/pv: {state}"])


@pytest.mark.parametrize("state", ["streaming", "slow by the device"])
def test_a_stream_that_does_as_it_may_is_no_problem(monkeypatch, tmp_path, state):
    report = told(monkeypatch, tmp_path, {"hololens/depth_ahat": {"state": state}})
    assert (report["health"], report["reasons"]) == ("recording", [])
