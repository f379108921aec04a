"""One recording in which much goes wrong: each fault is shown while it is recorded, in words, and nothing else is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from processes import kitchensync, record_command, running, wait_until_all_stream
from waiting import until

from kitchensync.capture.monitor.metrics import metrics_text
from kitchensync.capture.monitor.monitor import RecordingMonitor

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(300)]

FAULTS = {
    "stall:pv+600": ("stream_silent", "hololens/pv", "nothing has come for"),
    "drop_connection:gyroscope": ("stream_came_back", "hololens/gyroscope", "is back"),
    "kill_port:magnetometer": ("stream_refused", "hololens/magnetometer", "connection refused"),
    "duplicate_stamps:accelerometer+600": (
        "stamps_untrue",
        "hololens/accelerometer",
        "jump or go backwards",
    ),
    "gopro_overheat": ("camera_problem", "gopro", "overheating"),
}
"""fault -> the rule that tells of it, of what, in which words."""
ON_THE_WAY = {"stream_reconnecting", "stream_refused", "stream_silent", "rate_low"}
"""Said of a stream that has a fault, before or after the words above."""
DRAINER = ("process_restarted", "drainer 0", "died and was restarted")
WAIT_S = 120
HELD_NS = 10**9


def printed(words: str, *command: str) -> str:
    """What a command prints, once the words are in it: a recorder that is busy may not answer at first."""

    def said() -> str:
        text = kitchensync(*command).stdout
        return text if words in text else ""

    return until(said, f"{words!r} from {command}", limit_s=WAIT_S)


class Seen:
    """Every finding that was shown, with the look at which it was shown first."""

    def __init__(self) -> None:
        self.monitor = RecordingMonitor()
        self.first: dict[tuple[str, str], tuple[dict[str, Any], dict[str, Any]]] = {}
        self.newest: dict[str, Any] = {}

    def until(self, is_so: Callable[[], bool]) -> None:
        end_s = time.monotonic() + WAIT_S
        while not is_so():
            assert time.monotonic() < end_s, (self.first.keys(), self.newest)
            for look in self.monitor.views("take"):
                self.newest = look
                for finding in look["findings"]:
                    self.first.setdefault((finding["rule"], finding["subject"]), (finding, look))
            time.sleep(0.1)

    def says(self, rule: str, subject: str, words: str) -> bool:
        return (rule, subject) in self.first and words in self.first[rule, subject][0]["operator"]


def arrivals(recording: Path, stream: str) -> np.ndarray:
    """When packets of a stream arrived, by the stored recording."""
    files = sorted((recording / stream).glob("*.h5"))
    parts = []
    for file in files:
        with h5py.File(file) as chunk:
            parts.append(chunk["index"]["host_ns"])
    return np.concatenate(parts).astype(np.int64)


def test_each_fault_is_shown_in_words_and_nothing_else_is(kitchen, runtime, tmp_path):
    place = kitchen("--rings", seconds=0)
    seen = Seen()
    command = record_command(place, tmp_path)
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as recorder:
        wait_until_all_stream(recorder, runtime)
        place.type(*(f"fault {fault}" for fault in FAULTS))
        seen.until(lambda: all(seen.says(*told) for told in FAULTS.values()))
        alarm = 'rule="stream_silent",severity="alarm",subject="hololens/pv"'
        seen.until(lambda: alarm in metrics_text([seen.newest]))
        shown = printed("nothing has come for", "top", "take", "--once")
        assert "this computer" in shown, "the virtual headset is on no network"
        told = json.loads(printed('"health": "problem"', "top", "--json"))
        assert told["schema"] == "top/1"
        os.kill(told["recordings"][0]["processes"]["drainer 0"]["pid"], signal.SIGKILL)
        seen.until(lambda: seen.says(*DRAINER))
        os.kill(recorder.pid, signal.SIGSTOP)
        try:
            seen.until(lambda: seen.newest["health"] == "unknown")
        finally:
            os.kill(recorder.pid, signal.SIGCONT)
        seen.until(lambda: seen.newest["health"] == "problem")
        recorder.send_signal(signal.SIGTERM)
        recorder.communicate(timeout=WAIT_S)
    nobody_was_blamed_wrongly(seen, tmp_path / "take")
    assert json.loads(kitchensync("top", "--json").stdout)["recordings"] == []
    assert "take is not running" in kitchensync("top", "take").stderr


def nobody_was_blamed_wrongly(seen: Seen, recording: Path) -> None:
    """A stream was silent where its stored packets say so, not before; one without a fault only where they say so."""
    faulty = {subject for _, subject, _ in FAULTS.values()}
    for (rule, subject), (finding, look) in seen.first.items():
        if not rule.startswith("stream_") and rule != "rate_low":
            continue
        assert subject in faulty or rule in ("stream_silent", "rate_low"), finding
        if rule == "stream_silent":
            came = arrivals(recording, subject)
            came = np.append(came[came <= look["host_ns"]], look["host_ns"])
            ended_lately = came[1:] >= look["host_ns"] - 10 * HELD_NS
            assert np.diff(came)[ended_lately].max() >= HELD_NS, finding
