"""The app over HTTP: choosing, logging, undoing; what lies in the recording afterwards."""

from __future__ import annotations

import hashlib
import json
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TEA = Path(__file__).resolve().parents[2] / "examples" / "recipes" / "tea_and_toast.json"


def choose(client: httpx.Client, recording: str = "soup_1", seed: int = 3) -> dict[str, Any]:
    body = {"op_id": f"choose-{seed:04}", "recipe": "tea_and_toast", "seed": seed}
    answer = client.post(f"/api/recordings/{recording}/recipe", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def post(
    client: httpx.Client, number: int, kind: str, recording: str = "soup_1", **fields: Any
) -> dict[str, Any]:
    body = {"op_id": f"operation-{number}", "kind": kind, **fields}
    answer = client.post(f"/api/recordings/{recording}/operations", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_the_chosen_order_is_valid_and_in_the_manifest(kitchen: Any) -> None:
    client = kitchen.client()
    state = choose(client)
    order = [step["node"] for step in state["recipe"]["steps"]]
    edges = [edge for edge in json.loads(TEA.read_text())["edges"] if 0 not in edge and 12 not in edge]
    assert sorted(order) == list(range(1, 12))
    assert all(order.index(before) < order.index(after) for before, after in edges)
    recipe = kitchen.manifest("soup_1")["recipe"]
    assert recipe == {
        "name": "tea_and_toast",
        "graph_hash": state["recipe"]["graph_hash"],
        "order": order,
        "seed": 3,
        "source": "tea_and_toast.json",
    }
    (event,) = kitchen.events(kitchen.data / "soup_1")
    assert (event["kind"], event["body"]["order"], event["body"]["edges"][0]) == ("recipe", order, [0, 1])


def test_the_same_seed_shows_the_same_order_as_the_preview_and_the_command(kitchen: Any) -> None:
    from click.testing import CliRunner

    from recipe_app.cli import graph

    client = kitchen.client()
    shown = [step["node"] for step in choose(client, seed=8)["recipe"]["steps"]]
    assert client.get("/api/recipes/tea_and_toast/order?seed=8").json()["order"] == shown
    printed = CliRunner().invoke(graph, ["orders", str(TEA), "--seed", "8", "--json"]).stdout
    assert json.loads(printed)["orders"] == [shown]


def test_done_error_and_undo_are_events_on_the_capture_clock(kitchen: Any) -> None:
    client = kitchen.client()
    order = [step["node"] for step in choose(client)["recipe"]["steps"]]
    kitchen.now_ns += 5_000_000_000
    clock = {"touch_ms": 2000, "sent_ms": 995, "received_ms": 1005, "host_ns": kitchen.now_ns - 2_000_000_000}
    receipt = post(client, 1, "done", step=order[0], clock=clock)
    assert receipt["host_ns"] == kitchen.now_ns - 1_000_000_000
    post(client, 2, "error", step=order[1], category=3, tapped_ms_ago=100, round_trip_ms=10)
    state = post(client, 3, "undo", undoes="operation-1")["state"]
    assert (state["done"], state["current"]) == ([], order[0])
    _, done, error, undo = kitchen.events(kitchen.data / "soup_1")
    assert (done["kind"], done["body"]["step"], done["body"]["position"]) == ("done", order[0], 1)
    assert done["host_ns"] == receipt["host_ns"]
    assert {"basis": "page", **clock} == done["body"]["clock"]
    assert (error["body"]["category"], error["body"]["category_name"]) == (3, "Timing")
    assert error["host_ns"] == kitchen.now_ns - 105_000_000
    assert error["uncertainty_ns"] == 5_000_000 + 10_000 + 1_000_000
    assert undo["body"]["undoes"] == "operation-1"


def test_each_line_carries_the_hash_of_the_line_before(kitchen: Any) -> None:
    client = kitchen.client()
    choose(client)
    for number in range(3):
        post(client, number, "done")
    lines = (kitchen.data / "soup_1" / "events" / "tablet.jsonl").read_bytes().splitlines(keepends=True)
    assert [json.loads(line)["prev"] for line in lines[1:]] == [
        hashlib.sha256(line).hexdigest() for line in lines[:-1]
    ]


def test_a_repeated_operation_has_one_effect_and_the_same_receipt(kitchen: Any) -> None:
    client = kitchen.client()
    choose(client)
    choose(client)
    first = post(client, 1, "error", category=0, tapped_ms_ago=0)
    kitchen.now_ns += 10**9
    again = post(client, 1, "error", category=0, tapped_ms_ago=1000)
    assert (first["duplicate"], again["duplicate"]) == (False, True)
    assert (first["host_ns"], first["uncertainty_ns"]) == (again["host_ns"], again["uncertainty_ns"])
    assert [event["kind"] for event in kitchen.events(kitchen.data / "soup_1")] == ["recipe", "error"]


def test_state_survives_a_restart_of_the_app_and_the_loss_of_the_recipe(kitchen: Any, tmp_path: Path) -> None:
    client = kitchen.client()
    choose(client)
    post(client, 1, "done")
    before = post(client, 2, "error", category=7, note="spilled")["state"]
    kitchen.recipes = tmp_path / "emptied"
    kitchen.recipes.mkdir()
    assert kitchen.client().get("/api/recordings/soup_1").json() == before


def test_a_whole_recipe_ends_with_nothing_current(kitchen: Any) -> None:
    client = kitchen.client()
    total = len(choose(client)["recipe"]["steps"])
    for number in range(total):
        state = post(client, number, "done")["state"]
    assert (len(state["done"]), state["current"]) == (total, None)
    answer = client.post("/api/recordings/soup_1/operations", json={"op_id": "one-too-many", "kind": "done"})
    assert answer.status_code == 409
    assert "every step is done" in answer.json()["error"]


def test_the_recipe_can_change_until_something_is_logged(kitchen: Any) -> None:
    client = kitchen.client()
    choose(client, seed=1)
    second = choose(client, seed=2)
    assert kitchen.manifest("soup_1")["recipe"]["seed"] == 2
    post(client, 1, "done")
    body = {"op_id": "choose-late", "recipe": "tea_and_toast", "seed": 5}
    answer = client.post("/api/recordings/soup_1/recipe", json=body)
    assert answer.status_code == 409
    assert client.get("/api/recordings/soup_1").json()["recipe"] == second["recipe"]
    post(client, 2, "undo")
    assert client.post("/api/recordings/soup_1/recipe", json=body).status_code == 200


def test_what_comes_after_the_end_is_kept_beside_the_sealed_events(kitchen: Any) -> None:
    client = kitchen.client()
    choose(client)
    post(client, 1, "done")
    sealed = (kitchen.data / "soup_1" / "events" / "tablet.jsonl").read_bytes()
    kitchen.record("soup_1", state="complete")
    state = post(client, 2, "done")["state"]
    assert (state["state"], len(state["done"])) == ("stopped", 2)
    assert (kitchen.data / "soup_1" / "events" / "tablet.jsonl").read_bytes() == sealed
    assert len(kitchen.events(kitchen.data / "soup_1", "tablet_late")) == 1
    assert post(client, 1, "done")["duplicate"]
    body = {"op_id": "choose-late", "recipe": "tea_and_toast"}
    assert client.post("/api/recordings/soup_1/recipe", json=body).status_code == 409


def test_standalone_works_without_any_recording(kitchen: Any) -> None:
    client = kitchen.client()
    started = client.post("/api/standalone", json={"op_id": "begin-0001"}).json()
    assert started["state"] == "standalone"
    assert client.post("/api/standalone", json={"op_id": "begin-0001"}).json() == started
    name = started["recording"]
    choose(client, name)
    post(client, 1, "done", recording=name)
    listed = kitchen.client().get("/api/recordings").json()["recordings"]
    assert {"recording": name, "state": "standalone", "recipe": "tea_and_toast"} in listed
    assert [e["kind"] for e in kitchen.events(kitchen.data / "_standalone" / name)] == ["recipe", "done"]


def test_only_running_recordings_are_offered(kitchen: Any) -> None:
    kitchen.record("old_1", state="complete")
    (kitchen.data / "not_one").mkdir()
    (kitchen.data / "broken").mkdir()
    (kitchen.data / "broken" / "recording.json").write_text("{")
    listed = kitchen.client().get("/api/recordings").json()["recordings"]
    assert listed == [{"recording": "soup_1", "state": "recording", "recipe": None}]


def test_an_unreadable_manifest_is_unknown_not_recording(kitchen: Any) -> None:
    client = kitchen.client()
    choose(client)
    (kitchen.data / "soup_1" / "recording.json").write_text("{")
    assert client.get("/api/recordings/soup_1").json()["state"] == "unknown"
    assert post(client, 1, "done")["state"]["done"]


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["done", "error", "undo"]), st.integers(1, 11), st.integers(0, 30), st.booleans()
    ),
    max_size=15,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=ACTIONS)
