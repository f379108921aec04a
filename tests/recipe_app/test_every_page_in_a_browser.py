"""Every page in every language, light, dark and on a telephone: nothing serious for axe, nothing that moves."""

from __future__ import annotations

import re
from typing import Any

import pytest
from browser import LANDSCAPE, at_the_desk, on_screen
from screens import PHONE, ZOOMED, covered, misnamed, serious

from kitchensync.recipe_app.web.app import ROUTES
from kitchensync.recipe_app.web.i18n import LANGUAGES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
PASSWORD = "a long enough pass phrase"
SAVED = (("Alles gesichert", True), ("Nicht gesichert: noch einmal tippen", False))
NO_PAGE = re.compile(r"\.js$|\.json$|\.crt$|^/$|^/t/|^/q")
WIDE = "document.documentElement.scrollWidth - innerWidth"
MOVING = "document.getAnimations().filter((one) => one.playState === 'running').length"


def addresses(recording: str) -> list[str]:
    """Every page that a browser opens at the desk, as the table of routes has them."""
    values = {"recording": recording, "recipe": "tea_and_toast", "kind": "ratings"}
    paths = [route.path for route in ROUTES if route.page and not NO_PAGE.search(route.path)]
    return [re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: values[found[1]], path) for path in paths]


def look(page: Any, where: str) -> list[str]:
    """What is wrong with a page as it stands."""
    found = [f"{where}: {one}" for one in serious(page)]
    if (over := page.evaluate(WIDE)) > 0:
        found.append(f"{where}: {over} px too wide")
    if page.evaluate(MOVING):
        found.append(f"{where}: something moves")
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_page_of_the_desk(kitchen: Any, browser: Any, language: str) -> None:
    person = kitchen.tools.accounts.add_person("Rosemary", ["admin"], actor="")
    kitchen.tools.accounts.accept_invite(kitchen.tools.accounts.invite(person, actor=""), PASSWORD)
    login = kitchen.tools.accounts.sign_in(person, "password", PASSWORD, device="", desk=True)
    recording = str(kitchen.choose(strategy="disordered")["recording"])
    desk = at_the_desk(browser, kitchen.url, login)
    page = desk.page
    found: list[str] = []
    asked = addresses(recording)
    assert len(asked) > 18
    page.emulate_media(reduced_motion="reduce")
    for address in asked:
        page.goto(f"{kitchen.url}{address}?lang={language}")
        page.wait_for_load_state("load")
        page.emulate_media(color_scheme="light")
        found += look(page, f"{address} light")
        page.emulate_media(color_scheme="dark")
        found += look(page, f"{address} dark")
        page.set_viewport_size(PHONE)
        if (over := page.evaluate(WIDE)) > 0:
            found.append(f"{address}: {over} px too wide for a telephone")
        page.set_viewport_size(LANDSCAPE)
    assert found == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_screen_of_the_tablet(kitchen: Any, browser: Any, language: str) -> None:
    with on_screen(kitchen, browser) as tablet:
        page = tablet.page
        recording = tablet.begin("Mezze platter", strategy="induced")
        page.goto(f"{tablet.url}/t/choose?lang={language}")
        page.emulate_media(reduced_motion="reduce")
        found: list[str] = []
        stages = [
            f"rec/{recording}/{name}"
            for name in ("prepare", "gather", "checklist", "follow", "review", "done")
        ]
        for path in ("pair", "choose", "recipes/tea_and_toast", *stages):
            page.goto(f"{tablet.url}/t/{path}")
            page.wait_for_selector("body:not([data-screen=loading]) #screen > *")
            page.wait_for_timeout(150)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                found += look(page, f"{path} {scheme}")
            found += [f"{path}: another accessible name: {name}" for name in misnamed(page)]
            for size in (LANDSCAPE, ZOOMED, PHONE):
                page.set_viewport_size(size)
                for text, kept in SAVED:
                    found += [f"{path} {size}: covered: {one}" for one in covered(page, text, kept=kept)]
            if (over := page.evaluate(WIDE)) > 0:
                found.append(f"{path}: {over} px too wide for a telephone")
            page.set_viewport_size(LANDSCAPE)
        assert found == []


def test_a_page_from_the_back_forward_cache_loads_the_state_again(kitchen: Any, browser: Any) -> None:
    with on_screen(kitchen, browser) as tablet:
        assert tablet.page.locator("html").get_attribute("translate") == "no"
        kitchen.choose()
        restored = "dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))"
        with tablet.page.expect_response("**/api/v1/recordings"):
            tablet.page.evaluate(restored)
        tablet.page.locator("section", has_text="Go on with").locator(".card").wait_for()
