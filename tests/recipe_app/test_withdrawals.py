"""Whoever withdraws is recorded no longer: from the tablet, the desk, a dump, and where nobody answers at first."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import time
from functools import partial
from typing import Any

import pytest
from browser import ops
from rigs import Rig

from kitchensync.recipe_app.cooking.withdrawals import end_withdrawn
from kitchensync.recipe_app.exchange.dumps import site_of
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import new_id
from kitchensync.recipe_app.web.serve import _file, _repeated

pytestmark = pytest.mark.slow


@pytest.fixture
def rig(kitchen: Any) -> Rig:
    """The devices of the kitchen, which record `soup_1`."""
    made = Rig(kitchen)
    kitchen.__dict__["tools"] = dataclasses.replace(kitchen.tools, capture=made)
    return made


def joined(kitchen: Any) -> str:
    return str(kitchen.choose(folder="soup_1")["recording"])


def ended(kitchen: Any, recording: str, answers: int = 1) -> list[list[str]]:
    """Wait for that many answers of the devices; return the reasons of each."""
    end_s = time.monotonic() + 20
    while len(ops(kitchen, recording, "capture")) < answers and time.monotonic() < end_s:
        time.sleep(0.01)
    return [op["body"]["reasons"] for op in ops(kitchen, recording, "capture")]


def test_a_withdrawal_from_a_tablet_ends_the_recording(kitchen: Any, rig: Rig) -> None:
    recording = joined(kitchen)
    kitchen.post(kitchen.operation(recording, "note", {"text": "cooked"}))
    assert rig.calls == []
    kitchen.post(kitchen.operation(recording, "withdraw", {}))
    assert ended(kitchen, recording) == [[]]
    assert rig.calls == [("abort", "soup_1")]


def test_a_withdrawal_at_the_desk_ends_the_recording(kitchen: Any, rig: Rig) -> None:
    recording, desk = joined(kitchen), kitchen.desk("researcher")
    address = f"/api/v1/desk/recordings/{recording}/corrections"
    said = {"op_id": new_id(kitchen.utc_ns), "kind": "withdraw", "body": {}, "seen": 1}
    assert desk.post(address, json=said).status_code == 200
    assert ended(kitchen, recording) == [[]]
    assert rig.calls == [("abort", "soup_1")]


@pytest.mark.slow
def test_a_withdrawal_in_a_dump_ends_the_recording(kitchen: Any, rig: Rig) -> None:
    recording = joined(kitchen)
    (device,) = kitchen.tools.records.rows(tables.device)
    entry = {"operation": kitchen.operation(recording, "withdraw", {}), "touch": {"wall_ms": 7.0}}
    content = json.dumps({"site": site_of(kitchen.tools.records), "device": device["id"], "waiting": [entry]})
    sha256 = hashlib.sha256(content.encode()).hexdigest()
    text = json.dumps({"schema": "tablet-dump/1", "sha256": sha256, "content": content})
    answer = kitchen.desk("operator").post("/api/v1/desk/dumps", json={"text": text})
    assert (answer.status_code, answer.json()["new"]) == (200, 1)
    assert ended(kitchen, recording) == [[]]
    assert rig.calls == [("abort", "soup_1")]


def test_devices_that_are_not_reached_are_asked_until_they_end_and_named_once(
    kitchen: Any, rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.refuses = ["nobody answers"]
    recording = joined(kitchen)
    caplog.set_level(logging.WARNING)
    kitchen.post(kitchen.operation(recording, "withdraw", {}))
    with _repeated("filing", 0.01, partial(_file, kitchen.tools)):
        while len(rig.calls) < 4:
            time.sleep(0.01)
        rig.refuses = []
        while kitchen.tools.folders.state("soup_1") == "recording":
            time.sleep(0.01)
    assert ended(kitchen, recording, 2) == [["nobody answers"], []]
    (told,) = [line for line in caplog.messages if "nobody answers" in line]
    assert told.startswith("soup_1 is withdrawn")
    asked = len(rig.calls)
    end_withdrawn(kitchen.tools)
    assert len(rig.calls) == asked


def test_a_disk_that_refuses_ends_no_retry(kitchen: Any, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> list[str]:
        raise OSError(28, "No space left on device")

    recording = joined(kitchen)
    with monkeypatch.context() as patch:
        patch.setattr(rig, "abort", full)
        kitchen.post(kitchen.operation(recording, "withdraw", {}))
        assert "No space" in ended(kitchen, recording)[0][0]
    end_withdrawn(kitchen.tools)
    assert rig.calls == [("abort", "soup_1")]


def test_what_nobody_foresaw_ends_no_retry(
    kitchen: Any, rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    recording, asked = joined(kitchen), rig.abort
    kitchen.tools.records.note("withdraw", recording, {}, actor="")
    refusals = iter([TypeError("a manifest of another world")])

    def odd(name: str, *, reason: str) -> list[str]:
        for refusal in refusals:
            raise refusal
        return asked(name, reason=reason)

    monkeypatch.setattr(rig, "abort", odd)
    with _repeated("filing", 0.01, partial(_file, kitchen.tools)):
        assert ended(kitchen, recording) == [[]]
    assert "a manifest of another world" in caplog.text


def test_what_is_not_withdrawn_or_not_recorded_or_gone_is_left_alone(kitchen: Any, rig: Rig) -> None:
    joined(kitchen)
    for name in ("soup_2", "soup_3"):
        kitchen.record(name)
        recording = kitchen.choose(folder=name)["recording"]
        kitchen.record(name, "stopped")
        kitchen.tools.records.note("withdraw", recording, {}, actor="")
    (kitchen.data / "soup_3" / "recording.json").unlink()
    end_withdrawn(kitchen.tools)
    assert rig.calls == []
