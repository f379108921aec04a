"""Take the pictures of the manual: the guided tour and the desk in a real browser, every screen in several dresses.

    python tools/pictures.py [--out docs/pictures] [--all]

Needs Chromium (`make system`) and the dev extra. Landscape, English and light is the whole way; of the others
(portrait, phone, dark, 200 %, Arabic, pseudo-locale) the manual shows some, and `--all` takes every one.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "tests" / "support" / "app"))

from browser import LANDSCAPE, PORTRAIT, Tablet, chromium  # noqa: E402

COMMAND = [str(Path(sys.executable).parent / "kitchensync"), "app", "--demo", "--port", "0"]
PASSWORD = "only for this picture"  # noqa: S105
DRESSES: dict[str, dict[str, Any]] = {
    "portrait": {"viewport": PORTRAIT},
    "dark": {"viewport": LANDSCAPE, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}},
    "200": {"viewport": {"width": 640, "height": 400}, "device_scale_factor": 2},
    "arabic": {"viewport": LANDSCAPE, "locale": "ar"},
    "pseudo": {"viewport": LANDSCAPE},
}


@contextlib.contextmanager
def demo() -> Iterator[tuple[str, str]]:
    """Serve the tour; yield its address and all that it said."""
    process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True)
    try:
        said = ""
        for line in process.stdout or ():
            said += line
            if line.startswith("ready app="):
                break
        yield line.partition("=")[2].strip(), said
    finally:
        process.terminate()
        process.wait()


def facts_of(said: str) -> tuple[str, str, str]:
    """Return PIN, pairing code and address of the invite, as the tour prints them."""
    pin, code = re.search(r"PIN (\d{6})", said), re.search(r"pair#(\S{9})", said)
    invite = re.search(r"^invite=(\S+)", said, re.MULTILINE)
    assert pin
    assert code
    assert invite
    return pin[1], code[1], invite[1]


class Camera:
    """Takes numbered pictures of a page."""

    def __init__(self, out: Path) -> None:
        self.out, self.count = out, 0

    def __call__(self, page: Any, name: str, *, whole: bool = False) -> None:
        """Take one picture, once the page is still."""
        page.wait_for_timeout(450)
        self.count += 1
        seen = page.viewport_size
        if whole:  # a taller screen, so that what is fixed to its edges stays there
            height = page.evaluate("document.documentElement.scrollHeight")
            page.set_viewport_size({**seen, "height": max(height, seen["height"])})
            page.wait_for_timeout(200)
        page.screenshot(path=self.out / f"{name}.png", animations="disabled")
        if whole:
            page.set_viewport_size(seen)


def walk(tablet: Tablet, pin: str, code: str, take: Camera) -> str:
    """The participant's whole way, with errors planned and logged; return the recording."""
    page = tablet.page
    page.goto(f"{tablet.url}/t/pair#{code}")
    tablet.screen("pair")
    take(page, "pair")
    tablet.tap("Pair", exact=True)
    tablet.screen("sign-in")
    take(page, "sign-in")
    tablet.tap("Basil")
    tablet.screen("pin")
    take(page, "pin")
    for digit in "602214":
        tablet.tap(digit, exact=True)
    page.get_by_text("tries left").wait_for()
    take(page, "pin-wrong")
    for digit in pin:
        tablet.tap(digit, exact=True)
    tablet.screen("choose")
    take(page, "choose")
    page.locator("#recipes").get_by_role("button", name="Tea and toast").click()
    tablet.screen("recipe")
    take(page, "recipe")
    page.go_back()
    tablet.screen("choose")
    recording = tablet.begin("Tea and toast", strategy="induced")
    tablet.tap("Plan an error")
    page.locator(".hint-row").first.click()
    take(page, "hints")
    tablet.tap("Save", exact=True)
    tablet.tap("Suggest a balanced set")
    take(page, "prepare", whole=True)
    tablet.tap("Ready: to the checklist")
    tablet.screen("checklist")
    take(page, "checklist")
    page.go_back()
    tablet.screen("prepare")
    tablet.checklist()
    cook(tablet, take)
    page.locator(".outcomes").first.get_by_role("button", name="As planned").click()
    take(page, "review", whole=True)
    for row in page.locator(".outcomes").all():
        row.get_by_role("button", name="As planned").click()
    tablet.tap("Finish", exact=True)
    tablet.screen("done")
    tablet.saved()
    take(page, "done")
    return recording