def test_state_is_what_was_entered_with_every_effect_once(
    kitchen: Any, actions: list[tuple[str, int, int, bool]]
) -> None:
    """Against a plain list of what holds: repeats, undone undos and steps done twice included."""
    client = kitchen.one_client
    begun = client.post("/api/standalone", json={"op_id": f"begin-{uuid.uuid4()}"}).json()["recording"]
    choose(client, begun)
    entered: dict[str, tuple[str, int]] = {}
    undone: set[str] = set()
    for number, (kind, step, back, twice) in enumerate(actions):
        body: dict[str, Any] = {"op_id": f"operation-{number}", "kind": kind}
        if kind == "undo":
            if not entered:
                continue
            body["undoes"] = list(entered)[back % len(entered)]
            undone.add(body["undoes"])
        else:
            body |= {"step": step, "category": back % 8 if kind == "error" else None}
            entered[body["op_id"]] = (kind, step)
        for _ in range(1 + twice):
            assert client.post(f"/api/recordings/{begun}/operations", json=body).status_code == 200
    state = client.get(f"/api/recordings/{begun}").json()
    valid = {op_id: what for op_id, what in entered.items() if op_id not in undone}
    assert {e["op_id"] for e in state["entries"] if not e["undone"]} == set(valid)
    assert set(state["done"]) == {step for kind, step in valid.values() if kind == "done"}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"op_id": "short", "kind": "done"}, 422, "op_id"),
        ({"op_id": "../../etc/passwd", "kind": "done"}, 422, "op_id"),
        ({"op_id": "operation-1", "kind": "eat"}, 422, "kind"),
        ({"op_id": "operation-1", "kind": "done", "step": 99}, 422, "step 99 is not in the order shown"),
        ({"op_id": "operation-1", "kind": "error"}, 422, "category None"),
        ({"op_id": "operation-1", "kind": "error", "category": 8}, 422, "category"),
        ({"op_id": "operation-1", "kind": "error", "category": 1, "note": "x" * 501}, 422, "note"),
        ({"op_id": "operation-1", "kind": "error", "category": 1, "note": "\ud800"}, 422, "note"),
        ({"op_id": "operation-1", "kind": "undo"}, 409, "nothing to undo"),
        (
            {"op_id": "operation-1", "kind": "undo", "undoes": "operation-9"},
            409,
            "operation-9 is not in the log",
        ),
        ({"op_id": "operation-1", "kind": "done", "host_ns": 5}, 422, "host_ns"),
        ({"op_id": "operation-1", "kind": "done", "tapped_ms_ago": -1}, 422, "tapped_ms_ago"),
        ([], 422, ""),
    ],
)
def test_what_cannot_be_right_is_refused_in_one_line(
    kitchen: Any, body: Any, status: int, words: str
) -> None:
    client = kitchen.client()
    choose(client)
    headers = {"content-type": "application/json"}
    answer = client.post("/api/recordings/soup_1/operations", content=json.dumps(body), headers=headers)
    assert answer.status_code == status
    assert words in answer.json()["error"]
    assert "\n" not in answer.json()["error"]
    assert len(kitchen.events(kitchen.data / "soup_1")) == 1


