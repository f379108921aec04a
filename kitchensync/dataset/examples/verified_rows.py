"""Questions that people verified, with what they said: of own recordings, from their folders."""

from __future__ import annotations

from typing import cast

from kitchensync.dataset.grounding.object_questions import Question, steps_met
from kitchensync.dataset.measures.span_agreement import Prediction, SpanCase
from kitchensync.dataset.promqa.judge_agreement import agreement_of_judges
from kitchensync.dataset.promqa.questions import Example
from kitchensync.dataset.source.given_data import GivenData
from kitchensync.dataset.source.given_films import FILM
from kitchensync.storage.recording_files.annotation_folder import newest_judged

SOURCE, ABOUT_FILM = "KitchenSync", {"view": "Egocentric", "domain": "Cooking"}
PUBLISHED = (
    *("generation", "verification", "adjudication", "question", "question_approved_by", "answers"),
    *("answer_tags", "answer_approved_by", "answer_sources"),
)


def verified_rows(
    found: GivenData, rows: list[Example]
) -> tuple[list[Example], dict[str, dict[str, float | None]], list[str]]:
    """Return the examples that are valid with their verified answers; agreement; recordings with none verified.

    Agreement is that of the judges about all questions that were asked, the rejected ones too. Raises
    BadAnnotations, OSError.
    """
    said: dict[str, list[Example]] = {}
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
                said.setdefault(name.partition("#")[0], []).append(cast(Example, told))
    valid: list[Example] = [{**row, **one} for row in rows for one in said.get(row["question_id"], ())]
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