def cook(tablet: Tablet, take: Camera) -> None:
    """Stage 3 of the way."""
    page = tablet.page
    tablet.tap("Begin", exact=True)
    take(page, "follow")
    tablet.tap("Begin too")
    take(page, "follow-two-open")
    page.locator(".open-step .done").first.click()
    tablet.tap("Error", exact=True)
    take(page, "error")
    tablet.tap("Timing")
    for _ in range(30):
        page.wait_for_timeout(450)
        if page.locator(".timer-chip").count() and not page.locator(".running-timer").count():
            page.locator(".timer-chip").first.click()
            take(page, "timer")
        if page.get_by_text("All steps are done").count():
            break
        if page.locator("footer .done").count():
            page.locator("footer .done").click()
    tablet.tap("All steps")
    take(page, "all-steps")
    tablet.tap("Back", exact=True)
    tablet.tap("Pause", exact=True)
    take(page, "pause")
    page.get_by_role("button", name="Privacy pause").click()
    page.locator(".cover .done").wait_for()
    take(page, "privacy-pause")
    page.locator(".cover .done").click()
    tablet.tap("To the review")
    tablet.tap("Yes, to the review")
    tablet.screen("review")


def other_ways(tablet: Tablet, take: Camera) -> str:
    """A disordered script with its certificate, shown as a paragraph; return a recording that goes on."""
    tablet.page.goto(f"{tablet.url}/t/choose")
    tablet.screen("choose")
    tablet.begin("Pan quesadilla", strategy="disordered", display="paragraph")
    take(tablet.page, "certificate")
    tablet.checklist()
    take(tablet.page, "paragraph")
    page = tablet.page
    page.goto(f"{tablet.url}/t/choose")
    tablet.screen("choose")
    page.locator("#recipes").get_by_role("button", name="Yogurt bowl").click()
    tablet.screen("recipe")
    page.locator("[data-key=in-de]").click()
    page.locator("h1", has_text="Joghurtschale").wait_for()
    take(page, "recipe-language")
    page.locator('input[name="display"][value="steps"]').check()
    page.locator("#begin").click()
    tablet.screen("instructions")
    take(page, "instructions")
    tablet.instructed()
    tablet.to_checklist()
    tablet.tap("Light screen")
    take(page, "checklist-looks", whole=True)
    tablet.checklist()
    tablet.tap("Begin", exact=True)
    take(page, "follow-light")
    tablet.tap("Pause", exact=True)
    tablet.tap("Pause this step")
    take(page, "follow-paused")
    page.evaluate("localStorage.removeItem('cooking')")
    page.goto(f"{tablet.url}/t/choose")
    tablet.screen("choose")
    begun = tablet.begin("Mezze platter")
    tablet.to_checklist()
    page.locator("[data-key=gather]").click()
    tablet.screen("gather")
    for box in page.get_by_role("checkbox").all()[:3]:
        box.click()
    take(page, "gather")
    tablet.tap("To the checklist")
    tablet.checklist()
    tablet.saved()
    return begun


def dressed(browser: Any, tablet: Tablet, recordings: list[str], take: Camera) -> None:
    """The same tablet in other dresses: its storage is taken along."""
    cookies = tablet.page.context.cookies()
    done, begun = recordings
    for name, options in DRESSES.items():
        context = browser.new_context(**options)
        context.add_cookies(cookies)
        page = context.new_page()
        if name == "pseudo":
            page.goto(f"{tablet.url}/t/choose?lang=xx")
        for screen in (
            "pair",
            "choose",
            "recipes/tea_and_toast",
            *(f"rec/{done}/{stage}" for stage in ("prepare", "review", "done")),
            *(f"rec/{begun}/{stage}" for stage in ("gather", "checklist", "follow")),
        ):
            page.goto(f"{tablet.url}/t/{screen}")
            page.wait_for_selector("body:not([data-screen=loading]) #screen > *")
            if page.locator("#take").count():
                page.locator("#take").click()
                page.wait_for_selector(f'body[data-screen="{screen.rpartition("/")[2]}"]')
            take(page, f"{screen.rpartition('/')[2]}-{name}")
        sheets(page, name, take)
        context.close()


