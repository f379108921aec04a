"""The app as started by its command, set up in a browser: rigs, the first sign-in, kitchens, cooks, tablets."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from browser import LANDSCAPE, Tablet
from processes import COMMAND, running
from waiting import until

from kitchensync.capture.plan import is_running, runtime_folder

PIN, PASSWORD = "482916", "a long enough pass phrase"


def write_rig(path: Path, headset: str, camera: str = "") -> Path:
    """Write the rig file of a headset, and a camera; return its path."""
    text = f'streams = ["pv", "gyroscope", "accelerometer"]\n[hololens]\nhololens = "{headset}"\n'
    path.write_text(text + (f'[gopro]\ngopro = "{camera}"\n' if camera else ""))
    return path


@contextmanager
def app_of(data: Path, rigs: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Run the app with rigs, as for `--rig`; yield its address and the invite of its first start."""
    command = [COMMAND, "app", "--data", str(data), "--port", "0"]
    command += [word for rig in rigs for word in ("--rig", rig)]
    with running(command, stdout=subprocess.PIPE) as server:
        lines: list[str] = []
        for line in server.stdout:
            lines.append(line)
            if line.startswith("ready app="):
                break
        invite = next(line.partition("#")[2].strip() for line in lines if line.startswith("invite="))
        yield lines[-1].partition("=")[2].strip(), invite


def sign_in_first(page: Any, url: str, invite: str) -> None:
    """Accept the invite of the first start and sign in."""
    page.goto(f"{url}desk/sign-in#{invite}")
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_role("button", name="Save").click()
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in at the desk").click()


def add_kitchen(page: Any, name: str) -> str:
    """Add a kitchen on the open page; return the code that pairs a tablet with it."""
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Add a kitchen").click()
    place = page.locator("section", has=page.get_by_role("heading", name=name, exact=True))
    place.get_by_role("button", name="Pair a tablet").click()
    return str(page.locator("dialog[open] #result-text").inner_text())


def add_cook(page: Any, url: str, name: str) -> None:
    """Add a cook with a PIN."""
    page.goto(f"{url}desk/people")
    page.get_by_label("Pseudonym").fill(name)
    page.locator("#pin").fill(PIN)
    page.get_by_role("button", name="Add a person").click()
    page.get_by_role("cell", name=name).wait_for()


def tablet_of(browser: Any, url: str, code: str, cook: str) -> Tablet:
    """Return a paired tablet with a signed-in cook. It closes alarms: on a busy computer a device may fall silent."""
    context = browser.new_context(viewport=LANDSCAPE, permissions=["screen-wake-lock"])
    tablet = Tablet(context.new_page(), url)
    tablet.page.add_locator_handler(tablet.page.locator(".alarm .call"), lambda button: button.click())
    tablet.pair(code)
    tablet.sign_in(cook, PIN)
    return tablet


def wait_for_end(folder: Path, limit_s: float = 150) -> dict[str, Any]:
    """Wait until a recording is complete and its videos are copied; return its manifest."""
    until(lambda: not is_running(runtime_folder(folder)), f"the end of {folder.name}", limit_s=limit_s)
    manifest: dict[str, Any] = json.loads((folder / "recording.json").read_text())
    assert manifest["state"] != "recording"
    return manifest
