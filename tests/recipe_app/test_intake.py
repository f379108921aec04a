"""Operations over HTTP: accepted once, on the capture clock, filed into the recording; refusals in words."""

from __future__ import annotations

import dataclasses
import hashlib
import html
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from databases import emptied
from waiting import until

from kitchensync.capture.station import Station
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import new_id
from kitchensync.recipe_app.store.database import open_database
from kitchensync.recipe_app.web import serve
from kitchensync.recipe_app.web.app import create_app
from kitchensync.storage.events import read_events

pytestmark = pytest.mark.slow

PIN = "482916"

TEA = Path(__file__).resolve().parents[2] / "kitchensync" / "examples" / "recipes" / "tea_and_toast.json"


def test_the_chosen_order_is_valid_and_in_the_manifest(kitchen: Any) -> None:
    frozen = kitchen.choose(folder="soup_1")["ops"][0]["body"]
    order = frozen["order"]
    told = [(edge["from"], edge["to"]) for edge in json.loads(TEA.read_text())["edges"]]
    edges = [edge for edge in told if 0 not in edge and 12 not in edge]
    assert sorted(order) == list(range(1, 12))
    assert all(order.index(before) < order.index(after) for before, after in edges)
    manifest = kitchen.manifest("soup_1")
    assert manifest["recipe"] == {
        "name": "tea_and_toast",
        "graph_hash": frozen["graph_hash"],
        "order": order,
        "seed": 3,
        "source": "tea_and_toast.json",
    }
    assert manifest["script"] == {"strategy": "normal", "display": "steps", "certificate": None}
    (event,) = kitchen.events(kitchen.data / "soup_1")
    assert (event["kind"], event["body"]["order"], event["body"]["edges"][0]) == ("recipe", order, [0, 1])


def test_the_same_seed_shows_the_same_order_as_the_preview_and_the_command(kitchen: Any) -> None:
    from click.testing import CliRunner

    from kitchensync.cli import main

    shown = kitchen.choose(seed=8)["ops"][0]["body"]["order"]
    assert kitchen.tablet.get("/api/v1/recipes/tea_and_toast/order?seed=8").json()["order"] == shown
    printed = CliRunner().invoke(main, ["graph", "orders", str(TEA), "--seed", "8", "--json"]).stdout
    assert json.loads(printed)["orders"] == [shown]


def test_the_record_keeps_what_was_shown_and_what_the_recipe_says(kitchen: Any) -> None:
    bundle = kitchen.choose(language="de")
    frozen = bundle["ops"][0]["body"]
    assert (frozen["language"], frozen["title"]) == ("de", "Tee und Toast")
    assert frozen["steps"]["2"] == {
        "label": "Boil-Boil the water in the kettle",
        "text": "Das Wasser im Wasserkocher aufkochen",
    }
    english = kitchen.choose()["ops"][0]["body"]
    assert (english["language"], english["order"]) == ("en", frozen["order"])  # the same draw, the same graph
    assert english["graph_hash"] == frozen["graph_hash"]
    assert bundle["timers"]["5"][0]["seconds"] == 180
    assert bundle["language"] == "en"  # of the hints: what is planned with one is shown as English
    assert {"", "Fill the kettle with 600 ml of water"} < {
        hint["text"] for hints in bundle["hints"].values() for hint in hints
    }
    absent = {"op_id": new_id(8), "recipe": "tea_and_toast", "language": "fr"}
    answer = kitchen.tablet.post("/api/v1/recordings", json=absent)
    assert (answer.status_code, "has en, de, ar" in answer.json()["error"]) == (404, True)


