"""A recording against its recipe's graph, as the desk shows it; and the whole of it as a file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kitchensync.recipe_app.store import tables


def cook(kitchen: Any, nodes: list[int], **more: Any) -> str:
    """Do steps one after the other, a second each; return the recording."""
    bundle = kitchen.choose(**more)
    recording = str(bundle["recording"])
    for node in nodes:
        for kind in ("start", "done"):
            kitchen.now_ns += 10**9
            kitchen.post(
                kitchen.operation(recording, kind, {"node": node}, tapped_ms_ago=0.0, round_trip_ms=1.0)
            )
    return recording


def against(kitchen: Any, recording: str) -> Any:
    return kitchen.tools.judge.against(kitchen.tools.records.row(tables.recording, recording))


def test_an_order_of_the_graph_is_right(kitchen: Any) -> None:
    order = kitchen.choose()["ops"][0]["body"]["order"]
    assert against(kitchen, cook(kitchen, order)).is_right


@pytest.mark.slow
def test_what_is_wrong_is_named_by_brute_force_over_the_edges(kitchen: Any) -> None:
    body = kitchen.choose()["ops"][0]["body"]
    nodes = list(reversed(body["order"]))[:-1]
    found = against(kitchen, cook(kitchen, [*nodes, nodes[0]]))
    text = {node: step["text"] for node, step in body["steps"].items()}
    wrong = {
        (text[str(v)], text[str(u)])
        for u, v in body["edges"]
        if u in nodes and v in nodes and nodes.index(v) < nodes.index(u)
    }
    assert set(found.early) == wrong
    assert found.missing == (text[str(body["order"][0])],)
    assert found.repeated == (text[str(nodes[0])],)


def test_nothing_done_is_not_judged(kitchen: Any) -> None:
    assert against(kitchen, kitchen.choose()["recording"]) is None


def test_everything_of_a_recording_is_one_file_unless_it_is_withdrawn(kitchen: Any) -> None:
    order = kitchen.choose()["ops"][0]["body"]["order"]
    recording = cook(kitchen, order[:2])
    kitchen.agree(recording, "release_raw")
    desk = kitchen.desk("researcher")
    address = f"/desk/recordings/{recording}/export.json"
    content = json.loads(desk.get(address).text)
    assert content["schema"] == "recording-log/1"
    cooked = ["start", "done"] * 2
    assert [op["kind"] for op in content["operations"]] == ["recording", *cooked, "consent"]
    assert all(op["hash"] for op in content["operations"])
    kitchen.post(kitchen.operation(recording, "withdraw", {}))
    assert desk.get(address).status_code == 409


@pytest.mark.slow
def test_a_withdrawn_recording_says_so_in_its_folder(kitchen: Any) -> None:
    recording = kitchen.choose(folder="soup_1")["recording"]
    kitchen.post(kitchen.operation(recording, "withdraw", {}))
    manifest = kitchen.manifest("soup_1")
    assert manifest["consent"] == "none"
    assert manifest["withdrawn"]["host_ns"] > 0


def test_pictures_of_errors_are_read_from_what_sync_wrote(kitchen: Any) -> None:
    frames = {
        "hololens/pv": {"frame": 512, "uncertainty_ms": 6.6},
        "gopro/video": {"frame": 498, "file": "gopro/GX010001.MP4", "uncertainty_ms": 36.2},
    }
    nowhere = {"hololens/pv": {"frame": None, "why": "after the last picture", "uncertainty_ms": 1.0}}
    events = [
        {"kind": "error", "error_id": "a", "frames": frames},
        {"kind": "error", "error_id": "b", "frames": nowhere},
        {"kind": "done", "frames": frames},
    ]
    folder = kitchen.data / "soup_1" / "sync"
    folder.mkdir()
    (folder / "events.json").write_text(json.dumps({"schema": "event-frames/1", "events": events}))
    places = kitchen.tools.folders.places("soup_1")
    assert places == {"a": "GX010001.MP4 498; pv 512, ± 36 ms", "b": ""}
    (folder / "events.json").write_text("[")
    assert kitchen.tools.folders.places("soup_1") == {}
