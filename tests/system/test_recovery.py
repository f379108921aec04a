"""A recorder killed with everything it had started: the next recording takes its take up, and nothing is left."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from processes import COMMAND, LIMIT_S, children, kitchensync, running, wait_until_all_stream, wait_until_gone
from waiting import until

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]


def logged(recording: Path) -> list[dict]:
    """Read the log of a recording; of one that is still recorded as far as its lines are whole."""
    lines = (recording / "logs" / "recording.jsonl").read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def began(recording: Path, process: str) -> int:
    """Count how often a process said that it begins."""
    return sum((line["process"], line["event"]) == (process, "begins") for line in logged(recording))


def test_the_next_recording_adopts_one_whose_processes_were_all_killed(kitchen, runtime, tmp_path):
    place, data = kitchen(seconds=40), tmp_path / "data"
    take = [COMMAND, "record", "one", "--data", str(data), "--hololens", place.host]
    streams = ["--streams", "gyroscope,microphone"]
    with running([*take, *streams, "--chunk-seconds", "1"]) as recorder:
        supervisor = wait_until_all_stream(recorder, runtime)["pid"]
        pids = [supervisor, *children(supervisor)]
        assert len(pids) >= 5, "recorder, queue, two drainers, producer"
        until(lambda: [line for line in logged(data / "one") if line["event"] == "sealed"], "a sealed chunk")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        recorder.wait()
    killed_ns = time.monotonic_ns()
    other = [*streams, "--seconds", "2", "--json"]
    done = kitchensync("record", "two", "--data", data, "--hololens", place.host, *other)
    assert done.returncode == 0, done.stderr
    assert "one was left open by a killed recorder and is recovered" in done.stderr
    wait_until_gone(pids)
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
    with running([*command, "--streams", "gyroscope"]) as recorder:
        state = wait_until_all_stream(recorder, runtime)
        until(lambda: began(data / "take", "drainer 0") == 1, "the drainer's first line")
        os.kill(state["processes"]["drainer 0"], signal.SIGKILL)
        until(lambda: began(data / "take", "drainer 0") == 2, "the drainer that replaces it")
        recorder.send_signal(signal.SIGINT)
        recorder.wait(timeout=LIMIT_S)
    died = [line for line in logged(data / "take") if line["event"] == "process died and is started again"]
    assert [(line["died"], line["exit"], line["level"]) for line in died] == [("drainer 0", -9, "warning")]
    assert began(data / "take", "drainer 0") == 2


def test_a_recorder_killed_before_its_first_packet_is_cleared_away(kitchen, runtime, tmp_path):
    place, data = kitchen("--fault", "never_answer:gyroscope", seconds=30), tmp_path / "data"
    command = [COMMAND, "record", "take", "--data", str(data), "--hololens", place.host]
    with running([*command, "--streams", "gyroscope"]) as recorder:
        until(lambda: list(data.glob(".kitchensync/take/plan.json")), "the plan of the recording")
        recorder.kill()
        recorder.wait()
    (data / "take").mkdir(exist_ok=True)
    (data / "take" / "recording.json.part").write_text("{")  # as if it was killed while writing that
    done = kitchensync("recover", "--data", data)
    assert done.returncode == 0, done.stderr
    assert not (data / ".kitchensync").exists()
    assert list(data.rglob("*.part")) == []
