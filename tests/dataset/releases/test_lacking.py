"""What a stream lacks is said wherever a data set is read: in time of the film, by the entries that it touches."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numbered_recording import FRAME_S, PV_S, film_host_ns, write_numbered
from resealed import reseal
from small_recordings import FRAMES, HOST0_NS, SECONDS
from typed_commands import answer

from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest
from kitchensync.virtual_kitchen.kitchen import Kitchen

pytestmark = pytest.mark.slow

HOLES_S = ((10.0, 13.7), (20.0, SECONDS))
"""World seconds in which the front camera sent nothing."""
DONE_S = (3.25, 5.4, 7.777, 11.1, 14.05, 19.5, 24.0)
PV_HZ = 29.97

run = partial(answer, code=None)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Kitchen, Path]:
    root = tmp_path_factory.mktemp("lacking")
    take = root / "data" / "take1"
    kitchen = write_numbered(root / "data")
    reseal(take, "hololens/pv", kitchen, HOLES_S)
    reseal(take, "hololens/gyroscope", kitchen)
    reseal(take, "hololens/spatial_input", kitchen)
    with edit_manifest(take) as manifest:
        del manifest["streams"]["hololens/depth_ahat"]
        for name, hz in (("pv", 25.0), ("gyroscope", 20.8), ("spatial_input", 30.0)):
            manifest["streams"][f"hololens/{name}"]["nominal_hz"] = hz
    log = EventLog(take, "tablet")
    steps = {str(n): {"label": f"Do-Do thing {n}", "text": f"Do thing {n}"} for n in range(1, 9)}
    frozen = {"name": "tea", "title": "Tea", "order": list(range(1, 9)), "steps": steps, "planned": []}
    frozen |= {"strategy": "normal", "display": "step", "seed": 1, "edges": [[n, n + 1] for n in range(9)]}
    log.append("recipe", host_ns=HOST0_NS, uncertainty_ns=0, body=frozen, op_id="op0")
    for node, at_s in enumerate(DONE_S, start=1):
        body = {"node": node, "device": "t"}
        at_ns = HOST0_NS + round(at_s * 1e9)
        log.append("done", host_ns=at_ns, uncertainty_ns=0, body=body, op_id=f"op{node}")
    run("sync", take, "--jobs", "1")
    return kitchen, root


@pytest.fixture(scope="module")
def released(made: tuple[Kitchen, Path]) -> tuple[dict[str, Any], Path]:
    out = made[1] / "out"
    return run("release", "captaincook4d", made[1] / "data", "--out", out, "--media", "hololens"), out


def test_a_stream_s_holes_are_said_in_the_film_s_time_and_by_the_entries_they_touch(
    made: tuple[Kitchen, Path], released: tuple[dict[str, Any], Path]
) -> None:
    (one,) = released[0]["recordings"]
    lacking = {of["stream"]: of for of in one["lacking"]}
    assert set(lacking) == {"hololens/pv", "gopro"}
    starts = (0.0, *DONE_S)
    truth = [n for n, end_s in enumerate(DONE_S) if any(starts[n] < b and a < end_s for a, b in HOLES_S)]
    assert truth == [3, 4, 6]
    assert lacking["hololens/pv"]["entries"] == truth
    true_s = np.array([film_host_ns(made[0], k) - HOST0_NS for k in range(FRAMES)]) / 1e9
    for (first_s, last_s), hole in zip(HOLES_S, lacking["hololens/pv"]["holes_s"], strict=True):
        expected = np.interp([first_s, last_s], true_s, np.arange(FRAMES) * FRAME_S)
        assert hole == pytest.approx(expected, abs=2 / PV_HZ)
    assert lacking["hololens/pv"]["said"] == (
        "pv has nothing from 0:07 to 0:11 and 0:17 to 0:22: do not use for steps 4, 5 and 7"
    )
    assert (lacking["gopro"]["said"], lacking["gopro"]["entries"]) == (
        "gopro ends at 0:22: no step lies there",
        [],
    )


def test_frames_that_were_never_taken_are_holes(
    made: tuple[Kitchen, Path], released: tuple[dict[str, Any], Path]
) -> None:
    (one,) = released[0]["recordings"]
    first_s, last_s = ((film_host_ns(made[0], k) - HOST0_NS) / 1e9 for k in (0, FRAMES - 1))
    wanted = round((last_s - first_s) * PV_HZ)
    taken = [s for s in PV_S if first_s < s < last_s and not any(a < s < b for a, b in HOLES_S)]
    found = one["holes"]["hololens_sync_frames_npz"]
    assert found == pytest.approx(wanted - len(taken), abs=3)


def test_what_not_to_use_stands_in_the_cards_and_the_check_repeats_it(
    released: tuple[dict[str, Any], Path],
) -> None:
    (one,), out = released[0]["recordings"], released[1]
    said = next(of["said"] for of in one["lacking"] if of["stream"] == "hololens/pv")
    lines = [json.loads(line) for line in (out / "kitchensync.jsonl").read_text().splitlines()]
    (facts,) = (line for line in lines if line["kind"] == "recording")
    assert facts["lacking"] == one["lacking"]
    card = json.loads((out / "croissant.json").read_text())
    assert said in card["rai:dataCollectionMissingData"]
    assert said in (out / "README.md").read_text()
    assert said in (out / "index.html").read_text()
    checked = run("release", "check", out)
    assert (checked["status"], checked["differences"]) == ("WARN", [])
    assert f"kitchensync.jsonl {one['published_id']}: {said}" in checked["warnings"]


def test_pauses_stand_in_the_readme_in_seconds_of_the_film(
    made: tuple[Kitchen, Path], tmp_path: Path
) -> None:
    shutil.copytree(made[1] / "data", tmp_path / "data")
    log = EventLog(tmp_path / "data" / "take1", "operator")
    for kind, at_s in (("pause", 6.0), ("resume", 9.0)):
        log.append(kind, host_ns=HOST0_NS + round(at_s * 1e9), uncertainty_ns=0, body={}, op_id=kind)
    out = tmp_path / "out"
    run("release", "captaincook4d", tmp_path / "data", "--out", out, "--media", "360p")
    true_s = np.array([film_host_ns(made[0], k) - HOST0_NS for k in range(FRAMES)]) / 1e9
    said = next(line for line in (out / "README.md").read_text().splitlines() if line.startswith("- `1_1`: "))
    first_s, last_s = (float(word) for word in said.removeprefix("- `1_1`: ").split(" to "))
    expected = np.interp([6.0, 9.0], true_s, np.arange(FRAMES) * FRAME_S)
    assert (first_s, last_s) == pytest.approx(expected, abs=0.15)
    assert "pictures are black there" in (out / "README.md").read_text()
