"""Faults played through the real `record`: its last words and exit code judge what is there, not only what came.

`make verdicts` plays all of them; the packets that the kitchen wrote down when it sent them are the truth here too.
"""

from __future__ import annotations

import json
import signal
import subprocess

import pytest
from processes import COMMAND, LIMIT_S, kitchensync, running, wait_for_more, wait_until_all_stream

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

FAULTS = (
    "stall:pv+600",
    "kill_port:gyroscope",
    "depth_rate_drop:depth_ahat+600",  # slowing down by itself is no fault
)
HEALTHY_S = 5
"""How long the streams that stay well go on after the faults."""


def sent_ticks(place, stream: str) -> list[int]:
    lines = (place.out / "truth" / f"{stream}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["ticks"] for line in lines]


def test_a_stream_that_stalls_to_the_end_and_one_whose_port_dies_are_no_pass(kitchen, runtime, tmp_path):
    place = kitchen("--rings", seconds=0)
    command = [COMMAND, "record", "take", "--data", str(tmp_path), "--hololens", place.host]
    command += ["--streams", "pv,gyroscope,magnetometer,depth_ahat"]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as recorder:
        state = wait_until_all_stream(recorder, runtime)
        place.type(*(f"fault {fault}" for fault in FAULTS))
        wait_for_more(runtime, HEALTHY_S, "hololens/magnetometer", since=state)
        recorder.send_signal(signal.SIGINT)
        said, _ = recorder.communicate(timeout=LIMIT_S)
    assert recorder.returncode == 1, said
    assert said.startswith("FAIL")
    answer = json.loads(kitchensync("verify", tmp_path / "take", "--json").stdout)
    assert answer["status"] == "FAIL"
    place.truth()  # ends it, so that its lines are whole
    ticks = {name: sent_ticks(place, f"hololens/{name}") for name in ("pv", "gyroscope", "magnetometer")}
    start = max(times[0] for times in ticks.values())
    for name in ("pv", "gyroscope"):
        true = (ticks[name][-1] - start) / (answer["session_s"] * 1e7)
        assert answer["streams"][f"hololens/{name}"]["coverage"] == pytest.approx(true, abs=0.1)
        assert any(reason.startswith(f"hololens/{name}: covers") for reason in answer["reasons"])
    for name in ("magnetometer", "depth_ahat"):
        assert answer["streams"][f"hololens/{name}"]["coverage"] > 0.9
        assert not any(f"hololens/{name}: covers" in reason for reason in answer["reasons"])
