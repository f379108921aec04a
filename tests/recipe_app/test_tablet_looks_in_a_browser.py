"""How the tablet looks, in a real browser: large enough, readable at one metre, in several languages and lights."""

from __future__ import annotations

import html
import json
import math
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from browser import LANDSCAPE, PIN, PORTRAIT, Tablet, on_screen
from screens import close_boxes, serious, small_boxes

pytestmark = pytest.mark.timeout(240)
LONGEST_PUBLISHED_STEP = 282
DOUBLED = {"width": 640, "height": 400}
"A tablet of 1280 x 800 at 200 %."
LEAST_AT_ONE_METRE = 42
"Pixels of a letter whose capitals are 16 minutes of arc high: 1000 tan(16/60 deg) mm, 160 to an inch, over 0.7."


def test_a_paragraph_looks_the_same_at_the_first_and_at_the_last_step(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    recording = tablet.begin("Tea and toast", display="paragraph", strategy="impromptu")
    page.get_by_text("this food is not eaten").wait_for()
    tablet.checklist()
    page.locator(".dot.recording").wait_for()
    page.get_by_text("this food is not eaten").wait_for()
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
        tablet.to_checklist()
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
        tablet.end_early()
        tablet.screen("review")
        look()


@pytest.mark.parametrize("viewport", [LANDSCAPE, PORTRAIT, DOUBLED], ids=["landscape", "portrait", "200 %"])
def test_wet_fingers_find_room_between_the_buttons(
    kitchen: Any, browser: Any, viewport: dict[str, int]
) -> None:
    with on_screen(kitchen, browser, viewport) as tablet:
        page = tablet.page

        def look() -> None:
            assert small_boxes(page, 64) == []
            assert close_boxes(page, 16) == []

        tablet.begin("Tea and toast")
        tablet.checklist()
        look()
        tablet.tap("Begin", exact=True)
        tablet.tap("Begin too")
        page.locator(".open-step").nth(1).wait_for()
        look()
        tablet.tap("Error", exact=True)
        look()
        boxes = [box.bounding_box() for box in page.locator("dialog button").all()]
        assert len(boxes) == 11  # two open steps, eight kinds of errors, the way back, all on one screen
        assert max(box["y"] + box["height"] for box in boxes) <= viewport["height"]
        tablet.tap("Back, no error")
        tablet.tap("All steps")
        look()
        tablet.tap("Back", exact=True)
        tablet.tap("Pause", exact=True)
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


@pytest.mark.parametrize(("metres", "largest"), [("0.5", 30), ("1", 60), ("1.5", 90)])
def test_letters_are_as_large_as_the_distance_wants(
    kitchen: Any, tablet: Tablet, metres: str, largest: int
) -> None:
    tablet.begin("Tea and toast")
    tablet.to_checklist()
    tablet.tap(f"{metres} m", exact=True)
    tablet.checklist()
    shown = tablet.page.evaluate("parseFloat(getComputedStyle(document.querySelector('.current')).fontSize)")
    assert shown == largest


SIZES = """() => {
    const found = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const said = walk.currentNode.textContent.trim(), holder = walk.currentNode.parentElement;
        const box = holder.getBoundingClientRect(), style = getComputedStyle(holder);
        const seen = holder.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
        const large = box.width > 2 && box.height > 2 && style.clipPath === "none";
        if (said && seen && large) found.push([parseFloat(style.fontSize), said]);
    }
    return found;
}"""
PX_PER_MM = math.hypot(1280, 800) / 10 / 25.4
"""Of the 10-inch screen on which the tablet's pages are tried."""


def small(page: Any, millimetres: float) -> list[tuple[float, str]]:
    """What can be seen with letters (from the top of `d` to the foot of `p`) lower than so many millimetres."""
    return [(size, said) for size, said in page.evaluate(SIZES) if size / PX_PER_MM < millimetres]


@pytest.mark.parametrize("display", ["steps", "paragraph", "hidden"])
def test_everything_while_cooking_is_legible_at_one_metre(kitchen: Any, tablet: Tablet, display: str) -> None:
    page = tablet.page
    tablet.begin("Tea and toast", display=display)
    tablet.checklist()
    found = {"before": small(page, 5)}
    page.locator("footer .done").click()
    tablet.rest()
    if display == "steps":
        tablet.tap("Begin too")
        page.locator(".open-step").nth(1).wait_for()
        tablet.rest()
    found["cooking"] = small(page, 5)
    for name in ("All steps", "Error", "Pause", "End"):
        if not page.get_by_role("button", name=name, exact=True).count():
            continue
        tablet.tap(name, exact=True)
        page.locator("dialog[open]").wait_for()
        found[name] = small(page, 5)
        page.keyboard.press("Escape")
        page.locator("dialog[open]").wait_for(state="detached")
        tablet.rest()
    assert {name: sizes for name, sizes in found.items() if sizes} == {}
    if display == "steps":
        size = page.evaluate("parseFloat(getComputedStyle(document.querySelector('.current')).fontSize)")
        assert size / PX_PER_MM >= 10


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
        page.locator("#continue").click()
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


def test_a_script_says_what_it_changes_in_the_language_of_the_page(kitchen: Any, browser: Any) -> None:
    with on_screen(kitchen, browser) as tablet:
        page = tablet.page
        page.goto(f"{tablet.url}/t/choose?lang=de")
        tablet.screen("choose")
        page.locator("#recipes").get_by_role("button", name="Tee und Toast").click()
        tablet.screen("recipe")
        page.locator('input[name="strategy"][value="disordered"]').check()
        page.locator("#begin").click()
        page.locator("#continue").click()
        tablet.screen("prepare")
        recording = page.url.split("/")[-2]
        frozen = kitchen.tools.records.frozen(recording)
        text = {node: frozen["steps"][str(node)]["text"] for node in map(int, frozen["steps"])}
        (left_out,), broken = frozen["script"]["missing"], frozen["script"]["broken"]
        said = page.locator(".certificate ul").first.locator("li").all_inner_texts()
        assert said[0].startswith(f"Weglassen: „{text[left_out]}“.")
        assert said[1:] == [
            f"„{text[after]}“ vor „{text[before]}“ tun, nicht danach." for before, after in broken
        ]
        planned = page.locator(".planned .what").all_inner_texts()
        assert sorted(planned) == sorted(said)
        printed = kitchen.desk("researcher").get(f"/desk/recordings/{recording}/script?lang=de").text
        assert all(f"<li>{sentence}</li>" in html.unescape(printed) for sentence in said)


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


def test_the_first_screen_takes_less_than_400_kb(kitchen: Any, browser: Any) -> None:
    """All that comes before the first screen is shown, in letters of the page's own typeface, for every language."""
    for language, letters in (("en", "Pair"), ("de", "Koppeln"), ("ar", "اربط")):
        context = browser.new_context(viewport=LANDSCAPE)
        page = context.new_page()
        bodies: list[Any] = []
        page.on("response", lambda answer, bodies=bodies: bodies.append(answer))
        page.goto(f"{kitchen.url}/t/pair?lang={language}")
        page.wait_for_selector('body[data-screen="pair"]')
        before = [answer for answer in bodies if answer.status == 200]
        total = sum(len(answer.body()) for answer in before)
        assert 80_000 < total < 400_000, (language, total)
        assert page.evaluate(
            "async (letters) => { await document.fonts.ready; return document.fonts.check('16px Vazirmatn', letters)"
            " && [...document.fonts].some((font) => font.status === 'loaded'); }",
            letters,
        )
        context.close()


PLACES = """() => [...document.querySelectorAll(".key")].map((key) => {
    const { left, top, width, height } = key.getBoundingClientRect();
    return [left + scrollX, top + scrollY, width, height];
})"""


def test_the_key_pad_stays_where_it_is_and_says_how_many_tries_are_left(kitchen: Any, browser: Any) -> None:
    for viewport in (LANDSCAPE, PORTRAIT, DOUBLED):
        with on_screen(kitchen, browser, viewport) as tablet:
            page = tablet.page
            tablet.tap("Sign out")
            tablet.screen("sign-in")
            tablet.tap("Basil")
            tablet.screen("pin")
            before = page.evaluate(PLACES)
            for left in ("4", "3"):
                for digit in "602214":
                    page.get_by_role("button", name=digit, exact=True).click()
                page.get_by_text(f"tries left: {left}").wait_for()
                assert page.evaluate(PLACES) == before
            page.locator(".key").first.click()
            assert page.evaluate(PLACES) == before
            assert page.get_by_text("tries left: 3").is_visible()
            assert serious(page) == []
            page.get_by_role("button", name="Erase the last digit").click()
            for digit in PIN:
                page.get_by_role("button", name=digit, exact=True).click()
            tablet.screen("choose")


ICONS = """(places) => places.map((place) => {
    const style = getComputedStyle(document.querySelector(place), "::before");
    return [style.maskImage, style.backgroundColor, getComputedStyle(document.querySelector(place)).color];
})"""


def test_each_category_has_a_drawing_of_its_own_beside_its_words(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    tablet.begin("Tea and toast")
    tablet.checklist()
    tablet.tap("Error", exact=True)
    tiles = page.locator("dialog .tile")
    drawn = page.evaluate(ICONS, [f"dialog [data-category='{number}']" for number in range(8)])
    assert len({image for image, _, _ in drawn}) == 8
    assert all("data:image/svg+xml" in image for image, _, _ in drawn)
    assert {ink for _, ink, _ in drawn} == {
        words for _, _, words in drawn
    }  # one colour: it is told by its shape
    assert [tile.locator(".name").inner_text() for tile in tiles.all()] == [
        "Preparation", "Measurement", "Order", "Timing", "Technique", "Temperature", "Missing step", "Other",
    ]  # fmt: skip
    shapes = [pixels_of(tile) for tile in tiles.all()]
    for one in range(8):
        for other in range(one):
            assert np.mean(np.abs(shapes[one] - shapes[other]) > 60) > 0.02, (one, other)


def pixels_of(tile: Any) -> npt.NDArray[np.int16]:
    """The icon's place on a tile as it is on the glass, in grey, 64 x 64."""
    box = tile.bounding_box()
    middle = tile.evaluate("(tile) => tile.querySelector('.name').getBoundingClientRect().top")
    clip = {"x": box["x"] + box["width"] / 2 - 34, "y": middle - 72, "width": 68, "height": 68}
    png = tile.page.screenshot(clip=clip)
    grey = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_GRAYSCALE)
    return cv2.resize(grey, (64, 64)).astype(np.int16)
