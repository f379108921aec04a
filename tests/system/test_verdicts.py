"""Faults played through the real `record`: its last words and exit code judge what is there, not only what came.

`make verdicts` plays all of them; the packets that the kitchen wrote down when it sent them are the truth here too.
"""

from __future__ import annotations

import json
import re

import pytest
from processes import kitchensync

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

SECONDS = 6
SLOW = "depth_rate_drop:depth_ahat@2+30"


def sent_ticks(place, stream: str) -> list[int]:
    lines = (place.out / "truth" / f"{stream}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["ticks"] for line in lines]


def test_a_stream_that_stalls_to_the_end_and_one_whose_port_dies_are_no_pass(kitchen, runtime, tmp_path):
    faults = ("--fault", "stall:pv@2+60", "--fault", "kill_port:gyroscope@2", "--fault", SLOW)
    place = kitchen("--rings", *faults, seconds=40)
    take = (
        "record",
        "take",
        "--data",
        tmp_path / "data",
        "--hololens",
        place.host,
        "--seconds",
        str(SECONDS),
    )
    done = kitchensync(*take, "--streams", "pv,gyroscope,magnetometer,depth_ahat")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("FAIL")
    for name in ("pv", "gyroscope"):
        assert re.search(rf"hololens/{name}: covers \d+ % of the session, nothing after 0:0\d", done.stdout)
        # a busy computer may make another hole before the end
        ends = r"ends at 0:0\d: do not use it after that|has .*(from|holes).*: do not use it there"
        assert re.search(rf"^  {name} ({ends})$", done.stdout, re.M)
    assert "note: hololens/depth_ahat: " in done.stdout  # slowing down by itself is no fault
    answer = json.loads(kitchensync("verify", tmp_path / "data" / "take", "--json").stdout)
    place.truth()  # ends it, so that its lines are whole
    ticks = {name: sent_ticks(place, f"hololens/{name}") for name in ("pv", "gyroscope", "magnetometer")}
    start = max(times[0] for times in ticks.values())
    for name in ("pv", "gyroscope"):
        true = (ticks[name][-1] - start) / (answer["session_s"] * 1e7)
        assert answer["streams"][f"hololens/{name}"]["coverage"] == pytest.approx(true, abs=0.1)
    for name in ("magnetometer", "depth_ahat"):
        assert answer["streams"][f"hololens/{name}"]["coverage"] > 0.9
        assert not any(f"hololens/{name}: covers" in reason for reason in answer["reasons"])