def test_a_printed_script_says_its_steps_letter_by_letter(kitchen: Any) -> None:
    steps = {"0": "START", "1": "Add-salt & pepper", "2": "Whisk-<it> & 'that'", "3": "END"}
    graph = {"steps": steps, "edges": [[0, 1], [1, 2], [2, 3]]}
    upload = {"file_name": "salt.json", "text": json.dumps(graph)}
    researcher = kitchen.desk("researcher")
    assert researcher.post("/api/v1/desk/recipes", json=upload).status_code == 200
    recording = kitchen.choose(recipe="salt", strategy="disordered", missing=1, flips=0)["recording"]
    printed = researcher.get(f"/desk/recordings/{recording}/script?lang=en").text
    (said,) = re.findall(r"<li>(Leave out: .*?)</li>", printed)
    frozen = kitchen.tools.records.frozen(recording)
    left_out = frozen["steps"][str(frozen["script"]["missing"][0])]["text"]
    assert html.unescape(said).startswith(f"Leave out: “{left_out}”.")
    assert "&" in left_out


def test_a_researcher_says_a_recipe_in_one_more_language(kitchen: Any) -> None:
    researcher = kitchen.desk("researcher")
    graph = {"steps": {"0": "START", "1": "Add-1 egg", "2": "Whisk-the egg", "3": "END"}}
    graph |= {"edges": [[0, 1], [1, 2], [2, 3]]}
    upload = {"file_name": "egg.json", "text": json.dumps(graph)}
    assert researcher.post("/api/v1/desk/recipes", json=upload).status_code == 200
    address = "/api/v1/desk/recipes/egg/wordings"
    body = {"language": "de", "title": "Rühr-Ei", "lines": "1 Ei dazu\n\nDas Rühr-Ei schlagen\n", "own": "en"}
    for wrong, said in (
        ({"lines": "nur eine"}, "1 lines for 2 steps"),
        ({"own": ""}, "two or three small letters"),
        ({"own": "de"}, "is the recipe's own (de)"),
    ):
        answer = researcher.post(address, json={**body, **wrong})
        assert (answer.status_code, said in answer.json()["error"]) == (422, True), answer.text
    assert researcher.post(address, json=body).status_code == 200
    frozen = kitchen.choose(recipe="egg", language="de")["ops"][0]["body"]
    assert frozen["title"] == "Rühr-Ei"
    assert [step["text"] for step in frozen["steps"].values()] == ["1 Ei dazu", "Das Rühr-Ei schlagen"]
    assert [step["label"] for step in frozen["steps"].values()] == ["Add-1 egg", "Whisk-the egg"]
    versions = kitchen.tools.records.rows(tables.recipe, tables.recipe.c.name == "egg")
    assert [row["version"] for row in versions] == [1, 2]


def test_choosing_again_with_the_same_operation_finds_the_same_recording(kitchen: Any) -> None:
    op_id = new_id(7)
    first, again = kitchen.choose(op_id=op_id), kitchen.choose(op_id=op_id, seed=99)
    assert first["ops"] == again["ops"]


@pytest.mark.promise("Every touch is in the log once, on the capture clock, from both databases")
def test_what_is_done_stands_in_the_events_on_the_capture_clock(kitchen: Any) -> None:
    recording = kitchen.choose(folder="soup_1")["recording"]
    kitchen.now_ns += 3_000_000_000
    clock = {"touch_ms": 2000, "sent_ms": 995, "received_ms": 1005, **kitchen.clock()}
    kitchen.now_ns += 2_000_000_000
    done = kitchen.operation(recording, "done", {"node": 1}, clock=clock)
    fields = {"node": 2, "categories": [3, 1], "description": "an hour"}
    error = kitchen.operation(
        recording, "error", {"error_id": new_id(1), "fields": fields}, tapped_ms_ago=100
    )
    undo = kitchen.operation(recording, "undo", {"undoes": [done["op_id"], error["op_id"]]})
    receipts = kitchen.post(done, error, undo)
    assert receipts[0]["host_ns"] == kitchen.now_ns - 1_000_000_000
    assert receipts[0]["uncertainty_ns"] == 5_000_000 + 100_000 + 1_000_000
    _, first, second, *undos = kitchen.events(kitchen.data / "soup_1")
    assert (first["kind"], first["body"]["step"], first["host_ns"]) == ("done", 1, receipts[0]["host_ns"])
    assert (second["body"]["category_name"], second["body"]["note"]) == ("Timing + Measurement", "an hour")
    assert [(line["kind"], line["body"]["undoes"]) for line in undos] == [
        ("undo", done["op_id"]),
        ("undo", error["op_id"]),
    ]
    del clock["signature"]
    assert first["body"]["clock"] == {"basis": "page", **clock}


