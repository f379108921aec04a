"""The message catalogues: every language has every message, with the same values; nothing is unused or missing."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import pytest

from kitchensync.operations.reduce import PHASES
from kitchensync.recipe_app.cooking.checklist import ITEMS
from kitchensync.recipe_app.cooking.steering import Action
from kitchensync.recipe_app.exchange.desk_batches import VERBS
from kitchensync.recipe_app.people.roles import ROLES
from kitchensync.recipe_app.review.drawn_graphs import MEASURES
from kitchensync.recipe_app.review.judged_answers import ERRORS
from kitchensync.recipe_app.review.opinions import OPINIONS
from kitchensync.recipe_app.review.question_rounds import CRITERIA
from kitchensync.recipe_app.study.study_progress import DIMENSIONS, STAGES
from kitchensync.recipe_app.web.desk.pages import NAMED_KINDS
from kitchensync.recipe_app.web.i18n import (
    LANGUAGES,
    ONLY_IN_TEMPLATES,
    PSEUDO,
    Words,
    catalogue,
    choose_language,
)
from kitchensync.recipe_app.web.judging.work_page import SHOWN, WHAT
from kitchensync.storage.consent import Scope
from kitchensync.storage.recording_files.annotation_forms import MOMENTS
from kitchensync.task_graphs.text.plain_lines import LINE_KINDS

ROOM = Path(__file__).resolve().parents[2] / "kitchensync" / "recipe_app"
SOURCES = [*ROOM.glob("static/**/*.js"), *ROOM.glob("templates/**/*.html")]
FAMILIES = {
    "op": NAMED_KINDS,
    "op.capture": get_args(Action),
    "steps.do": ("play", "right", "next", "set", "begin", "missing", "remove", "undo"),
    "work.show": SHOWN,
    "work.state": ("unasked", "open", "ruling", "done"),
    "work.ask": tuple(WHAT),
    "facts": ["gender", "hand"],
    "facts.gender": ["woman", "man", "other"],
    "facts.hand": ["right", "left", "both"],
    "coverage": [*DIMENSIONS, *STAGES],
    "batch": ["unknown", "no_folder", "withdrawn"],
    "batch.state": ["waiting", "held", "doing", "done", "failed", "refused"],
    "batch.verb": [*VERBS, "export", "consents", "recipes"],
    "recipes.sort": ["title", "steps", "orders"],
    "category": [f"{n}{more}" for n in range(8) for more in ("", ".hint")],
    "check": [item.name for item in ITEMS],
    "checklist": ["person", "room", "devices"],
    "consent.lacks": ["annotate", "release_raw"],
    "consent.scope": list(Scope),
    "cooking": ["dark", "light"],
    "device": ["headset", "camera", "sensor"],
    "display": [f"{name}{more}" for name in ("steps", "paragraph", "hidden") for more in ("", ".hint")],
    "doctor": [
        f"{n}{m}"
        for n in ("secure", "storage", "worker", "wake", "microphone", "clock")
        for m in ("", ".fix")
    ],
    "doctor.install": ["android", "ios", "linux"],
    "field": [
        *("text", "description", "categories", "outcome", "outcome_note", "removed", "before"),
        *("language", "at", "intent", "noticed", "corrected_by"),
    ],
    "intent": ["on_purpose", "by_accident"],
    "noticed": ["at_once", "later", "somebody_else", "not"],
    "health": ["recording", "starting", "stopped", "problem", "unknown", "standalone"],
    "instructions": ["normal", "impromptu", "disordered", "induced"],
    "judge": [*ERRORS.questions, *{answer for answers in ERRORS.questions.values() for answer in answers}],
    "judge.moment": MOMENTS,
    "judge.timestamp": ["tablet", "step_start", "step_end"],
    "questions.criterion": ["valid", *CRITERIA],
    "questions.node": ["done", "next", "missing"],
    "questions": ["direct", "suggestion", "intervention", "accepted", "rejected", "to_rule"],
    "evidence": ["first", "second", "neither", "accepted", "rejected", "to_rule"],
    "line": LINE_KINDS,
    "outcome": ["as_planned", "differently", "not_done", "missing.as_planned", "missing.not_done"],
    "phase": list(PHASES),
    "plan.empty": ["impromptu", "disordered", "induced"],
    "graphs": [*MEASURES, "precision", "recall", "f1"],
    "opinions": [
        *(f"{more}{kind}" for kind in OPINIONS for more in ("", "who.")),
        *(question for kind in OPINIONS.values() for question in kind.questions),
        *("share", "kappa", "mean_accuracy", "majority_accuracy", "spearman", "spearman_measured"),
    ],
    "prepare": ["normal", "impromptu", "disordered", "induced"],
    "recipe": ["order", "paragraph"],
    "recipes.form": ["txt", "cook", "json"],
    "room": [
        f"{action}{more}"
        for action in ("stop", "abort", "mark", "pause", "resume", "swap", "swapped", "leave_films")
        for more in ("", ".done")
    ],
    "role": [f"{name}{more}" for name in ROLES for more in ("", ".hint")],
    "side": ["original", "planned", "done"],
    "stages": ["choose", "prepare", "follow", "review"],
    "step": ["waiting", "open", "held", "done", "skipped", "stopped"],
    "list.sort": ["newest", "oldest", "recipe", "errors"],
    "training.before": ["recipe", "skill"],
    "strategy": [
        "published",
        *(f"{n}{m}" for n in ("normal", "impromptu", "disordered", "induced") for m in ("", ".hint")),
    ],
}


def texts(message: Any) -> list[str]:
    return list(message.values()) if isinstance(message, dict) else [message]


def values(message: Any) -> set[str]:
    return set(chain.from_iterable(re.findall(r"\{([a-z_]+)\}", text) for text in texts(message)))


@pytest.mark.parametrize("language", [*LANGUAGES, PSEUDO])
def test_every_language_says_the_same_things(language: str) -> None:
    english, other = catalogue("en"), catalogue(language)
    assert english.keys() == other.keys()
    for key, message in english.items():
        assert values(other[key]) == values(message), key
        assert isinstance(other[key], dict) == isinstance(message, dict), key
        assert all(text.strip() for text in texts(other[key])), key


def test_what_pages_and_scripts_say_is_in_the_catalogue_and_nothing_else() -> None:
    said = set()
    for path in SOURCES:
        text = path.read_text()
        said |= set(re.findall(r'"((?:[a-z_]+\.)+[a-z_]+)"', text))
        said |= set(re.findall(r"\bt\([\"']([a-z_.]+)[\"']", text))
    known = set(catalogue("en"))
    families = {f"{family}.{name}" for family, names in FAMILIES.items() for name in names}
    assert families <= known
    directly = {
        key for path in SOURCES for key in re.findall(r"\bt\([\"']([a-z_.]+)[\"'][,)]", path.read_text())
    }
    assert directly <= known
    unused = {key for key in known - said - families if not key.startswith("tour.")}
    assert unused == set()


def test_numbers_and_plurals_follow_the_language() -> None:
    assert Words("en")("choose.steps", count=1) == "1 step"
    assert Words("de")("choose.orders", count=3628800) == "3.628.800 gültige Reihenfolgen"
    forms = {Words("ar")("choose.steps", count=count) for count in (1, 2, 3, 11)}
    assert len(forms) == 4
    assert Words("ar").direction == "rtl"


@pytest.mark.parametrize(
    ("asked", "cookie", "accepted", "language"),
    [
        ("de", "ar", "en", "de"),
        (None, "ar", "en", "ar"),
        ("fr", None, "fr, de;q=0.7, en;q=0.3", "de"),
        (None, None, "de-AT,en;q=0.5", "de"),
        (None, None, "", "en"),
        (None, None, "zz;q=9, ;;;, en;q=abc", "en"),
        ("xx", None, "en", "xx"),
    ],
)
def test_the_language_is_asked_for_or_chosen_before_or_liked(
    asked: str | None, cookie: str | None, accepted: str, language: str
) -> None:
    assert choose_language(asked, cookie, accepted) == language


def test_no_script_names_a_message_that_only_templates_have() -> None:
    scripts = "\n".join(path.read_text() for path in ROOM.glob("static/**/*.js"))
    named = [family for family in ONLY_IN_TEMPLATES if re.search(rf"[\"'`]{family}[.\"'`]", scripts)]
    assert named == []
