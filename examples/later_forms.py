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
from check_frame_numbers import FRAME_S
from demo import DemoFailed, command, say

from kitchensync.virtual_kitchen.tablet import Desk, operation_id
from kitchensync.virtual_kitchen.world.frame_counter import number_in

FILM_LIMIT_S = 300.0
ADDED = "As the film shows."
RATED = 3
ALIKE, EVIDENCE_S, NEAR_S = 1e-6, 0.15, 0.05
"""How far figures, ends of evidence, and pictures may be from what was said, the latter two in seconds."""
BEFORE_ALL = -1
"""The step in front of all others, in ProMQA."""
HEAD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>What later data sets add</title><style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 } tr + tr { border-top: 1px solid #ddd }
th, td { padding: .2rem .8rem; text-align: left; vertical-align: top }
figure { display: inline-block; margin: .3rem; width: 20rem; vertical-align: top } img { width: 100% }
</style><h1>What later data sets add</h1>"""


@dataclass
class Expected:
    """What is to come out, by recording."""

    decided: dict[str, list[list[str]]] = field(default_factory=dict)
    "Of each step what three people said, in the order of steps."
    rated: dict[str, int] = field(default_factory=dict)
    "How many questions were rated: 1, 2 .. for relevance."
    answers: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    "The answers that hold, by the end of the question's id, behind that of the recording."
    evidence: dict[str, dict[str, float]] = field(default_factory=dict)
    "Up to which share of its clip the evidence reaches, by the end of the question's id."
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
        expected.rated[name] = _rate(people, f"{address}/opinions/ratings", f"{address}/opinions/decisions")
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
    while state["state"] not in ("ready", "failed", "absent") and time.monotonic() < limit_s:
        time.sleep(0.5)
        state = one.get(f"{address}/film")
    if state["state"] != "ready":
        raise DemoFailed(f"the small film is {state['state']}: {state.get('why', '')}")


def _decide(three: Sequence[Reviewer], address: str) -> list[list[str]]:
    """Each decides of each step whether it succeeded: nobody says no, then one, two, all three, nobody .."""
    three[0].post(f"{address}/assign", people=[one.id for one in three])
    three[0].post(f"{address}/ask")
    items = [item["item"] for item in three[0].get(address)["items"]]
    said = [["no" if n < k % 4 else "yes" for n in range(len(three))] for k in range(len(items))]
    for n, one in enumerate(three):
        for item, of_all in zip(items, said, strict=True):
            for question, answer in (("success", of_all[n]), ("confidence", "4")):
                one.act(address, answer={"item": item, "question": question, "answer": answer})
        one.post(f"{address}/submit")
    three[0].post(f"{address}/accept")
    return said


def _rate(five: Sequence[Reviewer], address: str, decided: str) -> int:
    """Rate questions about the first steps: the later one, the higher, by all alike; return how many."""
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
    return len(steps)


def _judge(three: Sequence[Reviewer], address: str) -> dict[str, set[str]]:
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
    standing = third.get(address)["standing"]
    said = {_behind(item["item"]): set(item["answers"]) for item in items}
    for k, item in enumerate(items[:2]):
        offered = len(standing[item["item"]]["candidates"])
        verdict = {"item": item["item"], "valid": True, "accepted": [k == 1] * offered, **ticks}
        third.act(f"{address}/rule", verdict=verdict | ({"added": [ADDED]} if k == 0 else {}))
    third.post(f"{address}/accept")
    return said | {_behind(item["item"]): {ADDED} for item in items[:1]}


def _behind(question: str) -> str:
    """Return what stands behind a recording's published id, `1_26`."""
    return question.split("_", 2)[2]


def _mark(three: Sequence[Reviewer], address: str, film: str) -> dict[str, float]:
    """Two mark: all of each clip; of one clip the second its first quarter, which the third takes."""
    first, second, third = three
    third.post(f"{address}/assign", people=[first.id, second.id])
    third.post(f"{address}/ask")
    fps = third.get(film)["facts"]["fps"]
    clips = {item["node"]: item for item in first.get(address)["questions"]}
    shares = {node: 0.25 if node == min(clips) else 1.0 for node in clips}
    for one, its in ((first, dict.fromkeys(clips, 1.0)), (second, shares)):
        for mark in one.get(address)["marks"]:
            clip, node = clips[mark["node"]], mark["node"]
            start, end = (round(clip[key] * fps[0] / fps[1]) for key in ("clip_start", "clip_end"))
            end = start + round((end - start) * its[node])
            one.act(address, edits=[mark | {"start": start + 1, "end": end - 2, "checked": ["start", "end"]}])
        one.post(f"{address}/submit")
    for item in third.get(address)["standing"]:
        if item["state"] == "to_rule":
            third.post(f"{address}/rule", item=item["item"], take="second")
    third.post(f"{address}/accept")
    return {_asked(clips[node]): share for node, share in shares.items()}


def _asked(question: dict[str, Any]) -> str:
    return str(question["question_id"]).removeprefix(question["recording"])


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
        "evidence": {"mean_iou": marked["mean_iou"]},
    }
    rows = {"opinions": opinions, "boundaries": boundaries, "questions": verified}
    (out / "later-forms.html").write_text(_page(rows | {"assembly": assembly, "evidence": evidence}, figures))
    return problems


