"""The acceptance page: measurements, promises, and what was not tested."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from small_recordings import true_alignment, write_film
from timed_recordings import HZ, Stream, host_ns, make, steady

from kitchensync.cli import main
from kitchensync.storage.manifest import edit_manifest, write_json

STOP_S, SERIAL = 40.0, "C3501325000005"
CLIPS_S = ((1.0, 14.0), (20.0, 20.0))
"""When each film begins, and how long it is."""


def accepted(path: Path, *, back_s: float | None = None, aligned: int = 2) -> tuple[int, dict[str, Any], str]:
    """Make a recording whose gyroscope broke off at second 10 until `back_s`; return exit code, answer, page."""
    at_s = steady(HZ["gyroscope"], 0.1, STOP_S)
    gyroscope = Stream(at_s)
    if back_s is not None:
        at_s = at_s[(at_s < 10) | (at_s > back_s)]
        first = int(np.searchsorted(at_s, 10))
        gyroscope = Stream(at_s, connection=1 + (at_s > 10), closed=[(first, "network")])
    make(path, {"gyroscope": gyroscope, "pv": Stream(steady(HZ["pv"], 0.1, STOP_S))}, STOP_S)
    entries = []
    (path / "sync" / "alignment").mkdir(parents=True)
    for number, (_, seconds) in enumerate(CLIPS_S, start=1):
        write_film(path / f"filmed{number}", 5, round(seconds * 29.97))
        (film,) = (path / f"filmed{number}").glob("*.MP4")
        kept = path / "gopro" / f"GX01000{number}.MP4"
        kept.parent.mkdir(exist_ok=True)
        film.rename(kept)
        film.parent.rmdir()
        content = kept.read_bytes()
        entries.append(
            {"file": kept.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        )
        if number <= aligned:
            times = np.linspace(0, seconds, 12)
            answer = true_alignment(f"gopro/{kept.name}", times, np.rint(times * 1e7).astype(np.int64))
            sigma = {"stat_ms": [0.1] * 3, "model_ms": [0.0] * 3, "bound95_ms": [0.2, 0.1, 0.3]}
            answer["sigma"] = sigma | {"systematic_ms": [], "total_ms": 0.1}
            write_json(path / "sync" / "alignment" / f"{kept.stem}.json", answer)
    openings = [{"before_host_ns": host_ns(at), "after_host_ns": host_ns(at)} for at, _ in CLIPS_S]
    gap = {"start_host_ns": host_ns(15.0), "end_host_ns": host_ns(20.0), "cause": "device_swap"}
    media = {"serial": SERIAL, "shutter_on": openings[0], "shutters_on_again": openings[1:], "gaps": [gap]}
    write_json(path / "gopro" / "media.json", media | {"files": entries})
    with edit_manifest(path) as manifest:
        manifest["devices"]["gopro"] = {"kind": "gopro", "serial": SERIAL, "model": "HERO12 Black"}
    order = ["doctor", "--acceptance", str(path)]
    done = CliRunner().invoke(main, [*order, "--json"])
    return done.exit_code, json.loads(done.stdout), CliRunner().invoke(main, order).stdout


def statuses(answer: dict[str, Any]) -> dict[str, str]:
    return {finding["what"]: finding["status"] for finding in answer["findings"]}


@pytest.mark.slow
def test_measurements_are_shown_beside_promises_without_serial_numbers(tmp_path: Path) -> None:
    code, answer, page = accepted(tmp_path / "take")
    by_name = statuses(answer)
    good = ("hololens/pv", "hololens/gyroscope", "storage", "battery", "nod", "gopro")
    assert {name: by_name[name] for name in good} == dict.fromkeys(good, "good"), page
    untried = ("length", "reconnect", "clap", "board")
    assert {name: by_name[name] for name in untried} == dict.fromkeys(untried, "look")
    assert (code, answer["schema"], answer["status"]) == (0, "doctor/1", "look")
    assert "0.7 of 20 minutes" in page
    assert "2 of 2 videos, bound 0.30 ms" in page
    assert SERIAL not in page + json.dumps(answer)


@pytest.mark.slow
def test_a_video_without_alignment_and_a_late_reconnect_are_bad(tmp_path: Path) -> None:
    code, answer, page = accepted(tmp_path / "take", back_s=39.0, aligned=1)
    by_name = statuses(answer)
    bad = ("nod", "hololens/gyroscope")
    assert {name: by_name[name] for name in bad} == dict.fromkeys(bad, "bad"), page
    assert (by_name["reconnect"], code) == ("good", 1)  # 29 s
    assert "the longest 29.0 s" in page
