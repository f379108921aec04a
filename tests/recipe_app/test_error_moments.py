"""Moments of errors that two people mark on the video: agreement, ruling, and the rows that come of them."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from filmed_cooking import cook_on_film
from numbered_recording import FRAME_S, film_host_ns

import kitchensync as ks
from kitchensync.cli import main
from kitchensync.dataset.data_set_cards.verify_data_set import wrong_errors
from kitchensync.reader.reading_clock import NotKnown
from kitchensync.recipe_app.review.judged_answers import ERRORS
from kitchensync.recipe_app.store.app_records import new_id
from kitchensync.storage.recording_files.annotation_folder import add_judged
from kitchensync.storage.recording_files.annotation_forms import MOMENTS
from kitchensync.virtual_kitchen.kitchen import Kitchen

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

COUNT, FRAMES = 30, 660
NEAR, FAR = 5, 6
"""Frames that differ by 0.167 s and by 0.2002 s."""
COLUMNS = dict(
    zip(MOMENTS, ("at_s", "end_s", "point_of_no_return_s", "noticed_s", "corrected_s"), strict=True)
)
UNMARKED = "unmarked"
"""Nobody marked this moment."""
Marked = dict[str, dict[str, int | None]]


class Truth:
    """The moments of each error, what two people mark, and what must be ruled on; from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.errors = [f"0190a000-0000-7000-8000-{k:012}" for k in range(COUNT)]
        self.moments: dict[str, dict[str, Any]] = {}
        self.marked: tuple[Marked, Marked] = ({}, {})
        self.disputed: set[tuple[str, str]] = set()
        for error in self.errors:
            self._add(error)

    def _add(self, error: str) -> None:
        begin = self.random.randrange(20, 400)
        self.moments[error] = {}
        for one in self.marked:
            one[error] = {}
        for moment in MOMENTS:
            frame = begin if moment == "at" else self.random.randrange(begin + 30, FRAMES - 30)
            chance = self.random.random()
            if chance < 0.2 and moment not in ("at", "end"):
                self.moments[error][moment] = UNMARKED
            elif chance < 0.4:
                self._mark(error, moment, None, None)
            elif chance < 0.5:
                self._mark(error, moment, frame, None)
            else:
                off = self.random.choice([0, 1, NEAR, FAR, 20])
                self._mark(error, moment, frame, frame + off)

    def _mark(self, error: str, moment: str, true: int | None, other: int | None) -> None:
        self.moments[error][moment] = true
        for one, frame in zip(self.random.sample(self.marked, 2), (true, other), strict=True):
            one[error][moment] = frame
        if (true is None) != (other is None) or abs((true or 0) - (other or 0)) >= FAR:
            self.disputed.add((error, moment))

    def agreement(self, moment: str) -> dict[str, Any]:
        pairs = [
            (self.marked[0][error][moment], self.marked[1][error][moment])
            for error in self.errors
            if self.moments[error][moment] != UNMARKED
        ]
        apart = [abs(a - b) * FRAME_S for a, b in pairs if a is not None and b is not None]
        agreed = sum(seconds <= 0.2 for seconds in apart) + pairs.count((None, None))
        return {"share": agreed / len(pairs), "apart_s": median(apart)}


@pytest.fixture
def cooked(kitchen: Any) -> Iterator[tuple[str, Path, Kitchen, Truth]]:
    """A recording of 30 errors whose small film is made; the cook said of each when it was noticed."""
    recording, folder, world = cook_on_film(kitchen)
    truth = Truth(seed=5)
    node = kitchen.tools.records.state(recording)["recording"]["order"][1]
    for number, error in enumerate(truth.errors):
        kitchen.now_ns = round(film_host_ns(world, 100 + number))
        fields = {"node": node, "categories": [4], "noticed_at": round(film_host_ns(world, 600))}
        kitchen.post(kitchen.operation(recording, "error", {"error_id": error, "fields": fields}))
    kitchen.tools.intake.file()
    kitchen.tools.films.ask(folder, 360)
    while kitchen.tools.films.state(folder, 360)["state"] not in ("ready", "failed"):
        time.sleep(0.1)
    yield recording, folder, world, truth
    kitchen.tools.films.close()


def post(who: httpx.Client, address: str, **answer: Any) -> tuple[int, str]:
    """Give an answer; return the status and the refusal."""
    given = who.post(address, json={"op_id": new_id(1_790_000_000_000_000_000), "answer": answer})
    return given.status_code, given.json().get("error", "")


def answer_all(who: httpx.Client, address: str, errors: list[str]) -> None:
    """Answer every question with its first answer."""
    for error in errors:
        for question, (answer, *_) in ERRORS.questions.items():
            assert post(who, address, item=error, question=question, answer=answer)[0] == 200


def mark_all(who: httpx.Client, address: str, marked: Marked) -> None:
    """Put every moment."""
    for error, moments in marked.items():
        for moment, frame in moments.items():
            assert post(who, address, item=error, moment=moment, frame=frame) == (200, ""), (error, moment)


def rows_of(folder: Path, out: Path) -> dict[str, dict[str, Any]]:
    """Release a recording; return its rows of errors."""
    asked = ["release", "captaincook4d", str(folder), "--out", str(out), "--media", "", "--json"]
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 0, done.output
    assert wrong_errors(out, ["1_1"]) == []
    rows = map(json.loads, (out / "errors.jsonl").read_text().splitlines())
    return {row["error_id"]: row for row in rows}


