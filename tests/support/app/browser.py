"""A real browser with a tablet's screen: Debian's Chromium, driven as by a person."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    *("--disable-gpu", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--use-fake-device-for-media-stream"),
    *("--use-fake-ui-for-media-stream",),
]
PATIENCE_MS = 45_000
"""Time that a test waits for an expected event, milliseconds: a shared computer may stall for a while."""
DEAD_MS = 420
"""The app ignores a second tap within 400 ms; this is a little longer."""
PIN = "482916"
WATCH_TOUCHES = (
    "document.addEventListener('pointerdown', () => (window.touches ??= []).push(performance.now()), true)"
)
"Records the times of first contacts, for tests."
LANDSCAPE, PORTRAIT = {"width": 1280, "height": 800}, {"width": 800, "height": 1280}


def playwright_api() -> Any:
    """Return Playwright. Skips the test with a reason if it is not installed."""
    return pytest.importorskip(
        "playwright.sync_api", reason="no playwright here; it comes with the dev extra"
    )


@contextlib.contextmanager
def chromium(*flags: str, home: Path | None = None) -> Iterator[Any]:
    """Start and yield the browser. Skips the test with a reason without one. `home` has its certificates."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this computer; `make system` installs it")
    env = {
        name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"
    }  # it leaves files there
    env |= {"HOME": str(home)} if home is not None else {}
    with playwright_api().sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *flags], env=env)
        try:
            yield browser
        except Exception as error:
            for page in (page for context in browser.contexts for page in context.pages):
                error.add_note(_content_of(page))
            raise
        finally:
            browser.close()


def _content_of(page: Any) -> str:
    """Return the address and the text of a page, for a failed test."""
    try:
        words = page.evaluate("document.body.innerText")
    except playwright_api().Error as error:
        words = f"(no answer: {error})"
    return f"{page.url}:\n{words[:2000]}"


class Tablet:
    """A page of the tablet and the actions on it."""

    def __init__(self, page: Any, url: str) -> None:
        self.page, self.url = page, url.rstrip("/")
        self.problems: list[str] = []
        self.happened: deque[str] = deque(maxlen=60)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda message: self._note("console", message.text))
        page.on("request", lambda request: self._note("asked", request.url))
        page.on("requestfinished", lambda request: self._note("answered", request.url))
        page.on("requestfailed", lambda request: self._note("failed", f"{request.url} {request.failure}"))
        page.set_default_timeout(PATIENCE_MS)

    def _note(self, what: str, about: str) -> None:
        self.happened.append(f"{time.monotonic():.1f} s {what} {about}")

    def tap(self, name: str, *, exact: bool = False) -> None:
        """Touch a button by its text."""
        self.page.get_by_role("button", name=name, exact=exact).first.click()

    def end_early(self) -> None:
        """End cooking early: started steps are not finished, the others were never started."""
        self.tap("End", exact=True)
        self.tap("Yes, to the review")
        rest = self.page.locator("dialog .rest")
        rest.wait_for()
        for chip in rest.get_by_role("button", name="Not finished").all():
            chip.click()
        self.rest()
        rest.get_by_role("button", name="Stopped early").click()

    def screen(self, name: str) -> None:
        """Wait for a screen; if it does not come, fail with the page's content and last requests."""
        try:
            self.page.wait_for_selector(f'body[data-screen="{name}"]')
        except playwright_api().TimeoutError:
            now = f"{time.monotonic():.1f} s"
            shown: Any = "a page that does not answer"
            with contextlib.suppress(playwright_api().Error):
                shown = self.page.evaluate(
                    "[document.body.dataset.screen, document.visibilityState, document.body.innerText]"
                )
            pytest.fail("\n".join([f"{name!r} did not come by {now}", repr(shown), *self.happened]))

    def pair(self, code: str) -> None:
        """Pair by typing the code."""
        self.page.goto(f"{self.url}/t/pair")
        self.page.get_by_label("Code").fill(code)
        self.tap("Pair", exact=True)
        self.screen("sign-in")

    def sign_in(self, pseudonym: str, pin: str) -> None:
        """Touch the tile, type the PIN on the pad."""
        self.tap(pseudonym)
        self.screen("pin")
        for digit in pin:
            self.tap(digit, exact=True)
        self.screen("choose")

    def begin(self, recipe: str, *, strategy: str = "normal", display: str = "steps") -> str:
        """Stage 1: choose and begin; return the recording's id."""
        self.page.locator("#recipes").get_by_role("button", name=recipe).click()
        self.screen("recipe")
        self.page.locator(f'input[name="strategy"][value="{strategy}"]').check()
        self.page.locator(f'input[name="display"][value="{display}"]').check()
        self.tap("Begin", exact=True)
        self.instructed()
        return str(self.page.url.split("/")[-2])

    def instructed(self) -> None:
        """Leave the page of instructions by its single button."""
        self.screen("instructions")
        self.tap("Continue", exact=True)
        self.page.wait_for_selector('body[data-screen="prepare"], body[data-screen="checklist"]')

    def to_checklist(self) -> None:
        """Go on to the checklist, also from the planning of errors."""
        if self.page.locator('body[data-screen="prepare"]').count():
            self.tap("Ready: to the checklist")
        self.screen("checklist")

    def checklist(self) -> None:
        """Tick everything, name the second person, start."""
        self.to_checklist()
        for box in self.page.get_by_role("checkbox").all():
            box.click()
        self.page.get_by_label("Pseudonym of the second person").fill("Clove")
        self.page.locator("#start").click()
        self.screen("follow")

    def begin_first_step(self, kitchen: Any, recording: str) -> None:
        """Touch Begin; wait until the server has this and the report that the screen is kept on."""
        self.tap("Begin", exact=True)
        while not {"start", "awake"} <= {op["kind"] for op in kitchen.tools.records.ops(recording)}:
            self.page.wait_for_timeout(50)
        self.saved()

    def rest(self) -> None:
        """Wait until the same button may be touched again."""
        self.page.wait_for_timeout(DEAD_MS)

    def done_offline(self, steps: int) -> None:
        """Touch Done for a number of steps without network; each adds two unsent operations."""
        for step in range(1, steps + 1):
            self.rest()
            self.page.locator("footer .done").click()
            self.page.get_by_text(f"{2 * step} unsent").wait_for()
        self.rest()

    def saved(self) -> None:
        """Wait until the server has everything."""
        self.page.locator("#saved", has_text="All saved").wait_for()


