"""What was planned is what the screen says while somebody cooks, what is printed, and what the log keeps of it."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Any

import pytest
from browser import Tablet, at_the_desk, on_screen, ops
from screens import serious

from kitchensync.recipe_app.store.app_records import new_id

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
STRATEGIES = ("normal", "impromptu", "disordered", "induced")
GERMAN = "Einen Teelöffel Honig auf den Toast streichen"
PLAN: dict[int, dict[str, Any]] = {
    3: {"categories": [0], "text": "Place a torn tea bag in a mug"},
    1: {"categories": [1], "text": "Fill the kettle with 600 ml of juice"},
    11: {"categories": [2], "before": 5, "description": "too early"},
    5: {"categories": [3], "text": "Steep the tea for 10 minutes"},
    10: {"categories": [4], "description": "with a spoon"},
    4: {"categories": [5], "text": "Pour the cold water over the tea bag"},
    9: {"categories": [6], "description": "Leave it out"},
    8: {"categories": [7], "text": GERMAN, "language": "de"},
}
"""An error of every category, by its step; 11 is "Serve", which nothing follows."""


@dataclass
class Shown:
    """A recording with its plan, and what must be on the screen: told by hand, without the code that plans."""

    recording: str
    order: list[int]
    left_out: list[int]
    words: dict[int, str]


def planned(kitchen: Any, strategy: str, display: str) -> Shown:
    """Begin a recording and plan an error of each category where the strategy plans any."""
    bundle = kitchen.choose(strategy=strategy, display=display)
    frozen, recording = bundle["ops"][0]["body"], str(bundle["recording"])
    kitchen.agree(recording, "release_raw")
    words = {int(node): step["text"] for node, step in frozen["steps"].items()}
    order = list(frozen["order"])
    if strategy in ("disordered", "induced"):
        kitchen.post(
            *(
                kitchen.operation(recording, "plan_error", {"error_id": new_id(node), "fields": fields})
                for node, fields in ((node, {"node": node, **said}) for node, said in PLAN.items())
            )
        )
        words |= {node: said["text"] for node, said in PLAN.items() if "text" in said}
        words[10] += " (with a spoon)"
        if {11, 5} <= set(order):
            order.remove(11)
            order.insert(order.index(5), 11)
        order = [node for node in order if node != 9]
    return Shown(recording, order, sorted(set(words) - set(order)), words)


def cook(kitchen: Any, page: Any, shown: Shown, look: Any = lambda node: None) -> None:
    """Begin and end every step by the foot pedal; `look` sees each while it is open."""
    for node in shown.order:
        if node == shown.order[0]:
            page.keyboard.press("ArrowRight")
        while [op["body"]["node"] for op in ops(kitchen, shown.recording, "start")][-1:] != [node]:
            page.wait_for_timeout(10)
        look(node)
        page.keyboard.press("ArrowRight")
    while len(ops(kitchen, shown.recording, "done")) < len(shown.order):
        page.wait_for_timeout(10)


def told_everywhere(kitchen: Any, shown: Shown, words: dict[int, str], desk: Any) -> None:
    """The log, the file of everything and the print say what was on the screen."""
    exported = desk.get(f"/desk/recordings/{shown.recording}/export.json").json()["operations"]
    for log in (kitchen.tools.records.ops(shown.recording), exported):
        touches = [op["body"] for op in log if op["kind"] in ("start", "done")]
        assert len(touches) == 2 * len(shown.order)
        assert [(one["node"], one["shown"]) for one in touches] == [
            (one["node"], words[one["node"]]) for one in touches
        ]


def without_prefix(page: Any) -> None:
    """No step is led by its action in a file's manner, as in `Peel-Peel 1 banana`."""
    assert re.findall(r"\b(\w+)\s?-\s?\1\b", page.locator("body").inner_text(), re.IGNORECASE) == []


def printed(browser: Any, kitchen: Any, shown: Shown) -> None:
    """The script on paper has the same words in the same order."""
    login = kitchen.desk("operator").headers["x-kitchensync-login"]
    page = at_the_desk(browser, kitchen.url, login).page
    page.goto(f"{kitchen.url}/desk/recordings/{shown.recording}/script")
    without_prefix(page)
    assert page.locator(".script .words").all_inner_texts() == [shown.words[node] for node in shown.order]
    page.context.close()


@pytest.fixture
def cooks(kitchen: Any, browser: Any) -> Any:
    """A tablet that shows one recording after the other."""
    with on_screen(kitchen, browser) as tablet:
        yield tablet


