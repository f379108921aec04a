"""The tablet as a person uses it, in a real browser: the four stages, without network, at one metre."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from browser import LANDSCAPE, PORTRAIT, Tablet, chromium
from screens import serious, small_boxes

from recipe_app.store import tables

pytestmark = pytest.mark.timeout(240)
PIN = "482916"
LONGEST_PUBLISHED_STEP = 282
LEAST_AT_ONE_METRE = 42
"Pixels of a letter whose capitals are 16 minutes of arc high: 1000 tan(16/60 deg) mm, 160 to an inch, over 0.7."
KEPT_HERE = """new Promise((resolve) => {
    const request = indexedDB.open("kitchensync");
    request.onsuccess = () => {
        const all = request.result.transaction(["outbox"]).objectStore("outbox").getAll();
        all.onsuccess = () => resolve(all.result.map(({ operation }) => operation.kind));
    };
})"""
WATCH_TOUCHES = "addEventListener('pointerdown', () => (window.touches ??= []).push(performance.now()), true)"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@contextlib.contextmanager
def on_screen(
    kitchen: Any, browser: Any, viewport: dict[str, int] = LANDSCAPE, **more: Any
) -> Iterator[Tablet]:
    """A tablet in front of the recipes; Basil is signed in. A script that fails on a page fails the test."""
    kitchen.ticking = True
    assert kitchen.basil
    context = browser.new_context(viewport=viewport, permissions=["screen-wake-lock", "microphone"], **more)
    context.add_init_script(WATCH_TOUCHES)
    tablet = Tablet(context.new_page(), kitchen.url)
    tablet.pair(kitchen.tools.door.pairing_code(kitchen.place, actor=""))
    tablet.sign_in("Basil", PIN)
    yield tablet
    assert tablet.problems == []
    context.close()


@pytest.fixture
def tablet(kitchen: Any, browser: Any) -> Iterator[Tablet]:
    with on_screen(kitchen, browser) as made:
        yield made


def ops(kitchen: Any, recording: str, kind: str) -> list[dict[str, Any]]:
    return [op for op in kitchen.tools.records.ops(recording) if op["kind"] == kind]


def finish_all_steps(tablet: Tablet) -> None:
    for _ in range(30):
        if tablet.page.get_by_text("All steps are done").count():
            return
        tablet.page.locator("footer .done").click()
        tablet.rest()
    raise AssertionError("the recipe does not end")


def test_the_whole_way_through_four_stages(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    recording = tablet.begin("Tea and toast", strategy="induced")
    tablet.tap("Plan an error")
    page.locator(".hint-row").first.click()
    page.get_by_role("button", name="Technique", exact=True).click()
    tablet.tap("Save", exact=True)
    tablet.tap("Suggest a balanced set")
    page.get_by_text("of 8 categories", exact=False).wait_for()
    tablet.checklist()
    tablet.tap("Begin", exact=True)
    tablet.tap("Begin too")
    page.locator(".open-step").nth(1).wait_for()
    page.locator(".open-step .done").first.click()

    page.evaluate("window.touches = []")
    tablet.tap("Error", exact=True)
    tablet.tap("Timing")  # the second tap, and it is logged
    assert len(page.evaluate("window.touches")) == 2
    finish_all_steps(tablet)
    tablet.tap("To the review")
    tablet.tap("Yes, to the review")
    tablet.screen("review")
    assert page.locator("#finish").is_disabled()
    outcomes = ["As planned", "Differently", *["Not done"] * 6]
    for place, row in enumerate(page.locator(".planned:has(.outcomes)").all()):
        row.get_by_role("button", name=outcomes[place]).click()
    tablet.tap("Voice note")
    page.wait_for_timeout(1200)
    page.locator("#voice-stop").click()
    page.get_by_text("1 voice note is kept").wait_for()
    tablet.tap("Finish", exact=True)
    tablet.screen("done")
    tablet.saved()

    (error,) = ops(kitchen, recording, "error")
    touched = page.evaluate("window.touches")[0]
    assert abs(error["clock"]["touch_ms"] - touched) < 20  # the first touch, not the second
    state = kitchen.tools.records.state(recording)
    assert state["phase"] == "done"
    assert {step["state"] for step in state["steps"].values()} == {"done"}
    planned = [found for found in state["errors"].values() if found["planned"]]
    assert planned[0]["categories"] == sorted({4, *planned[0]["categories"]})
    assert [found["outcome"] for found in planned][:3] == ["as_planned", "differently", "not_done"]
    assert state["checked"]["confirmed_by"] == "Clove"
    (voice,) = state["voices"]
    rows = kitchen.tools.records.rows(tables.voice)
    assert [(row["sha256"], len(row["content"]) > 500) for row in rows] == [(voice["sha256"], True)]


def test_a_recording_whose_answer_got_lost_is_begun_once(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page

    def lose(route: Any) -> None:
        if route.request.method == "POST":
            route.fetch()  # it is begun, but the tablet never hears of it
            route.abort()
        else:
            route.continue_()

    page.route("**/api/v1/recordings", lose)
    page.locator("#recipes").get_by_role("button", name="Tea and toast").click()
    tablet.screen("recipe")
    tablet.tap("Begin", exact=True)
    page.get_by_role("alert").get_by_text("fetch").wait_for()
    page.unroute("**/api/v1/recordings")
    tablet.rest()
    tablet.tap("Begin", exact=True)
    tablet.screen("prepare")
    (first,) = kitchen.tools.records.rows(tables.recording)
    assert page.url.split("/")[-2] == first["id"]
    tablet.page.goto(f"{tablet.url}/t/choose")
    tablet.begin("Tea and toast")  # another time is another recording
    assert len(kitchen.tools.records.rows(tables.recording)) == 2


def test_nothing_is_lost_without_network(kitchen: Any, tablet: Tablet) -> None:
    page, context = tablet.page, tablet.page.context
    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    page.locator("html[data-offline=ready]").wait_for()
    tablet.tap("Begin", exact=True)
    while not ops(
        kitchen, recording, "awake"
    ):  # that the screen is kept on is an operation too, in its own time
        page.wait_for_timeout(50)
    tablet.saved()
    context.set_offline(True)
    tablet.done_offline(3)
    tablet.tap("Error", exact=True)
    tablet.tap("Measurement")
    page.get_by_text("7 unsent").wait_for()
    tablet.tap("Undo", exact=True)
    page.get_by_text("8 unsent").wait_for()
    touched = [*["done", "start"] * 3, "error", "undo"]
    assert page.evaluate(KEPT_HERE) == touched
    page.reload()  # the tab is gone; the page, the recording and what waits come from the tablet alone
    tablet.screen("follow")
    page.get_by_text("8 unsent").wait_for()
    assert page.evaluate(KEPT_HERE) == touched
    page.get_by_text("3 / 11").wait_for()
    context.set_offline(False)
    tablet.saved()
    state = kitchen.tools.records.state(recording)
    done = [node for node, step in state["steps"].items() if step["state"] == "done"]
    assert len(done) == 3
    assert len(ops(kitchen, recording, "done")) == 3
    assert len(ops(kitchen, recording, "error")) == 1
    assert state["errors"] == {}
    sequence = [op["seq"] for op in kitchen.tools.records.ops(recording)[1:]]
    assert sequence == sorted(sequence)


def test_a_paragraph_looks_the_same_at_the_first_and_at_the_last_step(kitchen: Any, tablet: Tablet) -> None:
    recording = tablet.begin("Tea and toast", display="paragraph")
    tablet.checklist()
    page = tablet.page
    page.locator(".dot.recording").wait_for()
    tablet.saved()
    page.mouse.move(5, 400)
    first, words = pixels(page), page.locator("body").inner_html()
    for _ in range(12):
        page.get_by_role("button", name="Go on").click()
        tablet.rest()
    tablet.saved()
    page.evaluate("document.activeElement.blur()")
    page.mouse.move(5, 400)
    page.wait_for_timeout(300)
    page.locator(".dot.recording").wait_for()  # on a busy computer health may have been late
    assert {step["state"] for step in kitchen.tools.records.state(recording)["steps"].values()} == {"done"}
    assert page.locator("body").inner_html() == words
    # The same page, drawn again by the browser's threads: an edge may round by a level or two of 255.
    assert np.abs(pixels(page) - first).max() <= 4


def pixels(page: Any) -> npt.NDArray[np.int16]:
    """Take a picture of the page, (height, width, 3) in levels of 0 to 255."""
    return cv2.imdecode(np.frombuffer(page.screenshot(), np.uint8), cv2.IMREAD_COLOR).astype(np.int16)


@pytest.mark.parametrize("viewport", [LANDSCAPE, PORTRAIT], ids=["landscape", "portrait"])
def test_every_screen_is_reachable_and_readable(kitchen: Any, browser: Any, viewport: dict[str, int]) -> None:
    with on_screen(kitchen, browser, viewport) as tablet:
        page = tablet.page

        def look(least: int = 48) -> None:
            assert small_boxes(page, least) == []
            assert serious(page) == []
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0

        look()
        tablet.begin("Tea and toast", strategy="disordered")
        look()
        tablet.tap("Plan an error")
        look()
        tablet.tap("Cancel")
        tablet.tap("Ready: to the checklist")
        tablet.screen("checklist")
        look()
        page.go_back()
        tablet.screen("prepare")
        tablet.checklist()
        look(64)
        for name in ("Undo", "Error", "Begin"):
            box = page.get_by_role("button", name=name, exact=True).bounding_box()
            assert min(box["height"], box["width"]) >= 104
        tablet.tap("Error", exact=True)
        look(64)
        tablet.tap("Back, no error")
        tablet.tap("All steps")
        look(64)
        tablet.tap("Back", exact=True)
        tablet.tap("End", exact=True)
        tablet.tap("Yes, to the review")
        tablet.screen("review")
        look()


HIDDEN_FOCUS = """() => {
    const box = document.activeElement.getBoundingClientRect();
    const footer = document.querySelector("footer.go").getBoundingClientRect();
    const inside = document.activeElement.closest("footer.go") !== null;
    const name = document.activeElement.textContent || document.activeElement.id;
    return [name, inside || (box.top >= 0 && box.bottom <= footer.top)];
}"""


def test_what_has_the_focus_is_never_below_the_footer(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    tablet.begin("Tea and toast", strategy="induced")
    for screen in ("prepare", "checklist"):
        tablet.screen(screen)
        page.locator("h1").click()
        seen: list[tuple[str, bool]] = []
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement === document.body"):
                break
            seen.append(page.evaluate(HIDDEN_FOCUS))
        assert len(seen) > 12
        assert [name for name, shown in seen if not shown] == []
        if screen == "prepare":
            tablet.tap("Ready: to the checklist")


@pytest.mark.parametrize("viewport", [LANDSCAPE, PORTRAIT], ids=["landscape", "portrait"])
def test_the_longest_published_step_fits_without_scrolling(
    kitchen: Any, browser: Any, tmp_path: Path, viewport: dict[str, int]
) -> None:
    text = ("Add a generous pinch of salt and the mixture to the pan while stirring " * 5)[
        :LONGEST_PUBLISHED_STEP
    ]
    steps = {
        "0": "START",
        **{str(n): f"Add-{n} {text}"[: LONGEST_PUBLISHED_STEP + 4] for n in (1, 2, 3)},
        "4": "END",
    }
    kitchen.recipes = tmp_path / "long"
    kitchen.recipes.mkdir()
    edges = [[0, 1], [1, 2], [2, 3], [3, 4]]
    (kitchen.recipes / "long.json").write_text(json.dumps({"steps": steps, "edges": edges}))
    with on_screen(kitchen, browser, viewport) as tablet:
        tablet.begin("Long")
        tablet.checklist()
        sizes = tablet.page.evaluate(
            "(() => { const m = document.querySelector('main'); return [m.scrollHeight, m.clientHeight,"
            " parseFloat(getComputedStyle(document.querySelector('.current')).fontSize)]; })()"
        )
        assert sizes[0] <= sizes[1]
        assert sizes[2] >= LEAST_AT_ONE_METRE
        assert tablet.page.get_by_text("This step is long").count() == 0


@pytest.mark.parametrize(("metres", "largest"), [("0.5", 29), ("1", 58), ("1.5", 86)])
def test_letters_are_as_large_as_the_distance_wants(
    kitchen: Any, tablet: Tablet, metres: str, largest: int
) -> None:
    tablet.begin("Tea and toast")
    tablet.tap("Ready: to the checklist")
    tablet.screen("checklist")
    tablet.tap(f"{metres} m", exact=True)
    tablet.page.go_back()
    tablet.screen("prepare")
    tablet.checklist()
    shown = tablet.page.evaluate("parseFloat(getComputedStyle(document.querySelector('.current')).fontSize)")
    assert shown == largest


COLOURS = """(place) => {
    const style = getComputedStyle(document.querySelector(place));
    return [style.color, style.backgroundColor].map((said) => said.match(/[0-9.]+/g).map(Number));
}"""


def luminance(colour: list[float]) -> float:
    """Relative luminance of sRGB levels of 0 to 255 (WCAG 2.2)."""
    linear = [
        (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4) for c in np.array(colour[:3]) / 255
    ]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def test_the_screen_for_cooking_is_dark_or_light_and_easy_to_read(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    tablet.begin("Tea and toast", strategy="disordered")
    tablet.checklist()
    grounds = {}
    for look in ("dark", "light"):
        if look == "light":
            page.go_back()
            tablet.tap("Light screen")
            page.locator("#start").click()
            tablet.screen("follow")
            page.locator("html[data-offline=ready]").wait_for()
            page.reload()  # it is still chosen
            tablet.screen("follow")
        (text, _), (_, grounds[look]) = page.evaluate(COLOURS, ".current"), page.evaluate(COLOURS, "body")
        light, dark = sorted((luminance(text), luminance(grounds[look])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 7
        page.locator(".strip").first.wait_for()
        tablet.tap("Error", exact=True)
        assert serious(page) == []
        tablet.tap("Back, no error")
        tablet.tap("All steps")
        assert serious(page) == []
        tablet.tap("Back", exact=True)
        assert serious(page) == []
    assert luminance(grounds["dark"]) < 0.02
    assert 0.6 < luminance(grounds["light"]) < 0.9  # white would bloom in the cameras' pictures


def test_the_recipe_is_read_in_the_language_that_the_participant_chooses(kitchen: Any, browser: Any) -> None:
    with on_screen(kitchen, browser) as tablet:
        page = tablet.page
        page.goto(f"{tablet.url}/t/choose?lang=de")
        tablet.screen("choose")
        page.locator("#recipes").get_by_role("button", name="Tee und Toast").click()  # as the page speaks
        page.get_by_role("heading", name="Tee und Toast").wait_for()
        page.get_by_role("button", name="العربية").click()
        page.get_by_role("heading", name="شاي وخبز محمص").wait_for()
        assert page.evaluate("getComputedStyle(document.querySelector('.preview')).direction") == "rtl"
        assert serious(page) == []
        page.locator("#begin").click()
        tablet.screen("prepare")
        page.locator("#ready").click()
        tablet.screen("checklist")
        for box in page.get_by_role("checkbox").all():
            box.click()
        page.locator("#second").fill("Clove")
        page.locator("#start").click()
        tablet.screen("follow")
        shown = page.evaluate(
            "(() => { const step = document.querySelector('.current');"
            " return [step.lang, getComputedStyle(step).direction, step.textContent]; })()"
        )
        recording = page.url.split("/")[-2]
        frozen = kitchen.tools.records.frozen(recording)
        assert shown == ["ar", "rtl", frozen["steps"][str(frozen["order"][0])]["text"]]
        assert page.evaluate("document.documentElement.lang") == "de"
        page.locator("#saved", has_text="Alles gesichert").wait_for()


def test_in_arabic_it_reads_from_the_right_and_the_pseudo_locale_has_no_english(
    kitchen: Any, browser: Any
) -> None:
    with on_screen(kitchen, browser) as tablet:
        page = tablet.page
        page.goto(f"{tablet.url}/t/choose?lang=ar")
        tablet.screen("choose")
        assert page.evaluate("getComputedStyle(document.body).direction") == "rtl"
        assert page.get_by_text("اختر وصفة").count() == 1
        page.goto(f"{tablet.url}/t/choose?lang=xx")
        tablet.screen("choose")
        said = page.evaluate(
            "[...document.querySelectorAll('h1, h2, button:not(.card), .stages li, #saved')]"
            ".map((element) => element.textContent)"
        )
        assert len(said) > 6
        assert [text for text in said if not text.startswith("⟦")] == []


def test_what_is_not_known_is_not_claimed(kitchen: Any, tablet: Tablet) -> None:
    """Without fresh health the state is unknown; without a wake lock a strip says so, and the log has it."""
    page = tablet.page
    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    page.locator(".dot.recording").wait_for()
    page.add_init_script("navigator.wakeLock.request = () => Promise.reject(new Error('power save'))")
    page.locator("html[data-offline=ready]").wait_for()
    page.reload()
    page.get_by_text("The screen may go dark").wait_for()
    tablet.saved()
    assert ops(kitchen, recording, "awake")[-1]["body"] == {"held": False}
    page.context.set_offline(True)
    page.locator(".dot.unknown").wait_for()
    page.get_by_text("State unknown").wait_for()
    page.context.set_offline(False)
    page.locator(".dot.recording").wait_for()


def test_an_empty_battery_is_said_before_cooking(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    page.add_init_script("navigator.getBattery = async () => ({ charging: false, level: 0.12 })")
    page.reload()
    tablet.screen("choose")
    recording = tablet.begin("Tea and toast")
    tablet.tap("Ready: to the checklist")
    tablet.screen("checklist")
    for box in page.get_by_role("checkbox").all():
        box.click()
    page.get_by_label("Pseudonym of the second person").fill("Clove")
    page.locator("#start").click()
    page.get_by_text("12 % and not plugged in").wait_for()
    tablet.tap("Start all the same")
    tablet.screen("follow")
    tablet.saved()
    (note,) = ops(kitchen, recording, "note")
    assert note["body"]["text"] == "battery 12 %, not plugged in"


def test_two_tablets_one_recording(kitchen: Any, tablet: Tablet, browser: Any) -> None:
    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    tablet.saved()
    with on_screen(kitchen, browser) as other:
        other.page.goto(f"{other.url}/t/rec/{recording}/follow")
        other.screen("held")
        assert serious(other.page) == []
        other.tap("Take it over here")
        other.screen("follow")
        tablet.screen("held")  # the first one hears of it by itself
        other.tap("Begin", exact=True)
        other.saved()
    kitchen.tools.records.note("release", recording, {}, actor="")
    tablet.page.get_by_text("The desk freed this recording").wait_for()  # and nobody takes it unasked
    tablet.tap("Take it over here")
    tablet.screen("follow")
    for _ in range(100):
        if len(ops(kitchen, recording, "claim")) == 3:
            break
        tablet.page.wait_for_timeout(50)
    claims = ops(kitchen, recording, "claim")
    assert len({op["device"] for op in claims}) == 2
    assert kitchen.tools.records.state(recording)["holder"] == claims[0]["device"]


def test_a_privacy_pause_a_wiped_screen_and_a_withdrawal(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    recording = tablet.begin("Tea and toast", display="paragraph")
    tablet.checklist()
    tablet.tap("Pause", exact=True)
    assert small_boxes(page, 64) == []
    page.get_by_role("button", name="Privacy pause").click()
    page.locator(".cover h1", has_text="Privacy pause").wait_for()
    page.reload()  # a pause outlives the page
    page.locator(".cover h1", has_text="Privacy pause").wait_for()
    page.locator(".cover .done").click()
    page.locator(".cover").wait_for(state="hidden")
    tablet.tap("Pause", exact=True)
    page.get_by_role("button", name="Wipe the screen").click()
    before = len(kitchen.tools.records.ops(recording))
    rng = random.Random(7)
    for _ in range(60):  # drops and a cloth, everywhere but on the two targets
        page.mouse.click(rng.randrange(240, 1000), rng.randrange(300, 560))
    page.locator(".second").click()  # in the wrong order
    page.locator(".cover").wait_for()
    page.locator(".first").click()
    page.wait_for_timeout(450)
    page.locator(".second").click()
    page.locator(".cover").wait_for(state="hidden")
    tablet.saved()
    assert len(kitchen.tools.records.ops(recording)) == before
    (pause,) = kitchen.tools.records.state(recording)["pauses"]
    assert pause["start"] < pause["end"]
    tablet.tap("End", exact=True)
    tablet.tap("Withdraw this recording")
    tablet.tap("Yes, withdraw it")
    tablet.screen("done")
    page.get_by_text("This recording is withdrawn").wait_for()
    tablet.saved()
    assert kitchen.tools.records.state(recording)["phase"] == "withdrawn"


def test_a_step_is_paused_and_goes_on_in_one_run(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    tablet.tap("Begin", exact=True)
    page.get_by_role("button", name="Begin too").wait_for()
    tablet.tap("Pause", exact=True)
    assert small_boxes(page, 64) == []
    tablet.tap("Pause this step")
    page.get_by_text("Step 1 · paused").wait_for()
    assert serious(page) == []
    page.reload()  # it outlives the page
    page.get_by_text("Step 1 · paused").wait_for()
    tablet.tap("All steps")
    page.get_by_role("button", name="Begin", exact=True).first.click()  # another one in between
    page.locator(".held").wait_for()
    assert small_boxes(page, 64) == []
    page.locator(".held").click()
    page.locator(".open-step").nth(1).wait_for()
    page.locator(".open-step .done").first.click()
    page.get_by_text("1 / 11").wait_for()
    tablet.saved()
    state = kitchen.tools.records.state(recording)
    (run,) = state["steps"][str(state["recording"]["order"][0])]["runs"]
    (hold,) = run["holds"]
    assert run["start"] < hold["start"] < hold["end"] < run["end"]
    assert [op["kind"] for op in kitchen.tools.records.ops(recording) if op["body"].get("node")] == [
        *("start", "hold", "start", "start", "done")
    ]


def test_drops_on_the_glass_do_nothing_and_do_not_stop_a_finger(kitchen: Any, browser: Any) -> None:
    with on_screen(kitchen, browser, has_touch=True) as tablet:
        page = tablet.page
        recording = tablet.begin("Tea and toast")
        tablet.checklist()
        tablet.tap("Begin", exact=True)
        while not ops(kitchen, recording, "awake"):
            page.wait_for_timeout(50)
        tablet.saved()
        before, shown = kitchen.tools.records.ops(recording), page.locator("#screen").inner_text()
        boxes = [box.bounding_box() for box in page.get_by_role("button").all()]
        rng, taps = random.Random(11), 0
        while taps < 200:  # twenty a second for ten seconds, and more
            x, y = rng.randrange(1280), rng.randrange(800)
            near = (b["x"] <= x <= b["x"] + b["width"] and b["y"] <= y <= b["y"] + b["height"] for b in boxes)
            if not any(near):
                page.touchscreen.tap(x, y)
                taps += 1
        fingers = Fingers(page)
        done = fingers.middle_of("footer .done")
        fingers.touch("touchStart", finger=done)
        fingers.touch("touchMove", finger=(done[0], 300))  # it leaves the button before it is lifted
        fingers.touch("touchEnd")
        page.wait_for_timeout(500)
        assert page.locator("#screen").inner_text() == shown
        assert kitchen.tools.records.ops(recording) == before
        drop = (640, 400)
        fingers.touch("touchStart", drop=drop)  # it stays where it is
        fingers.touch("touchStart", drop=drop, finger=done)
        fingers.touch("touchEnd", finger=done)
        page.get_by_text("1 / 11").wait_for()
        fingers.touch("touchEnd")
        page.wait_for_timeout(500)
        tablet.saved()
        assert [op["kind"] for op in kitchen.tools.records.ops(recording)[len(before) :]] == ["done", "start"]


class Fingers:
    """Several touches at once, as the screen's hardware tells them."""

    def __init__(self, page: Any) -> None:
        self.page, self.session = page, page.context.new_cdp_session(page)

    def middle_of(self, place: str) -> tuple[float, float]:
        box = self.page.locator(place).bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def touch(self, kind: str, **points: tuple[float, float]) -> None:
        """Say what touches the glass now (for `touchEnd`: what is lifted), by name."""
        ids = {"finger": 1, "drop": 2}
        told = [{"x": x, "y": y, "id": ids[name]} for name, (x, y) in points.items()]
        self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": told})


