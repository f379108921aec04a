"""Questions about stopped videos, verified by two judges and an adjudicator.

A judge decides whether the question is valid, then which answers are right, and may add answers. If both judges
reject the question, it is rejected. If both accept it, answers they agree on are settled, the adjudicator's vote
decides the others, and the adjudicator rules on each added answer. If they differ about the question, the adjudicator
rules on it and on every answer. The adjudicator may add an answer.
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
"""Kinds of the log: the chosen questions; the adjudicator's verdict on a question."""
MOST_ANSWERS, MOST_ADDED = 60, 10
MOST_OFFERED = MOST_ANSWERS - 2 * MOST_ADDED
"""Maximum number of answers of a question before judges add some."""
QuestionForm = Literal["cooking", "assembly"]
CRITERIA = ("multimodal", "procedural")
"""What ProMQA-Assembly asks about a question besides its validity."""

Item = dict[str, Any]
"""A question: `item`, `type`, `question`, `end_s`, `answers`, `sources` (answer -> its sources),
`previous` (texts), `current`, `nodes`, `errors` (node -> categories), `example`."""
Votes = Annotated[list[bool], Field(max_length=MOST_ANSWERS)]


class QuestionVerdict(Strict):
    """One person's verdict: `accepted` has a vote per answer, answers that judges added last.

    `multimodal` and `procedural` are asked only in the form of ProMQA-Assembly.
    """

    item: Annotated[str, Field(max_length=120)]
    valid: bool
    accepted: Votes = Field(default_factory=list)
    added: Annotated[list[Line], Field(max_length=MOST_ADDED)] = Field(default_factory=list)
    answer_type: Literal["", "direct", "suggestion", "intervention"] = ""
    multimodal: bool = False
    procedural: bool = False

    def as_kept(self, form: QuestionForm) -> dict[str, Any]:
        """Return the verdict as it is saved with a question."""
        return {
            "question": self.valid,
            "answers": self.accepted,
            "comment": self.added,
            "answer_type": self.answer_type,
            **{criterion: getattr(self, criterion) for criterion in CRITERIA if form == "assembly"},
        }


@dataclass(frozen=True, slots=True)
class Decided:
    """The state of a question, its final answers and the source of each."""

    state: Literal["accepted", "rejected", "to_rule"]
    answers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


def verdicts_of(ops: Iterable[Op], kind: str, actor: str | None = None) -> dict[str, QuestionVerdict]:
    """Return the last verdict on each question, of a person or of whoever ruled."""
    bodies = (op["body"] for op in ops if op["kind"] == kind and actor in (None, op["actor"]))
    return {body["item"]: QuestionVerdict.model_validate(body) for body in bodies}


def candidates(item: Item, judged: Sequence[QuestionVerdict]) -> list[tuple[str, str]]:
    """Return the distinct answers of a question with their source, in an order that does not reveal the source."""
    sources = dict.fromkeys(item["answers"], "machine")
    for verdict in judged:
        for text in verdict.added if verdict.valid else ():
            sources.setdefault(text, "annotator")
    return [(text, sources[text]) for text in shuffled(item["item"], sources)]


def shuffled(item: str, answers: Iterable[str]) -> list[str]:
    """Return answers in an order that does not reveal their source, always the same for a question."""
    return sorted(answers, key=lambda text: sha256(f"{item} {text}".encode()).digest())


def check_verdict(verdict: QuestionVerdict, item: Item | None, answers: int) -> None:
    """Raise BadOperation for an unknown question or a wrong number of votes."""
    if item is None or len(verdict.accepted) not in ((answers,) if verdict.valid else (0, answers)):
        raise BadOperation("this was not asked; load the page again")


def decide(item: Item, judged: Sequence[QuestionVerdict], ruling: QuestionVerdict | None) -> Decided:
    """Return the state of a question by the rules in the module's docstring."""
    valid = [verdict.valid for verdict in judged]
    if not any(valid):
        return Decided("rejected")
    agreed, votes = all(valid), _votes(item, judged)
    if ruling is None:
        settled = agreed and all(len(set(vote)) == 1 for vote in votes.values())
        if not settled or any(verdict.added for verdict in judged):
            return Decided("to_rule")
        kept = [text for text, vote in votes.items() if vote[0]]
        return Decided("accepted", tuple(kept), ("machine",) * len(kept))
    if not agreed and not ruling.valid:
        return Decided("rejected")
    kept_answers = []
    offered = candidates(item, judged)
    for (text, tag), own in zip(offered, ruling.accepted or [False] * len(offered), strict=True):
        all_votes = [*(votes[text] if agreed and tag == "machine" else []), own]
        if 2 * sum(all_votes) > len(all_votes):
            kept_answers.append((text, tag))
    held = {text for text, _ in kept_answers}
    kept_answers += [(text, "adjudicator") for text in dict.fromkeys(ruling.added) if text not in held]
    return Decided("accepted", tuple(text for text, _ in kept_answers), tuple(tag for _, tag in kept_answers))


def _votes(item: Item, judged: Sequence[QuestionVerdict]) -> dict[str, list[bool]]:
    valid = [votes.accepted for votes in judged if votes.valid]
    return {text: [votes[number] for votes in valid] for number, text in enumerate(item["answers"])}


def record_of(
    item: Item, judged: Sequence[QuestionVerdict], ruling: QuestionVerdict | None, form: QuestionForm
) -> dict[str, Any]:
    """Return a question in the published fields: verdicts, final answers, and who gave and approved each.

    The adjudicator's votes are in the order of `candidates`.
    """
    decided, agreed = decide(item, judged, ruling), all(verdict.valid for verdict in judged)
    accepted = {text for text, vote in _votes(item, judged).items() if agreed and all(vote)}
    offered = [text for text, _ in candidates(item, judged)]
    votes = {"candidates": offered, "answers": ruling.accepted or [False] * len(offered)} if ruling else {}
    valid, by_person = decided.state == "accepted", ("adjudicator", "annotator")
    return {
        **item["example"],
        "verification": {
            "question": item["question"],
            "answers": item["answers"],
            "judges": [verdict.as_kept(form) for verdict in judged],
        },
        "adjudication": None if ruling is None else ruling.as_kept(form) | votes,
        "question": item["question"],
        "question_approved_by": by_person[agreed] if valid else None,
        "answers": list(decided.answers),
        "answer_tags": list(decided.tags),
        "answer_approved_by": [by_person[text in accepted] for text in decided.answers],
        "answer_sources": item.get("sources", {}),
        "valid": valid,
    }
