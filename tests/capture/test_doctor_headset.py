"""What the preflight says of a headset whose ports tell only half of the story."""

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
    return report.facts["research_mode"], {one.what: (one.status, one.seen) for one in report.findings}


def test_where_nobody_answers_nothing_is_said_of_research_mode(loopback_host: str) -> None:
    mode, found = findings(loopback_host)
    assert mode is None
    assert found["research mode"] == (LOOK, "cannot be told while no port answers")
    assert found["gyroscope (3807)"] == (BAD, "refused")
    assert found["eye_tracking (3817)"] == (LOOK, "refused"), "nobody asked for it"


def test_research_mode_is_off_where_only_its_ports_refuse(loopback_host: str) -> None:
    with socket.create_server((loopback_host, 3819)):
        mode, found = findings(loopback_host)
    assert mode is False
    assert found["research mode"] == (BAD, "off")
    assert found["extended_video (3819)"] == ("good", "open")


@pytest.mark.parametrize(
    ("waits", "status", "words"), [(90.0, LOOK, "too busy to tell"), (3.0, BAD, "another client")]
)
def test_a_silent_stream_is_not_blamed_by_a_computer_that_is_too_busy(
    waits: float, status: str, words: str, loopback_host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headset_checks, "waits_percent", lambda: waits)
    monkeypatch.setattr(headset_checks, "FIRST_PACKET_S", 0.2)
    with socket.create_server((loopback_host, 3807)):
        report = examine_headset(loopback_host, ["gyroscope"], Profile())
    (found,) = [one for one in report.findings if one.what == "gyroscope (3807)"]
    assert (found.status, found.seen) == (status, "silent")
    assert words in found.advice