def test_each_line_carries_the_hash_of_the_line_before(kitchen: Any) -> None:
    recording = kitchen.choose(folder="soup_1")["recording"]
    kitchen.post(*(kitchen.operation(recording, "start", {"node": node}) for node in (1, 2, 3)))
    lines = (kitchen.data / "soup_1" / "events" / "tablet.jsonl").read_bytes().splitlines(keepends=True)
    previous = ["0" * 64, *(hashlib.sha256(line).hexdigest() for line in lines)]
    assert [json.loads(line)["prev"] for line in lines] == previous[:-1]
    assert len(lines) == 4


def test_a_repeated_operation_has_one_effect_and_the_first_receipt(kitchen: Any) -> None:
    recording = kitchen.choose(folder="soup_1")["recording"]
    done = kitchen.operation(recording, "done", {"node": 1})
    (first,) = kitchen.post(done)
    kitchen.now_ns += 9_000_000_000
    again, twin = kitchen.post(done, done)
    assert {**again, "duplicate": False} == {**twin, "duplicate": False} == first
    assert len(kitchen.events(kitchen.data / "soup_1")) == 2


def test_a_clock_of_another_run_of_the_computer_is_not_believed(kitchen: Any) -> None:
    recording = kitchen.choose()["recording"]
    clock = {"touch_ms": 2000, "sent_ms": 995, "received_ms": 1005, "host_ns": 5, "clock_id": "boot-0"}
    (receipt,) = kitchen.post(kitchen.operation(recording, "done", {"node": 1}, clock=clock))
    assert (receipt["basis"], receipt["host_ns"]) == ("receipt", kitchen.now_ns)


def test_what_comes_after_the_end_is_kept_beside_the_sealed_events(kitchen: Any) -> None:
    recording = kitchen.choose(folder="soup_1")["recording"]
    kitchen.record("soup_1", state="complete")
    kitchen.post(kitchen.operation(recording, "done", {"node": 1}))
    assert len(kitchen.events(kitchen.data / "soup_1")) == 1
    assert [line["kind"] for line in kitchen.events(kitchen.data / "soup_1", "tablet_late")] == ["done"]


def test_what_was_filed_before_a_kill_is_not_filed_again_after_the_end(kitchen: Any) -> None:
    recording = kitchen.choose(folder="soup_1")["recording"]
    (done,) = kitchen.post(kitchen.operation(recording, "done", {"node": 1}))
    with kitchen.database.writing() as connection:  # the app was killed before it could note that it is filed
        connection.execute(sa.insert(tables.unfiled).values(n=done["n"]))
    kitchen.record("soup_1", state="complete")
    kitchen.post(kitchen.operation(recording, "start", {"node": 2}))
    assert [event["kind"] for event in read_events(kitchen.data / "soup_1")] == ["recipe", "done", "start"]
    assert kitchen.tools.records.waiting() == []


def test_a_folder_that_is_away_delays_the_filing_and_loses_nothing(kitchen: Any) -> None:
    recording = kitchen.choose(folder="soup_1")["recording"]
    away = kitchen.data / "away"
    (kitchen.data / "soup_1").rename(away)
    (receipt,) = kitchen.post(kitchen.operation(recording, "done", {"node": 1}))
    assert receipt["n"] > 1
    assert kitchen.tools.intake.file() == 1
    away.rename(kitchen.data / "soup_1")
    assert kitchen.tools.intake.file() == 0
    assert [line["kind"] for line in kitchen.events(kitchen.data / "soup_1")] == ["recipe", "done"]


