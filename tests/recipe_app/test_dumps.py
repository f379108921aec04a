"""The last resort: a dump comes in once, and nothing comes in that is not whole and ours."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.operations.errors import BadOperation
from kitchensync.recipe_app.exchange.dumps import read_dump, site_of, take_in
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import new_id
from kitchensync.recipe_app.web.door.request_bodies import MAX_BODY

pytestmark = pytest.mark.slow

SOUND = bytes(range(256)) * 8


def content_of(kitchen: Any, recording: str, **more: Any) -> str:
    """What a tablet holds: a step that was sent, but without an answer; one that was not; a voice note."""
    (device,) = [row for row in kitchen.tools.records.rows(tables.device) if row["name"] == "Tablet"]
    node = kitchen.tools.records.frozen(recording)["order"][0]
    sent = kitchen.operation(recording, "start", {"node": node}, tapped_ms_ago=5, round_trip_ms=2)
    kitchen.post(sent)
    later = kitchen.operation(recording, "done", {"node": node})
    bare = {key: value for key, value in sent.items() if key not in ("tapped_ms_ago", "round_trip_ms")}
    kitchen.now_ns += 1_000_000_000
    wall_ms = kitchen.utc_ns / 1e6 - 60_000
    touch = {"page": "p", "touch_ms": 77.0, "wall_ms": wall_ms}
    clock = {"touch_ms": 77.0, "sent_ms": 70.0, "received_ms": 72.0, **kitchen.clock()}
    clock |= {"basis": "page", "wall_ms": wall_ms}
    kitchen.now_ns += 5_000_000_000
    waiting = [{"operation": bare, "touch": touch, "clock": None}]
    waiting += [{"operation": later, "touch": touch, "clock": clock}]
    sound = {"sha256": hashlib.sha256(SOUND).hexdigest(), "recording": recording, "media_type": "audio/webm"}
    sounds = [{**sound, "base64": base64.b64encode(SOUND).decode()}]
    held = {"site": site_of(kitchen.tools.records), "device": device["id"], "made_ms": 5, "refused": []}
    return json.dumps({**held, "waiting": waiting, "sounds": sounds, **more})


def as_file(content: str) -> str:
    sha256 = hashlib.sha256(content.encode()).hexdigest()
    return json.dumps({"schema": "tablet-dump/1", "sha256": sha256, "content": content})


@pytest.fixture
def recording(kitchen: Any) -> str:
    made: str = kitchen.choose()["recording"]
    return made


def take(kitchen: Any, text: str) -> Any:
    return take_in(
        read_dump(text, "dump"), kitchen.tools.records, kitchen.tools.intake, actor="p1", corrects=False
    )


def test_each_effect_comes_in_once(kitchen: Any, recording: str) -> None:
    content = content_of(kitchen, recording)
    outcome = take(kitchen, as_file(content))
    assert (outcome.new, outcome.known, outcome.sounds, outcome.refused) == (1, 1, 1, [])
    before = kitchen.tools.records.ops(recording)
    assert [op["kind"] for op in before] == ["recording", "start", "done"]
    assert (
        before[-1]["host_ns"] == 1_001_000_000_000 + 6_000_000
    )  # on the capture clock by the tablet's own exchange
    again = take(kitchen, as_file(content))
    assert (again.new, again.known, again.sounds) == (0, 2, 0)
    assert kitchen.tools.records.ops(recording) == before
    (voice,) = kitchen.tools.records.rows(tables.voice)
    assert voice["content"] == SOUND
    with kitchen.database.reading() as connection:
        noted = connection.execute(tables.op.select().where(tables.op.c.kind == "dump")).all()
    assert len(noted) == 1  # who took it in is in the log


def test_a_voice_note_that_cannot_be_taken_in_holds_up_nothing_else(kitchen: Any, recording: str) -> None:
    content = json.loads(content_of(kitchen, recording))
    (good,) = content["sounds"]
    bad = [{**good, "recording": new_id(5)}, {**good, "base64": "no"}, {**good, "sha256": "0" * 64}]
    outcome = take(kitchen, as_file(json.dumps({**content, "sounds": [*bad, good]})))
    assert (outcome.new, outcome.sounds, len(outcome.refused)) == (1, 1, 3)
    with kitchen.database.reading() as connection:
        assert connection.execute(tables.op.select().where(tables.op.c.kind == "dump")).all()


def test_an_operation_that_is_not_known_holds_up_nothing_else(kitchen: Any, recording: str) -> None:
    content = json.loads(content_of(kitchen, recording))
    done = content["waiting"][-1]
    strange = {**done, "operation": {**done["operation"], "op_id": new_id(7), "kind": "fly"}}
    content["waiting"].insert(1, strange)
    outcome = take(kitchen, as_file(json.dumps(content)))
    assert (outcome.operations, outcome.new, outcome.known) == (3, 1, 1)
    (said,) = outcome.refused
    assert said.startswith("dump: operation 2 of 3 is not known here: ")
    assert [op["kind"] for op in kitchen.tools.records.ops(recording)] == ["recording", "start", "done"]


def counted_anew(kitchen: Any, recording: str) -> dict[str, Any]:
    """A dump, made before the browser lost its memory; the tablet has counted on from what the server knew."""
    content: dict[str, Any] = json.loads(content_of(kitchen, recording))
    sent, later = (entry["operation"] for entry in content["waiting"])
    assert kitchen.tablet.get("/api/v1/me").json()["device"]["seq"] == sent["seq"]
    again = kitchen.operation(recording, "mark", {"text": "after"}, seq=later["seq"])
    assert kitchen.post(again)[0]["op_id"] == again["op_id"]
    return content


def test_what_was_saved_before_the_browser_lost_its_memory_comes_in(kitchen: Any, recording: str) -> None:
    content = counted_anew(kitchen, recording)
    outcome = take(kitchen, as_file(json.dumps(content)))
    assert (outcome.new, outcome.known, outcome.refused) == (1, 1, [])
    again = take(kitchen, as_file(json.dumps({**content, "made_ms": 6})))
    assert (again.new, again.known, again.refused) == (0, 2, [])
    later = content["waiting"][1]["operation"]
    assert kitchen.post(later)[0]["duplicate"]  # should the tablet still hold it
    ops = kitchen.tools.records.ops(recording)
    assert [op["kind"] for op in ops] == ["recording", "start", "mark", "done"]
    assert (ops[-1]["op_id"], ops[-1]["seq"], ops[-1]["clock"]["seq"]) == (later["op_id"], -1, later["seq"])
    (run,) = kitchen.tools.records.state(recording)["steps"][str(later["body"]["node"])]["runs"]
    assert run["end"] == ops[-1]["host_ns"]


def test_what_a_tablet_counts_twice_is_taken_when_it_is_sent_too(kitchen: Any, recording: str) -> None:
    content = json.loads(content_of(kitchen, recording))
    take(kitchen, as_file(json.dumps(content)))  # while the tablet counts on from what it heard before
    used = content["waiting"][1]["operation"]["seq"]
    marks = [kitchen.operation(recording, "mark", {"text": str(n)}, seq=used + n) for n in range(2)]
    assert [receipt["duplicate"] for receipt in kitchen.post(*marks)] == [False, False]
    found = [op["body"]["text"] for op in kitchen.tools.records.ops(recording) if op["kind"] == "mark"]
    assert found == ["0", "1"]
    assert kitchen.tablet.get("/api/v1/me").json()["device"]["seq"] == used + 1


def test_what_was_refused_before_is_offered_again(kitchen: Any, recording: str) -> None:
    content = counted_anew(kitchen, recording)
    put_aside = {**content["waiting"].pop(), "error": "sequence number 2 of this device was used"}
    missing = {**put_aside["operation"], "op_id": new_id(8), "body": {"node": 999}}
    strange = {**put_aside["operation"], "op_id": new_id(9), "kind": "fly"}
    content["refused"] = [put_aside, {**put_aside, "operation": missing}, {**put_aside, "operation": strange}]
    content["waiting"].append(put_aside)  # each once
    outcome = take(kitchen, as_file(json.dumps(content)))
    assert (outcome.operations, outcome.new, outcome.known) == (4, 1, 1)
    unknown, refused = outcome.refused
    assert unknown.startswith("dump: operation 3 of 5 is not known here: ")
    assert refused.startswith("step 999 is not in ")
    assert [op["kind"] for op in kitchen.tools.records.ops(recording)] == [
        "recording",
        "start",
        "mark",
        "done",
    ]


def test_a_tablet_that_comes_back_sends_nothing_twice(kitchen: Any, recording: str) -> None:
    content = content_of(kitchen, recording)
    take(kitchen, as_file(content))
    late = [entry["operation"] for entry in json.loads(content)["waiting"]]
    assert [receipt["duplicate"] for receipt in kitchen.post(*late)] == [True, True]


def test_with_a_wall_clock_alone_the_doubt_is_an_hour_and_more(kitchen: Any, recording: str) -> None:
    content = json.loads(content_of(kitchen, recording))
    entry = content["waiting"][1]
    kitchen.tools.intake.clock_id = "boot-2"  # the computer was started anew since
    take(kitchen, as_file(json.dumps(content)))
    op = kitchen.tools.records.ops(recording)[-1]
    hour_ns = 3_600_000_000_000
    assert op["basis"] == "clock_face"
    assert abs(op["host_ns"] - (kitchen.now_ns - 60_000_000_000)) < 1_000_000
    assert op["uncertainty_ns"] == hour_ns
    entry["operation"] |= {"op_id": new_id(kitchen.utc_ns), "seq": 99_999}
    entry["touch"]["wall_ms"] = entry["clock"]["wall_ms"] = kitchen.utc_ns / 1e6 - 5_000_000
    take(kitchen, as_file(json.dumps(content)))
    op = kitchen.tools.records.ops(recording)[-1]
    assert op["host_ns"] == 0  # before this run of the computer began
    assert abs(op["uncertainty_ns"] - hour_ns - (5_000_000_000_000 - kitchen.now_ns)) < 1_000_000


@pytest.mark.slow
def test_another_site_and_an_unknown_tablet_are_refused_in_words(kitchen: Any, recording: str) -> None:
    before = kitchen.tools.records.ops(recording)
    with pytest.raises(BadOperation, match="another site"):
        take(kitchen, as_file(content_of(kitchen, recording, site="0" * 16)))
    with pytest.raises(BadOperation, match="never paired"):
        take(kitchen, as_file(content_of(kitchen, recording, device="nobody")))
    assert [op["kind"] for op in kitchen.tools.records.ops(recording)[len(before) :]] == ["start", "start"]


def test_what_is_damaged_is_refused_in_words(kitchen: Any, recording: str) -> None:
    content = content_of(kitchen, recording)
    file = as_file(content)
    tries = [
        ("", "damaged or no dump"),
        ("{}", "damaged or no dump"),
        ("[1]", "damaged or no dump"),
        ("[" * 90_000, "damaged or no dump"),
        (file[:-40], "damaged or no dump"),
        (file.replace('\\"made_ms\\": 5', '\\"made_ms\\": 7'), "is not what the tablet saved"),
        (as_file("{}"), "damaged or no dump"),
        ('{"schema": "tablet-dump/1", "sha256": "", "content": "\\ud83d"}', "damaged or no dump"),
        (as_file(content.replace('"device": "', '"device": "\\ud83d')), "damaged or no dump"),
    ]
    before = kitchen.tools.records.ops(recording)
    for text, said in tries:
        with pytest.raises(BadOperation, match=said) as caught:
            take(kitchen, text)
        assert "\n" not in str(caught.value)
    assert kitchen.tools.records.ops(recording) == before


def test_the_desk_takes_a_dump(kitchen: Any, recording: str) -> None:
    operator = kitchen.desk("operator")
    file = as_file(content_of(kitchen, recording))
    answer = operator.post("/api/v1/desk/dumps", json={"text": file}).json()
    assert (answer["operations"], answer["new"], answer["known"]) == (2, 1, 1)
    answer = operator.post("/api/v1/desk/dumps", json={"text": file[:-9]})
    assert answer.status_code == 422
    assert "damaged" in answer.json()["error"]


def test_the_desk_takes_a_dump_larger_than_a_batch(kitchen: Any, recording: str) -> None:
    large = kitchen.desk("operator").post("/api/v1/desk/dumps", json={"text": "x" * MAX_BODY})
    assert (large.status_code, "damaged" in large.text) == (422, True)


@pytest.mark.slow
def test_the_command_takes_a_file(kitchen: Any, recording: str, tmp_path: Path) -> None:
    file, run = tmp_path / "dump.json", CliRunner().invoke
    file.write_text(as_file(content_of(kitchen, recording)))
    done = run(main, ["take-dump", str(file), "--data", str(kitchen.data), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {
        "schema": "take-dump/1", "operations": 2, "new": 1, "known": 1, "sounds": 1, "refused": []
    }  # fmt: skip
    assert "never started here" in run(main, ["take-dump", str(file), "--data", str(tmp_path / "no")]).stderr


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    done = CliRunner().invoke(
        main, ["take-dump", str(tmp_path / "pipe.json"), "--data", str(tmp_path / "data")]
    )
    assert (done.exit_code, "a pipe, not a file" in done.stderr) == (1, True), done.stderr
