"""Moments of errors marked on the video by keyboard alone, and ruled on, in a real browser."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser import Desk, at_the_desk, chromium
from click.testing import CliRunner
from filmed_cooking import cook_on_film
from numbered_recording import FRAME_S, film_host_ns
from screens import serious

from kitchensync.cli import main
from kitchensync.recipe_app.review.judged_answers import ERRORS
from kitchensync.recipe_app.store.app_records import new_id
from kitchensync.virtual_kitchen.kitchen import Kitchen

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FILM = "document.getElementById('judge').film"
TOUCHED = 207
"""The frame at which the first error was entered on the tablet."""
NEAR = 1
"""Frames that touches and film may lie apart: what the alignment leaves."""
MARKED = {"at": 8, "end": 20, "point_of_no_return": 12, "noticed_at": 14, "corrected_at": 18}
COLUMNS = dict(
    zip(MARKED, ("at_s", "end_s", "point_of_no_return_s", "noticed_s", "corrected_s"), strict=True)
)
KEYS = dict(zip(MARKED, "bepnc", strict=True))


def enter(kitchen: Any, recording: str, world: Kitchen, frames: Sequence[int]) -> list[str]:
    """Enter an error on the tablet at each of the film's frames; return their ids."""
    order = kitchen.tools.records.state(recording)["recording"]["order"]
    errors = [f"0190a000-0000-7000-8000-{number:012}" for number in range(len(frames))]
    for number, (error, frame) in enumerate(zip(errors, frames, strict=True)):
        kitchen.now_ns = round(film_host_ns(world, frame))
        fields = {"node": order[(1 + number) % len(order)], "categories": [4]}
        body, stamp = {"error_id": error, "fields": fields}, {"tapped_ms_ago": 0.0, "round_trip_ms": 1.0}
        kitchen.post(kitchen.operation(recording, "error", body, **stamp))
    kitchen.tools.intake.file()
    return errors


def opened(kitchen: Any, browser: Any, who: httpx.Client, recording: str) -> Desk:
    desk = at_the_desk(browser, kitchen.url, who.headers["x-kitchensync-login"])
    desk.go(f"/recordings/{recording}/errors")
    desk.page.locator(".moments [data-moment]").first.wait_for(timeout=60_000)
    return desk


def press(desk: Desk, *keys: str) -> None:
    for key in keys:
        desk.page.keyboard.press(key)


def go_to(desk: Desk, frame: int) -> None:
    """Show a frame by the keys that step."""
    press(desk, *["Shift+ArrowLeft"] * 3, *["ArrowRight"] * frame)
    desk.page.wait_for_function(f"() => {FILM}.shown === {frame} && !{FILM}.video.seeking")


def moment(desk: Desk, name: str) -> Any:
    return desk.page.locator(f"[data-moment='{name}']")


def is_put(desk: Desk, name: str, frame: int | None) -> None:
    """Wait until a moment is kept; while people rule, their answers stand beside it."""
    words = "none" if frame is None else f"(frame {frame})"
    moment(desk, name).locator(f"[data-key='at {name}']", has_text=words).wait_for()


def loops(desk: Desk, frame: int) -> None:
    """Wait until the video has played to the end of the loop about a frame, and from its start again."""
    half = round(3 / FRAME_S / 2)
    first, last = max(0, frame - half), frame + half
    page = desk.page
    assert page.evaluate(f"{FILM}.loop") == [first, last]
    page.wait_for_function(f"() => {FILM}.shown >= {frame + half // 2}")
    page.wait_for_function(f"() => {FILM}.shown <= {frame} && !{FILM}.video.paused")


def tab_to(desk: Desk, selector: str) -> None:
    """Move the focus by Tab to what a selector names."""
    for _ in range(200):
        press(desk, "Tab")
        if desk.page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    pytest.fail(f"Tab does not lead to {selector}")


def answer_by_keys(desk: Desk, questions: int) -> None:
    """Choose the first answer of every question, by Tab and Space."""
    left = desk.page.locator("#left")
    for _ in range(questions):
        tab_to(desk, "fieldset:not(:has(:checked)) input[type=radio]")
        before = left.inner_text()
        press(desk, "Space")
        desk.page.wait_for_function(
            "(before) => document.getElementById('left').innerText !== before", arg=before
        )