def test_a_database_that_fails_for_a_while_ends_no_filing(
    kitchen: Any, caplog: pytest.LogCaptureFixture
) -> None:
    recording = kitchen.choose(folder="soup_1")["recording"]
    away = kitchen.data / "away"
    (kitchen.data / "soup_1").rename(away)
    kitchen.post(kitchen.operation(recording, "done", {"node": 1}))
    with serve._repeated("filing", 0.02, partial(serve._file, kitchen.tools)):
        rename(kitchen, "unfiled", "gone")
        until(lambda: "cannot be used now" in caplog.text, "a database that fails")
        rename(kitchen, "gone", "unfiled")
        away.rename(kitchen.data / "soup_1")
        until(lambda: kitchen.tools.records.waiting() == [], "the filing of everything")
    assert [line["kind"] for line in kitchen.events(kitchen.data / "soup_1")] == ["recipe", "done"]


def rename(kitchen: Any, old: str, new: str) -> None:
    with kitchen.database.writing() as connection:
        connection.execute(sa.text(f"ALTER TABLE {old} RENAME TO {new}"))


def test_a_recording_without_devices_needs_no_folder(kitchen: Any) -> None:
    recording = kitchen.choose()["recording"]
    kitchen.post(kitchen.operation(recording, "done", {"node": 1}))
    assert kitchen.tablet.get(f"/api/v1/health/{recording}").json()["health"] == "standalone"
    assert kitchen.tools.records.state(recording)["steps"]["1"]["state"] == "done"
    assert not (kitchen.data / "soup_1" / "events").exists()


def test_health_of_a_folder_is_what_its_manifest_says(kitchen: Any) -> None:
    recording = kitchen.choose(folder="soup_1")["recording"]
    address = f"/api/v1/health/{recording}"
    kitchen.utc_ns += 754 * 10**9
    told = kitchen.tablet.get(address).json()
    assert (told["health"], told["seconds"]) == ("recording", 754)
    kitchen.record("soup_1", state="complete")
    told = kitchen.tablet.get(address).json()
    assert (told["health"], told["seconds"]) == ("stopped", None)
    (kitchen.data / "soup_1" / "recording.json").write_text("{")
    assert kitchen.tablet.get(address).json()["health"] == "unknown"


def test_a_recorder_that_was_killed_is_not_said_to_record(kitchen: Any) -> None:
    """Its manifest says so for ever; whoever watches knows better, and without a watch nobody knows."""
    kitchen.ticking = True  # a station has the clock of the computer
    recording = kitchen.choose(folder="soup_1")["recording"]
    places = kitchen.tablet.get("/api/v1/running").json()
    assert places == {"running": ["soup_1"], "free": ["soup_1"], "adopted": []}
    for watch in (Station(kitchen.data), None):
        app = create_app(dataclasses.replace(kitchen.tools, watch=watch))
        tablet = httpx.Client(base_url=kitchen.serve(app), trust_env=False, headers=kitchen.tablet.headers)
        with tablet:
            told = tablet.get(f"/api/v1/health/{recording}").json()
            known = ("problem", "stopped") if watch else ("unknown", "")
            assert (told["health"], told["alarm"]) == known
            assert tablet.get("/api/v1/running").json() == {**places, "free": []}


def test_nobody_is_led_into_a_folder_in_which_somebody_cooks(kitchen: Any) -> None:
    first = kitchen.choose(folder="soup_1")["recording"]
    assert kitchen.tablet.get("/api/v1/running").json()["free"] == ["soup_1"]  # it may have been given up
    kitchen.tools.records.note("checked", first, {"version": "1", "confirmed_by": "Clove"}, actor="")
    places = {"running": ["soup_1"], "free": [], "adopted": []}
    assert kitchen.tablet.get("/api/v1/running").json() == places
    body = {"op_id": new_id(6), "recipe": "tea_and_toast", "folder": "soup_1"}
    refused = kitchen.tablet.post("/api/v1/recordings", json=body)
    assert (refused.status_code, "somebody cooks in soup_1" in refused.json()["error"]) == (409, True)
    kitchen.post(kitchen.operation(first, "end", {}), kitchen.operation(first, "finish", {}))
    assert kitchen.tablet.post("/api/v1/recordings", json=body).status_code == 200


