"""Missing data is reported with its duration and the right cause."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from kitchensync.capture.camera.watch import CameraHealth, CameraWatch
from kitchensync.capture.errors import QueueSilent
from kitchensync.capture.process.health import HealthSender
from kitchensync.capture.session import alarms
from kitchensync.capture.session.alarms import (
    LATE_S,
    QueueWatch,
    lost_streams,
    queue_faults,
    quiet_streams,
    silent_processes,
)
from kitchensync.capture.session.supervisor import Supervisor
from kitchensync.storage.names import LOGS

SECOND = 10**9
NOW_NS = 100 * SECOND


def facts(state: str, last_s: float, **more: Any) -> dict[str, Any]:
    return {"state": state, "first_host_ns": SECOND, "last_host_ns": round(last_s * SECOND), **more}


def test_missing_streams_are_named_with_device_state_and_seconds():
    streams = {
        "hololens/pv": facts("refused", 60, fault="the headset does not answer"),
        "hololens/gyroscope": facts("refused", 88, fault="the headset does not answer"),
        "hololens/depth_ahat": facts("stalled", 90),
        "hololens/microphone": facts("streaming", 99.9),
        "hololens/accelerometer": facts("refused", 97),  # recently
        "hololens/spatial_input": facts("ended_by_device", 20, ended="ended_by_device"),
        "webcam/video": facts("slow by the device", 60),
        "webcam/audio": {"state": "connected"},  # never came: reported at the start
    }
    assert quiet_streams(streams, NOW_NS, {}) == [
        "hololens: nothing for 40 s from pv, gyroscope (the headset does not answer); retrying",
        "hololens: nothing for 10 s from depth_ahat (stalled); retrying",
    ]


def test_a_stalled_process_is_named_and_not_its_device():
    states = {
        "producer hololens": {"host_ns": 80 * SECOND},
        "producer webcam": {"host_ns": 70 * SECOND, "done": True},
        "drainer 0": {"host_ns": 99 * SECOND},
    }
    mute = silent_processes(states, NOW_NS)
    assert list(mute.values()) == ["producer hololens has not answered for 20 s"]
    assert quiet_streams({"hololens/pv": facts("stalled", 80)}, NOW_NS, mute) == []


def test_streams_still_missing_at_the_end_stay_a_problem():
    lost = {"ended": "lost", "closed_host_ns": 0}
    streams = {
        "hololens/pv": facts("lost", 20, **lost | {"closed_host_ns": 60 * SECOND}, fault="it refuses"),
        "hololens/depth_ahat": facts("lost", 55, **lost, fault=""),
        "hololens/gyroscope": facts("stopped", 60, ended="stopped"),
    }
    assert lost_streams(streams, 70 * SECOND) == [
        "hololens: nothing came in the last 40 s from pv (it refuses)",
        "hololens: nothing came in the last 15 s from depth_ahat (lost)",
    ]


def test_a_camera_that_never_answers_again_has_a_gap_until_the_end():
    watch = CameraWatch(CameraHealth())
    watch.lost("it does not answer", 5 * SECOND)
    watch.lost("it does not answer", 6 * SECOND)
    watch.ended(30 * SECOND)
    expected = {"start_host_ns": 5 * SECOND, "end_host_ns": 30 * SECOND, "cause": "network"}
    assert watch.health.gaps == [expected]
    assert "25 s" in watch.verdict()


@pytest.fixture
def stopped_queue(server):
    """A queue server that the test suspends."""
    os.kill(server.process.pid, signal.SIGSTOP)
    yield server
    os.kill(server.process.pid, signal.SIGCONT)


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.slow
def test_a_stalled_queue_server_is_detected_and_its_stall_measured(server, monkeypatch):
    monkeypatch.setattr(alarms, "PERIOD_S", 0.02)
    clock = Clock()
    watch = QueueWatch(server.url, clock)
    assert watch.silent_s == 0.0
    watch.start()
    clock.now_s += LATE_S + 1
    until(lambda: watch.silent_s == 0.0, "an answer")
    heard_s = watch.held_s

    def is_silent() -> bool:
        clock.now_s += LATE_S + 1  # repeated only if an answer was still on its way
        return watch.silent_s > 0.0

    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        until(is_silent, "its silence")
        silent_s = watch.silent_s
        assert silent_s > LATE_S
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    until(lambda: watch.silent_s == 0.0, "its answer")
    assert watch.held_s >= heard_s + silent_s
    watch.stop()


@pytest.mark.slow
def test_a_queue_server_that_starts_to_evict_is_detected(server, client, monkeypatch):
    monkeypatch.setattr(alarms, "PERIOD_S", 0.02)
    watch = QueueWatch(server.url)
    watch.start()
    client.config_set("maxmemory-policy", "allkeys-lru")
    until(lambda: watch.evicts == "allkeys-lru", "the policy")
    client.config_set("maxmemory-policy", "noeviction")
    until(lambda: watch.evicts == "", "the policy that was set back")
    watch.stop()


def test_changes_of_the_queue_server_by_others_are_reported():
    assert queue_faults("", 0, NOW_NS) == []
    evicts, vanished = queue_faults("allkeys-lru", NOW_NS - 3 * SECOND, NOW_NS)
    assert "maxmemory-policy allkeys-lru" in evicts
    assert "vanished from the queue server 3 s ago" in vanished


def test_a_vanished_stream_is_reported_even_after_a_restart_of_its_drainer(server, plan):
    (Path(plan.path) / LOGS).mkdir()
    supervisor = Supervisor(plan, server, [])
    supervisor.children.producers, supervisor.children.drainers = [], []
    drainer = HealthSender(plan.health, "drainer 0")
    drainer.send(vanished_ns=NOW_NS)
    drainer.send(vanished_ns=0, problem="it was restarted")
    until(lambda: supervisor._serve() or supervisor._trouble.problems(), "the last message")
    drainer.close()
    assert any("streams vanished" in problem for problem in supervisor.problems())
    assert supervisor._state()["queue_vanished_ns"] == NOW_NS
    supervisor._end(lambda _: None)
    assert any("streams vanished" in problem for problem in supervisor.outcome.problems)
    supervisor.close()


@pytest.mark.slow
def test_a_queue_stalled_at_the_start_is_not_blamed_on_the_headset(stopped_queue, plan):
    plan.save(Path(plan.work) / "plan.json")
    (Path(plan.path) / LOGS).mkdir()
    supervisor = Supervisor(plan, stopped_queue, [])
    supervisor.children.producers, supervisor.children.drainers = (
        [],
        [],
    )  # irrelevant here: no packet can arrive
    clock = Clock()
    supervisor._queue_watch = QueueWatch(stopped_queue.url, clock)
    problems: list[str] = []

    def show(supervisor: Supervisor) -> None:
        problems.extend(supervisor.problems())
        clock.now_s += 400

    with pytest.raises(QueueSilent, match="queue server has not answered for"):
        supervisor.run(5.0, 1000.0, show)
    supervisor.close()
    assert any("the queue server has not answered" in problem for problem in problems)
    assert not any("hololens" in problem for problem in problems)
