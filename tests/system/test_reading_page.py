"""What `docs/how-to/read-a-recording.md` shows, run on a recording as the commands make it, tablet and all."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest
from processes import kitchensync

from kitchensync.storage.events import EventLog
from kitchensync.storage.recording import open_recording

pytestmark = [pytest.mark.system, pytest.mark.timeout(240)]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "read-a-recording.md"
STEPS = {"1": "Chop-Chop an onion", "2": "Fry-Fry the onion"}
FROZEN = {
    "name": "onions", "title": "Onions", "order": [1, 2], "planned": [], "strategy": "normal",
    "steps": {n: {"label": label, "text": label.partition("-")[2]} for n, label in STEPS.items()},
    "edges": [[0, 1], [1, 2]], "display": "step", "seed": 1,
}  # fmt: skip


def cooked(recording: Path) -> None:
    """Touch two steps as done, the second with an error, as a tablet tells them."""
    with open_recording(recording) as opened:
        first_ns = opened.session_time.to_host([0])[0]
    log = EventLog(recording, "tablet")

    def touch(kind: str, at_s: float, op_id: str, body: dict[str, Any]) -> None:
        log.append(kind, host_ns=int(first_ns + at_s * 1e9), uncertainty_ns=0, body=body, op_id=op_id)

    touch("recipe", 1.0, "a", FROZEN)
    touch("done", 4.0, "b", {"node": 1, "device": "t"})
    fields = {"node": 2, "categories": [4], "description": "burnt"}
    touch("error", 6.0, "c", {"error_id": "e1", "device": "t", "fields": fields})
    touch("done", 8.0, "d", {"node": 2, "device": "t"})


def test_the_page_shows_what_reading_gives(kitchen, runtime, tmp_path, monkeypatch):
    place = kitchen(seconds=14)
    wanted = "pv,depth_ahat,gyroscope,accelerometer,spatial_input"
    words = ["--hololens", place.host, "--streams", wanted, "--gopro", place.camera]
    done = kitchensync("record", "take-1", "--data", tmp_path / "data", *words)
    assert (tmp_path / "data" / "take-1" / "recording.json").exists(), done.stderr
    cooked(tmp_path / "data" / "take-1")
    assert kitchensync("sync", tmp_path / "data").returncode == 0
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert (failed, tried > 15) == (0, True)