def test_only_running_recordings_can_be_chosen(kitchen: Any) -> None:
    kitchen.record("old_1", state="complete")
    assert kitchen.tablet.get("/api/v1/running").json()["running"] == ["soup_1"]
    for folder, status in (("old_1", 409), ("absent", 404), ("../soup_1", 404)):
        body = {"op_id": new_id(4), "recipe": "tea_and_toast", "folder": folder}
        assert kitchen.tablet.post("/api/v1/recordings", json=body).status_code == status


def test_a_hint_that_the_log_has_no_room_for_is_not_offered(kitchen: Any) -> None:
    long = "Stir 1 cup of milk into the bowl for 2 minutes with a spoon" + ", and again" * 70
    recipe = {"file_name": "Long.txt", "text": f"{long}.\nCut a lemon with a knife.\n", "split": False}
    recipe.pop("split")
    assert kitchen.desk("admin").post("/api/v1/desk/recipes", json=recipe).status_code == 200
    bundle = kitchen.choose(recipe="Long", strategy="induced")
    offered = [hint for hints in bundle["hints"].values() for hint in hints] + bundle["suggested"]
    assert offered
    assert max(len(value) for hint in offered for value in hint.values() if isinstance(value, str)) <= 600


def test_a_recipe_that_allows_no_wrong_order_is_refused_in_words(kitchen: Any) -> None:
    admin = kitchen.desk("admin")
    recipe = {"file_name": "Lemon.txt", "text": "Cut a lemon.\n"}
    assert admin.post("/api/v1/desk/recipes", json=recipe).status_code == 200
    choice = {"op_id": new_id(kitchen.utc_ns), "recipe": "Lemon", "strategy": "disordered"}
    refused = kitchen.tablet.post("/api/v1/recordings", json=choice)
    assert (refused.status_code, "choose another purpose" in refused.json()["error"]) == (409, True)
    page = admin.get("/desk/recipes/Lemon/script", headers={"accept-language": "de"})
    assert (page.status_code, "keine falsche Reihenfolge" in page.text) == (409, True)


def test_a_disordered_script_states_its_errors_and_arrives_with_its_certificate(kitchen: Any) -> None:
    frozen = kitchen.choose(strategy="disordered", missing=1, flips=2)["ops"][0]["body"]
    script = frozen["script"]
    assert (len(script["missing"]), len(script["broken"]), script["verified"]) == (1, 2, True)
    planned = [(error["fields"]["node"], error["fields"]["categories"]) for error in frozen["planned"]]
    assert planned == [(node, [6]) for node in script["missing"]] + [(v, [2]) for _, v in script["broken"]]
    place = {node: index for index, node in enumerate(frozen["order"])}
    assert all(place[after] < place[before] for before, after in script["broken"])
    assert set(script["missing"]) == {int(node) for node in frozen["steps"]} - set(place)


def test_hints_timers_and_a_balanced_proposal_come_with_the_bundle(kitchen: Any) -> None:
    bundle = kitchen.choose(strategy="induced")
    steep = next(node for node, step in bundle["ops"][0]["body"]["steps"].items() if "Steep" in step["text"])
    assert bundle["timers"][steep] == [{"seconds": 180, "most_seconds": 180, "text": "3 minutes"}]
    assert {hint["category"] for hint in bundle["hints"][steep]} >= {"Timing", "Missing step"}
    categories = [one["category"] for one in bundle["suggested"]]
    assert len(set(categories)) == len(categories) == 4