def test_steps_need_a_recipe_but_an_error_may_come_first(kitchen: Any) -> None:
    client = kitchen.client()
    answer = client.post("/api/recordings/soup_1/operations", json={"op_id": "operation-1", "kind": "done"})
    assert (answer.status_code, answer.json()["error"]) == (409, "no recipe was chosen; choose one first")
    assert post(client, 2, "error", category=7)["state"]["entries"][0]["step"] is None


@pytest.mark.parametrize(
    "name", ["absent", "..", "_standalone", "_0123456789ab", "a" * 65, "%2e%2e", "soup 1", ".x"]
)
def test_unknown_recordings_are_404_and_never_paths(kitchen: Any, name: str) -> None:
    (kitchen.data.parent / "recording.json").write_text(json.dumps({"schema": "recording/1"}))
    client = kitchen.client()
    for answer in (
        client.get(f"/api/recordings/{name}"),
        client.post(f"/api/recordings/{name}/operations", json={"op_id": "operation-1", "kind": "done"}),
        client.get(f"/follow/{name}"),
    ):
        assert answer.status_code in (404, 405) or answer.url.path in ("/", "/api/", "/api/recordings")
    assert sorted(path.name for path in kitchen.data.iterdir()) == ["soup_1"]


def test_an_unknown_recipe_is_404_and_names_those_that_are_there(kitchen: Any) -> None:
    body = {"op_id": "choose-0001", "recipe": "../recordings/soup_1/recording"}
    answer = kitchen.client().post("/api/recordings/soup_1/recipe", json=body)
    assert answer.status_code == 404
    assert "tea_and_toast" in answer.json()["error"]


def test_what_cannot_be_stored_is_said_and_may_come_again(kitchen: Any) -> None:
    client = kitchen.client()
    (kitchen.data / "soup_1" / "events").write_text("in the way")
    body = {"op_id": "operation-1", "kind": "error", "category": 1}
    answer = client.post("/api/recordings/soup_1/operations", json=body)
    assert answer.status_code == 507
    assert "not stored" in answer.json()["error"]
    (kitchen.data / "soup_1" / "events").unlink()
    assert post(client, 1, "error", category=1)["duplicate"] is False
