"""A state for every rule with its finding and texts, and healthy states without findings."""

from __future__ import annotations

import re
from typing import Any

import pytest
from told_states import SECOND, told_state

from kitchensync.capture.monitor.live_findings import findings_in, health_of
from kitchensync.capture.monitor.monitor import RecordingMonitor
from kitchensync.capture.monitor.rules import ALARM, RULES, WARNING
from kitchensync.capture.process.cpu_pressure import waits_percent
from kitchensync.shell.host_clock import host_ns

NOW_NS = 1000 * SECOND
PV, CAMERA = told_state(NOW_NS)["streams"]["hololens/pv"], told_state(NOW_NS)["cameras"]["gopro"]


def state(**changes: Any) -> dict[str, Any]:
    return told_state(NOW_NS, **changes)


def heartbeats(age_s: float, *, done: bool = False) -> dict[str, Any]:
    return {"producer hololens": {"host_ns": NOW_NS - round(age_s * SECOND), "done": done, "probes": 3}}


CAMERA_STATES = {
    "camera_problem": {"cameras": {"gopro": CAMERA | {"problem": "overheating"}}},
    "camera_battery_low": {"battery_percent": 12},
    "camera_card_low": {"minutes_left": 4.0},
}
STATES: dict[str, dict[str, Any]] = {
    "stream_refused": {"streams": {"hololens/pv": PV | {"state": "refused", "problem": "it refuses"}}},
    "stream_lost": {"streams": {"hololens/pv": PV | {"state": "lost", "ended": "lost", "fault": "it died"}}},
    "stream_reconnecting": {"streams": {"hololens/pv": PV | {"state": "reconnecting", "problem": "closed"}}},
    "stream_silent": {"last_host_ns": NOW_NS - 2 * SECOND},
    "packets_lost": {"losses": 7},
    "stream_behind": {"stored": 3000 - 30 * 46},
    "rate_low": {"streams": {"hololens/pv": PV | {"state": "rate low", "rate_hz": 12.0}}},
    "stream_came_back": {"left_host_ns": NOW_NS - 3 * SECOND},
    "sensor_still": {"still_host_ns": NOW_NS - 6 * SECOND},
    "head_lost": {"lost_host_ns": NOW_NS - 2 * SECOND},
    "stamps_untrue": {"flagged": 4, "flagged_host_ns": NOW_NS - SECOND},
    "stream_problem": {"problem": "the camera did not take the exposure"},
    **CAMERA_STATES,
    "process_silent": {"heard": heartbeats(3.5)},
    "process_restarted": {"restarts": [{"process": "drainer 0", "exit": -9, "host_ns": NOW_NS - SECOND}]},
    "queue_refuses": {"queue_refuses": "MISCONF Valkey is configured to save RDB snapshots"},
    "queue_silent": {"queue_silent_s": 4.0},
    "queue_evicts": {"queue_evicts": "allkeys-lru"},
    "queue_vanished": {"queue_vanished_ns": NOW_NS - 60 * SECOND},
    "clock_unanswered": {
        "heard": {
            "producer hololens": heartbeats(0.2)["producer hololens"]
            | {"answered_host_ns": NOW_NS - 20 * SECOND}
        }
    },
    "clock_set": {"clock_set_by_ns": [3600 * SECOND, -3600 * SECOND]},
    "store_problem": {"stores": [{"target": "/mnt/nas", "problem": "is read-only", "finished": False}]},
    "disk_full": {"disk": {"level": "stop", "free_bytes": 10**8, "minutes_left": 0.1}},
    "disk_low": {"disk": {"level": "warn", "free_bytes": 3 * 10**9, "minutes_left": 12.0}},
    "recording_problem": {"befallen": ["the folder is gone: put it back"]},
}


def test_there_is_a_state_for_every_rule():
    assert {rule.name for rule in RULES} == STATES.keys()
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_gives_one_finding_with_complete_texts(rule):
    (finding,) = findings_in(state(**STATES[rule.name]))
    assert (finding.rule, finding.severity, finding.do) == (rule.name, rule.severity, rule.do)
    assert finding.subject in finding.operator or rule.of in ("disk", "recording", "queue")
    assert not re.search(r"[{}]", finding.operator)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.is_of_network], ids=lambda rule: rule.name)
@pytest.mark.parametrize("waits", [3.0, 80.0])
@pytest.mark.parametrize("here", [["hololens"], ["another"]])
def test_the_network_is_not_blamed_if_the_computer_is_too_busy(rule, waits, here):
    (finding,) = findings_in(state(**STATES[rule.name], waits_percent=waits, here=here))
    assert ("network" in finding.do and "not the network" not in finding.do) == (here == ["another"])
    assert ("too busy" in finding.do and "80 %" in finding.do) == (waits > 50)


