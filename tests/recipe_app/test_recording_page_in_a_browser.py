"""A recording's page at the desk: its film beside its errors, one edited at a time, and nothing written is lost."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from typing import Any

import pytest
from browser import Desk, at_the_desk, ops
from filmed_cooking import cook_on_film
from numbered_recording import FRAME_S, film_host_ns
from screens import fit_to_be_shown

from kitchensync.recipe_app.cooking.film_states import prepare_ended

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

WRONG_S = (4.0, 9.0)
"""When the errors were touched, seconds of the film."""
SHOWN = "document.querySelector('#film section').film.shown"
NEAR = 1
"""Pictures that touches and film may lie apart: what the alignment leaves."""


@pytest.fixture
def cooked(kitchen: Any) -> Iterator[tuple[str, list[str], Any]]:
    """A filmed recording with two errors, their ids, and the truth of its pictures."""
    recording, _, world = cook_on_film(kitchen)
    order = kitchen.tools.records.state(recording)["recording"]["order"]
    errors = []
    for place, at_s in enumerate(WRONG_S):
        kitchen.now_ns = round(film_host_ns(world, at_s / FRAME_S))
        errors.append(kitchen.operation(recording, "x", {})["op_id"])
        fields = {"node": order[place], "categories": [2], "description": f"error {place}"}
        body = {"error_id": errors[-1], "fields": fields}
        kitchen.post(kitchen.operation(recording, "error", body))
    kitchen.now_ns = round(film_host_ns(world, 13.0 / FRAME_S))
    kitchen.post(kitchen.operation(recording, "end", {}), kitchen.operation(recording, "finish", {}))
    kitchen.tools.intake.file()
    yield recording, errors, world
    kitchen.tools.films.close()


@pytest.fixture
def desk(kitchen: Any, browser: Any, cooked: tuple[str, list[str], Any]) -> Iterator[Desk]:
    """The page of the recording, before somebody who may study."""
    login = kitchen.desk("researcher").headers["x-kitchensync-login"]
    made = at_the_desk(browser, kitchen.url, login)
    made.go(f"/recordings/{cooked[0]}")
    made.page.locator("#logged .timeline").wait_for()
    yield made
    assert made.problems == []
    made.page.context.close()


def shown(desk: Desk, at_s: float) -> None:
    """Wait until the film shows a second of its own."""
    while abs(desk.page.evaluate(SHOWN) - round(at_s / FRAME_S)) > NEAR:
        desk.page.wait_for_timeout(50)


def opened(desk: Desk, place: int) -> Any:
    """Open the editor of an error by its place in the list; the others close."""
    error = desk.page.locator("#errors details.error").nth(place)
    error.locator("summary").click()
    return error


def film(desk: Desk) -> None:
    """Wait until the film is made and shown."""
    desk.page.locator("#film-play").wait_for(timeout=60_000)


def test_an_error_leads_to_its_picture_and_takes_the_time_of_another(
    kitchen: Any, desk: Desk, cooked: tuple[str, list[str], Any]
) -> None:
    page, (recording, (first, _), world) = desk.page, cooked
    film(desk)
    error = opened(desk, 0)
    shown(desk, WRONG_S[0])
    fit_to_be_shown(page)
    page.locator("#film-play").focus()
    page.get_by_role("button", name="+1", exact=True).click()
    shown(desk, WRONG_S[0] + FRAME_S)
    for _ in range(3):
        page.get_by_role("button", name="−10 s").click()
    shown(desk, 0.0)
    page.locator("#logged .mark").nth(1).click()
    assert page.locator("#errors details.error[open]").count() == 1
    shown(desk, WRONG_S[1])
    error = opened(desk, 0)
    shown(desk, WRONG_S[0])
    track = page.locator("#logged .track").first.bounding_box()
    page.mouse.click(track["x"] + track["width"] * 0.75, track["y"] + track["height"] / 2)
    while (frame := page.evaluate(SHOWN)) < WRONG_S[0] / FRAME_S + 30:
        page.wait_for_timeout(50)
    error.get_by_role("button", name="= picture shown").click()
    error.get_by_role("button", name="Save").click()
    page.locator("#kept").get_by_text("Saved").wait_for()
    at = kitchen.tools.records.state(recording)["errors"][first]["at"]
    assert abs(at - film_host_ns(world, frame)) < 1.5e9 * FRAME_S
    assert page.locator("#film video").first.evaluate("video => video.currentTime") > WRONG_S[0]
    page.reload()  # the film is made: it opens by itself
    page.locator("#film-play").wait_for()
    page.locator("#new > summary").click()
    while not page.locator("#at-new").input_value():  # the picture that is shown
        page.wait_for_timeout(50)


def test_a_fresh_recording_is_synchronized_when_its_film_is_wanted(
    kitchen: Any, desk: Desk, cooked: tuple[str, list[str], Any]
) -> None:
    kitchen.record("soup_1", "stopped")  # while something is recorded nothing is synchronized
    folder = kitchen.data / "take1"
    shutil.rmtree(folder / "sync")
    desk.page.reload()
    film(desk)
    assert [path.name for path in (folder / "sync" / "alignment").glob("*.json")] != []
    opened(desk, 1)
    shown(desk, WRONG_S[1])


def test_its_film_is_made_though_no_page_is_open(kitchen: Any, cooked: tuple[str, list[str], Any]) -> None:
    folder, films = kitchen.data / "take1", kitchen.tools.films
    prepare_ended(kitchen.tools)
    assert films.state(folder, 360)["state"] == "none", "soup_1 is being recorded"
    kitchen.record("soup_1", "stopped")
    while films.state(folder, 360)["state"] != "ready":
        prepare_ended(kitchen.tools)
        assert films.state(folder, 360)["state"] != "failed"
        time.sleep(0.05)


def test_what_is_written_elsewhere_stays_when_one_error_is_saved_removed_or_taken_back(
    kitchen: Any, desk: Desk, cooked: tuple[str, list[str], Any]
) -> None:
    page, (recording, (first, second), _) = desk.page, cooked

    def errors() -> dict[str, Any]:
        found: dict[str, Any] = kitchen.tools.records.state(recording)["errors"]
        return found

    opened(desk, 0).get_by_label("What is different").fill("written, not saved")
    other = opened(desk, 1)
    assert page.locator("#errors details.error[open]").count() == 1
    assert page.locator("#errors .unsaved:visible").count() == 1
    other.get_by_label("Timing").check()
    other.get_by_role("button", name="Save").click()
    page.locator("#errors .badge.c4, #errors .badge", has_text="Timing").first.wait_for()
    assert errors()[second]["categories"] != [2]
    assert opened(desk, 0).get_by_label("What is different").input_value() == "written, not saved"
    assert errors()[first]["description"] == "error 0"

    opened(desk, 1).get_by_role("button", name="Remove").click()
    page.get_by_role("tab", name="Errors 1").wait_for()
    assert errors()[second]["removed"]
    page.locator("#kept").get_by_role("button", name="Undo").click()
    page.get_by_role("tab", name="Errors 2").wait_for()
    assert not errors()[second]["removed"]
    opened(desk, 1).get_by_role("button", name="Remove").click()
    page.get_by_text("Removed errors").click()
    page.get_by_role("button", name="Put it back").click()
    page.get_by_role("tab", name="Errors 2").wait_for()
    assert not errors()[second]["removed"]

    first_form = opened(desk, 0)
    first_form.get_by_role("button", name="Save").click()
    page.locator("#errors .what", has_text="written, not saved").wait_for()
    assert page.locator("#errors .unsaved:visible").count() == 0
    assert errors()[first]["description"] == "written, not saved"
    assert len(ops(kitchen, recording, "edit_error")) == 5


def test_tabs_are_turned_by_keys_and_a_note_is_kept(
    kitchen: Any, desk: Desk, cooked: tuple[str, list[str], Any]
) -> None:
    page, recording = desk.page, cooked[0]
    page.get_by_role("tab", name="Errors 2").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("tab", name="Notes 0").get_attribute("aria-selected") == "true"
    page.get_by_label("A remark in your own words").fill("the light flickered")
    page.get_by_role("button", name="Keep the remark").click()
    page.get_by_role("tab", name="Notes 1").wait_for()
    assert [note["text"] for note in kitchen.tools.records.state(recording)["notes"]] == [
        "the light flickered"
    ]
    page.reload()
    page.locator("#logged .timeline").wait_for()
    assert page.get_by_role("tab", name="Notes 1").get_attribute("aria-selected") == "true"
    for name in ("Errors 2", "Steps", "Notes 1", "Devices", "History"):
        page.get_by_role("tab", name=name).click()
        fit_to_be_shown(page)
    page.get_by_role("tab", name="Notes 1").click()
    page.get_by_label("A remark in your own words").fill("and again")
    page.get_by_role("button", name="Keep the remark").click()
    page.get_by_role("tab", name="Notes 2").wait_for()
    page.get_by_role("tab", name="History").click()
    page.get_by_text("Withdraw this recording").click()
    page.get_by_role("button", name="Yes, withdraw it").click()  # after a part of the page was drawn anew
    page.locator(".banner").wait_for()
    assert kitchen.tools.records.state(recording)["withdrawn"]