def test_the_plan_has_every_category_and_what_is_planned_is_another_text_or_place() -> None:
    assert sorted(number for said in PLAN.values() for number in said["categories"]) == list(range(8))


def follow(tablet: Tablet, shown: Shown) -> Any:
    tablet.page.goto(f"{tablet.url}/t/rec/{shown.recording}/follow")
    tablet.screen("follow")
    return tablet.page


def test_step_by_step_every_planned_word_timer_place_and_gap_is_on_the_screen(
    kitchen: Any, cooks: Tablet, browser: Any
) -> None:
    desk = kitchen.desk("researcher")
    for strategy in STRATEGIES:
        shown = planned(kitchen, strategy, "steps")
        page = follow(cooks, shown)
        seen: list[int] = []

        def look(node: int, shown: Shown = shown, page: Any = page, seen: list[int] = seen) -> None:
            page.locator(f'h1.current[data-node="{node}"]').wait_for()
            assert page.locator("h1.current").inner_text() == shown.words[node]
            german = shown.words[node] == GERMAN
            assert page.locator("h1.current").get_attribute("lang") == ("de" if german else "en")
            assert page.locator(".label").get_by_text("planned in Deutsch").count() == german
            minutes = {"3 minutes": "▶ 3:00", "10 minutes": "▶ 10:00"}
            wanted = [chip for said, chip in minutes.items() if said in shown.words[node]]
            assert page.locator(".timer-chip").all_inner_texts() == wanted
            seen.append(node)

        cook(kitchen, page, shown, look)
        assert seen == shown.order
        cooks.tap("All steps")
        nodes = shown.order + shown.left_out
        rows = page.locator(".all-steps .words").all_inner_texts()
        assert rows == [shown.words[node] for node in nodes]
        assert page.locator(".all-steps .is-left").count() == len(shown.left_out)
        assert serious(page) == []
        told_everywhere(kitchen, shown, shown.words, desk)
        printed(browser, kitchen, shown)


def test_a_paragraph_has_every_planned_word_and_never_changes(kitchen: Any, cooks: Tablet) -> None:
    desk = kitchen.desk("researcher")
    for strategy in STRATEGIES:
        shown = planned(kitchen, strategy, "paragraph")
        page = follow(cooks, shown)
        text = page.locator("main").inner_text()
        said = " ".join(f"{shown.words[node]}." for node in shown.order)
        assert text.split("\n")[0].strip() == said
        assert ("planned in Deutsch" in text) == (GERMAN in text)
        cook(kitchen, page, shown)
        assert page.locator("main").inner_text() == text
        told_everywhere(kitchen, shown, shown.words, desk)


def test_where_the_recipe_is_hidden_the_log_says_that_nothing_of_it_was_shown(
    kitchen: Any, cooks: Tablet
) -> None:
    desk = kitchen.desk("researcher")
    for strategy in STRATEGIES:
        shown = planned(kitchen, strategy, "hidden")
        page = follow(cooks, shown)
        assert page.locator("main").inner_text() == "Tea and toast"
        cook(kitchen, page, shown)
        told_everywhere(kitchen, shown, dict.fromkeys(shown.words, ""), desk)


def test_the_events_of_a_recording_keep_what_was_shown_beside_what_the_recipe_says(
    kitchen: Any, cooks: Tablet
) -> None:
    bundle = kitchen.choose(strategy="induced", folder="soup_1")
    recording = str(bundle["recording"])
    first = bundle["ops"][0]["body"]["order"][0]
    fields = {"node": first, "categories": [1], "text": "Do something else"}
    kitchen.post(kitchen.operation(recording, "plan_error", {"error_id": new_id(1), "fields": fields}))
    cooks.page.goto(f"{cooks.url}/t/rec/{recording}/follow")
    cooks.screen("follow")
    cooks.tap("Begin", exact=True)
    cooks.rest()
    cooks.tap("Error", exact=True)
    cooks.tap("Technique")
    while "error" not in {line["kind"] for line in kitchen.events(kitchen.data / "soup_1")}:
        cooks.page.wait_for_timeout(20)
    lines = {line["kind"]: line["body"] for line in kitchen.events(kitchen.data / "soup_1")}
    recipe = bundle["ops"][0]["body"]["steps"][str(first)]["text"]
    assert (lines["start"]["text"], lines["start"]["shown"]) == (recipe, "Do something else")
    assert lines["error"]["shown"] == "Do something else"


