"""Fourteen steps corrected by hand in the reviewer and at a real Label Studio server, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browser import at_the_desk, chromium
from corrections import Hand, Wanted, correct_in_label_studio, correct_in_the_reviewer, wanted
from filmed_cooking import cook_on_film
from label_server import at_the_task, label_studio, label_studio_command
from typed_commands import answer as run

from kitchensync.dataset.films.review_film import facts_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]

FPS = 30000 / 1001
DONE_S = [1.9 + 1.4 * number for number in range(14)]
"""When the steps were touched as done."""
SEED = 22


@pytest.fixture
def cooked(kitchen: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
    """A recording of fourteen steps, every boundary of which is filled in; its folder."""
    monkeypatch.setattr("kitchensync.recipe_app.review.marks.BLANK_OF", 10**9)
    return cook_on_film(kitchen, DONE_S, recipe="mezze_platter")[:2]


def corrected_in_the_reviewer(kitchen: Any, recording: str, folder: Path) -> tuple[Hand, Wanted]:
    """Correct and accept the steps at the desk; return what was done, and where the boundaries are."""
    login = kitchen.desk("researcher").headers["x-kitchensync-login"]
    with chromium() as browser:
        desk = at_the_desk(browser, kitchen.url, login)
        desk.go(f"/recordings/{recording}/steps")
        desk.page.locator("canvas.lanes").wait_for(timeout=60_000)
        facts = facts_of(folder, 360)
        assert facts is not None
        labels = {step["node"]: step["label"][:3] for step in facts["steps"]}
        places = wanted([(labels[one["node"]], one["start"], one["end"]) for one in facts["touches"]], SEED)
        hand = Hand(desk.page)
        correct_in_the_reviewer(hand, places)
        desk.tap("Accept as the step times")
        desk.page.get_by_text("Accepted").wait_for()
        assert desk.problems == []
    kitchen.tools.films.close()
    return hand, places


def test_a_recording_of_fourteen_steps_is_corrected_by_keys_alone(
    kitchen: Any, cooked: tuple[str, Path], tmp_path: Path
) -> None:
    recording, folder = cooked
    hand, places = corrected_in_the_reviewer(kitchen, recording, folder)
    assert len(places) == 28
    assert (hand.buttons, hand.moves, hand.notches) == (0, 0, 0)
    out = tmp_path / "out"
    run("release", "captaincook4d", folder, "--out", out, "--media", "")
    (entry,) = json.loads((out / "annotation_json" / "step_annotations.json").read_text()).values()
    times = sorted(
        (step["start_time"], step["end_time"]) for step in entry["steps"] if step["start_time"] >= 0
    )
    steps = sorted({step for step, _ in places})
    expected = sorted((places[one, "start"] / FPS, (places[one, "end"] + 1) / FPS) for one in steps)
    assert times == [pytest.approx(span, abs=1 / FPS) for span in expected]


@pytest.mark.system
@pytest.mark.timeout(900)
def test_what_is_corrected_at_label_studio_comes_back(cooked: tuple[str, Path], tmp_path: Path) -> None:
    label_studio_command()
    _, folder = cooked
    run("annotate", "export", folder, "--out", tmp_path / "films" / "kitchen")
    (tmp_path / "server").mkdir()
    with label_studio(tmp_path / "server", tmp_path / "films") as server:
        (tmp_path / "token").write_text(server.token)
        there = ("--url", server.url, "--token-file", tmp_path / "token")
        run("annotate", "push", folder, *there)
        (project,) = server.session.get("/api/projects").json()["results"]
        films = {"project": project["id"], "path": str(tmp_path / "films" / "kitchen"), "title": "films"}
        server.write("/api/storages/localfiles", films)
        (task,) = server.session.get(f"/api/tasks?project={project['id']}&fields=all").json()["tasks"]
        proposed = [one["value"] for one in task["predictions"][0]["result"]]
        spans = [(one["timelinelabels"][0][:3], one["ranges"][0]) for one in proposed]
        places = wanted([(step, one["start"] - 1, one["end"] - 1) for step, one in spans], SEED)
        with at_the_task(server, project["id"], task["id"]) as page:
            correct_in_label_studio(Hand(page), places)
        (annotation,) = run("annotate", "pull", folder, *there)["recordings"][0]["new"]
    run("annotate", "accept", folder, "--annotation", annotation)
    accepted = json.loads((folder / "annotations" / "accepted.json").read_text())
    found = sorted((one["start_frame"] - 1, one["end_frame"] - 1) for one in accepted["steps"])
    assert found == sorted((places[step, "start"], places[step, "end"]) for step, _ in spans)
