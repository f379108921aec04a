"""Read what people judged at the desk about own recordings: opinions, verified questions, marked evidence."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from statistics import mean
from typing import Any, cast

from kitchensync.dataset.grounding.object_questions import Question, overlapping_steps
from kitchensync.dataset.measures.span_agreement import Prediction, SpanCase
from kitchensync.dataset.promqa.judge_agreement import JudgeAgreement, agreement_of_judges
from kitchensync.dataset.promqa.questions import PromqaExample
from kitchensync.dataset.source.source_data import SourceData
from kitchensync.dataset.source.source_films import FILM
from kitchensync.storage.errors import BadAnnotations
from kitchensync.storage.recording_files.annotation_folder import FOLDER, newest_judged

KINDS = ("decisions", "ratings")
OF_ITEMS = ("share", "mean_accuracy", "majority_accuracy")
"""Figures of a recording that are means over its items; other figures describe the recording as a whole."""
Figures = dict[str, dict[str, float | None]]
"""By question: name of a figure, and the figure."""


def opinion_rows(source: SourceData) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Figures], list[str]]:
    """Return rows and agreement by kind of opinion, and the recordings without any opinion.

    The newest version of each recording counts. Raises BadAnnotations, OSError.
    """
    rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    figures: dict[str, list[tuple[int, Figures]]] = {kind: [] for kind in KINDS}
    without = []
    for recording, ready in source.own.items():
        kept = {kind: newest_judged(ready.path, kind) for kind in KINDS}
        if not any(kept.values()):
            without.append(recording)
        for kind, judged in kept.items():
            if judged is not None:
                try:
                    rows[kind] += [_row(recording, item, judged["answers"]) for item in judged["items"]]
                except (KeyError, TypeError, ValueError) as error:
                    raise BadAnnotations(ready.path / FOLDER, f"{kind} lack {error}") from error
                figures[kind].append((len(judged["items"]), judged["figures"]))
    return rows, {kind: pooled(listed) for kind, listed in figures.items() if listed}, without


def _row(recording: str, item: dict[str, Any], people: list[dict[str, dict[str, str]]]) -> dict[str, Any]:
    """Return all answers about an item; its ids are those of `export coherence` over the same recordings."""
    place, _, number = str(item["item"]).rpartition("_")[2].partition(".")
    replies = [person[item["item"]] for person in people if item["item"] in person]
    questions = replies[0] if replies else ()
    answers = {question: [reply[question] for reply in replies] for question in questions}
    row: dict[str, Any] = {"example_id": f"{recording}_{place}", "recording": recording}
    row |= {"procedure_description": item["text"], "from": item["from_s"], "to": item["end_s"]}
    hidden = item["hidden"]
    if number:
        row |= {"question": item["question"], "answer": item["answer"], "measured": hidden}
        scores = {question: [int(score) for score in given] for question, given in answers.items()}
        return row | scores | {f"mean_{question}": mean(given) for question, given in scores.items()}
    success = answers.get("success", [])
    pairs = list(combinations(success, 2))
    return row | {
        "mistake": hidden["success"] == "no",
        "success": success,
        "majority": next((vote for vote in set(success) if 2 * success.count(vote) > len(success)), None),
        "confidence": [int(score) for score in answers.get("confidence", ())],
        "share": sum(first == second for first, second in pairs) / len(pairs) if pairs else None,
    }


def pooled(figures: Iterable[tuple[int, Figures]]) -> Figures:
    """Pool the figures of recordings, each with its number of items, by question.

    Accuracies and shares are weighted by items; kappa and Spearman's correlations are means over recordings.
    """
    by_recording = list(figures)
    result: Figures = {}
    for question in dict.fromkeys(name for _, questions in by_recording for name in questions):
        of_question = [(items, qs[question]) for items, qs in by_recording if question in qs]
        result[question] = {}
        for name in dict.fromkeys(name for _, values in of_question for name in values):
            weighted = [
                (items if name in OF_ITEMS else 1, value)
                for items, values in of_question
                if (value := values.get(name)) is not None
            ]
            total = sum(weight for weight, _ in weighted)
            result[question][name] = sum(w * value for w, value in weighted) / total if total else None
    return result


SOURCE, ABOUT_FILM = "KitchenSync", {"view": "Egocentric", "domain": "Cooking"}
PUBLISHED = (
    *("generation", "verification", "adjudication", "question", "question_approved_by", "answers"),
    *("answer_tags", "answer_approved_by", "answer_sources"),
)


def verified_rows(
    source: SourceData, rows: list[PromqaExample]
) -> tuple[list[PromqaExample], dict[str, JudgeAgreement], list[str]]:
    """Return the valid examples with their verified answers; agreement; recordings without verified questions.

    Agreement is that of the judges about all judged questions, rejected questions included. Raises BadAnnotations,
    OSError.
    """
    verified: dict[str, list[PromqaExample]] = {}
    judged, without = [], []
    for recording, ready in source.own.items():
        kept = newest_judged(ready.path, "questions")
        if kept is None:
            without.append(recording)
        for question in kept["questions"] if kept else ():
            judged.append((question["type"], question["verification"]["judges"]))
            if question["valid"]:
                # A question id begins with the recording's id, which may have changed since.
                name = recording + str(question["question_id"]).removeprefix(str(question["recording_id"]))
                fields = {key: question[key] for key in PUBLISHED if key in question}
                fields |= {"question_id": name, "verification": question["verification"]}
                verified.setdefault(name.partition("#")[0], []).append(cast(PromqaExample, fields))
    valid: list[PromqaExample] = [
        {**row, **fields} for row in rows for fields in verified.get(row["question_id"], ())
    ]
    return valid, agreement_of_judges(judged), without


def evidence_rows(source: SourceData) -> tuple[list[Question], list[SpanCase], list[str]]:
    """Return the valid questions with evidence, keys as published; both passes of all; recordings without evidence.

    The passes are cases of `measure spans`: the first person's spans are the truth of the second. Raises
    BadAnnotations, OSError.
    """
    rows: list[Question] = []
    cases, without = list[SpanCase](), list[str]()
    for recording, ready in source.own.items():
        kept = newest_judged(ready.path, "evidence")
        if kept is None:
            without.append(recording)
        for question in kept["questions"] if kept else ():
            name = recording + str(question["question_id"]).removeprefix(str(question["recording"]))
            first, second = (marked["evidence"] for marked in question["passes"])
            predictions: dict[str, Prediction] = {"second": {"spans": second}}
            cases.append(
                {"question_id": name, "iou": question["iou"], "truth": first, "predictions": predictions}
            )
            if not question["valid"]:
                continue
            clip_s = question["clip_start"]
            spans_s = [(clip_s + start, clip_s + end) for start, end in question["evidence"]]
            row = {"id": len(rows), "video_path": FILM.format(recording), "source": SOURCE, **ABOUT_FILM}
            row |= {key: value for key, value in question.items() if key != "valid"}
            row |= {"recording": recording, "question_id": name}
            row["about"] = overlapping_steps(spans_s, question["spans"])
            rows.append(cast(Question, row))
    return rows, cases, without
