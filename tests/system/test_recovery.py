"""A recorder killed with everything it had started: the next recording takes its take up, and nothing is left."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from processes import COMMAND, children, kitchensync, running

from capture.session.control import ask

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]


def state_of(runtime: Path) -> dict:
    """Wait until a recorder has every stream; return what it says of itself."""
    end_s = time.monotonic() + 60
    while time.monotonic() < end_s:
        for endpoint in runtime.glob("kitchensync/*/control"):
            state = ask(endpoint, "state")
            if state and all(facts.get("first_host_ns") for facts in state["streams"].values()):
                return state
        time.sleep(0.1)
    pytest.fail("the recorder did not get every stream")


def logged(recording: Path) -> list[dict]:
    return [json.loads(line) for line in (recording / "logs" / "recording.jsonl").read_text().splitlines()]


def test_the_next_recording_adopts_one_whose_processes_were_all_killed(kitchen, runtime, tmp_path):
    place, data = kitchen(seconds=40), tmp_path / "data"
    take = [COMMAND, "record", "one", "--data", str(data), "--hololens", place.host]
    streams = ["--streams", "gyroscope,microphone"]
    with running([*take, *streams, "--chunk-seconds", "1"]) as recorder:
        supervisor = state_of(runtime)["pid"]
        pids = [supervisor, *children(supervisor)]
        assert len(pids) >= 5, "recorder, queue, two drainers, producer"
        time.sleep(2)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        recorder.wait()
    killed_ns = time.monotonic_ns()
    other = [*streams, "--seconds", "2", "--json"]
    done = kitchensync("record", "two", "--data", data, "--hololens", place.host, *other)
    assert done.returncode == 0, done.stderr
    assert "one was left open by a killed recorder and is recovered" in done.stderr
    assert json.loads(done.stdout)["status"] == "PASS", json.loads(done.stdout)["reasons"]
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []
    assert not (data / ".kitchensync").exists()
    checked = json.loads(kitchensync("verify", data / "one", "--json").stdout)
    assert checked["status"] == "WARN", checked["reasons"]
    for name, facts in checked["streams"].items():
        assert facts["stored"] == facts["received"] > 0, name
        assert [gap["cause"] for gap in facts["gaps"]] == ["restart"], name
    stopped = json.loads((data / "one" / "recording.json").read_text())["stopped"]
    assert stopped["reason"] == "recovered"
    assert 0 < killed_ns - stopped["host_ns"] < 30 * 10**9
    events = [(line["process"], line["event"]) for line in logged(data / "one")]
    assert ("supervisor", "recording begins") in events
    assert ("supervisor", "recording is recovered") in events
    assert ("drainer 0", "sealed") in events
    assert ("producer hololens", "connected") in events


def test_the_log_tells_of_a_process_that_died(kitchen, runtime, tmp_path):
    place, data = kitchen(seconds=30), tmp_path / "data"
    command = [COMMAND, "record", "take", "--data", str(data), "--hololens", place.host]
    with running([*command, "--streams", "gyroscope", "--seconds", "4"]) as recorder:
        os.kill(state_of(runtime)["processes"]["drainer 0"], signal.SIGKILL)
        assert recorder.wait(timeout=60) == 0
    died = [line for line in logged(data / "take") if line["event"] == "process died and is started again"]
    assert [(line["died"], line["exit"], line["level"]) for line in died] == [("drainer 0", -9, "warning")]
    begins = [line["process"] for line in logged(data / "take") if line["event"] == "begins"]
    assert begins.count("drainer 0") == 2


def test_a_recorder_killed_before_its_first_packet_is_cleared_away(kitchen, runtime, tmp_path):
    place, data = kitchen("--fault", "never_answer:gyroscope", seconds=30), tmp_path / "data"
    command = [COMMAND, "record", "take", "--data", str(data), "--hololens", place.host]
    with running([*command, "--streams", "gyroscope"]) as recorder:
        end_s = time.monotonic() + 30
        while not list(data.glob(".kitchensync/take/plan.json")) and time.monotonic() < end_s:
            time.sleep(0.01)
        recorder.kill()
        recorder.wait()
    (data / "take").mkdir(exist_ok=True)
    (data / "take" / "recording.json.part").write_text("{")  # as if it was killed while writing that
    done = kitchensync("recover", "--data", data)
    assert done.returncode == 0, done.stderr
    assert not (data / ".kitchensync").exists()
    assert list(data.rglob("*.part")) == []
