"""Consent in a real browser: each scope is a box of its own; what is agreed to stands in recording.json."""

from __future__ import annotations

import time
from typing import Any

import pytest
from browser import Tablet, at_the_desk
from screens import serious

from kitchensync.recipe_app.cooking import checklist
from kitchensync.storage.consent import OFFERED, Scope, consent_in_words
from kitchensync.storage.manifest import edit_manifest

pytestmark = pytest.mark.timeout(240)


def agreed(kitchen: Any, scopes: list[str] | None) -> dict[str, Any]:
    """Wait until the manifest says what is agreed to, nothing where it is None; return it."""
    while True:
        manifest: dict[str, Any] = kitchen.manifest("soup_1")
        is_given = manifest.get("consent", "none") != "none"
        if is_given is (scopes is not None) and manifest.get("consent_scopes", []) == (scopes or []):
            return manifest
        time.sleep(0.05)


def test_agreeing_goes_into_the_manifest_and_undoing_takes_it_out(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    tablet.page.locator("#recipes").get_by_role("button", name="Tea and toast").click()
    tablet.screen("recipe")
    page.get_by_label("soup_1").check()
    tablet.tap("Begin", exact=True)
    tablet.instructed()
    tablet.to_checklist()
    boxes = {scope: page.locator(f'[data-key="scope-{scope}"]') for scope in OFFERED}
    agree = page.locator('[data-key="consent"]')
    for box in (agree, *boxes.values()):
        assert box.get_attribute("aria-checked") == "false"  # nobody ticks for somebody else
    assert serious(page) == []
    boxes[Scope.RELEASE_RAW].click()
    agree.click()
    boxes[Scope.ANNOTATE].click()
    manifest = agreed(kitchen, ["annotate", "release_raw"])
    said = f"{manifest['consent']}: annotate, release_raw"
    assert consent_in_words(manifest) == said
    assert manifest["consent_history"][-1] == {
        "reference": manifest["consent"],
        "scopes": ["annotate", "release_raw"],
        "by": "tablet",
        "utc_ns": manifest["consent_history"][-1]["utc_ns"],
        "version": checklist.CONSENT_VERSION,
        "language": "en",
        "person": "Basil",
    }
    tablet.rest()
    boxes[Scope.RELEASE_RAW].click()
    agreed(kitchen, ["annotate"])
    tablet.rest()
    agree.click()
    assert consent_in_words(agreed(kitchen, None)).startswith("none: ")


def test_a_changed_text_is_asked_for_again(
    kitchen: Any, tablet: Tablet, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tablet.page
    tablet.begin("Tea and toast")
    tablet.to_checklist()
    agree, annotate = page.locator('[data-key="consent"]'), page.locator('[data-key="scope-annotate"]')
    agree.click()
    annotate.click()
    page.locator('[data-key="scope-annotate"][aria-checked="true"]').wait_for()
    tablet.saved()
    monkeypatch.setattr(checklist, "CONSENT_VERSION", "another")
    page.reload()
    page.locator('[data-key="consent"][aria-checked="false"]').wait_for()
    assert annotate.get_attribute("aria-checked") == "false"


@pytest.mark.parametrize(
    ("scopes", "chips"),
    [
        (["annotate", "release_raw"], []),
        (["release_raw"], ["No consent to annotate"]),
        ([], ["No consent to annotate", "No consent to release"]),
    ],
)
def test_a_missing_consent_is_a_chip_wherever_the_recording_is_listed(
    kitchen: Any, tablet: Tablet, browser: Any, scopes: list[str], chips: list[str]
) -> None:
    recording = str(kitchen.choose(folder="soup_1")["recording"])
    kitchen.agree(recording, *scopes)
    kitchen.post(kitchen.operation(recording, "end", {}), kitchen.operation(recording, "finish", {}))
    agreed(kitchen, scopes)
    with edit_manifest(kitchen.data / "soup_1") as manifest:
        at = {"utc_ns": kitchen.utc_ns, "host_ns": 1}
        manifest |= {"state": "complete", "started": at, "stopped": at | {"reason": "requested"}}
    login = kitchen.desk("researcher").headers["x-kitchensync-login"]
    desk = at_the_desk(browser, kitchen.url, login)
    for path, place in (
        ("", "table tbody tr"),
        ("/room", "#ended tbody tr"),
        (f"/recordings/{recording}", ".record-head"),
        (f"/recordings/{recording}/card", "main"),
    ):
        desk.go(path)
        desk.page.locator(place).first.wait_for()
        shown = desk.page.locator(f"{place} .badge", has_text="No consent")
        assert shown.all_inner_texts() == chips, path
    offered = recording in kitchen.desk("annotator").get("/desk/review").text
    assert offered == ("annotate" in scopes)
    desk.page.context.close()
    tablet.page.goto(f"{tablet.url}/t/rec/{recording}/done")
    tablet.screen("done")
    assert tablet.page.locator(".badge", has_text="No consent").all_inner_texts() == chips
    assert serious(tablet.page) == []
