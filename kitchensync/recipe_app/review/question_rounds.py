"""Questions about stopped films, verified by two judges and an adjudicator.

A judge says first whether the question is valid, then which answers are right, and may add answers. Both reject the
question: rejected. Both accept it: answers that both accept or reject are settled, of the others the adjudicator's
vote makes the majority, and answers that judges added are ruled on one by one. They differ about the question: the
adjudicator rules on it and on every answer. The adjudicator may add an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, Literal

from pydantic import Field

from kitchensync.operations.errors import BadOperation
from kitchensync.operations.operation_kinds import Line, Strict
from kitchensync.operations.session_state import Op
from kitchensync.recipe_app.review.rounds import Review

QUESTIONS = Review("questions", "judge_question", "submit_questions", asks="exactly")
ASKED, RULED = "ask_questions", "rule_question"
"""Kinds of the log: which questions there are; what the adjudicator says of one."""
MOST_ANSWERS, MOST_ADDED = 60, 10
MOST_OFFERED = MOST_ANSWERS - 2 * MOST_ADDED
"""Answers that a question may have before judges add some."""
QuestionForm = Literal["cooking", "assembly"]
CRITERIA = ("multimodal", "procedural")
"""What ProMQA-Assembly asks of a question beside whether it is valid."""

Item = dict[str, Any]
"""A question: `item`, `type`, `question`, `end_s`, `answers`, `sources` (answer -> list of who gave it),
`previous` (texts), `current`, `nodes`, `errors` (node -> categories), `example`."""
Votes = Annotated[list[bool], Field(max_length=MOST_ANSWERS)]


class QuestionVerdict(Strict):
    """What one person says of a question: `accepted` is of each answer, those that judges added behind the others.

    `multimodal` and `procedural` are asked in the form of ProMQA-Assembly alone.
    """

    item: Annotated[str, Field(max_length=120)]
    valid: bool
    accepted: Votes = Field(default_factory=list)
    added: Annotated[list[Line], Field(max_length=MOST_ADDED)] = Field(default_factory=list)
    answer_type: Literal["", "direct", "suggestion", "intervention"] = ""
    multimodal: bool = False
    procedural: bool = False

    def told(self, form: QuestionForm) -> dict[str, Any]:
        """Return it as it is kept with a question."""
        return {
            "question": self.valid,
            "answers": self.accepted,
            "comment": self.added,
            "answer_type": self.answer_type,
            **{criterion: getattr(self, criterion) for criterion in CRITERIA if form == "assembly"},
        }


@dataclass(frozen=True, slots=True)
class Decided:
    """How a question stands: `accepted`, `rejected` or `to_rule`; its answers and who gave each."""

    state: Literal["accepted", "rejected", "to_rule"]
    answers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


def verdicts_of(ops: Iterable[Op], kind: str, actor: str | None = None) -> dict[str, QuestionVerdict]:
    """Return the last word of a person, or of whoever ruled, on each question."""
    said = (op["body"] for op in ops if op["kind"] == kind and actor in (None, op["actor"]))
    return {one["item"]: QuestionVerdict.model_validate(one) for one in said}


def candidates(item: Item, judged: Sequence[QuestionVerdict]) -> list[tuple[str, str]]:
    """Return the answers of a question and who gave each, none twice, in an order that does not tell who."""
    found = dict.fromkeys(item["answers"], "machine")
    for one in judged:
        for text in one.added if one.valid else ():
            found.setdefault(text, "annotator")
    return [(text, found[text]) for text in shuffled(item["item"], found)]


def shuffled(item: str, answers: Iterable[str]) -> list[str]:
    """Return answers in an order that does not tell who gave them, for one question always the same."""
    return sorted(answers, key=lambda text: sha256(f"{item} {text}".encode()).digest())


def check_verdict(verdict: QuestionVerdict, item: Item | None, answers: int) -> None:
    """Raise BadOperation for a verdict on something else than was asked."""
    if item is None or len(verdict.accepted) not in ((answers,) if verdict.valid else (0, answers)):
        raise BadOperation("this was not asked; load the page again")


def decide(item: Item, judged: Sequence[QuestionVerdict], ruling: QuestionVerdict | None) -> Decided:
    """Return how a question stands by the table above."""
    valid = [one.valid for one in judged]
    if not any(valid):
        return Decided("rejected")
    agreed, votes = all(valid), _votes(item, judged)
    if ruling is None:
        settled = agreed and all(len(set(vote)) == 1 for vote in votes.values())
        if not settled or any(one.added for one in judged):
            return Decided("to_rule")
        kept = [text for text, vote in votes.items() if vote[0]]
        return Decided("accepted", tuple(kept), ("machine",) * len(kept))
    if not agreed and not ruling.valid:
        return Decided("rejected")
    found = []
    offered = candidates(item, judged)
    for (text, tag), own in zip(offered, ruling.accepted or [False] * len(offered), strict=True):
        all_votes = [*(votes[text] if agreed and tag == "machine" else []), own]
        if 2 * sum(all_votes) > len(all_votes):
            found.append((text, tag))
    held = {text for text, _ in found}
    found += [(text, "adjudicator") for text in dict.fromkeys(ruling.added) if text not in held]
    return Decided("accepted", tuple(text for text, _ in found), tuple(tag for _, tag in found))


def _votes(item: Item, judged: Sequence[QuestionVerdict]) -> dict[str, list[bool]]:
    valid = [one.accepted for one in judged if one.valid]
    return {text: [one[number] for one in valid] for number, text in enumerate(item["answers"])}


def record_of(
    item: Item, judged: Sequence[QuestionVerdict], ruling: QuestionVerdict | None, form: QuestionForm
) -> dict[str, Any]:
    """Return a question in the published fields: what was said, the answers that hold, who gave and approved each.

    What the adjudicator said is of `candidates`, in that order.
    """
    decided, agreed = decide(item, judged, ruling), all(one.valid for one in judged)
    accepted = {text for text, vote in _votes(item, judged).items() if agreed and all(vote)}
    offered = [text for text, _ in candidates(item, judged)]
    votes = {"candidates": offered, "answers": ruling.accepted or [False] * len(offered)} if ruling else {}
    valid, by_person = decided.state == "accepted", ("adjudicator", "annotator")
    return {
        **item["example"],
        "verification": {
            "question": item["question"],
            "answers": item["answers"],
            "judges": [one.told(form) for one in judged],
        },
        "adjudication": None if ruling is None else ruling.told(form) | votes,
        "question": item["question"],
        "question_approved_by": by_person[agreed] if valid else None,
        "answers": list(decided.answers),
        "answer_tags": list(decided.tags),
        "answer_approved_by": [by_person[text in accepted] for text in decided.answers],
        "answer_sources": item.get("sources", {}),
        "valid": valid,
    }