def test_two_tablets_that_edit_one_error_offline_leave_both_versions(kitchen: Any) -> None:
    recording = kitchen.choose()["recording"]
    second = kitchen.second_tablet()
    error_id = new_id(3)
    new = {"error_id": error_id, "fields": {"node": 1, "categories": [1], "description": "first"}}
    (receipt,) = kitchen.post(kitchen.operation(recording, "error", new))
    seen = receipt["n"]
    for seq, (client, text) in enumerate(((kitchen.tablet, "from one"), (second, "from the other"))):
        kitchen.now_ns += 1_000_000_000
        body = {"error_id": error_id, "fields": {"description": text}}
        edit = kitchen.operation(recording, "edit_error", body, seen=seen, tapped_ms_ago=0, round_trip_ms=1)
        edit["seq"] = 1000 + seq
        assert client.post("/api/v1/ops", json={"operations": [edit]}).json()["receipts"][0]["n"] > seen
    error = kitchen.tools.records.state(recording)["errors"][error_id]
    assert (error["description"], list(error["conflicts"])) == ("from the other", ["description"])
    texts = [op["body"]["fields"]["description"] for op in kitchen.tools.records.ops(recording)[1:]]
    assert texts == ["first", "from one", "from the other"]
    (row,) = kitchen.tools.records.rows(tables.error)
    assert row["description"] == "from the other"


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        ("done", {"node": 99}, "step 99 is not in Tea and toast"),
        ("done", {}, "done: node: Field required"),
        ("done", {"node": 1, "more": 2}, "done: more: Extra inputs"),
        ("error", {"error_id": new_id(1), "fields": {"categories": [8]}}, "error: fields.categories.0"),
        ("undo", {"undoes": []}, "undo: undoes"),
        ("check", {"item": "../x", "checked": True}, "check: item"),
    ],
)
def test_what_cannot_be_right_is_refused_in_its_receipt(
    kitchen: Any, kind: str, body: dict[str, Any], words: str
) -> None:
    recording = kitchen.choose()["recording"]
    good = kitchen.operation(recording, "start", {"node": 1})
    refused, taken = kitchen.post(kitchen.operation(recording, kind, body), good)
    assert words in refused["error"]
    assert "n" in taken


def test_a_recording_of_another_kitchen_is_not_there(kitchen: Any) -> None:
    recording = kitchen.choose()["recording"]
    kitchen.tools.records.note("kitchen", "other", {"name": "Other"}, actor="")
    code = kitchen.tools.accounts.pairing_code("other", actor="")
    _, token = kitchen.tools.accounts.pair(code, "Far", secure=True)
    far = kitchen.client(authorization=f"Bearer {token}")
    for address in ("bundle", "ops", "health"):
        assert far.get(f"/api/v1/{address}/{recording}").status_code == 404
    batch = {"operations": [kitchen.operation(recording, "done", {"node": 1})]}
    assert "no recording" in far.post("/api/v1/ops", json=batch).json()["receipts"][0]["error"]


def test_a_folder_that_another_kitchen_records_into_cannot_be_joined(kitchen: Any) -> None:
    kitchen.choose(folder="soup_1")
    kitchen.tools.records.note("kitchen", "other", {"name": "Other"}, actor="")
    device, token = kitchen.tools.accounts.pair(
        kitchen.tools.accounts.pairing_code("other", actor=""), "Far", secure=True
    )
    login = kitchen.tools.accounts.sign_in(kitchen.basil, "pin", PIN, device=device, desk=False)
    far = kitchen.client(**{"authorization": f"Bearer {token}", "x-kitchensync-login": login})
    assert kitchen.tablet.get("/api/v1/running").json()["running"] == ["soup_1"]
    assert far.get("/api/v1/running").json()["running"] == []
    body = {"op_id": new_id(5), "recipe": "tea_and_toast", "folder": "soup_1"}
    refused = far.post("/api/v1/recordings", json=body)
    assert (refused.status_code, "another kitchen" in refused.json()["error"]) == (409, True)
    assert far.post("/api/v1/recordings", json={**body, "folder": None}).status_code == 200


def test_an_undo_of_what_was_chosen_takes_nothing_back(kitchen: Any) -> None:
    recording = kitchen.choose()["recording"]
    (gone,) = kitchen.post(kitchen.operation(recording, "withdraw", {}))
    undoes = {"undoes": [recording, gone["op_id"]]}
    assert "n" in kitchen.post(kitchen.operation(recording, "undo", undoes))[0]
    assert kitchen.tools.records.state(recording)["phase"] == "withdrawn"
    assert kitchen.desk("researcher").get(f"/desk/recordings/{recording}/export.json").status_code == 409