def test_a_plan_made_by_touch_is_shown_in_the_language_it_was_written_in(
    kitchen: Any, tablet: Tablet, browser: Any
) -> None:
    page = tablet.page
    page.locator("#recipes").get_by_role("button", name="Tea and toast").click()
    tablet.screen("recipe")
    page.locator('input[name="strategy"][value="induced"]').check()
    tablet.tap("Deutsch", exact=True)
    page.get_by_text("Das Wasser im Wasserkocher aufkochen").first.wait_for()
    tablet.tap("Begin", exact=True)
    tablet.screen("instructions")
    assert serious(page) == []
    tablet.tap("Continue", exact=True)
    tablet.screen("prepare")
    page.locator("#empty-plan", has_text="no error is planned").wait_for()
    recording = page.url.split("/")[-2]
    page.locator('[data-key="add-1"]').click()
    page.locator(".hint-row", has_text="Measurement").first.click()
    wanted = page.get_by_label("The step as it shall be done").input_value()
    page.get_by_role("dialog").get_by_text("planned in English").wait_for()
    tablet.tap("Save", exact=True)
    page.locator("#empty-plan").wait_for(state="detached")
    tablet.rest()
    page.locator('[data-key="add-11"]').click()  # serve it before anything is there
    page.get_by_role("button", name="Order", exact=True).click()
    page.get_by_label("Done before which step?").select_option(value="1")
    tablet.tap("Save", exact=True)
    tablet.checklist()
    tablet.saved()
    order = kitchen.tools.records.frozen(recording)["order"]
    order = [node for node in order if node != 11]
    order.insert(order.index(1), 11)
    tablet.tap("All steps")
    rows = page.locator(".all-steps li")
    assert [int(str(row.get_attribute("data-node"))) for row in rows.all()] == order
    row = page.locator('.all-steps [data-node="1"]')
    assert (row.locator(".words").inner_text(), row.locator(".words").get_attribute("lang")) == (wanted, "en")
    row.get_by_text("planned in English").wait_for()
    (read,) = ops(kitchen, recording, "instructed")
    assert (read["body"]["version"], "This food is not eaten." in read["body"]["shown"]) == ("2026-11", True)


@pytest.mark.parametrize(
    ("strategy", "said"),
    list(itertools.islice(zip(STRATEGIES, (False, True, False, True), strict=True), 1, 4)),
)
def test_an_empty_plan_is_said_before_cooking(
    kitchen: Any, tablet: Tablet, strategy: str, said: bool
) -> None:
    tablet.begin("Tea and toast", strategy=strategy)
    assert tablet.page.locator("#empty-plan").is_visible() == said
    tablet.to_checklist()
    assert tablet.page.locator("#empty-plan").is_visible() == said


def test_review_and_desk_show_the_recipe_the_plan_and_what_was_done_side_by_side(
    kitchen: Any, tablet: Tablet, browser: Any
) -> None:
    shown = planned(kitchen, "induced", "steps")
    page = follow(tablet, shown)
    cook(kitchen, page, shown)
    page.goto(f"{tablet.url}/t/rec/{shown.recording}/review")
    tablet.screen("review")
    without_prefix(page)
    row = page.locator(".planned", has_text="600 ml of juice")
    sides = {
        name: row.locator(f'[data-side="{name}"]').inner_text() for name in ("original", "planned", "done")
    }
    assert sides["original"] == "Fill the kettle with 300 ml of water"
    assert sides["planned"] == shown.words[1]
    assert shown.words[1] in sides["done"]
    left = page.locator(".planned", has_text="Spread 1 tbsp of jam")
    assert "Left out, as planned" in left.locator('[data-side="planned"]').inner_text()
    assert serious(page) == []
    desk = at_the_desk(browser, kitchen.url, kitchen.desk("researcher").headers["x-kitchensync-login"]).page
    desk.goto(f"{kitchen.url}/desk/recordings/{shown.recording}")
    desk.locator("#logged .timeline").wait_for()
    desk.get_by_role("tab", name="Steps").click()
    without_prefix(desk)
    assert desk.locator("#logged .line").count() == 11
    assert desk.locator("#logged .run").count() == len(shown.order)
    cells = desk.locator('#sides [data-node="1"] td').all_inner_texts()
    assert cells[1:4] == ["Fill the kettle with 300 ml of water", shown.words[1], shown.words[1]]
    assert (cells[4], "–" in cells[5]) == ("done", True)
    assert "Left out, as planned" in desk.locator('#sides [data-node="9"]').inner_text()
    assert serious(desk) == []
    desk.context.close()