@contextlib.contextmanager
def on_screen(
    kitchen: Any, browser: Any, viewport: dict[str, int] = LANDSCAPE, **more: Any
) -> Iterator[Tablet]:
    """Yield a tablet at the list of recipes with Basil signed in. An error in a page's script fails the test."""
    kitchen.ticking = True
    context = browser.new_context(viewport=viewport, permissions=["screen-wake-lock", "microphone"], **more)
    context.add_init_script(WATCH_TOUCHES)
    device, token = kitchen.pair("Tablet by the stove")
    login = kitchen.tools.accounts.sign_in(kitchen.basil, "pin", PIN, device=device, desk=False)
    cookies = {"ks_device": token, "ks_login": login}
    context.add_cookies(
        [{"name": name, "value": value, "url": kitchen.url} for name, value in cookies.items()]
    )
    tablet = Tablet(context.new_page(), kitchen.url)
    tablet.page.goto(f"{tablet.url}/t/choose")
    tablet.screen("choose")
    yield tablet
    assert tablet.problems == []
    context.close()


def ops(kitchen: Any, recording: str, kind: str) -> list[dict[str, Any]]:
    """Return the logged operations of one kind of a recording."""
    return [op for op in kitchen.tools.records.ops(recording) if op["kind"] == kind]


class Desk:
    """The desk in a browser, used as by a person."""

    def __init__(self, page: Any, url: str) -> None:
        self.page, self.url = page, url.rstrip("/")
        self.problems: list[str] = []
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.set_default_timeout(PATIENCE_MS)

    def go(self, path: str = "") -> None:
        """Open a page by its path below `/desk`."""
        self.page.goto(f"{self.url}/desk{path}")

    def follow(self, link: str) -> None:
        """Click a link by its text."""
        self.page.get_by_role("link", name=link).click()

    def tap(self, button: str) -> None:
        """Click a button by its text."""
        self.page.get_by_role("button", name=button).click()

    def fill(self, label: str, text: str) -> None:
        """Type into a field by its label."""
        self.page.get_by_label(label).fill(text)

    def secret(self, part: str = "") -> str:
        """Wait for a code or link that is shown once and contains `part`; return it."""
        shown = self.page.locator("dialog[open] #result-text", has_text=part)
        shown.wait_for()
        return str(shown.inner_text())


def at_the_desk(browser: Any, url: str, login: str) -> Desk:
    """Return the desk of a signed-in person; `login` is their token."""
    context = browser.new_context(viewport=LANDSCAPE)
    context.add_cookies([{"name": "ks_login", "value": login, "url": url}])
    return Desk(context.new_page(), url)
