"""What is agreed to on the tablet stands in recording.json, as long as it is agreed to."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any, get_args

import pytest
from rigs import Rig

from kitchensync.operations import operation_kinds as kinds
from kitchensync.recipe_app.cooking import checklist
from kitchensync.recipe_app.cooking.checklist import CONSENT_VERSION
from kitchensync.recipe_app.cooking.steering import steer
from kitchensync.recipe_app.store.app_records import new_id
from kitchensync.storage.consent import OFFERED, Purpose, Scope, consent_in_words, enter_consent, why_not
from kitchensync.storage.manifest import edit_manifest, read_manifest

pytestmark = pytest.mark.slow

LOCALES = Path(checklist.__file__).parents[1] / "locales"


@pytest.fixture
def recording(kitchen: Any) -> str:
    """A session of Basil in the recording soup_1."""
    return str(kitchen.choose(folder="soup_1")["recording"])


def test_what_is_agreed_to_stands_in_the_manifest_and_follows_every_change(
    kitchen: Any, recording: str
) -> None:
    reference = f"{recording}/{CONSENT_VERSION}"
    kitchen.agree(recording, "release_raw", "annotate", language="de")
    manifest = read_manifest(kitchen.data / "soup_1")
    assert (manifest["consent"], manifest["consent_version"]) == (reference, CONSENT_VERSION)
    assert manifest["consent_scopes"] == ["annotate", "release_raw"]
    (entry,) = manifest["consent_history"]
    facts = {"by": "tablet", "person": "Basil", "language": "de", "version": CONSENT_VERSION}
    assert entry == {
        **facts,
        "reference": reference,
        "scopes": ["annotate", "release_raw"],
        "utc_ns": kitchen.utc_ns,
    }
    assert why_not(manifest, Purpose.RELEASE_RAW) == ""
    kitchen.agree(recording, "annotate")
    manifest = read_manifest(kitchen.data / "soup_1")
    assert (manifest["consent"], manifest["consent_scopes"]) == (reference, ["annotate"])
    kitchen.agree(recording, "annotate", accepted=False)
    manifest = read_manifest(kitchen.data / "soup_1")
    assert (manifest["consent"], manifest["consent_scopes"]) == ("none", [])
    assert len(manifest["consent_history"]) == 3
    assert consent_in_words(manifest).startswith("none: ")


def test_no_form_offers_what_no_release_can_do_yet(kitchen: Any, recording: str) -> None:
    assert [*OFFERED] == ["annotate", "release_raw", "third_party_processing"]
    assert checklist.KEYS[3:] == tuple(f"consent.scope.{scope}" for scope in OFFERED)
    printed = kitchen.desk("admin").get(f"/desk/recordings/{recording}/consent").text
    assert "published for research" in printed
    assert "faces" not in printed


def test_what_was_agreed_to_before_the_devices_started_is_there_once_they_record(kitchen: Any) -> None:
    kitchen.__dict__["tools"] = dataclasses.replace(kitchen.tools, capture=Rig(kitchen))
    recording = kitchen.checked()
    kitchen.agree(recording, "annotate")
    folder = steer(kitchen.tools, recording, "start", actor=kitchen.basil, reason="")["folder"]
    manifest = kitchen.manifest(folder)
    assert (manifest["consent_scopes"], manifest["consent_version"]) == (["annotate"], CONSENT_VERSION)
    kitchen.agree(recording, "annotate", accepted=False)
    assert (kitchen.manifest(folder)["consent"], kitchen.manifest(folder)["consent_scopes"]) == ("none", [])


def test_nothing_is_agreed_to_after_a_withdrawal(kitchen: Any, recording: str) -> None:
    kitchen.post(kitchen.operation(recording, "withdraw", {}))
    kitchen.agree(recording, "annotate")
    manifest = read_manifest(kitchen.data / "soup_1")
    assert manifest["consent"] == "none"
    assert manifest["withdrawn"]
    assert kitchen.tools.records.waiting() == []


def test_who_labels_a_film_agrees_for_nobody_in_it(kitchen: Any, recording: str) -> None:
    path = kitchen.record("soup_1")
    content = json.loads((path / "recording.json").read_text())
    content |= {"adopted": True, "consent": "form-3", "consent_scopes": ["annotate"]}
    (path / "recording.json").write_text(json.dumps({k: v for k, v in content.items() if k != "self_check"}))
    kitchen.agree(recording, "release_raw")
    assert kitchen.manifest("soup_1")["consent_scopes"] == ["annotate"]


def test_a_scope_that_there_is_not_is_refused(kitchen: Any, recording: str) -> None:
    body = {"version": CONSENT_VERSION, "accepted": True, "scopes": ["everything"]}
    (receipt,) = kitchen.post(kitchen.operation(recording, "consent", body))
    assert "scopes" in receipt["error"]
    assert set(get_args(kinds.Scope)) == set(Scope)


def test_another_text_is_another_version_and_is_asked_for_again(
    kitchen: Any, recording: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version is a hash of the words as they stand in the files, computed here anew."""
    words = {path.stem: json.loads(path.read_text()) for path in LOCALES.glob("*.json")}
    asked = {name: {key: said[key] for key in checklist.KEYS} for name, said in words.items()}
    told = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
    assert told.startswith(CONSENT_VERSION)
    assert len(checklist.KEYS) == 3 + len(OFFERED)
    kitchen.agree(recording)
    state = kitchen.tools.records.state(recording)
    assert "consent" not in checklist.still_open(state, devices=False)
    monkeypatch.setattr(checklist, "CONSENT_VERSION", "another")
    assert "consent" in checklist.still_open(state, devices=False)


