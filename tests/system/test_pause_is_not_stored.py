"""With `pause = "drop"` a recording of the virtual kitchen holds no picture and no sound of a privacy pause."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import paused_recording
import pytest
from processes import COMMAND, kitchensync, running, wait_for_more, wait_until_all_stream

from kitchensync.shell.host_clock import host_ns
from kitchensync.storage.events import EventLog
from kitchensync.storage.recording import Recording

pytestmark = [pytest.mark.system, pytest.mark.timeout(240)]
NEAR_NS = 500_000_000
SEEN = ("hololens/pv", "hololens/vlc_leftfront", "hololens/depth_longthrow", "hololens/microphone")


def record(place: Any, data: Path, runtime: Path) -> tuple[dict[str, Any], int, int]:
    """Record with a pause of two seconds, and stop; return the answer and when the pause was."""
    command = [COMMAND, "record", "take", "--data", data, "--hololens", place.host, "--gopro", place.camera]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with running([*map(str, command), "--json"], **pipes) as recorder:
        state = wait_until_all_stream(recorder, runtime)
        wait_for_more(runtime, 5, "hololens/microphone", since=state)
        log, moments = EventLog(data / "take", "tablet"), []
        for kind in ("pause", "resume"):
            moments.append(host_ns())
            log.append(kind, host_ns=moments[-1], uncertainty_ns=0, body={}, op_id=kind)
            time.sleep(2)
        wait_for_more(runtime, 15, "hololens/microphone", since=state)  # chunks that no pause touches
        recorder.send_signal(signal.SIGINT)
        output, errors = recorder.communicate(timeout=150)
    assert "Traceback" not in errors
    return json.loads(output), moments[0], moments[1]


def behind_of(index: np.ndarray) -> int:
    """How far host time is before device time, by the packet that travelled fastest."""
    return int((index["host_ns"].astype(np.int64) - 100 * index["device_ticks"].astype(np.int64)).min())


def test_pictures_and_sound_of_a_pause_are_not_there_and_the_account_adds_up(
    kitchen: Any, runtime: Path, tmp_path: Path
) -> None:
    place, data = kitchen(seconds=0), tmp_path / "data"
    data.mkdir()
    (data / "lab.toml").write_text('pause = "drop"\n')
    _, start_ns, end_ns = record(place, data, runtime)
    said = json.loads(kitchensync("verify", data / "take", "--json").stdout)
    assert said["status"] != "PASS", "a pause is told; how much of the rest came is up to the computer"
    assert not said["corrupt"]
    with Recording(data / "take", with_pauses=True) as recording:
        behind_ns = min(behind_of(recording[name].index) for name in recording.streams)
        for name, facts in said["streams"].items():
            missing = sum(last - first + 1 for first, last in facts["missing"])
            assert facts["received"] == facts["stored"] + missing or name.startswith("gopro/"), name
            if name not in SEEN:
                continue
            assert missing, name
            assert {gap["cause"] for gap in facts["gaps"]} & {"privacy", "redacted"}, name
            lines = (place.out / "truth" / f"{name}.jsonl").read_text().splitlines()
            sent = [json.loads(line)["ticks"] for line in lines]
            taken_ns = {ticks: 100 * ticks + behind_ns for ticks in sent}
            in_it = {ticks for ticks, at_ns in taken_ns.items() if start_ns <= at_ns <= end_ns}
            left = set(recording[name].index["device_ticks"].tolist())
            assert in_it or name != "hololens/microphone", (
                "the lightest of them, sent in time on any computer"
            )
            assert not in_it & left, name
            before = {ticks for ticks, at_ns in taken_ns.items() if at_ns < start_ns - NEAR_NS}
            assert before & left, f"{name}: what came before it was sealed by itself"
    (film,) = place.truth()["gopro"]
    samples = paused_recording.read_film(data / "take" / "gopro" / film["file"])
    assert any(not any(content) for _, content in samples.pictures), "a part of the film is blank"
    assert any(content[:50].strip(b"\\0") for _, content in samples.pictures), "the rest is not"