def sheets(page: Any, name: str, take: Camera) -> None:
    """The sheets of the cooking screen."""
    page.locator(".follow .buttons button").last.click()
    page.wait_for_timeout(450)
    take(page, f"follow-begun-{name}")
    for place, sheet in (
        ("[data-key=steps]", "all-steps"),
        ("[data-key=pause]", "pause"),
        ("[data-key=error]", "error"),
    ):
        page.locator(place).click()
        page.locator("dialog[open]").wait_for()
        take(page, f"{sheet}-{name}")
        page.keyboard.press("Escape")
        page.wait_for_timeout(450)


DESK = ("", "people", "devices", "plan", "recipes", "recipes/tea_and_toast", "audit")


def sign_in(page: Any, invite: str) -> None:
    """Accept the admin's invite and sign in at the desk."""
    page.goto(invite)
    page.fill("#new", PASSWORD)
    page.click("#invite button")
    page.wait_for_selector("#sign-in:not([hidden])")
    page.fill("#password", PASSWORD)
    page.click("#sign-in button")
    page.wait_for_url("**/desk/room")


def desk(browser: Any, url: str, invite: str, recording: str, take: Camera) -> Any:
    """Every page of the desk; return who is signed in there."""
    page = browser.new_context(viewport=LANDSCAPE).new_page()
    page.goto(invite)
    take(page, "desk-invite")
    sign_in(page, invite)
    page.goto(f"{url}desk")
    take(page, "desk")
    for name in ("people", "devices", "plan", "recipes", "audit"):
        page.goto(f"{url}desk/{name}")
        take(page, f"desk-{name}")
    page.goto(f"{url}desk/devices")
    page.get_by_role("button", name="Pair a tablet").click()
    page.wait_for_selector("dialog[open] canvas")
    take(page, "desk-pairing-code")
    for name, address in (
        ("recipe", "desk/recipes/tea_and_toast"),
        ("recording", f"desk/recordings/{recording}"),
        ("script", f"desk/recordings/{recording}/script"),
    ):
        page.goto(f"{url}{address}")
        take(page, f"desk-{name}", whole=True)
    page.goto(f"{url}doctor")
    take(page, "doctor")
    return page.context.cookies()


def dressed_desk(browser: Any, url: str, cookies: Any, recording: str, take: Camera) -> None:
    """The desk's pages in other dresses."""
    for name in ("portrait", "phone", "dark", "200", "arabic"):
        context = browser.new_context(**DRESSES[name])
        context.add_cookies(cookies)
        page = context.new_page()
        for address in (*DESK, f"recordings/{recording}"):
            page.goto(f"{url}desk/{address}")
            take(
                page,
                f"desk-{address.partition('/')[0] + ('-one' if '/' in address else '')}-{name}",
                whole=True,
            )
        context.close()


def main() -> int:
    """Take all pictures; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=REPOSITORY / "docs" / "pictures")
    parser.add_argument("--all", action="store_true", help="every screen in every dress, to be looked at")
    arguments = parser.parse_args()
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    take = Camera(out)
    with demo() as (url, said), chromium() as browser:
        pin, code, invite = facts_of(said)
        context = browser.new_context(viewport=LANDSCAPE, permissions=["screen-wake-lock", "microphone"])
        tablet = Tablet(context.new_page(), url)
        recording = walk(tablet, pin, code, take)
        begun = other_ways(tablet, take)
        dressed(browser, tablet, [recording, begun], take)
        cookies = desk(browser, url, invite, recording, take)
        dressed_desk(browser, url, cookies, recording, take)
    if not arguments.all:
        shown = "".join(path.read_text(encoding="utf-8") for path in REPOSITORY.glob("docs/**/*.md"))
        for path in out.glob("*.png"):
            if f"pictures/{path.name}" not in shown:
                path.unlink()
    print(f"{take.count} pictures in {out}")
    return 1 if tablet.problems else 0


if __name__ == "__main__":
    sys.exit(main())
