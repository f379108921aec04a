"""The last resort on a real tablet: saved as a file and filmed as codes while there is no network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import segno
from browser import LANDSCAPE, Tablet, chromium
from click.testing import CliRunner

from recipe_app.dump_pictures import frames_in
from recipe_app.store_cli import take_dump

pytestmark = pytest.mark.timeout(240)
QR = "async (text) => (await import('/static/core/qr.js')).qr(text)"


@pytest.fixture
def tablet(kitchen: Any) -> Iterator[Tablet]:
    kitchen.ticking = True
    assert kitchen.basil
    with chromium() as browser:
        made = Tablet(browser.new_context(viewport=LANDSCAPE).new_page(), kitchen.url)
        made.pair(kitchen.tools.door.pairing_code(kitchen.place, actor=""))
        made.sign_in("Basil", "482916")
        yield made
        assert made.problems == []


def film(tablet: Tablet, folder: Path) -> list[str]:
    """Take pictures of the codes that the tablet shows, as a phone would, until each was seen."""
    count = int(tablet.page.locator("dialog .progress", has_text="/").inner_text().split("/")[1])
    pictures: list[str] = []
    seen: set[str] = set()
    while len(seen) < count:
        assert len(pictures) < 60
        pictures.append(str(folder / f"{len(pictures)}.png"))
        tablet.page.locator(".frame-of-dump").screenshot(path=pictures[-1])
        seen |= set(frames_in(Path(pictures[-1])))
    return pictures


def test_what_waits_comes_in_by_file_and_by_codes_once(kitchen: Any, tablet: Tablet, tmp_path: Path) -> None:
    page = tablet.page
    largest = "KS1z:" + "aZ09_-" * 44 + "xy"
    reference = segno.make(largest, version=10, error="l", mask=0, boost_error=False, mode="byte")
    assert page.evaluate(QR, largest) == [[bool(dot) for dot in row] for row in reference.matrix]

    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    page.locator("html[data-offline=ready]").wait_for()
    tablet.tap("Begin", exact=True)
    while not [op for op in kitchen.tools.records.ops(recording) if op["kind"] == "awake"]:
        page.wait_for_timeout(50)
    tablet.saved()
    before = len(kitchen.tools.records.ops(recording))
    page.context.set_offline(True)
    tablet.done_offline(2)
    tablet.tap("Error", exact=True)
    tablet.tap("Timing")
    page.get_by_text("5 unsent").wait_for()
    page.goto(f"{tablet.url}/t/rec/{recording}/done")
    tablet.screen("done")
    with page.expect_download() as saved:
        tablet.tap("Save what waits to a file")
    file = tmp_path / "dump.json"
    saved.value.save_as(file)
    keys = {cookie["value"] for cookie in page.context.cookies()}
    assert len(keys) == 2
    assert not [key for key in keys if key in file.read_text()]  # what lets this tablet in is not in its dump
    tablet.tap("Show what waits as QR codes")
    pictures = film(tablet, tmp_path)
    assert len(pictures) > 2

    data = ["--data", str(kitchen.data), "--json"]
    codes = sorted({code for picture in pictures for code in frames_in(Path(picture))})
    by_codes = kitchen.desk("operator").post("/api/v1/desk/dumps", json={"text": "\n".join(codes)}).json()
    assert (by_codes["new"], by_codes["known"], by_codes["refused"]) == (5, 0, [])
    taken = kitchen.tools.records.ops(recording)[before:]
    assert [op["kind"] for op in taken] == ["done", "start", "done", "start", "error"]
    assert {op["basis"] for op in taken} == {"page"}  # as the tablet knew the clock when it was touched
    by_file = json.loads(CliRunner().invoke(take_dump, [str(file), *data]).stdout)
    assert (by_file["new"], by_file["known"]) == (0, 5)
    page.context.set_offline(False)
    page.reload()
    tablet.saved()
    assert kitchen.tools.records.ops(recording)[before:] == taken
