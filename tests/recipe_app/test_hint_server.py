"""The optional model server, played by a small HTTP server on loopback: what it says passes the gate or goes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from model_server import ModelServer, Say, message, model_servers

from kitchensync.cli import main
from kitchensync.recipe_app.hints.hint_server import KEY_ENV, KEY_FILE, MODEL, URL, model_hints
from kitchensync.storage.options.endpoint import MAX_ANSWER_BYTES, endpoint_of
from kitchensync.task_graphs.formats.graph_files import read_graph

QUESADILLA = (
    Path(__file__).resolve().parents[2] / "kitchensync" / "examples" / "recipes" / "pan_quesadilla.json"
)


@pytest.fixture
def play() -> Iterator[Callable[[Say], ModelServer]]:
    with model_servers("hints") as play:
        yield play


def answer(hints: list[dict[str, str]]) -> bytes:
    return message(json.dumps({"hints": hints}))


def hint(text: str, category: str = "Technique") -> dict[str, str]:
    return {"category": category, "subtype": "motion", "expected": "flat", "actual": "crumpled", "text": text}


def test_good_hints_are_taken_and_bad_ones_dropped(play: Callable[[Say], ModelServer]) -> None:
    graph = read_graph(QUESADILLA)
    step = graph.steps[0]
    good = hint(f"{step.text}, all crumpled")
    bad = [
        hint(step.text),
        hint(f"{step.text} with bare hands on the hot stove"),
        hint(f"{step.text}, all crumpled", "Timing"),
        hint(f"{step.text}, all crumpled!"),
    ]
    served = play(lambda body: (200, answer([good, *bad])))
    found, note = model_hints(graph, step, served.environment)
    assert ([one.text for one in found], note) == ([good["text"]], "")
    assert found[0].origin.startswith("kitchen-1 ")
    path, _, body = served.asked[0]
    assert path == "/v1/chat/completions"
    assert body["model"] == "kitchen-1"
    assert step.text in body["messages"][0]["content"]


def test_the_key_comes_from_the_variable_that_is_named(play: Callable[[Say], ModelServer]) -> None:
    graph = read_graph(QUESADILLA)
    served = play(lambda body: (200, answer([])))
    model_hints(graph, graph.steps[0], served.environment | {KEY_ENV: "MY_KEY", "MY_KEY": "not-a-secret"})
    model_hints(graph, graph.steps[0], served.environment)
    headers = [asked[1].get("Authorization") for asked in served.asked]
    assert headers == ["Bearer not-a-secret", None]


@pytest.mark.slow
@pytest.mark.parametrize(
    "said",
    [
        (500, b"oops"),
        (401, b"{}"),
        (302, b""),
        (200, b"not json"),
        (200, b"{}"),
        (200, b"[]"),
        (200, b'{"choices": []}'),
        (200, json.dumps({"choices": [{"message": {"content": "Sure! Here are hints"}}]}).encode()),
        (200, json.dumps({"choices": [{"message": {"content": '{"hints": [{"text": "x"}]}'}}]}).encode()),
        (200, json.dumps({"choices": [{"message": {"content": '{"hints": 7}'}}]}).encode()),
        (200, json.dumps({"choices": [{"message": {"content": '["hints"]'}}]}).encode()),
        (200, message('{"hints": ' + "[" * 30_000 + "]" * 30_000 + "}")),
        (200, b"[" * 60_000),
        (200, b" " * (MAX_ANSWER_BYTES + 1)),
        (200, b"\xff\xfe"),
    ],
)
def test_whatever_goes_wrong_the_rules_answer_alone(
    play: Callable[[Say], ModelServer], said: tuple[int, bytes]
) -> None:
    graph = read_graph(QUESADILLA)
    served = play(lambda body: said)
    found, note = model_hints(graph, graph.steps[0], served.environment)
    assert found == []
    assert "the hints are from rules only" in note


@pytest.mark.slow
def test_a_server_that_is_not_there_is_a_note(tmp_path: Path) -> None:
    graph = read_graph(QUESADILLA)
    for url in ("http://127.0.0.1:9", "nonsense", "http://[bad"):
        found, note = model_hints(
            graph, graph.steps[0], {URL: url, MODEL: "m", "XDG_STATE_HOME": str(tmp_path)}
        )
        assert found == []
        assert "did not answer" in note


def test_nothing_is_asked_unless_it_is_named() -> None:
    assert endpoint_of("hints", {}) is None
    assert endpoint_of("hints", {URL: "http://127.0.0.1:9"}) is None
    graph = read_graph(QUESADILLA)
    assert model_hints(graph, graph.steps[0], {})[1].startswith("no model used: set KITCHENSYNC_HINTS_URL")


@pytest.mark.slow
def test_the_command_joins_both_sources_and_notes_a_failure(
    play: Callable[[Say], ModelServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = read_graph(QUESADILLA)
    served = play(lambda body: (200, answer([hint(f"{graph.steps[0].text}, all crumpled")])))
    for name, value in served.environment.items():
        monkeypatch.setenv(name, value)
    arguments = ["hints", str(QUESADILLA), "--step", str(graph.steps[0].node), "--json"]
    with_model = json.loads(CliRunner().invoke(main, ["graph", *arguments, "--model"]).stdout)
    alone = json.loads(CliRunner().invoke(main, ["graph", *arguments]).stdout)
    origins = [one["origin"] for one in with_model["steps"][0]["hints"]]
    assert [origin for origin in origins if origin != "rules"] == [origins[-1]]
    assert with_model["steps"][0]["hints"][:-1] == alone["steps"][0]["hints"]
    monkeypatch.setenv(URL, "http://127.0.0.1:9")
    failed = CliRunner().invoke(main, ["graph", *arguments, "--model"])
    assert failed.exit_code == 0
    assert json.loads(failed.stdout)["steps"] == alone["steps"]
    assert "the hints are from rules only" in failed.stderr


def test_what_leaves_this_computer_is_noted_first_and_said(
    play: Callable[[Say], ModelServer], tmp_path: Path
) -> None:
    graph = read_graph(QUESADILLA)
    log = tmp_path / "kitchensync" / "sent-to-others.jsonl"
    bodies: list[dict[str, Any]] = []
    noted: list[str] = []

    def say(body: dict[str, Any]) -> tuple[int, bytes]:
        bodies.append(body)
        noted.append(log.read_text())  # it is there before anybody answers
        return 200, answer([])

    served = play(say)
    elsewhere = served.environment | {"XDG_STATE_HOME": str(tmp_path)}
    elsewhere[URL] = elsewhere[URL].replace(
        "127.0.0.1", "0.0.0.0"
    )  # reaches this computer, and does not say so
    _, note = model_hints(graph, graph.steps[0], elsewhere)
    assert note.startswith("recipe text was sent to 0.0.0.0; ")
    (entry,) = [json.loads(line) for line in log.read_text().splitlines()]
    assert noted == [log.read_text()]
    sent = json.dumps(bodies[0]).encode()
    assert (entry["host"], entry["bytes"]) == ("0.0.0.0", len(sent))
    assert entry["sha256"] == hashlib.sha256(sent).hexdigest()
    assert log.stat().st_mode & 0o077 == 0
    log.unlink()
    log.parent.rmdir()
    log.parent.write_text("in the way")  # what cannot be noted is not sent
    found, note = model_hints(graph, graph.steps[0], elsewhere)
    assert (found, len(bodies)) == ([], 1)
    assert "could not be noted" in note


def test_a_key_that_others_may_read_is_not_used(play: Callable[[Say], ModelServer], tmp_path: Path) -> None:
    graph, key = read_graph(QUESADILLA), tmp_path / "key"
    key.write_text("not-a-secret\n")
    served = play(lambda body: (200, answer([])))
    named = served.environment | {KEY_FILE: str(key)}
    key.chmod(0o640)
    found, note = model_hints(graph, graph.steps[0], named)
    assert (found, served.asked) == ([], [])
    assert f"chmod 600 {key}" in note
    assert "not-a-secret" not in note
    key.chmod(0o600)
    model_hints(graph, graph.steps[0], named)
    assert served.asked[0][1]["Authorization"] == "Bearer not-a-secret"