def test_a_letter_that_a_database_cannot_hold_is_refused_in_words(
    kitchen: Any, postgresql_server: str
) -> None:
    kitchen.database = open_database(emptied(postgresql_server), bytes(32))
    answer = kitchen.tablet.get("/api/v1/bundle/a%00b")
    assert (answer.status_code, "cannot be stored" in answer.json()["error"]) == (422, True)
    assert "n" in kitchen.post(kitchen.operation(kitchen.choose()["recording"], "done", {"node": 1}))[0]
    kitchen.database.close()


def test_a_tablet_hears_how_far_it_has_counted(kitchen: Any) -> None:
    recording = kitchen.choose()["recording"]
    assert kitchen.tablet.get("/api/v1/me").json()["device"]["seq"] == 0
    kitchen.post(kitchen.operation(recording, "done", {"node": 1}, seq=41))
    assert kitchen.tablet.get("/api/v1/me").json()["device"]["seq"] == 41


def test_a_voice_note_is_kept_under_the_hash_of_its_bytes(kitchen: Any) -> None:
    recording = kitchen.choose()["recording"]
    sound = b"RIFF" + bytes(1000)
    digest = hashlib.sha256(sound).hexdigest()
    put = {"content": sound, "headers": {"content-type": "audio/webm;codecs=opus"}}
    for _ in range(2):
        assert kitchen.tablet.put(f"/api/v1/voice/{recording}/{digest}", **put).json()["bytes"] == 1004
    assert kitchen.tablet.put(f"/api/v1/voice/{recording}/{'0' * 64}", **put).status_code == 422


def test_a_correction_at_the_desk_is_one_more_version(kitchen: Any) -> None:
    recording = kitchen.choose()["recording"]
    error_id = new_id(3)
    new = {"error_id": error_id, "fields": {"node": 1, "categories": [1]}}
    (receipt,) = kitchen.post(kitchen.operation(recording, "error", new))
    body = {"error_id": error_id, "fields": {"description": "two spoons", "categories": [1, 4]}}
    kitchen.now_ns += 1
    sent = {"op_id": new_id(9), "kind": "edit_error", "body": body, "seen": receipt["n"]}
    researcher = kitchen.desk("researcher")
    for _ in range(2):
        answer = researcher.post(f"/api/v1/desk/recordings/{recording}/corrections", json=sent)
        assert answer.status_code == 200, answer.text
    error = kitchen.tools.records.state(recording)["errors"][error_id]
    assert (error["description"], error["categories"], error["conflicts"]) == ("two spoons", [1, 4], {})
    page = researcher.get(f"/desk/recordings/{recording}").text
    assert "two spoons" in page


def test_an_error_without_a_step_stands_on_every_page_of_its_recording(kitchen: Any) -> None:
    recording = kitchen.choose()["recording"]
    for number, kind in enumerate(("plan_error", "error", "add_error"), start=20):
        fields = {"categories": [7], "description": "somewhere"}
        sent = kitchen.operation(recording, kind, {"error_id": new_id(number), "fields": fields})
        assert "error" not in kitchen.post(sent)[0]
    desk = kitchen.desk("researcher")
    for path in ("", "/script"):
        page = desk.get(f"/desk/recordings/{recording}{path}")
        assert page.status_code == 200, page.text[-500:]
    assert desk.get(f"/desk/recordings/{recording}").text.count("somewhere") >= 3


def test_what_is_no_operation_is_refused_alone_and_the_rest_of_its_batch_counts(kitchen: Any) -> None:
    recording = kitchen.choose()["recording"]
    made = [kitchen.operation(recording, "done", {"node": node}) for node in (1, 2, 3, 4)]
    made[1]["seq"] = 2**70
    made[2]["body"] = "no body"
    first, huge, odd, last = kitchen.post(*made)
    assert all("n" in receipt for receipt in (first, last))
    assert ("seq" in huge["error"], "body" in odd["error"]) == (True, True)
    assert [one["op_id"] for one in (first, huge, odd, last)] == [one["op_id"] for one in made]
