"""Evidence in a film for answers about objects: two people mark it alone, each in every question.

Neither finds a question answerable: rejected. Both give the same answer and mark much the same moments: the moments
that both marked hold. Otherwise somebody else takes the pass of one of them, or neither.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from kitchensync.dataset.grounding.object_questions import reasoning
from kitchensync.dataset.measures.span_agreement import Span, agreement, common, merged
from kitchensync.operations.errors import NotNow
from kitchensync.operations.operation_kinds import OnScreen, OpId, Strict
from kitchensync.operations.session_state import Op
from kitchensync.recipe_app.review.judged_answers import require_none_left
from kitchensync.recipe_app.review.marks import StepEdit, StepMark, finished
from kitchensync.recipe_app.review.rounds import Review

EVIDENCE = Review("evidence", "mark_evidence", "submit_evidence", asks="exactly")
ASKED, RULED = "ask_evidence", "rule_evidence"
"""Kinds of the log: which questions there are; whose pass of one holds."""
AGREED_IOU = 0.5
"""Passes whose evidence overlaps less differ."""
MOST_QUESTIONS = 20
TAKE = ("first", "second")
Item = dict[str, Any]
"""A question, its number in the film (`node`) and its name in the log (`item`)."""
QuestionId = Annotated[str, Field(max_length=300)]


class GroundedQuestion(Strict):
    """A question as `export windows --questions` writes it."""

    question_id: QuestionId
    recording: Annotated[str, Field(max_length=200)]
    clip_start: Annotated[float, Field(ge=0, le=1e6)]
    clip_end: Annotated[float, Field(ge=0, le=1e6)]
    task: OnScreen
    qa_type: Annotated[str, Field(max_length=40)]
    question: OnScreen
    answer: OnScreen
    texts: Annotated[list[OnScreen], Field(min_length=1, max_length=1000)]
    spans: Annotated[list[tuple[float, float]], Field(max_length=1000)]
    about: Annotated[list[Annotated[int, Field(ge=0, le=1000)]], Field(max_length=1000)]
    checks: dict[str, Any] = Field(default_factory=dict)


class EvidenceEdits(Strict):
    """What one action changed: marks, whose `node` is the number of their question, and answers by question."""

    op_id: OpId
    edits: Annotated[list[StepEdit], Field(max_length=20)] = Field(default_factory=list)
    answers: Annotated[dict[QuestionId, OnScreen], Field(max_length=MOST_QUESTIONS)] = Field(
        default_factory=dict
    )


class EvidenceRuling(Strict):
    """Whose pass of a question holds."""

    item: QuestionId
    take: Literal["first", "second", "neither"]


@dataclass(frozen=True, slots=True)
class Pass:
    """What one person says of a question: `spans` are [from, to) in pictures; none where the film does not tell."""

    answer: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class RulingState:
    """How a question stands, how far the passes overlap, and what holds."""

    state: Literal["accepted", "rejected", "to_rule"]
    iou: float
    holds: Pass | None = None


def given_evidence(recording: str, items: Iterable[Item]) -> list[StepMark]:
    """Return what everybody begins with: one mark in each question, nothing of it known."""
    names = ((one["node"], f"{recording} evidence {one['item']}") for one in items)
    digests = ((node, hashlib.sha256(name.encode()).hexdigest()) for node, name in names)
    marks = [StepEdit(mark=digest[:16], node=node).model_dump() for node, digest in digests]
    return cast("list[StepMark]", marks)


def answers_given(ops: Iterable[Op], actor: str, items: Iterable[Item]) -> dict[str, str]:
    """Return the answers of one person: those that were asked about where they changed none."""
    found = {one["item"]: one["answer"] for one in items}
    for op in ops:
        if op["kind"] == EVIDENCE.edited and op["actor"] == actor:
            found |= op["body"]["answers"]
    return found


def require_evidence(
    marks: Sequence[StepMark], answers: Mapping[str, str], items: Sequence[Item], fps: Fraction
) -> None:
    """Raise NotNow unless every question has evidence inside its clip and an answer, or is not answerable."""
    left = 0
    for item in items:
        mine = [mark for mark in marks if mark["node"] == item["node"] and not mark["removed"]]
        first, last = clip_pictures(item, fps)
        if any(not (first <= mark["start"] <= mark["end"] <= last) for mark in finished(mine)):
            raise NotNow("not submitted: evidence lies outside the clip of its question")
        left += not mine or not answers[item["item"]].strip()
    require_none_left(left)


def clip_pictures(item: Item, fps: Fraction) -> tuple[int, int]:
    """Return the first and the last picture of a question's clip."""
    return int(item["clip_start"] * fps), max(0, -int(-item["clip_end"] * fps // 1) - 1)


def pass_of(marks: Iterable[StepMark], answers: Mapping[str, str], item: Item) -> Pass:
    """Return what one person says of a question."""
    mine = [mark for mark in marks if mark["node"] == item["node"]]
    is_told = not any(mark["missing"] for mark in mine)
    spans = merged((mark["start"], mark["end"] + 1) for mark in finished(mine) if is_told)
    return Pass(answers[item["item"]].strip(), tuple(spans))


def standing(passes: Sequence[Pass], ruled: str | None) -> RulingState:
    """Return how a question stands after both passes; where they agree nobody rules."""
    first, second = passes
    iou = agreement(first.spans, second.spans)["iou"]
    if not (first.spans or second.spans):
        return RulingState("rejected", iou)
    if first.answer == second.answer and iou >= AGREED_IOU:
        both = merged(common(first.spans, second.spans))
        return RulingState("accepted", iou, Pass(first.answer, tuple(both)))
    if ruled is None:
        return RulingState("to_rule", iou)
    if ruled == "neither":
        return RulingState("rejected", iou)
    return RulingState("accepted", iou, passes[TAKE.index(ruled)])


def record_of(item: Item, passes: Sequence[Pass], found: RulingState, fps: Fraction) -> dict[str, Any]:
    """Return a question with its answer and evidence, seconds from the clip's start, and what each person said."""
    kept = {key: value for key, value in item.items() if key not in ("item", "node", "about")}
    told = [{"answer": one.answer, "evidence": _seconds(one, item, fps)} for one in passes]
    said = {**kept, "valid": found.holds is not None, "iou": found.iou, "passes": told}
    if found.holds is None:
        return said
    evidence = _seconds(found.holds, item, fps)
    label = reasoning([(start, end) for start, end in evidence])
    return {**said, "answer": found.holds.answer, "reasoning": label, "evidence": evidence}


def _seconds(one: Pass, item: Item, fps: Fraction) -> list[list[float]]:
    length_s = item["clip_end"] - item["clip_start"]
    times = ([float(at / fps) - item["clip_start"] for at in span] for span in one.spans)
    return [[round(min(max(at, 0.0), length_s), 3) for at in pair] for pair in times]