def test_the_form_is_printed_in_the_words_and_the_language_that_were_agreed_to(
    kitchen: Any, recording: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, address = kitchen.desk("operator"), f"/desk/recordings/{recording}/consent"
    unanswered = operator.get(address).text
    assert (unanswered.count("☑"), unanswered.count("☐")) == (0, 4)
    kitchen.agree(recording, "annotate", language="de")
    monkeypatch.setattr(checklist, "WORDS", {"en": {}})  # the words of today are others
    page = operator.get(address).text
    german = json.loads((LOCALES / "de.json").read_text())
    for key in ("consent.text", "consent.agree", "consent.scopes"):
        assert german[key] in page
    assert f"☑ {german['consent.scope.annotate']}" in page
    assert f"☐ {german['consent.scope.release_raw']}" in page
    assert (page.count("☑"), page.count("☐")) == (2, 2)
    assert "Basil" in page
    assert CONSENT_VERSION in page


@pytest.mark.parametrize("folder", [None, "soup_1"])
def test_the_desk_exports_what_may_be_released_and_nothing_else(kitchen: Any, folder: str | None) -> None:
    recording = str(kitchen.choose(folder=folder)["recording"])
    desk, address = kitchen.desk("researcher"), f"/desk/recordings/{recording}/export.json"
    for scopes in ((), ("annotate",)):
        refused = desk.get(address)
        assert (refused.status_code, recording in refused.text) == (409, False)
        assert "release_raw" in refused.text
        kitchen.agree(recording, *scopes)
    kitchen.agree(recording, "release_raw")
    assert desk.get(address).json()["schema"] == "recording-log/1"
    kitchen.agree(recording, "release_raw", accepted=False)
    assert desk.get(address).status_code == 409


def test_what_was_entered_by_hand_counts_at_the_desk(kitchen: Any, recording: str) -> None:
    path = kitchen.data / "soup_1"
    with edit_manifest(path) as manifest:
        enter_consent(manifest, "form-7", [Scope.RELEASE_RAW], by="operator-2", utc_ns=1)
    assert kitchen.desk("researcher").get(f"/desk/recordings/{recording}/export.json").status_code == 200


def test_an_admin_may_let_points_be_open_but_not_the_consent(kitchen: Any) -> None:
    recording = kitchen.choose()["recording"]
    admin, address = kitchen.desk("admin"), f"/api/v1/desk/recordings/{recording}/override"
    body = {"op_id": new_id(1), "reason": "the mirror is bolted to the wall"}
    refused = admin.post(address, json=body)  # the mirror is open too, as everything is
    assert (refused.status_code, "the consent is not given" in refused.json()["error"]) == (409, True)
    assert not [op for op in kitchen.tools.records.ops(recording) if op["kind"] == "checked"]