def test_two_people_mark_a_third_rules_and_the_rows_hold_the_truth(
    kitchen: Any, cooked: tuple[str, Path, Kitchen, Truth], tmp_path: Path
) -> None:
    recording, folder, world, truth = cooked
    address = f"/api/v1/desk/recordings/{recording}/errors"
    people, third = [kitchen.desk("researcher") for _ in range(2)], kitchen.desk("researcher")
    first, *_, denied = truth.errors
    refused = "no moment of an error is before its begin"
    for one, other, marked in zip(people, reversed(people), truth.marked, strict=True):
        mark_all(one, address, {first: {"at": 100, "end": 100}})
        assert post(one, address, item=first, moment="end", frame=99) == (422, refused)
        assert post(one, address, item=first, moment="at", frame=101) == (422, refused)
        assert post(one, address, item=first, moment="end", frame=FRAMES)[0] == 422
        assert post(one, address, item="none", moment="end", frame=200)[0] == 422
        assert post(one, address, item=first, moment="begin", frame=200)[0] == 422
        mark_all(one, address, {first: {"end": None}})
        answer_all(one, address, truth.errors)
        assert one.get(address).json()["left"] == 2 * (COUNT - 1), (
            "begin and end of what happened are asked for"
        )
        assert one.post(f"{address}/submit", json={}).status_code == 409
        mark_all(one, address, marked)
        assert one.get(address).json()["moments"] == {e: m for e, m in marked.items() if m}
        hidden = other.get(address).json()
        assert not {"marked", "final_moments", "agreement_of_moments"} & hidden.keys()
        assert hidden["moments"] in ({}, truth.marked[0])
        if one is people[1]:
            assert post(one, address, item=denied, question="verdict", answer="did_not_happen")[0] == 200
        assert one.post(f"{address}/submit", json={}).status_code == 200
    said = third.get(address).json()
    assert said["marked"] == [*truth.marked]
    for moment in MOMENTS:
        assert said["agreement_of_moments"][moment] == pytest.approx(truth.agreement(moment))
    disputed = {(one["item"], one["question"]) for one in said["disputed"]}
    assert disputed == truth.disputed | {(denied, "verdict")}
    assert third.post(f"{address}/accept", json={}).status_code == 409
    assert post(people[0], f"{address}/rule", item=first, moment="end", frame=500)[0] == 409
    for error, moment in sorted(truth.disputed, key=lambda one: (one[0], MOMENTS.index(one[1]))):
        frame = truth.moments[error][moment]
        assert post(third, f"{address}/rule", item=error, moment=moment, frame=frame) == (200, "")
    ruling = {"item": denied, "question": "verdict", "answer": "did_not_happen"}
    assert post(third, f"{address}/rule", **ruling) == (200, "")
    assert third.post(f"{address}/accept", json={}).json() == {"version": 1, "errors": COUNT}

    kept = json.loads((folder / "annotations" / "errors-1.json").read_text())
    assert (kept["fps"], kept["frames"]) == ("30000/1001", FRAMES)
    rows = rows_of(folder, tmp_path / "out")
    with ks.open(folder) as rec:
        table = {row["error_id"]: row for row in rec.error_rows}

        def session_s(frame: float) -> float:
            return float(rec.clock.of_host([round(film_host_ns(world, frame))])[0]) / 1e9

        assert rows.keys() == table.keys() == {*truth.errors} - {denied}
        for error in rows:
            is_ruled = error in {item for item, _ in truth.disputed}
            assert rows[error]["source"] == table[error]["source"] == ("ruled" if is_ruled else "marked")
            for moment, column in COLUMNS.items():
                frame = truth.moments[error][moment]
                found, in_session = rows[error][column], table[error][column]
                if frame is None or (frame == UNMARKED and moment != "noticed_at"):
                    assert found is in_session is None, (error, moment)
                elif frame == UNMARKED:  # what the cook entered
                    assert found == pytest.approx(600 * FRAME_S, abs=FRAME_S)
                    assert in_session == pytest.approx(session_s(600), abs=FRAME_S)
                else:
                    frame += moment == "end"  # the last frame belongs to the error
                    assert found == pytest.approx(frame * FRAME_S, abs=0.0006), (error, moment)
                    assert in_session == pytest.approx(session_s(frame), abs=FRAME_S / 4), (error, moment)
            is_known = rows[error]["at_s"] is not None
            assert rows[error]["bound_s"] == (round(FRAME_S, 4) if is_known else None)
            assert not is_known or FRAME_S < table[error]["bound_s"] < 0.2

    add_judged(folder, "errors", kept | {"frames": FRAMES + 1})
    with ks.open(folder) as rec, pytest.raises(NotKnown, match="errors were marked in a video of 661 frames"):
        _ = rec.errors
    asked = ["release", "captaincook4d", str(folder), "--out", str(tmp_path / "other"), "--media", ""]
    other_film = CliRunner().invoke(main, asked)
    assert other_film.exit_code == 1
    assert "its accepted moments of errors were marked in a video of 661 frames" in other_film.stderr
