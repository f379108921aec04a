"""What the app refuses is said in the language of the page: each refusal in the code has its translations."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rigs import Rig

from kitchensync.operations.errors import BadOperation, NotNow
from kitchensync.recipe_app.cooking.checklist import ITEMS
from kitchensync.recipe_app.errors import TooOften
from kitchensync.recipe_app.exchange.dumps import SCHEMA, site_of
from kitchensync.recipe_app.people.roles import ROLES
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import new_id
from kitchensync.recipe_app.store.shelf import Shelf
from kitchensync.recipe_app.web.i18n import LANGUAGES, PSEUDO, Words, refusals
from kitchensync.recipe_app.web.tablet.tablet_files import shell_files
from kitchensync.task_graphs.errors import BadGraph, NotFound, filled

PACKAGE = Path(__file__).resolve().parents[2] / "kitchensync"
ROOMS = ("dataset", "operations", "recipe_app", "task_graphs")
TRANSLATED = [name for name in LANGUAGES if name != "en"]
KINDS = {
    *("RecipeError", "BadOperation", "NotFound", "NotNow", "NotAllowed", "SignInFirst", "NameTaken"),
    *("TooLarge", "WrongKind"),
}
IN_ENGLISH = {
    "dataset/commands/annotate/annotate_read.py",
    "task_graphs/mistakes/hints.py",
    "operations/filed_shapes.py",
    "operations/operation_kinds.py",
}
"""Where only a command or a program is refused."""
OURS = {"none", "consent", "second", *ROLES, *(item.name for item in ITEMS)}
"""Words of ours among the values."""


def raised() -> Iterator[tuple[str, ast.Call]]:
    """Every refusal that the code makes, with the file that does."""
    for path in sorted(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS:
                yield path.relative_to(PACKAGE).as_posix(), node


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


TEXTS = {str(call.args[0].value) for _, call in raised() if isinstance(call.args[0], ast.Constant)}
TEXTS |= {TooOften(1).text}


@pytest.mark.slow
def test_every_refusal_is_one_text_with_its_values_beside_it() -> None:
    """A text that is put together where it is raised could not be found in a catalogue."""
    together = {file for file, call in raised() if not isinstance(call.args[0], ast.Constant)}
    assert together == IN_ENGLISH
    for file, call in raised():
        if isinstance(call.args[0], ast.Constant):
            given_values = {str(keyword.arg) for keyword in call.keywords}
            assert places(str(call.args[0].value)) == given_values, (file, call.lineno)


@pytest.mark.parametrize("language", [*TRANSLATED, PSEUDO])
def test_every_refusal_has_its_translation_and_no_translation_is_unused(language: str) -> None:
    known = refusals(language)
    assert set(known) - TEXTS - OURS == set()
    assert set(known) >= TEXTS | OURS
    for text, said in known.items():
        assert places(said) == places(text), text
        assert all(name.isidentifier() for name in places(said)), text
        assert said == " ".join(said.split()), text
        assert filled(said, dict.fromkeys(places(said), "?"))


def test_the_tablet_does_not_keep_the_translations_of_refusals() -> None:
    assert not [address for address in shell_files() if "refusals" in address]


def test_words_of_ours_among_the_values_are_translated_and_numbers_written_as_in_the_language() -> None:
    error = NotNow(
        "the checklist is not through ({names}); nothing is recorded before it is", names=("consent", "phone")
    )
    said = "the checklist is not through (consent, phone); nothing is recorded before it is"
    assert (str(error), Words("en").refusal(error)) == (said, said)
    assert "noch offen: Einwilligung, Telefon." in Words("de").refusal(error)
    assert "Bitte 1.200 s warten" in Words("de").refusal(TooOften(1200))
    assert Words("en").refusal(TooOften(1200)) == "too many tries; wait 1200 s and try again"


@pytest.mark.parametrize("language", [*LANGUAGES, PSEUDO])
def test_what_has_no_translation_is_said_in_english(language: str) -> None:
    finding = BadGraph("tea.json", "", 'not a task graph; expected {"steps": {..}, "edges": [..]}')
    for error in (finding, NotFound("no such {thing}"), OSError("no space left")):
        assert Words(language).refusal(error) == str(error)


def test_the_pseudo_locale_tells_what_has_a_translation() -> None:
    assert Words(PSEUDO).refusal(NotNow("nothing is being recorded here")).startswith("⟦ñóthíñg")


@pytest.mark.slow
@given(st.one_of(st.text(), st.sampled_from(["{name}", "{", "}}", "{0.__class__}", "<b>'\"&", "%s", "none"])))
def test_what_people_typed_is_said_as_they_typed_it(typed: str) -> None:
    text = "there is a person called {name} already; choose another pseudonym"
    for language in [*LANGUAGES, PSEUDO]:
        before, after = refusals(language).get(text, text).split("{name}")
        assert Words(language).refusal(BadOperation(text, name=typed)) == f"{before}{typed}{after}"


WRONG_PIN = {
    "en": "the PIN is not right; tries left: 4",
    "de": "Die PIN stimmt nicht. Versuche übrig: 4",
    "ar": "الرقم السري غير صحيح. المحاولات الباقية: 4",
    "fr": "the PIN is not right; tries left: 4",
}


@pytest.mark.slow
@pytest.mark.parametrize("language", list(WRONG_PIN))
def test_a_wrong_pin_is_refused_in_the_language_of_the_page(kitchen: Any, language: str) -> None:
    wrong = {"person": kitchen.basil, "pin": "602214"}
    liked = kitchen.tablet.post("/api/v1/sign-in", json=wrong, headers={"accept-language": language})
    assert (liked.status_code, liked.json()) == (403, {"error": WRONG_PIN[language]})
    chosen = {"cookie": f"ks_language={language}", "accept-language": "en"}
    answer = kitchen.tablet.post("/api/v1/sign-in", json=wrong, headers=chosen)
    assert (answer.status_code, answer.json()) == (403, {"error": WRONG_PIN[language].replace("4", "3")})


GERMAN = {"accept-language": "de-AT, en;q=0.5"}


def test_devices_do_not_start_before_the_checklist_is_through_and_say_why_in_german(kitchen: Any) -> None:
    kitchen.__dict__["tools"] = dataclasses.replace(kitchen.tools, capture=Rig(kitchen))
    address = f"/api/v1/capture/{kitchen.choose()['recording']}"
    answer = kitchen.tablet.post(address, json={"action": "start"}, headers=GERMAN)
    assert answer.status_code == 409
    assert answer.json()["error"].startswith("Auf der Prüfliste ist noch offen: Einwilligung, Schmuck")
    answer = kitchen.tablet.post(address, json={"action": "stop"}, headers=GERMAN)
    assert answer.json() == {"error": "Hier wird gerade nichts aufgenommen."}
    nobody = kitchen.client(authorization=kitchen.tablet.headers["authorization"])
    answer = nobody.post(address, json={"action": "start"}, headers=GERMAN)
    assert (answer.status_code, answer.json()) == (401, {"error": "Bitte erst anmelden."})


def test_the_receipt_of_what_is_refused_is_in_the_language_of_the_tablet(kitchen: Any) -> None:
    bundle = kitchen.choose()
    batch = {"operations": [kitchen.operation(bundle["recording"], "done", {"node": 1234})]}
    (receipt,) = kitchen.tablet.post("/api/v1/ops", json=batch, headers=GERMAN).json()["receipts"]
    assert receipt["error"] == "Den Schritt 1234 gibt es in „Tea and toast“ nicht."
    (receipt,) = kitchen.post(*batch["operations"])
    assert receipt["error"] == "step 1234 is not in Tea and toast"


def test_the_desk_refuses_in_its_language(kitchen: Any) -> None:
    researcher = kitchen.desk("researcher")
    person = {"pseudonym": "Clove", "pin": "111111"}
    answer = researcher.post("/api/v1/desk/people", json=person, headers=GERMAN)
    assert answer.json() == {"error": "Diese PIN probiert jeder zuerst. Bitte eine andere wählen."}
    answer = researcher.post("/api/v1/desk/dumps", json={"text": "{}"}, headers=GERMAN)
    assert answer.json()["error"].startswith("dump: ist beschädigt")
    answer = researcher.get("/desk/audit", headers=GERMAN)
    assert answer.headers["location"] == "/desk/sign-in"
    page = researcher.get("/desk/recipes/<b>{x}", headers=GERMAN)
    assert (page.status_code, "Das Rezept „&lt;b&gt;{x}“ gibt es nicht." in page.text) == (404, True)
    english = researcher.get("/desk/recipes/<b>{x}").text
    assert "no recipe &#39;&lt;b&gt;{x}&#39;; there are: " in english


def test_what_a_dump_holds_is_refused_in_the_language_of_the_desk(kitchen: Any) -> None:
    wrong = kitchen.operation(kitchen.choose()["recording"], "done", {"node": 99})
    (device,) = kitchen.tools.records.rows(tables.device)
    waiting = [{"operation": wrong, "touch": {"wall_ms": 5}}, {"operation": {}, "touch": {"wall_ms": 5}}]
    body = {"site": site_of(kitchen.tools.records), "device": device["id"], "waiting": waiting}
    content = json.dumps(body)
    sha256 = hashlib.sha256(content.encode()).hexdigest()
    text = json.dumps({"schema": SCHEMA, "sha256": sha256, "content": content})
    answer = kitchen.desk("operator").post("/api/v1/desk/dumps", json={"text": text}, headers=GERMAN)
    unknown, refused = answer.json()["refused"]
    assert unknown.startswith("dump: Vorgang 2 von 2 ist hier unbekannt: ")
    assert refused == "Den Schritt 99 gibt es in „Tea and toast“ nicht."


def test_the_guard_refuses_in_the_language_too(kitchen: Any) -> None:
    client = kitchen.client(**GERMAN)
    answer = client.get("/", headers={"host": "elsewhere.example"})
    assert answer.json() == {"error": "Unter diesem Namen ist die App nicht zu erreichen."}
    answer = client.post("/api/v1/pair", content=b" " * 300_000, headers={"content-type": "application/json"})
    assert (answer.status_code, "4.096 Bytes" in answer.json()["error"]) == (413, True)


def test_a_shelf_without_recipes_names_none(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there are: none") as caught:
        Shelf(tmp_path).get(new_id(1))
    assert Words("de").refusal(caught.value).endswith("Es gibt: keine.")
