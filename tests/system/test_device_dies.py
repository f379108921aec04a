"""A device that dies between two packets: the recording goes on, says so, and names what is missing."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from processes import COMMAND, LIMIT_S, Kitchen, running, state_of, wait_until_all_stream
from waiting import until

SILENT_S = 6
"""Longer than a stream that is stopped may have been silent without being lost."""


@pytest.mark.parametrize(
    ("fault", "lost", "ended"),
    [("die", "all", "signal"), ("kill_port:pv", "hololens/pv", "ended_by_device")],
)
def test_what_dies_between_two_packets_is_a_fault_and_no_end(kitchen, runtime, tmp_path, fault, lost, ended):
    """With all streams dead we end it; else the headset ends the others."""
    place = kitchen("--rings", seconds=0 if lost == "all" else 25)
    command = [COMMAND, "record", "take", "--data", str(tmp_path), "--hololens", place.host, "--json"]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as recorder:
        wait_until_all_stream(recorder, runtime)
        place.type(f"fault {fault}")
        if lost == "all":
            until(lambda: silent_s(runtime) > SILENT_S, "silence of every stream")
            recorder.send_signal(signal.SIGINT)
        said, errors = recorder.communicate(timeout=LIMIT_S)
    answer, truth = json.loads(said), place.truth()
    assert (answer["status"] != "PASS", answer["ended"]) == (True, ended), errors
    assert "hololens: nothing for " in errors, "the progress line is an alarm"
    assert any("nothing came in the last" in reason for reason in answer["reasons"])
    (told,) = truth["faults"]
    for name, sent in truth["streams"].items():
        facts = answer["streams"][name]
        assert (facts["stored"], facts["sha256"]) == (sent["packets"], sent["sha256"]), name
        if lost not in ("all", name):
            assert (facts["ended"], facts["gaps"]) == ("ended_by_device", [])
            continue
        (gap,) = facts["gaps"]
        assert (facts["ended"], gap["cause"]) == ("lost", "network"), name
        assert sent_ticks(place, name)[-1] == gap["start_ticks"], name
        assert told["start_ticks"] + 5 * 10**7 < gap["end_ticks"], name


def silent_s(runtime: Path) -> float:
    """For how many seconds no stream has delivered anything."""
    state = state_of(runtime)
    newest_ns = (
        max(one["last_host_ns"] for one in state["streams"].values()) if state else time.monotonic_ns()
    )
    return (time.monotonic_ns() - newest_ns) / 1e9


def sent_ticks(place: Kitchen, stream: str) -> list[int]:
    """Stamps that the headset has sent of a stream."""
    lines = (place.out / "truth" / f"{stream}.jsonl").read_text().splitlines()
    return [json.loads(line)["ticks"] for line in lines]
