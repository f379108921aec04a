"""The scripted participant against the real app: what it did is what the recording holds."""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kitchensync.storage.manifest import write_json
from kitchensync.task_graphs.categories import TAGS
from kitchensync.virtual_kitchen.tablet import participate, plan

IMPOSSIBLE = ("Missing Step", "Order Error", "Temperature Error", "Other")
"""Not what one notices in a step that was just done in its turn, cold or warm."""
SERVER = [sys.executable, "-m", "kitchensync", "app", "--port", "0"]


@contextlib.contextmanager
def app_over(data: Path) -> Iterator[tuple[str, str]]:
    """The real app as a process on a free port: its address and the invite of its first start."""
    process = subprocess.Popen([*SERVER, "--data", str(data)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        invite = ""
        for line in iter(process.stdout.readline, ""):
            if line.startswith("invite="):
                invite = line.partition("#")[2].strip()
            if line.startswith("ready "):
                yield line.split("app=", 1)[1].strip(), invite
                break
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def events_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "events" / "tablet.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("seed", range(20))
def test_a_plan_has_all_steps_an_undo_and_one_or_two_errors(seed: int) -> None:
    order = list(range(10, 20))
    actions = plan(order, 60.0, random.Random(seed))
    kinds = Counter(action.kind for action in actions)
    assert (kinds["done"], kinds["undo"]) == (len(order) + 1, 1)
    assert kinds["error"] in (1, 2)
    assert [action.at_s for action in actions] == sorted(action.at_s for action in actions)
    assert actions[0].at_s >= 0
    assert actions[-1].at_s <= 60
    undo = next(index for index, action in enumerate(actions) if action.kind == "undo")
    assert actions[undo - 1].kind == "done"
    assert actions[undo + 1] == type(actions[undo])(actions[undo + 1].at_s, "done", actions[undo - 1].step)


@pytest.mark.slow
def test_the_recording_holds_what_was_done_within_the_stated_uncertainty(tmp_path: Path) -> None:
    recording = tmp_path / "soup_1"
    recording.mkdir()
    manifest = {
        "schema": "recording/1",
        "recording": "soup_1",
        "state": "recording",
        "started": {"utc_ns": 5},
    }
    write_json(recording / "recording.json", manifest)
    with app_over(tmp_path) as (url, invite):
        truth = participate(url, recording="soup_1", seconds=0.5, seed=3, invite=invite)
    choice, *everything = events_of(recording)
    assert choice["kind"] == "recipe"
    assert [event["kind"] for event in everything[:2]] == ["prepared", "consent"]
    assert [event["kind"] for event in everything[-2:]] == ["end", "finish"]
    events = [event for event in everything if event["kind"] in ("done", "error", "undo")]
    assert [event["op_id"] for event in events] == [tap.op_id for tap in truth.taps]
    for event, tap in zip(events, truth.taps, strict=True):
        assert event["kind"] == tap.kind
        assert abs(event["host_ns"] - tap.touch_host_ns) <= event["uncertainty_ns"]
        assert (event["host_ns"], event["uncertainty_ns"]) == (
            tap.receipt_host_ns,
            tap.receipt_uncertainty_ns,
        )
    kept = json.loads((recording / "recording.json").read_text())["recipe"]
    assert (kept["name"], kept["graph_hash"]) == (truth.recipe, truth.graph_hash)
    assert (kept["order"], kept["seed"]) == (truth.order, 3)


@pytest.mark.slow
def test_the_same_seed_does_the_same(tmp_path: Path) -> None:
    taps = []
    for attempt in ("first", "second"):
        with app_over(tmp_path / attempt) as (url, invite):
            truth = participate(url, recording=None, seconds=0.0, seed=5, invite=invite)
            taps.append([(tap.op_id, tap.kind, tap.step, tap.category) for tap in truth.taps])
    assert taps[0] == taps[1]


@pytest.mark.slow
def test_as_a_command_it_writes_its_truth(tmp_path: Path) -> None:
    out = tmp_path / "tablet.json"
    with app_over(tmp_path / "data") as (url, invite):
        options = ["--seconds", "0.2", "--recipe", "tea_and_toast", "--url", url, "--out", str(out)]
        command = [sys.executable, "-m", "kitchensync.virtual_kitchen.tablet", *options, "--invite"]
        refused = subprocess.run([*command, "wrong"], capture_output=True, text=True, check=False)
        assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1)
        assert "403" in refused.stderr
        assert not out.exists()
        secret = {**os.environ, "KITCHENSYNC_INVITE": f"{url}desk/sign-in#{invite}"}
        subprocess.run(command[:-1], env=secret, check=True)  # which no list of processes shows
    truth = json.loads(out.read_text())
    assert (truth["schema"], truth["recipe"], len(truth["order"])) == ("tablet-truth/1", "tea_and_toast", 11)
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "_app" / "app.db")) as database:
        logged = {row[0] for row in database.execute("SELECT op_id FROM op")}
    assert {tap["op_id"] for tap in truth["taps"]} <= logged


def test_an_error_in_a_step_that_is_done_is_of_a_kind_that_such_a_step_can_have():
    for seed in range(50):
        actions = plan([3, 1, 2], 60.0, random.Random(seed))
        errors = [one for one in actions if one.kind == "error"]
        done = {one.step for one in actions if one.kind == "done"}
        assert errors
        assert all(one.step in done and TAGS[one.category] not in IMPOSSIBLE for one in errors)
