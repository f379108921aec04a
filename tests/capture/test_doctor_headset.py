"""Preflight results for headsets whose ports give an incomplete picture."""

from __future__ import annotations

import socket

import pytest

from kitchensync.capture.doctor import headset_checks
from kitchensync.capture.doctor.checks import BAD, LOOK
from kitchensync.capture.doctor.headset_checks import examine_headset
from kitchensync.sensors.hololens.profile import Profile


def findings(host: str) -> tuple[object, dict[str, tuple[str, str]]]:
    report = examine_headset(host, ["pv", "gyroscope"], Profile())
    assert report.status == BAD
    return report.facts["research_mode"], {
        finding.what: (finding.status, finding.seen) for finding in report.findings
    }


def test_research_mode_is_unknown_if_no_port_answers(loopback_host: str) -> None:
    mode, by_name = findings(loopback_host)
    assert mode is None
    assert by_name["research mode"] == (LOOK, "cannot be told while no port answers")
    assert by_name["gyroscope (3807)"] == (BAD, "refused")
    assert by_name["eye_tracking (3817)"] == (LOOK, "refused"), "not requested"


def test_research_mode_is_off_where_only_its_ports_refuse(loopback_host: str) -> None:
    with socket.create_server((loopback_host, 3819)):
        mode, by_name = findings(loopback_host)
    assert mode is False
    assert by_name["research mode"] == (BAD, "off")
    assert by_name["extended_video (3819)"] == ("good", "open")


@pytest.mark.parametrize(
    ("waits", "status", "message"), [(90.0, LOOK, "too busy to tell"), (3.0, BAD, "another client")]
)
def test_a_silent_stream_is_not_blamed_by_a_computer_that_is_too_busy(
    waits: float, status: str, message: str, loopback_host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headset_checks, "waits_percent", lambda: waits)
    monkeypatch.setattr(headset_checks, "FIRST_PACKET_S", 0.2)
    with socket.create_server((loopback_host, 3807)):
        report = examine_headset(loopback_host, ["gyroscope"], Profile())
    (finding,) = [finding for finding in report.findings if finding.what == "gyroscope (3807)"]
    assert (finding.status, finding.seen) == (status, "silent")
    assert message in finding.advice
