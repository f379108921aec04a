"""The last resort on a real tablet: saved as a file and filmed as codes while there is no network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import pytest
import segno
from browser import LANDSCAPE, Tablet, at_the_desk, chromium
from click.testing import CliRunner
from screens import fit_to_be_shown, small_boxes

from kitchensync.cli import main
from kitchensync.recipe_app.exchange.dump_pictures import frames_in
from kitchensync.recipe_app.exchange.dumps import join_frames
from kitchensync.recipe_app.web.door.access import LOGIN_HEADER

pytestmark = pytest.mark.timeout(240)
QR = "async (text) => (await import('/static/core/qr.js')).qr(text)"


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


def film(tablet: Tablet, folder: Path) -> list[str]:
    """Take pictures of the codes that the tablet shows, as a phone would, until each was seen."""
    count = int(tablet.page.locator("dialog .progress", has_text="/").inner_text().split("/")[1])
    pictures: list[str] = []
    seen: set[str] = set()
    while len(seen) < count:
        assert len(pictures) < 60
        pictures.append(str(folder / f"{len(pictures)}.png"))
        tablet.page.locator(".frame-of-dump").screenshot(path=pictures[-1])
        seen |= set(codes_in(pictures[-1]))
    return pictures


def as_film(pictures: list[str], path: Path) -> None:
    """The same pictures as a phone films them: 30 a second, each code for 0.4 s."""
    images = [cv2.imread(picture) for picture in pictures]
    side = max(max(image.shape[:2]) for image in images) // 2 * 2 + 2
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), 30, (side, side))
    for image in images:
        below, right = side - image.shape[0], side - image.shape[1]
        whole = cv2.copyMakeBorder(image, 0, below, 0, right, cv2.BORDER_CONSTANT, value=(255, 255, 255))
        for _ in range(12):
            writer.write(whole)
    writer.release()


def codes_in(picture: str) -> list[str]:
    """The codes of a picture."""
    return frames_in(Path(picture), film=False, name="picture")


def give(desk: Any, *files: str) -> None:
    """Choose files in the desk's form and send them."""
    desk.get_by_label("File, pictures or film").set_input_files(list(files))
    desk.get_by_role("button", name="Take it in").click()
    desk.get_by_role("button", name="Take it in", disabled=False).wait_for()


@pytest.mark.slow
def test_what_waits_comes_in_by_file_and_by_codes_once(kitchen: Any, tablet: Tablet, tmp_path: Path) -> None:
    page = tablet.page
    largest = "KS1z:" + "aZ09_-" * 44 + "xy"
    reference = segno.make(largest, version=10, error="l", mask=0, boost_error=False, mode="byte")
    assert page.evaluate(QR, largest) == [[bool(dot) for dot in row] for row in reference.matrix]

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
    tablet.tap("Show what waits as QR codes")
    pictures = film(tablet, tmp_path)
    assert len(pictures) > 2

    data = ["--data", str(kitchen.data), "--json"]
    login = kitchen.desk("operator").headers[LOGIN_HEADER]
    desk = at_the_desk(page.context.browser, kitchen.url, login).page
    desk.goto(f"{kitchen.url}/desk/devices")
    fit_to_be_shown(desk)
    of = {code: picture for picture in pictures for code in codes_in(picture)}
    filmed = join_frames(of, "film")
    assert json.loads(filmed)["waiting"] == json.loads(held)["waiting"]
    assert not [key for key in keys if key in filmed]
    half, rest = sorted(of.values())[1:], sorted(of.values())[:1]
    give(desk, *half)
    desk.get_by_text(f"of {len(of)}. Film them again").wait_for()
    assert len(kitchen.tools.records.ops(recording)) == before
    as_film(rest, tmp_path / "rest.mp4")
    give(desk, str(tmp_path / "rest.mp4"))
    desk.get_by_text("New: 5 · here already: 0 · voice notes: 0 · refused: 0").wait_for()
    taken = kitchen.tools.records.ops(recording)[before:]
    assert [op["kind"] for op in taken] == ["done", "start", "done", "start", "error"]
    assert {op["basis"] for op in taken} == {"page"}  # as the tablet knew the clock when it was touched
    give(desk, str(file))
    desk.get_by_text("New: 0 · here already: 5").wait_for()
    whole = tmp_path / "screen.mp4"
    as_film(pictures, whole)
    give(desk, str(whole))
    desk.get_by_text("New: 0 · here already: 5").wait_for()
    (tmp_path / "blank.png").write_bytes(desk.screenshot())
    give(desk, str(tmp_path / "blank.png"))
    desk.get_by_text("blank.png: this picture: no frame of a dump can be read in it").wait_for()
    fit_to_be_shown(desk)
    by_file = json.loads(CliRunner().invoke(main, ["take-dump", str(file), *data]).stdout)
    assert (by_file["new"], by_file["known"]) == (0, 5)
    page.context.set_offline(False)
    page.reload()
    tablet.saved()
    assert kitchen.tools.records.ops(recording)[before:] == taken