def _wrong_opinions(rows: list[dict[str, Any]], agreement: Any, expected: Expected) -> list[str]:
    problems = []
    for name, said in expected.decided.items():
        ours = [row for row in rows if row["recording"] == name]
        decided = [sorted(row["success"]) for row in ours if row["kind"] == "decision"]
        if decided != [sorted(of_all) for of_all in said]:
            problems.append(f"export opinions: not what three people said of {name}")
        rated = [row["mean_relevance"] for row in ours if row["kind"] == "rating"]
        if rated != list(range(1, expected.rated[name] + 1)):
            problems.append(f"export opinions: relevance is {rated} in {name}")
    right = [(one == "no") is row["mistake"] for row in rows for one in row.get("success", ())]
    accuracy = agreement["decisions"]["success"]["mean_accuracy"]
    if not right or abs(accuracy - sum(right) / len(right)) > ALIKE:
        problems.append(f"export opinions: the accuracy is {accuracy}, another than by hand")
    return problems


def _wrong_pictures(rows: list[dict[str, Any]], out: Path) -> list[str]:
    """Read the number in each picture: it is that of the name and of the time, near the moment that is asked for."""
    wrong = [] if rows else ["export coherence: no example"]
    for row in rows:
        if len(row["frames"]) != 1:
            wrong.append(f"export coherence: {row['example_id']} has {len(row['frames'])} pictures")
            continue
        (name,), (at_s,) = row["frames"], row["frame_times"]
        number = number_in(cv2.imread(str(out / name), cv2.IMREAD_GRAYSCALE))
        if number is None:
            wrong.append(f"export coherence: {name} has no number")
        elif number != int(Path(name).stem):
            wrong.append(f"export coherence: {name} shows {number}")
        if (
            abs(int(Path(name).stem) * FRAME_S - at_s) > FRAME_S
            or abs(at_s - row["time"]) > NEAR_S + 2 * FRAME_S
        ):
            wrong.append(f"export coherence: {name} is of {at_s} s, for {row['time']} s")
    return wrong


def _wrong_answers(
    verified: list[dict[str, Any]], assembly: list[dict[str, Any]], agreement: Any, expected: Expected
) -> list[str]:
    problems, wanted = [], []
    for name, answers in expected.answers.items():
        rows = [row for row in verified if row["recording_id"] == name]
        found = {row["question_id"].removeprefix(f"{name}_"): set(row["answers"]) for row in rows}
        if found != answers:
            problems.append(f"export promqa: other answers than were judged right in {name}")
        begun = [row for row in rows if row["current_step"]["step_id"] != BEFORE_ALL]
        wanted += [(name, row["type"], *sorted(row["answers"])) for row in begun]
    records = [(one["sequence_id"], one["question_type"], *sorted(one["answers"])) for one in assembly]
    if sorted(records) != sorted(wanted):
        problems.append("export promqa --form assembly: other answers than were judged right")
    for one in assembly:
        if not (one["multimodal"] and 0 <= one["video"]["start"] < one["video"]["end"]):
            problems.append(f"export promqa --form assembly: {one['sequence_id']}: {one['video']}")
    pairs = sum(map(len, expected.answers.values()))
    equal = sum(one["questions"] * _count(verified, kind) for kind, one in agreement.items())
    if abs(equal - (pairs - len(expected.answers))) > ALIKE:
        problems.append(f"export promqa: judges agree on {equal} of {pairs} questions")
    return problems


def _count(rows: list[dict[str, Any]], kind: str) -> int:
    return sum(row["type"] == kind for row in rows)


def _wrong_evidence(rows: list[dict[str, Any]], expected: Expected) -> list[str]:
    problems = []
    for name, wanted in expected.evidence.items():
        found = {_asked(row): row for row in rows if row["recording"] == name}
        if found.keys() != wanted.keys():
            problems.append(f"export windows: other questions than were asked about {name}")
        for question, row in found.items():
            length_s = row["clip_end"] - row["clip_start"]
            ((start_s, end_s),) = row["evidence"]
            if max(abs(start_s), abs(end_s - length_s * wanted.get(question, 0))) > EVIDENCE_S:
                problems.append(f"export windows: {row['question_id']} has its evidence at {row['evidence']}")
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
