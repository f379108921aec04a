"""Evidence in a video for answers about objects: two people mark it independently for every question.

If both find a question not answerable, it is rejected. If both give the same answer and their evidence overlaps, the
overlap is accepted. Otherwise somebody else takes the pass of one of them, or neither.
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
from kitchensync.recipe_app.review.judged_answers import require_all_answered
from kitchensync.recipe_app.review.marks import StepEdit, StepMark, finished
from kitchensync.recipe_app.review.rounds import Review

EVIDENCE = Review("evidence", "mark_evidence", "submit_evidence", asks="exactly")
ASKED, RULED = "ask_evidence", "rule_evidence"
"""Kinds of the log: the chosen questions; which pass of a question was ruled to hold."""
AGREED_IOU = 0.5
"""Minimum overlap (intersection over union) of two passes that agree."""
MOST_QUESTIONS = 20
TAKE = ("first", "second")
Item = dict[str, Any]
"""A question, with its number in the video (`node`) and its name in the log (`item`)."""
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
    """Changes of one action: marks (`node` is the number of the question) and answers by question."""

    op_id: OpId
    edits: Annotated[list[StepEdit], Field(max_length=20)] = Field(default_factory=list)
    answers: Annotated[dict[QuestionId, OnScreen], Field(max_length=MOST_QUESTIONS)] = Field(
        default_factory=dict
    )


class EvidenceRuling(Strict):
    """A ruling on which pass of a question holds."""

    item: QuestionId
    take: Literal["first", "second", "neither"]


@dataclass(frozen=True, slots=True)
class Pass:
    """One person's answer and evidence: `spans` are [from, to) in frames, empty if the video shows no answer."""

    answer: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class RulingState:
    """The state of a question, the overlap of its passes, and the final answer."""

    state: Literal["accepted", "rejected", "to_rule"]
    iou: float
    holds: Pass | None = None


def initial_evidence(recording: str, items: Iterable[Item]) -> list[StepMark]:
    """Return the initial marks for everybody: one open mark per question."""
    names = ((item["node"], f"{recording} evidence {item['item']}") for item in items)
    digests = ((node, hashlib.sha256(name.encode()).hexdigest()) for node, name in names)
    marks = [StepEdit(mark=digest[:16], node=node).model_dump() for node, digest in digests]
    return cast("list[StepMark]", marks)


def evidence_answers(ops: Iterable[Op], actor: str, items: Iterable[Item]) -> dict[str, str]:
    """Return the answers of one person; the proposed answer where they changed none."""
    answers = {item["item"]: item["answer"] for item in items}
    for op in ops:
        if op["kind"] == EVIDENCE.edited and op["actor"] == actor:
            answers |= op["body"]["answers"]
    return answers


def require_evidence(
    marks: Sequence[StepMark], answers: Mapping[str, str], items: Sequence[Item], fps: Fraction
) -> None:
    """Raise NotNow unless every question has evidence inside its clip and an answer, or is not answerable."""
    remaining = 0
    for item in items:
        mine = [mark for mark in marks if mark["node"] == item["node"] and not mark["removed"]]
        first, last = clip_frames(item, fps)
        if any(not (first <= mark["start"] <= mark["end"] <= last) for mark in finished(mine)):
            raise NotNow("not submitted: evidence lies outside the clip of its question")
        remaining += not mine or not answers[item["item"]].strip()
    require_all_answered(remaining)


def clip_frames(item: Item, fps: Fraction) -> tuple[int, int]:
    """Return the first and the last frame of a question's clip."""
    return int(item["clip_start"] * fps), max(0, -int(-item["clip_end"] * fps // 1) - 1)


def pass_of(marks: Iterable[StepMark], answers: Mapping[str, str], item: Item) -> Pass:
    """Return one person's answer and evidence for a question."""
    mine = [mark for mark in marks if mark["node"] == item["node"]]
    is_answerable = not any(mark["missing"] for mark in mine)
    spans = merged((mark["start"], mark["end"] + 1) for mark in finished(mine) if is_answerable)
    return Pass(answers[item["item"]].strip(), tuple(spans))


def standing(passes: Sequence[Pass], ruled: str | None) -> RulingState:
    """Return the state of a question after both passes; a ruling counts only where they differ."""
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


def record_of(item: Item, passes: Sequence[Pass], ruling: RulingState, fps: Fraction) -> dict[str, Any]:
    """Return a question with its final answer, both passes and the evidence in seconds from the clip's start."""
    kept = {key: value for key, value in item.items() if key not in ("item", "node", "about")}
    both = [{"answer": each.answer, "evidence": _seconds(each, item, fps)} for each in passes]
    record = {**kept, "valid": ruling.holds is not None, "iou": ruling.iou, "passes": both}
    if ruling.holds is None:
        return record
    evidence = _seconds(ruling.holds, item, fps)
    label = reasoning([(start, end) for start, end in evidence])
    return {**record, "answer": ruling.holds.answer, "reasoning": label, "evidence": evidence}


def _seconds(evidence: Pass, item: Item, fps: Fraction) -> list[list[float]]:
    length_s = item["clip_end"] - item["clip_start"]
    times = ([float(at / fps) - item["clip_start"] for at in span] for span in evidence.spans)
    return [[round(min(max(at, 0.0), length_s), 3) for at in pair] for pair in times]
