"""A whole session of two kitchens by browser alone, with virtual rigs: what operator and cooks touch and see."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from app_by_browser import add_cook, add_kitchen, app_of, sign_in_first, tablet_of, wait_for_end, write_rig
from browser import LANDSCAPE, PATIENCE_MS, Tablet, chromium
from processes import kitchensync
from waiting import until

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

COOKS = {"North": "Basil", "South": "Sage"}
ENDS_S = 200
RUNS = ".dot:is(.recording, .problem)"
"""A busy computer may send fewer pictures than a headset would."""
COOKED = {"North": "Tea and toast", "South": "Yogurt bowl"}


class Operator:
    """Somebody at the desk with nothing but a browser; keeps pictures where KITCHENSYNC_PICTURES names a folder."""

    def __init__(self, browser, url: str) -> None:
        self.browser, self.url = browser, url
        self.page = browser.new_context(viewport=LANDSCAPE).new_page()
        self.page.set_default_timeout(PATIENCE_MS)

    def picture(self, name: str, page=None) -> None:
        """Keep a picture of what is seen now."""
        if folder := os.environ.get("KITCHENSYNC_PICTURES"):
            (page or self.page).screenshot(path=Path(folder) / f"two-{name}.png")

    def set_up(self, invite: str) -> dict[str, Tablet]:
        """From the invite to a paired tablet in each kitchen, somebody signed in at each."""
        page = self.page
        sign_in_first(page, self.url, invite)
        page.get_by_role("heading", name="Today", exact=True).wait_for()
        codes = {}
        for kitchen in COOKS:
            page.goto(f"{self.url}desk/devices")
            codes[kitchen] = add_kitchen(page, kitchen)
        for cook in COOKS.values():
            add_cook(page, self.url, cook)
        return {
            kitchen: tablet_of(self.browser, self.url, codes[kitchen], cook)
            for kitchen, cook in COOKS.items()
        }

    def look_over(self) -> None:
        """Have the devices of both kitchens looked over on Today until nothing stands against recording.

        Where this computer is too busy, streams of a virtual headset are late, and somebody checks again.
        """
        self.page.goto(f"{self.url}desk/room")
        for kitchen in COOKS:
            tile = self.page.locator("#preflight .tile", has=self.page.get_by_role("heading", name=kitchen))

            def nothing_stands_against(tile=tile) -> bool:
                tile.get_by_role("button", name="Check").click()  # waits until the look before is over
                tile.locator("button:enabled").wait_for()
                tile.locator('[data-what="gopro: camera"].good').wait_for(state="attached")
                return not tile.locator('.bad:not([data-what^="this computer"])').count()

            until(nothing_stands_against, f"devices of {kitchen} that are all well", ENDS_S)
        self.picture("preflight")

    def tile(self, kitchen: str):
        """The tile of a running recording on Today."""
        return self.page.locator("#rigs .tile", has_text=f"{COOKS[kitchen]} · {kitchen}")

    def press(self, kitchen: str, action: str, then: str) -> None:
        """Press a button of a tile, one that is folded away too, and wait for what is said of it."""
        tile = self.tile(kitchen)
        button = tile.locator(f'[data-action="{action}"]')
        if not button.is_visible():
            tile.get_by_text("More", exact=True).click()
        button.click()
        tile.get_by_role("status").get_by_text(then).wait_for()

    def read_card(self, name: str) -> None:
        """Read the card of what ended, on Today, and say so."""
        page = self.page
        page.goto(f"{self.url}desk/room")
        page.locator("#ended tr", has_text=name).get_by_role("link", name="Read the card").click(
            timeout=120_000
        )
        page.locator("#lines tbody tr").first.wait_for()
        self.picture(f"card-{name}")
        page.get_by_role("button", name="I have read it").click()
        page.get_by_text("Read by").wait_for()
        page.goto(f"{self.url}desk/room")


def cook_with_two_errors(tablet: Tablet) -> None:
    """Two steps, an error in each."""
    tablet.page.locator("footer .done").click()
    for number, kind in enumerate(("Timing", "Measurement")):
        tablet.rest()
        tablet.tap("Error", exact=True)
        tablet.tap(kind)
        tablet.page.get_by_text(f"{number} / ").wait_for()
        tablet.rest()
        tablet.page.locator("footer .done").click()


def test_a_session_of_two_kitchens_by_browser_alone(kitchen, runtime, tmp_path, loopback_host):
    """Preflight, start, follow, errors, battery, privacy pause, stop, card, next session."""
    north = kitchen("--rings", seconds=0)
    south_host = f"{loopback_host.rpartition('.')[0]}.1"  # which the first one never is
    south = kitchen("--rings", seed=2, seconds=0, host=south_host)
    rigs = [
        f"{place}={write_rig(tmp_path / f'{place}.toml', there.host, there.camera)}"
        for place, there in (("North", north), ("South", south))
    ]
    with chromium() as browser, app_of(tmp_path / "data", rigs) as (url, invite):
        operator = Operator(browser, url)
        tablets = operator.set_up(invite)
        operator.look_over()
        for place, tablet in tablets.items():
            tablet.begin(COOKED[place], strategy="impromptu")
            tablet.checklist()
        for place, tablet in tablets.items():
            tablet.page.locator(RUNS).wait_for()
            operator.tile(place).locator("canvas").wait_for()
        cook_with_two_errors(tablets["North"])
        operator.tile("North").get_by_text("step 3 of 11").wait_for()
        operator.picture("today")
        operator.picture("cook", tablets["North"].page)

        operator.press("South", "swap", "Change it now")
        south.type("fault headset_swap+15")
        operator.tile("South").get_by_text("0 of 3 streams are coming").wait_for()
        operator.press("South", "swapped", "The change is noted")
        operator.tile("South").get_by_text("3 of 3 streams are coming").wait_for()

        operator.press("North", "pause", "The privacy pause began")
        tablets["North"].page.locator(".cover").wait_for()
        operator.tile("North").locator("canvas").wait_for(state="detached")
        operator.picture("pause")
        operator.press("North", "resume", "The privacy pause ended")

        tablets["North"].end_early()
        tablets["North"].screen("review")
        operator.tile("South").get_by_role("button", name="Stop recording").click()
        operator.page.get_by_role("dialog").get_by_role("button", name="Stop recording").click()
        tablets["North"].tap("Finish", exact=True)
        tablets["North"].screen("done")
        folders = {
            path.name.partition("-")[0]: path
            for path in (tmp_path / "data").iterdir()
            if path.name[0] not in "._"
        }
        told = {name: wait_for_end(path, ENDS_S) for name, path in folders.items()}
        for recipe in COOKED.values():
            operator.read_card(recipe)

        tablets["North"].tap("Another recipe")
        tablets["North"].screen("choose")
        tablets["North"].begin("Fresh lemonade")
        tablets["North"].checklist()
        tablets["North"].page.locator(RUNS).wait_for()
        operator.tile("North").get_by_role("button", name="Stop recording").click()
        operator.page.get_by_role("dialog").get_by_role("button", name="Stop recording").click()
        next_one = until(lambda: next((tmp_path / "data").glob("fresh_lemonade-*"), None), "the next one")
        assert wait_for_end(next_one, ENDS_S)["state"] == "complete"
        assert [tablet.problems for tablet in tablets.values()] == [[], []]

    places = {"tea_and_toast": ("North", "Basil"), "yogurt_bowl": ("South", "Sage")}
    assert {name: (one["place"], one["pseudonym"]) for name, one in told.items()} == places
    events = [
        json.loads(line)
        for path in (folders["tea_and_toast"] / "events").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    kinds = [event["kind"] for event in events]
    assert (kinds.count("error"), kinds.count("pause"), kinds.count("resume")) == (2, 1, 1)
    verdict = json.loads(kitchensync("verify", folders["yogurt_bowl"], "--json").stdout)
    gaps = {gap["cause"] for stream in verdict["streams"].values() for gap in stream["gaps"]}
    assert gaps == {"device_swap"}
