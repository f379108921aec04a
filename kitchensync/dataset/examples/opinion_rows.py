"""What people think of own recordings, as the desk kept it: opinions on steps and questions, verified questions."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from statistics import mean
from typing import Any, cast

from kitchensync.dataset.grounding.object_questions import Question, steps_met
from kitchensync.dataset.measures.span_agreement import Prediction, SpanCase
from kitchensync.dataset.promqa.judge_agreement import agreement_of_judges
from kitchensync.dataset.promqa.questions import PromqaExample
from kitchensync.dataset.source.given_data import GivenData
from kitchensync.dataset.source.given_films import FILM
from kitchensync.storage.errors import BadAnnotations
from kitchensync.storage.recording_files.annotation_folder import FOLDER, newest_judged

KINDS = ("decisions", "ratings")
OF_ITEMS = ("share", "mean_accuracy", "majority_accuracy")
"""Figures of a recording that are means over its items; the others are of a recording as a whole."""
Row = dict[str, Any]


def opinion_rows(found: GivenData) -> tuple[dict[str, list[Row]], dict[str, dict[str, Any]], list[str]]:
    """Return rows and agreement by kind of opinion, and the recordings of which nobody thought anything.

    Of the newest that was kept of each recording. Raises BadAnnotations, OSError.
    """
    rows: dict[str, list[Row]] = {kind: [] for kind in KINDS}
    figures: dict[str, list[tuple[int, Row]]] = {kind: [] for kind in KINDS}
    without = []
    for recording, ready in found.own.items():
        kept = {kind: newest_judged(ready.path, kind) for kind in KINDS}
        if not any(kept.values()):
            without.append(recording)
        for kind, one in kept.items():
            if one is not None:
                try:
                    rows[kind] += [_row(recording, item, one["answers"]) for item in one["items"]]
                except (KeyError, TypeError, ValueError) as error:
                    raise BadAnnotations(ready.path / FOLDER, f"{kind} lack {error}") from error
                figures[kind].append((len(one["items"]), one["figures"]))
    return rows, {kind: pooled(some) for kind, some in figures.items() if some}, without


def _row(recording: str, item: Row, people: list[dict[str, dict[str, str]]]) -> Row:
    """Return what all said of an item; its ids are those of `export coherence` over the same recordings."""
    place, _, number = str(item["item"]).rpartition("_")[2].partition(".")
    said = [one[item["item"]] for one in people if item["item"] in one]
    answers = {question: [one[question] for one in said] for question in (said[0] if said else ())}
    row: Row = {"example_id": f"{recording}_{place}", "recording": recording}
    row |= {"procedure_description": item["text"], "from": item["from_s"], "to": item["end_s"]}
    hidden = item["hidden"]
    if number:
        row |= {"question": item["question"], "answer": item["answer"], "measured": hidden}
        scores = {question: [int(one) for one in all_] for question, all_ in answers.items()}
        return row | scores | {f"mean_{question}": mean(all_) for question, all_ in scores.items()}
    success = answers.get("success", [])
    pairs = list(combinations(success, 2))
    return row | {
        "mistake": hidden["success"] == "no",
        "success": success,
        "majority": next((one for one in set(success) if 2 * success.count(one) > len(success)), None),
        "confidence": [int(one) for one in answers.get("confidence", ())],
        "share": sum(one == other for one, other in pairs) / len(pairs) if pairs else None,
    }


def pooled(figures: Iterable[tuple[int, Row]]) -> dict[str, Any]:
    """Return figures over recordings from those of each and its number of items, by question.

    Accuracies and shares count each item once; kappa and Spearman's correlations are means over recordings.
    """
    of_all = list(figures)
    found: dict[str, Any] = {}
    for question in dict.fromkeys(name for _, one in of_all for name in one):
        told = [(items, one[question]) for items, one in of_all if question in one]
        found[question] = {}
        for name in dict.fromkeys(name for _, one in told for name in one):
            known = [(items if name in OF_ITEMS else 1, one.get(name)) for items, one in told]
            known = [(weight, value) for weight, value in known if value is not None]
            whole = sum(weight for weight, _ in known)
            found[question][name] = sum(w * value for w, value in known) / whole if whole else None
    return found


SOURCE, ABOUT_FILM = "KitchenSync", {"view": "Egocentric", "domain": "Cooking"}
PUBLISHED = (
    *("generation", "verification", "adjudication", "question", "question_approved_by", "answers"),
    *("answer_tags", "answer_approved_by", "answer_sources"),
)


def verified_rows(
    found: GivenData, rows: list[PromqaExample]
) -> tuple[list[PromqaExample], dict[str, dict[str, float | None]], list[str]]:
    """Return the examples that are valid with their verified answers; agreement; recordings with none verified.

    Agreement is that of the judges about all questions that were asked, the rejected ones too. Raises
    BadAnnotations, OSError.
    """
    said: dict[str, list[PromqaExample]] = {}
    judged, without = [], []
    for recording, ready in found.own.items():
        kept = newest_judged(ready.path, "questions")
        if kept is None:
            without.append(recording)
        for one in kept["questions"] if kept else ():
            judged.append((one["type"], one["verification"]["judges"]))
            if one["valid"]:
                # What stands behind the recording in its id, which each release gives anew.
                name = recording + str(one["question_id"]).removeprefix(str(one["recording_id"]))
                told = {"question_id": name} | {key: one[key] for key in PUBLISHED if key in one}
                told["verification"] = one["verification"]
                said.setdefault(name.partition("#")[0], []).append(cast(PromqaExample, told))
    valid: list[PromqaExample] = [{**row, **one} for row in rows for one in said.get(row["question_id"], ())]
    return valid, agreement_of_judges(judged), without


def evidence_rows(found: GivenData) -> tuple[list[Question], list[SpanCase], list[str]]:
    """Return the questions with evidence that hold, keys as published; both passes of all; recordings without any.

    The passes are cases of `measure spans`: what the first person marked is the truth of the second. Raises
    BadAnnotations, OSError.
    """
    rows: list[Question] = []
    cases, without = list[SpanCase](), list[str]()
    for recording, ready in found.own.items():
        kept = newest_judged(ready.path, "evidence")
        if kept is None:
            without.append(recording)
        for one in kept["questions"] if kept else ():
            name = recording + str(one["question_id"]).removeprefix(str(one["recording"]))
            first, second = (told["evidence"] for told in one["passes"])
            predictions: dict[str, Prediction] = {"second": {"spans": second}}
            cases.append({"question_id": name, "iou": one["iou"], "truth": first, "predictions": predictions})
            if not one["valid"]:
                continue
            place = {"id": len(rows), "video_path": FILM.format(recording), "source": SOURCE, **ABOUT_FILM}
            said = {key: value for key, value in one.items() if key != "valid"}
            marked = [(one["clip_start"] + start, one["clip_start"] + end) for start, end in one["evidence"]]
            ours = {"recording": recording, "question_id": name, "about": steps_met(marked, one["spans"])}
            rows.append(cast(Question, place | said | ours))
    return rows, cases, without
