"""The last resort on a real tablet: saved as a file while there is no network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import LANDSCAPE, Tablet, at_the_desk, chromium
from click.testing import CliRunner
from screens import fit_to_be_shown, small_boxes

from kitchensync.cli import main
from kitchensync.recipe_app.web.door.access import LOGIN_HEADER

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def tablet(kitchen: Any) -> Iterator[Tablet]:
    kitchen.ticking = True
    assert kitchen.basil
    with chromium() as browser:
        made = Tablet(browser.new_context(viewport=LANDSCAPE).new_page(), kitchen.url)
        made.pair(kitchen.tools.accounts.pairing_code(kitchen.place, actor=""))
        made.sign_in("Basil", "482916")
        yield made
        assert made.problems == []


def give(desk: Any, *files: str) -> None:
    """Choose files in the desk's form and send them."""
    desk.get_by_label("File", exact=True).set_input_files(list(files))
    desk.get_by_role("button", name="Take it in").click()
    desk.get_by_role("button", name="Take it in", disabled=False).wait_for()


@pytest.mark.slow
def test_what_waits_comes_in_once_by_file(kitchen: Any, tablet: Tablet, tmp_path: Path) -> None:
    page = tablet.page
    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    page.locator("html[data-offline=ready]").wait_for()
    tablet.begin_first_step(kitchen, recording)
    before = len(kitchen.tools.records.ops(recording))
    page.context.set_offline(True)
    tablet.done_offline(2)
    tablet.tap("Error", exact=True)
    tablet.tap("Timing")
    page.get_by_text("5 unsent").wait_for()
    page.goto(f"{tablet.url}/t/choose")  # whoever wants to leave is told what waits, and how to save it
    tablet.screen("choose")
    tablet.tap("Sign out")
    page.locator("dialog").get_by_text("5 entries are not sent yet").wait_for()
    assert small_boxes(page, 48) == []
    with page.expect_download() as saved:
        tablet.tap("Save what waits to a file")
    left = json.loads(Path(saved.value.path()).read_text())["content"]
    page.goto(f"{tablet.url}/t/rec/{recording}/done")
    tablet.screen("done")
    with page.expect_download() as saved:
        tablet.tap("Save what waits to a file")
    file = tmp_path / "dump.json"
    saved.value.save_as(file)
    keys = {cookie["value"] for cookie in page.context.cookies()}
    assert len(keys) == 2
    held = json.loads(file.read_text())["content"]
    assert json.loads(left)["waiting"] == json.loads(held)["waiting"]
    assert not [key for key in keys if key in held]  # what lets this tablet in is not in its dump
    assert not {"Basil", "482916"} & set(re.findall(r"[A-Za-z]+|[0-9]+", held))

    data = ["--data", str(kitchen.data), "--json"]
    login = kitchen.desk("operator").headers[LOGIN_HEADER]
    desk = at_the_desk(page.context.browser, kitchen.url, login).page
    desk.goto(f"{kitchen.url}/desk/devices")
    fit_to_be_shown(desk)
    give(desk, str(file))
    desk.get_by_text("New: 5 · here already: 0 · voice notes: 0 · refused: 0").wait_for()
    taken = kitchen.tools.records.ops(recording)[before:]
    assert [op["kind"] for op in taken] == ["done", "start", "done", "start", "error"]
    assert {op["basis"] for op in taken} == {"page"}  # as the tablet knew the clock when it was touched
    give(desk, str(file))
    desk.get_by_text("New: 0 · here already: 5").wait_for()
    (tmp_path / "other.json").write_text("{}")
    give(desk, str(tmp_path / "other.json"))
    desk.get_by_text("other.json: dump: is damaged or no dump of a tablet").wait_for()
    fit_to_be_shown(desk)
    by_file = json.loads(CliRunner().invoke(main, ["take-dump", str(file), *data]).stdout)
    assert (by_file["new"], by_file["known"]) == (0, 5)
    page.context.set_offline(False)
    page.reload()
    tablet.saved()
    assert kitchen.tools.records.ops(recording)[before:] == taken