def test_two_versions_stand_side_by_side_and_one_touch_keeps_one(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    recording = tablet.begin("Tea and toast", strategy="induced")
    tablet.tap("Plan an error")
    page.locator(".hint-row").first.click()
    tablet.tap("Save", exact=True)
    page.get_by_role("button", name="Change", exact=True).wait_for()  # the card of what was kept
    tablet.saved()
    ((error_id, error),) = kitchen.tools.records.state(recording)["errors"].items()
    page.context.set_offline(True)
    tablet.tap("Change", exact=True)
    page.get_by_label("What is different").fill("from the stove")
    tablet.tap("Save", exact=True)
    page.get_by_text("1 unsent").wait_for()
    change = {"error_id": error_id, "fields": {"description": "from the other tablet"}}
    _, token = kitchen.pair("Tablet by the sink")
    operation = kitchen.operation(
        recording, "edit_error", change, seen=kitchen.tools.records.ops(recording)[-1]["n"]
    )
    bearer = {"authorization": f"Bearer {token}"}
    assert kitchen.client(**bearer).post("/api/v1/ops", json={"operations": [operation]}).status_code == 200
    page.context.set_offline(False)
    tablet.saved()
    page.reload()
    tablet.tap("2 versions")
    for text in (
        "from Tablet by the sink",
        "from Tablet by the stove",
        "from the stove",
        "from the other tablet",
    ):
        page.locator("dialog").get_by_text(text).first.wait_for()
    assert serious(page) == []
    page.locator(".version", has_text="from the other tablet").get_by_role("button").click()
    page.get_by_text("2 versions").wait_for(state="detached")
    tablet.saved()
    state = kitchen.tools.records.state(recording)["errors"][error_id]
    assert (state["description"], state["conflicts"]) == ("from the other tablet", {})
    assert error["description"]


def test_what_was_taken_back_is_done_again_after_a_reload(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    tablet.tap("Begin", exact=True)
    tablet.rest()
    page.locator("footer .done").click()
    page.get_by_text("1 / 11").wait_for()
    tablet.tap("Undo", exact=True)
    page.get_by_text("0 / 11").wait_for()
    page.reload()
    tablet.tap("All steps")
    tablet.tap("Redo", exact=True)
    page.get_by_text("1 / 11").wait_for()
    tablet.saved()
    assert kitchen.tools.records.state(recording)["redo"] == []
