"""What people think of own recordings, as the desk kept it: whether steps succeeded, how good questions are."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from statistics import mean
from typing import Any

from kitchensync.dataset.source.given_data import GivenData
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