def test_one_person_marks_by_keyboard_and_another_rules(kitchen: Any) -> None:
    recording, folder, world = cook_on_film(kitchen)
    first, second = enter(kitchen, recording, world, (TOUCHED, TOUCHED + 60))
    address = f"/api/v1/desk/recordings/{recording}/errors"
    ann, ben, third = (kitchen.desk("researcher") for _ in range(3))
    with chromium() as browser:
        desk = opened(kitchen, browser, ann, recording)
        page = desk.page
        for error, frames in ((first, MARKED | {"corrected_at": 500}), (second, {"at": 333, "end": 444})):
            for question, (answer, *_) in ERRORS.questions.items():
                give(ben, address, item=error, question=question, answer=answer)
            for name, frame in frames.items():
                give(ben, address, item=error, moment=name, frame=frame)
        assert ben.post(f"{address}/submit", json={}).status_code == 200
        page.reload()
        page.locator(".moments [data-moment]").first.wait_for(timeout=60_000)

        tablet = page.get_by_role("button", name="Tablet: ").inner_text()
        shown = int(tablet.split("frame ")[1].split(")")[0])
        assert abs(shown - TOUCHED) <= NEAR
        assert 0 < float(tablet.split("± ")[1].split()[0]) < 1
        rows = page.locator(".judged > li")
        press(desk, "j")
        assert rows.nth(1).get_attribute("aria-current") == "true"
        press(desk, "ArrowUp")
        assert rows.nth(0).get_attribute("aria-current") == "true"
        assert rows.nth(1).get_attribute("aria-current") is None

        go_to(desk, 10)
        press(desk, "b")
        is_put(desk, "at", 10)
        loops(desk, 10)
        go_to(desk, MARKED["at"])
        press(desk, "b")  # put again: the first one is undone
        is_put(desk, "at", MARKED["at"])
        press(desk, "Shift+N")
        moment(desk, "noticed_at").locator("span", has_text="none").wait_for()
        go_to(desk, 5)
        press(desk, "e")
        page.get_by_text("no moment of an error is before its begin").wait_for()
        for name in ("point_of_no_return", "noticed_at", "corrected_at", "end"):
            go_to(desk, MARKED[name])
            press(desk, KEYS[name])
            is_put(desk, name, MARKED[name])
        loops(desk, MARKED["end"])
        assert ann.get(address).json()["moments"] == {first: MARKED}
        assert serious(page) == []

        answer_by_keys(desk, 2 * len(ERRORS.questions))
        page.get_by_text("2 questions left").wait_for()
        press(desk, "j")
        assert rows.nth(1).get_attribute("aria-current") == "true"
        go_to(desk, 30)
        press(desk, "b")
        is_put(desk, "at", 30)
        press(desk, "Shift+E")
        page.get_by_text("0 questions left").wait_for()
        text = page.locator("body").inner_text()
        assert not [frame for frame in (333, 444, 500) if f"frame {frame}" in text]
        tab_to(desk, "#submit")
        press(desk, "Enter")
        page.get_by_text("Median difference").wait_for()
        page.get_by_text("3 answers to rule on").wait_for()
        assert desk.problems == []

        desk = opened(kitchen, browser, third, recording)
        page = desk.page
        given = moment(desk, "corrected_at")
        given.get_by_text("(frame 18)").wait_for()
        tab_to(desk, "[data-key='0 corrected_at']")
        assert "(frame 500)" in page.evaluate("document.activeElement.innerText")
        press(desk, "Enter")
        page.wait_for_function(f"() => {FILM}.shown > 450")
        go_to(desk, 19)
        press(desk, "c")
        is_put(desk, "corrected_at", 19)
        page.get_by_text("2 answers to rule on").wait_for()
        press(desk, "j", "Shift+B")
        page.get_by_text("1 answer to rule on").wait_for()
        go_to(desk, 40)
        press(desk, "e")
        page.get_by_text("0 answers to rule on").wait_for()
        tab_to(desk, "#accept")
        press(desk, "Enter")
        page.get_by_text("Kept in annotations/").wait_for()
        assert desk.problems == []
    kept = json.loads((folder / "annotations" / "errors-1.json").read_text())
    assert [(error["moments"], error["ruled"]) for error in kept["errors"]] == [
        ({name: frame + 1 for name, frame in (MARKED | {"corrected_at": 19}).items()}, ["corrected_at"]),
        ({"at": None, "end": 41}, ["at", "end"]),
    ]


