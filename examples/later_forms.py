"""What four later data sets add, made of the demo's recordings: people at the desk, exports, one page over them.

Two judge, mark and draw alone and a third rules; three decide and five rate. What they say is planned, and what is
exported is compared with that by sets and sums made here, and with the numbers that the pictures show.
"""

from __future__ import annotations

import html
import json
import random
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import httpx
from demo import DemoFailed, command, say

from kitchensync.virtual_kitchen.tablet import Desk, operation_id
from kitchensync.virtual_kitchen.world.frame_counter import number_in

FILM_LIMIT_S = 300.0
ADDED = "As the film shows."
RATED = 3
ALIKE = 1e-6
HEAD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>What later data sets add</title><style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 } tr + tr { border-top: 1px solid #ddd }
th, td { padding: .2rem .8rem; text-align: left; vertical-align: top }
figure { display: inline-block; margin: .3rem; width: 20rem; vertical-align: top } img { width: 100% }
</style><h1>What later data sets add</h1>"""


@dataclass
class Expected:
    """What is to come out, by recording where it is not of all."""

    decided: dict[str, list[list[str]]] = field(default_factory=dict)
    "Of each step what three people said, in the order of steps."
    answers: dict[str, list[set[str]]] = field(default_factory=dict)
    "The answers that hold, of each question."
    evidence: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    "Share of the clip, from and to, in which the evidence lies, of each question."
    problems: list[str] = field(default_factory=list)


class Reviewer:
    """Somebody who signed in at the desk."""

    def __init__(self, desk: Desk, name: str) -> None:
        """Add a researcher by the admin, accept the invite, sign in."""
        desk.headers = {"x-kitchensync-login": desk.admin}
        password = secrets.token_urlsafe(16)
        made = desk.ask("/api/v1/desk/people", {"pseudonym": name, "roles": ["researcher"]})
        desk.ask("/api/v1/invite", {"code": made["invite"], "password": password})
        signed = {"pseudonym": name, "password": password, "program": True}
        self.id = made["person"]
        self._headers = {"x-kitchensync-login": desk.ask("/api/v1/desk/sign-in", signed)["token"]}
        self._client, self._rng = desk.client, random.Random(name)

    def get(self, path: str) -> Any:
        """Read one address."""
        return self._done(self._client.get(path, headers=self._headers))

    def post(self, path: str, **body: Any) -> Any:
        """Send one request."""
        return self._done(self._client.post(path, json=body, headers=self._headers))

    def act(self, path: str, **body: Any) -> Any:
        """Send one action of a review, which is kept once."""
        return self.post(path, op_id=operation_id(self._rng), **body)

    def _done(self, answer: httpx.Response) -> Any:
        if answer.is_error:
            raise DemoFailed(f"{answer.request.url.path}: {answer.status_code} {answer.text[:300]}")
        return answer.json()


def review(desk: Desk, sessions: dict[str, str], recipes: Sequence[str]) -> Expected:
    """Let five people review recordings, name -> id at the desk, and draw recipes; return what is to come out."""
    expected, people = Expected(), [Reviewer(desk, f"reviewer-{number}") for number in range(1, 6)]
    for name, session in sessions.items():
        say(f"five people review {name}")
        address = f"/api/v1/desk/recordings/{session}"
        _have_film(people[0], address)
        expected.decided[name] = _decide(people[:3], f"{address}/opinions/decisions")
        _rate(people, f"{address}/opinions/ratings", f"{address}/opinions/decisions")
        expected.answers[name] = _judge(people[:3], f"{address}/questions")
        expected.evidence[name] = _mark(people[:3], f"{address}/evidence", f"{address}/film")
    for recipe in recipes:
        say(f"two people draw {recipe}, a third rules")
        expected.problems += _draw(people[:3], f"/api/v1/desk/recipes/{recipe}/graphs")
    return expected


def _have_film(one: Reviewer, address: str) -> None:
    """Have the small film made, and wait for it."""
    limit_s = time.monotonic() + FILM_LIMIT_S
    state = one.post(f"{address}/film")
    while state["state"] == "making" and time.monotonic() < limit_s:
        time.sleep(0.5)
        state = one.get(f"{address}/film")
    if state["state"] != "ready":
        raise DemoFailed(f"the small film is {state['state']}: {state.get('why', '')}")


def _decide(three: Sequence[Reviewer], address: str) -> list[list[str]]:
    """Each decides of each step whether it succeeded, with one no in three, at another place for each person."""
    three[0].post(f"{address}/assign", people=[one.id for one in three])
    three[0].post(f"{address}/ask")
    items = [item["item"] for item in three[0].get(address)["items"]]
    said = [["no" if (k + n) % 3 == 0 else "yes" for n in range(len(three))] for k in range(len(items))]
    for n, one in enumerate(three):
        for item, of_all in zip(items, said, strict=True):
            for question, answer in (("success", of_all[n]), ("confidence", "4")):
                one.act(address, answer={"item": item, "question": question, "answer": answer})
        one.post(f"{address}/submit")
    three[0].post(f"{address}/accept")
    return said


def _rate(five: Sequence[Reviewer], address: str, decided: str) -> None:
    """Rate questions about the first steps: the later one, the higher, by all alike."""
    steps = [item["item"] for item in five[0].get(decided)["items"]][:RATED]
    asked = {"question": "Is the step done?", "answer": "Yes.", "informativeness": 0.5}
    five[0].post(f"{address}/assign", people=[one.id for one in five])
    five[0].post(
        f"{address}/ask",
        questions=[asked | {"example_id": one, "relevance": 0.1 * (k + 1)} for k, one in enumerate(steps)],
    )
    for one in five:
        for k, item in enumerate(one.get(address)["items"]):
            for question, answer in (("relevance", k + 1), ("informativeness", 3)):
                said = {"item": item["item"], "question": question, "answer": str(answer)}
                one.act(address, answer=said)
        one.post(f"{address}/submit")
    five[0].post(f"{address}/accept")


def _judge(three: Sequence[Reviewer], address: str) -> list[set[str]]:
    """Two judge: the second holds the first question not valid and the second one's first answer wrong."""
    first, second, third = three
    third.post(f"{address}/assign", people=[first.id, second.id])
    third.post(f"{address}/ask", form="assembly")
    items = first.get(address)["items"]
    ticks = {"multimodal": True, "procedural": True}
    for k, item in enumerate(items):
        all_right = [True] * len(item["answers"])
        verdict = {"item": item["item"], "valid": True, "accepted": all_right, **ticks}
        first.act(address, verdict=verdict)
        other = {0: {"valid": False, "accepted": []}, 1: {"accepted": [False, *all_right[1:]]}}
        second.act(address, verdict=verdict | other.get(k, {}))
    first.post(f"{address}/submit")
    second.post(f"{address}/submit")
    standing, said = third.get(address)["standing"], [set(item["answers"]) for item in items]
    for k, item in enumerate(items[:2]):
        offered = len(standing[item["item"]]["candidates"])
        verdict = {"item": item["item"], "valid": True, "accepted": [k == 1] * offered, **ticks}
        third.act(f"{address}/rule", verdict=verdict | ({"added": [ADDED]} if k == 0 else {}))
    third.post(f"{address}/accept")
    return [{ADDED}, *said[1:]]


def _mark(three: Sequence[Reviewer], address: str, film: str) -> list[tuple[float, float]]:
    """Two mark: all of each clip, and of the first one its first quarter, which the third takes."""
    first, second, third = three
    third.post(f"{address}/assign", people=[first.id, second.id])
    third.post(f"{address}/ask")
    fps = third.get(film)["facts"]["fps"]
    for one, share in ((first, 1.0), (second, 0.25)):
        said = one.get(address)
        clips = {item["node"]: item for item in said["questions"]}
        for mark in said["marks"]:
            clip = clips[mark["node"]]
            start, end = (round(clip[key] * fps[0] / fps[1]) for key in ("clip_start", "clip_end"))
            if mark["node"] == said["questions"][0]["node"]:
                end = start + round((end - start) * share)
            edit = mark | {"start": start + 1, "end": end - 2, "checked": ["start", "end"]}
            one.act(address, edits=[edit])
        one.post(f"{address}/submit")
    for item in third.get(address)["standing"]:
        if item["state"] == "to_rule":
            third.post(f"{address}/rule", item=item["item"], take="second")
    third.post(f"{address}/accept")
    return [(0.0, 0.25 if k == 0 else 1.0) for k in range(len(clips))]


def _draw(three: Sequence[Reviewer], address: str) -> list[str]:
    """Two draw the steps in a row, the second without the last edge, which the third holds; return what is wrong."""
    first, second, third = three
    third.post(f"{address}/assign", people=[first.id, second.id])
    asked = first.get(address)
    nodes = [node for node, _ in asked["steps"]]
    row = [list(edge) for edge in pairwise(nodes)]
    for one, edges in ((first, row), (second, row[:-1])):
        one.post(address, seen=asked["hash"], edges=edges)
        one.post(f"{address}/submit")
    third.post(f"{address}/rule", edge=row[-1], holds=True)
    found = third.post(f"{address}/accept")["agreement"]["raw"]
    both = len(row) - 1
    by_hand = {"precision": both / len(row), "recall": 1.0, "f1": 2 * both / (len(row) + both)}
    return [
        f"{address}: {name} is {found[name]}, not {value}"
        for name, value in by_hand.items()
        if abs(found[name] - value) > ALIKE
    ]


def export(data: Path, out: Path, expected: Expected) -> list[str]:
    """Export all four forms into a folder with a page over them; return what is not as people said."""
    out.mkdir()
    recordings = [str(data / name) for name in expected.decided]

    def made(form: str, name: str, *more: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        said = command(["export", form, *recordings, "--out", str(out / f"{name}.json"), *more])
        return json.loads((out / f"{name}.json").read_text()), said

    opinions, agreed = made("opinions", "opinions")
    boundaries, _ = made("coherence", "boundaries", "--boundaries", "--frames", "--corrected")
    verified, judged = made("promqa", "questions", "--verified")
    assembly, _ = made("promqa", "assembly", "--verified", "--form", "assembly")
    evidence, marked = made("windows", "evidence", "--verified")
    problems = [
        *expected.problems,
        *_wrong_opinions(opinions, agreed["agreement"], expected),
        *_wrong_pictures(boundaries, out),
        *_wrong_answers(verified, assembly, judged["agreement"], expected),
        *_wrong_evidence(evidence, expected),
    ]
    figures = {
        "opinions": agreed["agreement"],
        "questions": judged["agreement"],
        "evidence": marked["mean_iou"],
    }
    rows = {"opinions": opinions, "boundaries": boundaries, "questions": verified}
    (out / "later-forms.html").write_text(_page(rows | {"assembly": assembly, "evidence": evidence}, figures))
    return problems


def _wrong_opinions(rows: list[dict[str, Any]], agreement: Any, expected: Expected) -> list[str]:
    said = [of_all for steps in expected.decided.values() for of_all in steps]
    decided = [row for row in rows if row["kind"] == "decision"]
    problems = []
    if [sorted(row["success"]) for row in decided] != [sorted(of_all) for of_all in said]:
        problems.append("export opinions: not what three people said")
    right = [(one == "no") is row["mistake"] for row in decided for one in row["success"]]
    if abs(agreement["decisions"]["success"]["mean_accuracy"] - sum(right) / len(right)) > ALIKE:
        problems.append("export opinions: another accuracy than by hand")
    rated = [row["mean_relevance"] for row in rows if row["kind"] == "rating"]
    if rated != list(range(1, RATED + 1)) * len(expected.decided):
        problems.append(f"export opinions: relevance is {rated}")
    return problems


def _wrong_pictures(rows: list[dict[str, Any]], out: Path) -> list[str]:
    """Read the number in each picture: it is that of the name, and one of five around its moment."""
    wrong = [] if rows else ["export coherence: no picture was taken"]
    for row in rows:
        for name, at_s in zip(row["frames"], row["frame_times"], strict=True):
            number = number_in(cv2.imread(str(out / name), cv2.IMREAD_GRAYSCALE))
            if number != int(Path(name).stem) or abs(at_s - row["time"]) > 0.09:
                wrong.append(f"export coherence: {name} shows {number}, at {at_s} s for {row['time']} s")
    return wrong


def _wrong_answers(
    verified: list[dict[str, Any]], assembly: list[dict[str, Any]], agreement: Any, expected: Expected
) -> list[str]:
    wanted = [sorted(answers) for questions in expected.answers.values() for answers in questions]
    problems = []
    for name, rows in (("promqa", verified), ("assembly", assembly)):
        if sorted(sorted(row["answers"]) for row in rows) != sorted(wanted):
            problems.append(f"export {name}: other answers than were judged right")
    if sum(not row["multimodal"] for row in assembly):
        problems.append("export assembly: a question is not multimodal")
    held = [one["question"] for row in verified for one in row["verification"]["judges"]]
    if held.count(False) != len(expected.answers):
        problems.append("export promqa: other verdicts than were given")
    if any(one["approved"] is None for one in agreement.values()):
        problems.append("export promqa: no agreement")
    return problems


def _wrong_evidence(rows: list[dict[str, Any]], expected: Expected) -> list[str]:
    problems = []
    for name, wanted in expected.evidence.items():
        found = [row for row in rows if row["recording"] == name]
        shares = []
        for row in found:
            length_s = row["clip_end"] - row["clip_start"]
            ((start_s, end_s),) = row["evidence"]
            shares.append((start_s / length_s, end_s / length_s))
            if max(abs(start_s), abs(end_s - length_s * (0.25 if len(shares) == 1 else 1))) > 0.15:
                problems.append(f"export windows: {row['question_id']} has its evidence at {row['evidence']}")
        if len(found) != len(wanted):
            problems.append(f"export windows: {len(found)} questions of {name}, not {len(wanted)}")
    return problems


def _page(rows: dict[str, list[dict[str, Any]]], figures: dict[str, Any]) -> str:
    """Return one page: of each form its pictures, or one row, and how far people agree."""
    parts = [HEAD]
    for name, some in rows.items():
        parts.append(f"<h2>{name}: {len(some)}</h2>")
        shown = [row for row in some if row.get("frames")][:12]
        for row in shown:
            words = html.escape(f"{row['procedure_description']} ({'mistake' if row['mistake'] else 'done'})")
            picture = f'<img alt="" src="{row["frames"][0]}">'
            parts.append(f"<figure>{picture}<figcaption>{words}</figcaption></figure>")
        parts += [_table(some[0])] if some and not shown else []
        parts += [_table(figures[name])] if name in figures else []
    return "\n".join(parts)


def _table(said: dict[str, Any]) -> str:
    cells = (
        (html.escape(key), html.escape(json.dumps(value, ensure_ascii=False))) for key, value in said.items()
    )
    return f"<table>{''.join(f'<tr><th>{key}<td>{value}' for key, value in cells)}</table>"
