"""Errors of a recording: judged and marked on the video independently, compared, ruled on, saved."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Annotated, Any

from kitchensync.operations.errors import NotNow
from kitchensync.operations.operation_kinds import OpId, Strict
from kitchensync.operations.reduce import reduce_log
from kitchensync.recipe_app.film_jobs import HEIGHTS
from kitchensync.recipe_app.review.error_moments import (
    REQUIRED,
    GivenMoment,
    Moments,
    agreement_of_moments,
    check_moment,
    moments_of,
    settled_moments,
)
from kitchensync.recipe_app.review.judged_answers import (
    ERRORS,
    Answers,
    GivenAnswer,
    agreement_of_answers,
    answers_of,
    count_unanswered,
    require_all_answered,
    settled,
)
from kitchensync.recipe_app.review.marks import STEPS
from kitchensync.recipe_app.review.rounds import round_of
from kitchensync.recipe_app.web.door.access import JsonObject
from kitchensync.recipe_app.web.judging.review_routes import RecordingWork, on_recording, routes

BEGIN = on_recording(ERRORS.review)
Begun = Annotated[RecordingWork, BEGIN]
Items = dict[str, Any]
SHOWN = ("error_id", "node", "planned", "categories", "expected", "actual", "text", "description", "outcome")


class JudgedError(Strict):
    """One answer about an error, or one moment of it."""

    op_id: OpId
    answer: GivenAnswer | GivenMoment


def _items(work: RecordingWork) -> Items:
    """Return the errors by id. Raises NotNow for somebody who still marks the steps."""
    if round_of(work.ops, STEPS).is_still_working(work.actor):
        raise NotNow("mark the steps of this recording first: who knows its errors looks for them")
    state = reduce_log(work.ops)
    words = state["recording"]["steps"]
    # A touch's time bound in the video is the sum of the tablet clock's bound and the alignment's, in seconds.
    uncertain_s = {op["host_ns"]: op["uncertainty_ns"] / 1e9 for op in work.ops}
    facts = _film(work) or {"touches": []}
    doubts_s = ((touch["ended_ns"], touch["doubt"] / Fraction(*facts["fps"])) for touch in facts["touches"])
    aligned_s = [float(doubt_s) - uncertain_s.get(host_ns, 0.0) for host_ns, doubt_s in doubts_s]
    alignment_s = max(0.0, min(aligned_s, default=0.0))
    return {
        error["error_id"]: {key: error.get(key) for key in SHOWN}
        | {"step": words[str(error["node"])]["text"] if str(error["node"]) in words else ""}
        | {"tablet_ns": error["at"], "tablet_bound_s": uncertain_s.get(error["at"] or 0, 0.0) + alignment_s}
        for error in state["errors"].values()
        if not error["removed"]
    }


def _film(work: RecordingWork) -> dict[str, Any] | None:
    return work.tools.films.state(work.folder, HEIGHTS[0]).get("facts")


def _left(work: RecordingWork, items: Items) -> int:
    """Count the open questions and moments; without the small video no moment can be marked."""
    answers, marked = work.mine(answers_of), work.mine(moments_of)
    remaining = count_unanswered(answers, items, ERRORS)
    if _film(work):
        happened = [item for item in items if answers.get(item, {}).get("verdict") == "happened"]
        remaining += sum(moment not in marked.get(item, {}) for item in happened for moment in REQUIRED)
    return remaining


def _page_state(work: RecordingWork, items: Items) -> dict[str, Any]:
    return {
        "errors": list(items.values()),
        "questions": ERRORS.questions,
        "mine": work.mine(answers_of),
        "moments": work.mine(moments_of),
        "left": _left(work, items),
        "people": {person: done.is_submitted for person, done in work.round.people.items()},
    }


def _compared(work: RecordingWork, items: Items) -> dict[str, Any]:
    people = work.of_everybody(answers_of)
    final, disputed = settled(people, answers_of(work.ops, ERRORS.ruled), items, ERRORS)
    marked, ruled, fps = _marked(work)
    moments, disputed_moments = settled_moments(marked, ruled, final, items, fps)
    return {
        "agreement": agreement_of_answers(people, list(items), ERRORS),
        "agreement_of_moments": agreement_of_moments(marked, items, fps),
        "final": final,
        "final_moments": moments,
        "disputed": [
            {"item": item, "question": question} for item, question in [*disputed, *disputed_moments]
        ],
        "answers": list(people.values()),
        "marked": marked,
    }


def _marked(work: RecordingWork) -> tuple[list[Moments], Moments, Fraction]:
    """Return the moments of each person, those that were ruled, and the video's rate. Raises NotNow."""
    marked, ruled = [*work.of_everybody(moments_of).values()], moments_of(work.ops, ERRORS.ruled)
    is_any = any((ruled, *marked))  # the rate does not matter where nothing was marked
    return marked, ruled, Fraction(*work.facts()["fps"]) if is_any else Fraction(1)


def _accepted(work: RecordingWork, items: Items) -> dict[str, Any]:
    comparison = _compared(work, items)
    if comparison["disputed"]:
        raise NotNow("{count} answers differ and were not ruled on yet", count=len(comparison["disputed"]))
    errors = [item | _accepted_error(work, name, comparison) for name, item in items.items()]
    content = {"source": "reviewer", "errors": errors, "answers": comparison["answers"]}
    if comparison["final_moments"]:
        facts = work.facts()
        content |= {"fps": str(Fraction(*facts["fps"])), "frames": facts["frames"]}
    return content


def _accepted_error(work: RecordingWork, item: str, comparison: dict[str, Any]) -> dict[str, Any]:
    """Return the final answers and moments of an error, frames counted from 1, and which were ruled."""
    judged, moments = comparison["final"][item], comparison["final_moments"].get(item, {})
    by_ruling: Iterable[Answers | Moments] = (
        answers_of(work.ops, ERRORS.ruled),
        moments_of(work.ops, ERRORS.ruled),
    )
    return {
        "judged": judged,
        "moments": {moment: None if frame is None else frame + 1 for moment, frame in moments.items()},
        "ruled": [name for ruled in by_ruling for name in ruled.get(item, {}) if name in judged | moments],
    }


def judge(work: Begun, body: JudgedError) -> JsonObject:
    """Save one answer or one moment."""
    items = _items(work)
    work.round.require_open(work.actor)
    return _keep(work, body, ERRORS.review.edited, items, work.mine(moments_of))


def rule_error(work: Begun, body: JudgedError) -> JsonObject:
    """Save the ruling on an answer or a moment on which people differ; those who judged may not rule."""
    items = _items(work)
    work.round.require_ruler(work.actor)
    marked, ruled, fps = _marked(work)
    return _keep(work, body, ERRORS.ruled, items, settled_moments(marked, ruled, {}, items, fps)[0])


def _keep(work: RecordingWork, body: JudgedError, kind: str, items: Items, marked: Moments) -> dict[str, Any]:
    answer = body.answer
    if isinstance(answer, GivenMoment):
        check_moment(answer, items, marked, work.facts()["frames"])
    else:
        ERRORS.check(answer.question, answer.answer, answer.item, items)
    work.keep(kind, answer.model_dump(), body.op_id)
    return {"item": answer.item}


ROUTES = routes(
    "errors",
    "desk/judge_errors.html",
    BEGIN,
    counted="errors",
    items=_items,
    page_state=_page_state,
    compared=_compared,
    require_done=lambda work, items: require_all_answered(_left(work, items)),
    accepted=_accepted,
    judge=judge,
    rule=rule_error,
)
