"""A recording in which a tablet shows its screen clock: `sync` places the film's pictures by it, and says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from processes import kitchensync

from storage.events import EventLog

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]
SECONDS, EVERY_S = 24, 4
STREAMS = "pv,gyroscope,accelerometer"


@pytest.mark.slow
def test_pictures_are_placed_by_the_screen_clock_within_its_bound(kitchen: Any, tmp_path: Path) -> None:
    place, take = kitchen("--screen-clock", str(EVERY_S), seed=3, seconds=SECONDS), tmp_path / "data" / "take"
    devices = ["--hololens", place.host, "--gopro", place.camera, "--streams", STREAMS]
    done = kitchensync("record", "take", "--data", take.parent, *devices, "--json")
    assert done.returncode == 0, done.stderr
    truth = place.truth()
    without = aligned(take)
    assert "screen" not in without["evidence"]

    told = truth["screen_clock"]
    assert told["every_s"] == EVERY_S
    log, shown = EventLog(take, "tablet"), 0
    for at_s in range(int(told["first_s"]), SECONDS - 3, EVERY_S):
        at_ns = truth["world0_host_ns"] + at_s * 1_000_000_000
        body = {"number": 1, "refresh_hz": 60.0}
        log.append("screen_clock", host_ns=at_ns, uncertainty_ns=5_000_000, body=body, op_id=str(at_s))
        shown += 1
    found = aligned(take)
    screen = found["evidence"]["screen"]
    assert screen["shown"] == shown
    assert len(screen["slates"]) >= 2
    assert abs(screen["late_ms"]) < screen["bound95_ms"] < 6  # the virtual camera's pictures are in time
    (part,) = (one for one in found["sigma"]["systematic_ms"] if one["part"] == "gyro_to_frame")
    assert (part["value"], part["source"]) == (screen["late_ms"], "measured")
    assert found["sigma"]["total_ms"] < without["sigma"]["total_ms"]
    assert found["samples"] == without["samples"]  # the clock map is the gyroscopes'
    assert kitchensync("report", take).returncode == 0
    page = (take / "sync" / "report.html").read_text()
    assert "Screen clock, picture to picture" in page
    assert f"{len(screen['slates'])} of {shown} showings seen by both cameras" in page


def aligned(take: Path) -> dict[str, Any]:
    """Synchronize; return the film's alignment."""
    done = kitchensync("sync", take, "--json")
    assert done.returncode == 0, done.stderr
    (pair,) = json.loads(done.stdout)["recordings"][0]["pairs"]
    assert pair["status"] in ("aligned", "check")
    return dict(pair)
