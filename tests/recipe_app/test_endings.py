"""What is over is recorded no longer: a withdrawal from tablet, desk or dump, an end that came late."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from browser import ops
from rigs import Rig

from recipe_app.dumps import site_of
from recipe_app.endings import end_what_is_over
from recipe_app.serve import _filing
from recipe_app.steering import steer
from recipe_app.store import tables
from recipe_app.store.records import new_id


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
    kitchen: Any, rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("recipe_app.serve.FILE_AGAIN_S", 0.01)
    rig.refuses = ["nobody answers"]
    recording = joined(kitchen)
    caplog.set_level(logging.WARNING)
    kitchen.post(kitchen.operation(recording, "withdraw", {}))
    with _filing(kitchen.tools):
        while len(rig.calls) < 4:
            time.sleep(0.01)
        rig.refuses = []
        while kitchen.tools.folders.state("soup_1") == "recording":
            time.sleep(0.01)
    assert ended(kitchen, recording, 2) == [["nobody answers"], []]
    (told,) = [line for line in caplog.messages if "nobody answers" in line]
    assert told.startswith("soup_1 is withdrawn")
    asked = len(rig.calls)
    end_what_is_over(kitchen.tools)
    assert len(rig.calls) == asked


def test_a_disk_that_refuses_ends_no_retry(kitchen: Any, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> list[str]:
        raise OSError(28, "No space left on device")

    recording = joined(kitchen)
    with monkeypatch.context() as patch:
        patch.setattr(rig, "abort", full)
        kitchen.post(kitchen.operation(recording, "withdraw", {}))
        assert "No space" in ended(kitchen, recording)[0][0]
    end_what_is_over(kitchen.tools)
    assert rig.calls == [("abort", "soup_1")]


def begun(kitchen: Any) -> tuple[str, str]:
    """A recording whose devices were started from its tablet, and its folder."""
    recording = kitchen.checked()
    return recording, steer(kitchen.tools, recording, "start", actor="", reason="")["folder"]


def test_what_was_ended_while_nobody_answered_is_stopped_later(kitchen: Any, rig: Rig) -> None:
    recording, folder = begun(kitchen)
    end_what_is_over(kitchen.tools)
    assert rig.calls == [("start", folder)]
    kitchen.post(
        kitchen.operation(recording, "end", {})
    )  # the tablet was offline, or its own request was refused
    rig.refuses = ["nobody answers"]
    for _ in range(3):
        end_what_is_over(kitchen.tools)
    rig.refuses = []
    for _ in range(3):
        end_what_is_over(kitchen.tools)
    assert rig.calls == [("start", folder), *[("stop", folder)] * 4]
    assert ended(kitchen, recording, 3) == [[], ["nobody answers"], []]


def test_an_operators_recording_and_one_begun_anew_go_on_after_an_end(kitchen: Any, rig: Rig) -> None:
    joined_one = joined(kitchen)
    kitchen.post(kitchen.operation(joined_one, "end", {}))
    recording = kitchen.checked()
    kitchen.post(kitchen.operation(recording, "end", {}))
    folder = steer(kitchen.tools, recording, "start", actor="", reason="")["folder"]
    end_what_is_over(kitchen.tools)
    assert rig.calls == [("start", folder)]


def test_a_stop_from_the_tablet_and_one_of_the_server_are_one(kitchen: Any, rig: Rig) -> None:
    """The tablet asks while the server is stopping already: it waits, and hears that it is done."""
    recording, folder = begun(kitchen)
    kitchen.post(kitchen.operation(recording, "end", {}))
    stopping, go = threading.Event(), threading.Event()
    stop = rig.stop

    def slowly(name: str) -> list[str]:
        if kitchen.tools.folders.state(name) == "stopped":
            return [f"{name} is not running"]
        stopping.set()
        assert go.wait(20)
        return stop(name)

    rig.stop = slowly  # type: ignore[method-assign]
    with ThreadPoolExecutor() as pool:
        server = pool.submit(end_what_is_over, kitchen.tools)
        assert stopping.wait(20)
        tablet = pool.submit(steer, kitchen.tools, recording, "stop", actor="", reason="")
        go.set()
        assert tablet.result(20)["reasons"] == []
        server.result(20)
    assert rig.calls == [("start", folder), ("stop", folder)]


def test_what_is_not_withdrawn_or_not_recorded_or_gone_is_left_alone(kitchen: Any, rig: Rig) -> None:
    joined(kitchen)
    for name in ("soup_2", "soup_3"):
        kitchen.record(name)
        recording = kitchen.choose(folder=name)["recording"]
        kitchen.record(name, "stopped")
        kitchen.tools.records.note("withdraw", recording, {}, actor="")
    (kitchen.data / "soup_3" / "recording.json").unlink()
    end_what_is_over(kitchen.tools)
    assert rig.calls == []
