"""Who cooked comes back after the end: waits for the video, adds and corrects errors, until the desk closes it."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from browser import Tablet, at_the_desk, on_screen, ops
from filmed_cooking import DONE_S, cook_on_film
from numbered_recording import FRAME_S, film_host_ns
from screens import serious, small_boxes
from typed_commands import answer

import kitchensync as ks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

SHOWN = "document.querySelector('.own-film').film.shown"
NEAR_NS = 10**8
TOUCHES = {"come back": 1, "add an error with a time": 6, "add an error": 4, "move an error": 4, "correct": 3}
"""What each takes, as measured."""


@dataclasses.dataclass
class CopyingRecorder:
    """A recorder that copies the camera's video while a test lets it."""

    is_copying: bool = True

    def report(self, recording: str) -> dict[str, Any]:
        """Nothing is wrong."""
        return {"health": "stopped", "reasons": [], "alarm": "", "host_ns": 0}

    def live(self, recording: str) -> dict[str, Any] | None:
        """A quarter is here after 40 seconds."""
        camera = {"fetched_bytes": 250, "promised_bytes": 1000, "fetching_since_ns": 10**9}
        cameras = {"gopro": camera | {"state": "fetching"}}
        return {"host_ns": 41 * 10**9, "cameras": cameras} if self.is_copying else None

    def room(self) -> list[dict[str, Any]]:
        """No recorder answers."""
        return []


def touches(tablet: Tablet) -> int:
    return int(tablet.page.evaluate("(window.touches ??= []).length"))


def frame(tablet: Tablet, at_s: float) -> None:
    """Wait until the film shows a second of its own."""
    tablet.page.wait_for_function(
        f"(frame) => Math.abs({SHOWN} - frame) <= 1", arg=round(at_s / FRAME_S), polling=50
    )
    tablet.rest()


def close_at_the_desk(kitchen: Any, browser: Any, recording: str) -> None:
    login = kitchen.desk("researcher").headers["x-kitchensync-login"]
    desk = at_the_desk(browser, kitchen.url, login)
    desk.go(f"/recordings/{recording}")
    desk.tap("Close the review")
    desk.page.get_by_role("button", name="Open the review again").wait_for()
    desk.page.context.close()


