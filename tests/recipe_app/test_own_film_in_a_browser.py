"""The film in the review on the tablet, for the person who cooked and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Tablet, on_screen
from filmed_cooking import DONE_S, cook_on_film
from numbered_recording import FRAME_S, film_host_ns
from screens import serious

from kitchensync.dataset.films.review_film import facts_of, film_of
from kitchensync.storage.manifest import edit_manifest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]

ERROR_S = 7.0
NEAR = 1
"""Pictures that touches and film may lie apart: what the alignment leaves."""
SHOWN = "document.querySelector('.own-film').film.shown"


@pytest.fixture
def cooked(kitchen: Any) -> Iterator[tuple[str, Path]]:
    """A recording that Basil cooked and reviews, an error in it; nobody may annotate it."""
    recording, folder, world = cook_on_film(kitchen)
    with edit_manifest(folder) as manifest:
        manifest["consent_scopes"] = ["release_raw"]
    node = kitchen.tools.records.state(recording)["recording"]["order"][2]
    kitchen.now_ns = round(film_host_ns(world, ERROR_S / FRAME_S))
    error = {
        "error_id": kitchen.operation(recording, "x", {})["op_id"],
        "fields": {"node": node, "categories": [2]},
    }
    kitchen.post(kitchen.operation(recording, "error", error))
    kitchen.now_ns = round(film_host_ns(world, 13.0 / FRAME_S))
    kitchen.post(kitchen.operation(recording, "end", {}))
    kitchen.tools.intake.file()
    yield recording, folder
    kitchen.tools.films.close()


def shown(tablet: Tablet, frame: int) -> None:
    tablet.page.wait_for_function(f"(frame) => Math.abs({SHOWN} - frame) <= {NEAR}", arg=frame)
    tablet.rest()


def test_the_cook_sees_steps_and_errors_in_the_film_by_touch_and_by_key(
    kitchen: Any, browser: Any, cooked: tuple[str, Path]
) -> None:
    recording, folder = cooked
    with on_screen(kitchen, browser, has_touch=True) as tablet:
        page = tablet.page
        page.goto(f"{tablet.url}/t/rec/{recording}/review")
        tablet.screen("review")
        page.locator("#film-play").wait_for(timeout=60_000)
        assert page.locator(".own-film video").count() == 2, "the camera's and the headset's"
        steps = page.locator(".timeline .line").get_by_role("button")
        assert steps.count() == len(DONE_S)
        for row, done_s in enumerate(DONE_S):
            steps.nth(row).tap()
            shown(tablet, int(done_s / FRAME_S))
        page.get_by_role("button", name="See it in the film").tap()
        shown(tablet, int(ERROR_S / FRAME_S))
        at = page.evaluate(SHOWN)
        page.keyboard.press("ArrowRight")
        page.wait_for_function(f"(at) => {SHOWN} === at + 1", arg=at)
        page.keyboard.press("Shift+ArrowLeft")
        page.wait_for_function(f"(at) => {SHOWN} < at", arg=at - 100)
        page.get_by_role("button", name="+1", exact=True).tap()
        page.keyboard.press("Tab")
        page.locator(".own-film .films").focus()
        page.keyboard.press("Space")
        page.wait_for_function("!document.querySelector('.own-film video').paused")
        page.get_by_role("button", name="Sound").tap()
        assert page.evaluate("[...document.querySelectorAll('.own-film video')].every((one) => one.muted)")
        page.get_by_role("button", name="Stop").tap()
        assert serious(page) == []
        page.get_by_label("A remark in your own words").fill("it was hot")
        tablet.tap("Keep the remark")
        tablet.saved()
        kitchen.tools.intake.file()
        assert page.locator("#film-play").is_visible(), "drawing the review again leaves the film alone"
    assert facts_of(folder, 360) is not None, "what a cook adds in the review is no reason to make it anew"


def test_the_film_is_for_who_cooked_and_only_while_they_agree(kitchen: Any, cooked: tuple[str, Path]) -> None:
    recording, folder = cooked
    address = f"/api/v1/recordings/{recording}/film"
    cook, annotator = kitchen.tablet, kitchen.desk("annotator")
    cook.post(address, json={})
    while (said := cook.get(address).json())["state"] in ("waiting", "making"):
        kitchen.tools.films.state(folder, 360)
    assert set(said["facts"]) == {"fps", "frames", "width", "height", "hidden", "taken_ns"}
    part = cook.get(said["address"], headers={"range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, film_of(folder, 360).read_bytes()[100:200])
    rosa = kitchen.tools.accounts.add_person("Rosa", ["participant"], actor="")
    kitchen.tools.accounts.set_pin(rosa, "482917", actor="")
    device, token = kitchen.pair("Another")
    login = kitchen.tools.accounts.sign_in(rosa, "pin", "482917", device=device, desk=False)
    other = kitchen.client(**{"authorization": f"Bearer {token}", "x-kitchensync-login": login})
    assert other.get(address).json() == {"state": "absent"}
    assert other.post(address, json={}).status_code == 404
    assert other.get(said["address"]).status_code == 404
    assert annotator.get(said["address"]).status_code == 404
    assert annotator.get(f"/api/v1/desk/recordings/{recording}/film").status_code == 409, (
        "nobody may annotate"
    )
    kitchen.utc_ns += 3601 * 10**9
    assert cook.get(said["address"]).status_code in (401, 403)
    said = cook.get(address).json()
    with edit_manifest(folder) as manifest:
        manifest["withdrawn"] = {"host_ns": 1}
    assert cook.get(address).status_code == 409
    assert cook.get(said["address"]).status_code == 409
