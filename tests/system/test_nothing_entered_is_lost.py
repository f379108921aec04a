"""Seeded histories in a real browser: the page is reloaded, the network goes, the server is killed, at random.

What the screen had shown is what the log then holds, each touch exactly once. KITCHENSYNC_HISTORIES=300 runs many.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser import LANDSCAPE, Tablet, chromium
from processes import COMMAND

from kitchensync.operations.reduce import reduce_log
from kitchensync.recipe_app.store import oplog
from kitchensync.recipe_app.store.database import open_database
from kitchensync.virtual_kitchen.tablet import Desk

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(0 if "KITCHENSYNC_HISTORIES" in os.environ else 300),
]
HISTORIES = int(os.environ.get("KITCHENSYNC_HISTORIES", "2"))


class App:
    """The app as a process that can be killed and started again on the same port and data."""

    def __init__(self, data: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.data, self.url, self.invite = data, f"http://127.0.0.1:{self.port}/", ""
        self.process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        command = [COMMAND, "app", "--data", str(self.data), "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.startswith("invite="):
                self.invite = line.partition("#")[2].strip()
            if line.startswith("ready "):
                return

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process = None


class Hand:
    """Touches the screen, and remembers what the screen then showed."""

    def __init__(self, tablet: Tablet) -> None:
        self.tablet, self.page = tablet, tablet.page
        self.stands: list[str] = []
        self.made: list[str] = []

    @property
    def done(self) -> int:
        return self.stands.count("done")

    def see(self) -> None:
        """Wait until the screen says what was done; only then is it promised."""
        self.page.get_by_text(f"{self.done} / 11", exact=True).wait_for()
        self.tablet.rest()

    def touch_done(self) -> None:
        if self.done < 9:
            self.page.locator("footer .done").click()
            self.stands.append("done")
            self.made.append("done")
            self.see()

    def touch_error(self) -> None:
        self.tablet.tap("Error", exact=True)
        self.page.locator(".tile").nth(random.randrange(8)).click()
        self.page.locator(".tile").first.wait_for(state="detached")
        self.stands.append("error")
        self.made.append("error")
        self.tablet.rest()

    def touch_undo(self) -> None:
        if self.stands:
            self.page.get_by_role("button", name="Undo").click()
            self.stands.pop()
            self.made.append("undo")
            self.see()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[App, Any]]:
    """The app and a signed-in tablet that may work offline."""
    app = App(tmp_path_factory.mktemp("lost") / "data")
    with contextlib.ExitStack() as stack:
        stack.callback(app.kill)
        with httpx.Client(base_url=app.url, timeout=60) as client:
            desk = Desk(client)
            keys = desk.set_up(app.invite, pseudonym="Basil")
        context = stack.enter_context(chromium()).new_context(viewport=LANDSCAPE)
        cookies = {"ks_device": keys.device, "ks_login": keys.login}
        context.add_cookies(
            [{"name": name, "value": value, "url": app.url} for name, value in cookies.items()]
        )
        yield app, context


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_what_the_screen_showed_is_in_the_log_once(world: tuple[App, Any], seed: int) -> None:
    app, context = world
    rng = random.Random(f"history {seed}")
    page = context.new_page()
    tablet = Tablet(page, app.url)
    page.goto(f"{app.url}t/choose")
    tablet.screen("choose")
    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    page.locator("html[data-offline=ready]").wait_for()
    tablet.tap("Begin", exact=True)
    tablet.rest()
    hand = Hand(tablet)
    for _ in range(14):
        happening = rng.choice(
            ("done", "done", "done", "error", "undo", "offline", "online", "reload", "kill", "start")
        )
        if happening in ("done", "error", "undo"):
            getattr(hand, f"touch_{happening}")()
        elif happening in ("offline", "online"):
            context.set_offline(happening == "offline")
        elif happening == "reload":
            page.reload()
            tablet.screen("follow")
            hand.see()
        elif happening == "kill":
            app.kill()
        elif app.process is None:
            app.start()
    context.set_offline(False)
    if app.process is None:
        app.start()
    tablet.saved()
    page.close()
    assert tablet.problems == []
    judge(app, recording, hand)


def judge(app: App, recording: str, hand: Hand) -> None:
    """The log against what the hand did."""
    database = open_database(app.data / "_app" / "app.db")
    with database.reading() as connection:
        ops = oplog.ops_of(connection, recording)
        assert oplog.first_fault(connection) is None
    database.close()
    touched = [op["kind"] for op in ops if op["kind"] in ("done", "error", "undo")]
    assert touched == hand.made
    state = reduce_log(ops)
    assert sum(step["state"] == "done" for step in state["steps"].values()) == hand.done
    assert len(state["errors"]) == hand.stands.count("error")
    numbers = [op["seq"] for op in ops if op["device"] != "server"]
    assert numbers == sorted(set(numbers))