def errors_of(kitchen: Any, recording: str) -> dict[str, Any]:
    """Return the errors of a recording as its log adds up, by node."""
    return {error["node"]: error for error in kitchen.tools.records.state(recording)["errors"].values()}


def test_a_planned_recovery_is_a_step_with_a_time_of_its_own(kitchen: Any, cooks: Tablet) -> None:
    bundle = kitchen.choose(strategy="induced", display="steps")
    recording, (first, second, third) = str(bundle["recording"]), bundle["ops"][0]["body"]["order"][:3]
    kitchen.agree(recording, "release_raw")
    fields = {"node": second, "categories": [4], "description": "drop it", "recovery": "Pick it up"}
    kitchen.post(kitchen.operation(recording, "plan_error", {"error_id": new_id(second), "fields": fields}))
    page = cooks.page
    page.goto(f"{cooks.url}/t/rec/{recording}/prepare")
    cooks.instructed()
    cooks.screen("prepare")
    page.locator(f'[data-key="add-{first}"]').click()
    page.get_by_role("button", name="Measurement", exact=True).click()
    page.get_by_label("How it is put right").fill("Pour it back and measure again")
    cooks.tap("Save", exact=True)
    page.get_by_text("Recovery: Pour it back and measure again").wait_for()
    cooks.saved()
    page.goto(f"{cooks.url}/t/rec/{recording}/follow")
    cooks.screen("follow")

    def begun(node: int) -> None:
        page.locator(f'h1.current[data-node="{node}"]').wait_for()
        page.get_by_role("button", name="Done", exact=True).wait_for()  # the step that waits is shown too

    def recovery(text: str) -> Any:
        card = page.locator("[data-recovery]", has_text=text)
        card.wait_for()
        assert page.locator("h1.current").all_inner_texts() == [text]
        return card

    page.keyboard.press("ArrowRight")
    begun(first)
    page.keyboard.press("ArrowRight")
    recovery("Pour it back and measure again")
    cooks.tap("Done", exact=True)
    begun(second)
    page.locator('[data-key="undo"]').click()
    recovery("Pour it back and measure again")
    page.keyboard.press("ArrowRight")
    begun(second)
    page.keyboard.press("ArrowRight")
    recovery("Pick it up").get_by_role("button", name="Leave out").click()
    begun(third)
    cooks.saved()
    errors = errors_of(kitchen, recording)
    (_, kept, left_out) = ops(kitchen, recording, "recovered")
    assert errors[first]["corrected_by"] == errors[first]["error_id"] == kept["body"]["error_id"]
    assert (errors[first]["corrected_at"], kept["body"]["shown"]) == (
        kept["host_ns"],
        errors[first]["recovery"],
    )
    assert (errors[second]["corrected_by"], left_out["body"]["left_out"]) == (-1, True)
    assert "corrected_at" not in errors[second]
    starts = [op["body"].get("with_op") for op in ops(kitchen, recording, "start")]
    assert starts == [None, *(op["op_id"] for op in ops(kitchen, recording, "recovered"))]
    page.goto(f"{cooks.url}/t/rec/{recording}/review")
    cooks.screen("review")


def test_a_paragraph_holds_the_recoveries_and_the_pedal_does_them(kitchen: Any, cooks: Tablet) -> None:
    bundle = kitchen.choose(strategy="induced", display="paragraph")
    recording, order = str(bundle["recording"]), bundle["ops"][0]["body"]["order"]
    kitchen.agree(recording, "release_raw")
    fields = {"node": order[0], "categories": [4], "description": "drop it", "recovery": "Pick it up"}
    kitchen.post(kitchen.operation(recording, "plan_error", {"error_id": new_id(order[0]), "fields": fields}))
    page = follow(cooks, Shown(recording, order, [], {}))
    assert page.locator(".paragraph [data-node]").all_inner_texts()[1] == "Pick it up."
    for _ in range(3):  # begin the step, end it, do the recovery
        page.keyboard.press("ArrowRight")
        cooks.rest()
    cooks.saved()
    kinds = [op["kind"] for op in kitchen.tools.records.ops(recording)]
    assert [kind for kind in kinds if kind in ("start", "done", "recovered")] == [
        "start",
        "done",
        "recovered",
        "start",
    ]