def test_errors_are_added_and_moved_on_the_video_after_the_end(
    kitchen: Any, browser: Any, tmp_path: Path
) -> None:
    recorder, counted = CopyingRecorder(), dict[str, int]()
    kitchen.__dict__["tools"] = dataclasses.replace(kitchen.tools, watch=recorder)
    kitchen.record("soup_1", "stopped")
    recording, folder, world = cook_on_film(kitchen)
    order = kitchen.tools.records.state(recording)["recording"]["order"]
    kitchen.now_ns = round(film_host_ns(world, 13.0 / FRAME_S))
    kitchen.post(kitchen.operation(recording, "end", {}))
    (video,) = folder.glob("gopro/*.MP4")
    shutil.move(video, tmp_path / video.name)  # it is not here yet
    with on_screen(kitchen, browser, has_touch=True) as tablet:
        page = tablet.page
        page.goto(f"{tablet.url}/t/rec/{recording}/review")
        tablet.screen("review")
        line = page.locator(".own-film [role=status]")
        line.get_by_text("The video is being copied, about 2 min").wait_for()
        tablet.tap("Finish")
        tablet.screen("done")
        tablet.saved()
        tablet.rest()
        before = touches(tablet)
        tablet.tap("Look at it again")
        tablet.screen("review")
        counted["come back"] = touches(tablet) - before
        line.get_by_text("The video is being copied, about 2 min").wait_for()
        shutil.move(tmp_path / video.name, video)
        recorder.is_copying = False
        page.locator("#film-play").wait_for(timeout=90_000)  # without loading the page

        before = touches(tablet)
        tablet.tap("Add an error")
        page.get_by_role("dialog").locator(".hint-row").nth(1).click()
        form = page.get_by_role("dialog", name="Add an error")
        form.get_by_text("No time set: the error will have no time.").wait_for()
        frame(tablet, DONE_S[1])  # where its step was touched last
        form.get_by_role("button", name="Technique").click()
        shown = page.evaluate(SHOWN) + 1
        form.get_by_role("button", name="+1", exact=True).click()
        page.wait_for_function(f"(at) => {SHOWN} === at", arg=shown)
        form.get_by_role("button", name="Set to the shown frame").click()
        form.get_by_text("When: 0:03.0").wait_for()  # since the first touch at 2.5 s
        assert small_boxes(page, 48) == []
        assert serious(page) == []
        form.get_by_role("button", name="Save").click()
        page.get_by_text("added afterwards").wait_for()
        counted["add an error with a time"] = touches(tablet) - before
        assert page.locator("main .own-film #film-play").is_visible(), "the film is back in the review"

        tablet.rest()
        before = touches(tablet)
        tablet.tap("Add an error")
        tablet.rest()
        page.get_by_role("dialog").locator(".hint-row").nth(2).click()
        form = page.get_by_role("dialog", name="Add an error")
        form.get_by_role("button", name="Timing").click()
        tablet.rest()
        form.get_by_role("button", name="Save").click()
        page.get_by_text("no time yet").wait_for()
        counted["add an error"] = touches(tablet) - before
        tablet.saved()
        timed, untimed = (op["body"]["fields"] for op in ops(kitchen, recording, "add_error"))
        assert abs(timed["at"] - film_host_ns(world, shown)) < NEAR_NS
        assert "at" not in untimed, "no touch is taken for the time of an error"

        tablet.rest()
        before = touches(tablet)
        page.get_by_role("button", name="Change").last.click()
        form = page.get_by_role("dialog")
        frame(tablet, DONE_S[2])
        form.get_by_role("button", name="−10 s").click()
        frame(tablet, 0.0)
        tablet.rest()
        form.get_by_role("button", name="Set to the shown frame").click()
        form.get_by_role("button", name="Save").click()
        page.get_by_text("no time yet").wait_for(state="detached")
        counted["move an error"] = touches(tablet) - before
        tablet.rest()
        before = touches(tablet)
        page.get_by_role("button", name="Change").first.click()
        form = page.get_by_role("dialog")
        form.get_by_role("button", name="Measurement").click()
        form.get_by_role("button", name="Save").click()
        form.wait_for(state="detached")
        counted["correct"] = touches(tablet) - before
        tablet.saved()
        assert all(counted[task] <= most for task, most in TOUCHES.items()), counted

        errors = {one["node"]: one for one in kitchen.tools.records.state(recording)["errors"].values()}
        assert (errors[order[1]]["categories"], errors[order[2]]["categories"]) == ([1], [3])
        assert abs(errors[order[2]]["at"] - film_host_ns(world, 0)) < NEAR_NS
        moved = ops(kitchen, recording, "edit_error")[-1]["body"]["fields"]
        assert "at" not in moved, "nobody moved it"

        tablet.rest()
        tablet.tap("Finish")
        tablet.screen("done")
        tablet.tap("Look at it again")
        tablet.screen("review")
        close_at_the_desk(kitchen, browser, recording)
        page.get_by_text("The review is closed").wait_for()  # without loading the page
        for name in ("Add an error", "Change", "Remove", "Keep the remark", "Voice note"):
            assert page.get_by_role("button", name=name, exact=True).count() == 0
        page.locator("#film-play").wait_for()
        tablet.rest()
        tablet.tap("Finish")
        tablet.screen("done")
        page.get_by_text("The review is closed").wait_for()
        assert page.get_by_role("button", name="Look at it again").count() == 0
    kitchen.tools.intake.file()
    with ks.open(folder) as rec:
        true_s = rec.clock.of_host([round(film_host_ns(world, at)) for at in (0, shown)]) / 1e9
        found = rec.errors
    assert sorted(found["categories"].explode()) == ["Measurement Error", "Timing Error"]
    assert abs(sorted(found["at_s"]) - true_s).max() < NEAR_NS / 1e9
    shutil.rmtree(kitchen.data / "soup_1")
    answer("release", "captaincook4d", kitchen.data, "--out", tmp_path / "release")
    lines = (tmp_path / "release" / "errors.jsonl").read_text().splitlines()
    released = {json.loads(line)["categories"][0]: json.loads(line)["at_s"] for line in lines}
    assert released.keys() == {"Measurement Error", "Timing Error"}
    assert abs(released["Timing Error"]) < NEAR_NS / 1e9
    assert abs(released["Measurement Error"] - shown * FRAME_S) < NEAR_NS / 1e9