def test_cpu_pressure_comes_from_the_kernel_else_from_the_load(tmp_path, monkeypatch):
    pressure = tmp_path / "cpu"
    pressure.write_text(
        "some avg10=61.25 avg60=23.22 avg300=18.74 total=43961659986\nfull avg10=0.00 total=0\n"
    )
    assert waits_percent(pressure) == 61.25
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    for load, expected in ((1.5, 0.0), (2.0, 0.0), (4.0, 50.0), (8.0, 75.0)):
        monkeypatch.setattr("os.getloadavg", lambda load=load: (load, 0.0, 0.0))
        assert waits_percent(tmp_path / "none") == expected


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_cook_is_shown_alarms_only_and_no_internal_names(rule):
    assert rule.severity == (ALARM if rule.cook else WARNING)
    assert not re.search(r"stream|packet|queue|drainer|hololens/", rule.cook)


HARMLESS: list[dict[str, Any]] = [
    {},
    {
        "streams": {
            "hololens/depth_ahat": PV | {"state": "slow by the device", "rate_hz": 5.1, "adaptive": True}
        }
    },
    {"last_host_ns": NOW_NS - SECOND},  # last report of its producer 0.2 s ago: silent for 0.8 s
    {"streams": {"hololens/pv": {}}},  # no report about it yet
    {"streams": {"hololens/pv": {"stored": 0, "held": 0}}},  # reported by its drainer only
    {"left_host_ns": NOW_NS - 60 * SECOND},
    {"flagged": 4, "flagged_host_ns": NOW_NS - 60 * SECOND},
    {"lost_host_ns": NOW_NS - SECOND, "still_host_ns": NOW_NS - 3 * SECOND},  # not long enough
    {
        "lost_host_ns": NOW_NS - 3 * SECOND,
        "last_host_ns": NOW_NS - 3 * SECOND + SECOND // 2,
        "nominal_hz": 0.0,
    },
    {"ended": "ended_by_device", "last_host_ns": NOW_NS - 30 * SECOND},
    {"nominal_hz": 0.0, "last_host_ns": NOW_NS - 30 * SECOND},  # a plug-in that sends events only
    {"first_host_ns": 0, "last_host_ns": 0, "state": "connected"},
    {"heard": heartbeats(60, done=True)},
    {"battery_percent": None, "minutes_left": None},
    {"battery_percent": 0},  # a camera on mains power
    {"disk": {}},
]


@pytest.mark.parametrize("changes", HARMLESS)
def test_harmless_states_give_no_finding(changes):
    assert findings_in(state(**changes)) == []


def test_streams_of_a_stalled_producer_are_not_blamed():
    held = state(heard=heartbeats(8), last_host_ns=NOW_NS - 8 * SECOND)
    assert [finding.rule for finding in findings_in(held)] == ["process_silent"]


def test_a_stalled_queue_is_the_only_finding():
    held = state(queue_silent_s=5.0, heard=heartbeats(8), last_host_ns=NOW_NS - 8 * SECOND)
    assert [finding.rule for finding in findings_in(held)] == ["queue_silent"]


def test_alarms_come_before_warnings():
    both = state(disk=STATES["disk_low"]["disk"], last_host_ns=NOW_NS - 2 * SECOND)
    assert [finding.severity for finding in findings_in(both)] == [ALARM, WARNING]


@pytest.mark.parametrize(
    ("age_s", "phase", "changes", "health"),
    [
        (0.5, "recording", {}, "recording"),
        (0.5, "recording", {"left_host_ns": NOW_NS - SECOND}, "recording"),
        (0.5, "recording", {"losses": 1}, "problem"),
        (0.5, "starting", {}, "starting"),
        (0.5, "stopping", {"losses": 1}, "stopping"),
        (3.1, "recording", {}, "unknown"),
        (3.1, "recording", {"losses": 1}, "unknown"),
    ],
)
def test_health_is_unknown_after_three_seconds_without_news(age_s, phase, changes, health):
    current = state(phase=phase, **changes)
    assert health_of(current, NOW_NS + round(age_s * SECOND), findings_in(current)) == health
    assert health_of(None, NOW_NS, []) == "unknown"


def test_rates_of_a_recording_that_ended_are_not_kept(tmp_path, monkeypatch):
    endpoint = tmp_path / "take" / "control"
    monitor = RecordingMonitor()
    monkeypatch.setattr("kitchensync.capture.monitor.monitor.ask", lambda *_, **__: told_state(host_ns()))
    assert monitor.view(endpoint)["streams"]["hololens/pv"]["rates_hz"] == [29.9]
    monkeypatch.setattr("kitchensync.capture.monitor.monitor.REUSE_NS", 0)
    monkeypatch.setattr("kitchensync.capture.monitor.monitor.ask", lambda *_, **__: None)
    assert monitor.view(endpoint) is None
    monkeypatch.setattr("kitchensync.capture.monitor.monitor.ask", lambda *_, **__: told_state(host_ns()))
    assert monitor.view(endpoint)["streams"]["hololens/pv"]["rates_hz"] == [29.9]