@pytest.mark.timeout(1200)
def test_two_people_mark_thirty_errors_blind_by_keyboard(kitchen: Any, tmp_path: Path) -> None:
    """Each error has its moments near the touch; some are `none`, some the second person sees elsewhere."""
    recording, folder, world = cook_on_film(kitchen)
    errors = enter(kitchen, recording, world, [40 + 20 * k for k in range(30)])
    address = f"/api/v1/desk/recordings/{recording}/errors"
    draw = random.Random(29)
    true = {error: moments_near(draw, 40 + 20 * k) for k, error in enumerate(errors)}
    disputed = {(error, draw.choice(list(true[error]))) for error in draw.sample(errors, 6)}
    other = {error: dict(moments) for error, moments in true.items()}
    for error, name in disputed:
        frame = true[error][name]
        other[error][name] = (true[error]["at"] or 0) + 15 if frame is None else None
    people, third = [kitchen.desk("researcher") for _ in range(2)], kitchen.desk("researcher")
    with chromium() as browser:
        for person, marked in zip(people, (true, other), strict=True):
            for error in errors:
                for question, (answer, *_) in ERRORS.questions.items():
                    give(person, address, item=error, question=question, answer=answer)
            desk = opened(kitchen, browser, person, recording)
            assert not desk.page.locator("[data-moment] [data-key^='at ']").count()
            for number, error in enumerate(errors):
                if number:
                    press(desk, "j")
                mark(desk, marked[error])
            assert person.get(address).json()["moments"] == marked
            desk.page.get_by_text("0 questions left").wait_for()
            tab_to(desk, "#submit")
            press(desk, "Enter")
            desk.page.get_by_text("Submitted").wait_for()
            assert desk.problems == []

        found = third.get(address).json()
        assert {(one["item"], one["question"]) for one in found["disputed"]} == disputed
        for name, agreement in found["agreement_of_moments"].items():
            pairs = [(true[error][name], other[error][name]) for error in errors if name in true[error]]
            assert agreement["share"] == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))
        desk = opened(kitchen, browser, third, recording)
        for number, error in enumerate(errors):
            if number:
                press(desk, "j")
            mark(desk, {name: true[error][name] for one, name in disputed if one == error})
        desk.page.get_by_text("0 answers to rule on").wait_for()
        tab_to(desk, "#accept")
        press(desk, "Enter")
        desk.page.get_by_text("Kept in annotations/").wait_for()
        assert desk.problems == []

    out = tmp_path / "out"
    asked = ["release", "captaincook4d", str(folder), "--out", str(out), "--media", ""]
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 0, done.output
    rows = {row["error_id"]: row for row in map(json.loads, (out / "errors.jsonl").read_text().splitlines())}
    assert rows.keys() == true.keys()
    for error, moments in true.items():
        assert rows[error]["source"] == ("ruled" if error in {one for one, _ in disputed} else "marked")
        for name, column in COLUMNS.items():
            frame = moments.get(name)
            second = None if frame is None else (frame + (name == "end")) * FRAME_S
            assert rows[error][column] == (None if second is None else pytest.approx(second, abs=0.0006))


def moments_near(draw: random.Random, touched: int) -> dict[str, int | None]:
    """Draw begin and end, and some of the moments between; one in five is not to be seen."""
    begin = touched - draw.randrange(6)
    end = begin + draw.randrange(8, 14)
    between = draw.sample(("point_of_no_return", "noticed_at", "corrected_at"), draw.randrange(3))
    frames = {name: draw.randrange(begin + 1, end) for name in between}
    unseen = {name for name in (*between, "end") if draw.random() < 0.2}
    return {"at": begin} | {
        name: None if name in unseen else frame for name, frame in (frames | {"end": end}).items()
    }


def mark(desk: Desk, moments: dict[str, int | None]) -> None:
    """Go to each frame by the arrows and press its key; with Shift where it is not to be seen."""
    for name, frame in moments.items():
        if frame is None:
            press(desk, f"Shift+{KEYS[name].upper()}")
        else:
            step_to(desk, frame)
            press(desk, KEYS[name])
        is_put(desk, name, frame)


def step_to(desk: Desk, frame: int) -> None:
    """Stop the video and step to a frame, ten seconds or one frame at a time."""
    press(desk, "ArrowLeft")
    desk.page.wait_for_function(f"() => {FILM}.shown === {FILM}.wanted && !{FILM}.video.seeking")
    left = frame - desk.page.evaluate(f"{FILM}.shown")
    far = int(left / 300)  # ten seconds are 300 frames
    for name, count in (("Shift+Arrow", far), ("Arrow", left - 300 * far)):
        press(desk, *[f"{name}{'Right' if count > 0 else 'Left'}"] * abs(count))
    desk.page.wait_for_function(f"() => {FILM}.shown === {frame} && !{FILM}.video.seeking")


def give(who: httpx.Client, address: str, **answer: Any) -> None:
    body = {"op_id": new_id(1_790_000_000_000_000_000), "answer": answer}
    assert who.post(address, json=body).status_code == 200
