"""The recipe workshop in a real browser, by keyboard alone: written, looked over, ordered, cooked."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from browser import at_the_desk, on_screen, ops
from screens import fit_to_be_shown

pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]
PASSWORD = "a long enough pass phrase"
STEPS = [
    *("Rinse 200 g of lentils", "Fill a pot with 1 l of water", "Put the lentils into the pot"),
    *("Boil the lentils for 20 minutes", "Peel one onion", "Chop the onion"),
    *("Fry the onion in a pan", "Stir the onion into the lentils", "Season the soup with salt"),
    *("Serve the soup in two bowls",),
]
TEXT = "\n".join(["Lentil soup", "Serves 2", *STEPS])
MOST_TABS = 200


class Keyboard:
    """Somebody who has a keyboard and no mouse."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def reach(self, target: Any) -> None:
        """Press Tab until this has the focus."""
        target.wait_for()
        for _ in range(MOST_TABS):
            if target.evaluate("(element) => element === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        pytest.fail(f"{target} is reached by no Tab")

    def press(self, target: Any, key: str = "Enter") -> None:
        """Reach something, then press a key."""
        self.reach(target)
        self.page.keyboard.press(key)

    def button(self, name: str, *, exact: bool = False) -> None:
        """Press a button by what it says."""
        self.press(self.page.get_by_role("button", name=name, exact=exact).first)

    def write(self, label: str, text: str) -> None:
        """Type into a field by its label."""
        self.reach(self.page.get_by_label(label))
        self.page.keyboard.insert_text(text)


def researcher(kitchen: Any) -> str:
    """Somebody who may edit recipes; return their sign-in."""
    person = kitchen.tools.accounts.add_person("Rosemary", ["researcher"], actor="")
    kitchen.tools.accounts.accept_invite(kitchen.tools.accounts.invite(person, actor=""), PASSWORD)
    return str(kitchen.tools.accounts.sign_in(person, "password", PASSWORD, device="", desk=True))


def test_ten_lines_are_ten_steps_in_order_and_one_edge_less_is_cooked(kitchen: Any, browser: Any) -> None:
    desk = at_the_desk(browser, kitchen.url, researcher(kitchen))
    page, keys = desk.page, Keyboard(desk.page)
    desk.go("/recipes")
    keys.write("Name", "lentil soup")
    keys.write("The recipe", TEXT)
    keys.button("Write a recipe here")
    page.get_by_role("heading", name="What every line is taken for").wait_for()
    kinds = page.locator(".lines select").evaluate_all("(all) => all.map((one) => one.value)")
    assert kinds == ["title", "yield", *["step"] * 10]
    assert page.locator(".lines .line").all_inner_texts() == TEXT.split("\n")
    keys.reach(page.get_by_role("button", name="Keep these steps"))
    with page.expect_navigation():
        page.keyboard.press("Enter")
    keys.press(page.get_by_role("link", name="Lentil soup", exact=True))
    page.locator("#order .count", has_text="1 valid order").wait_for()
    written = kitchen.tools.shelf.get("lentil_soup").graph
    assert [step.text for step in written.steps] == STEPS
    assert list(written.inner_edges) == list(pairwise(range(1, 11)))
    assert page.get_by_text("Serves 2", exact=True).is_visible()

    keys.button("Remove: “5 Peel one onion” waits for “4 Boil the lentils for 20 minutes”")
    page.locator("#order .count", has_text="210 valid orders").wait_for()  # 10 steps in rows of 4 and 6
    assert page.locator(".samples ol").count() == 3
    keys.reach(page.get_by_role("button", name="Keep this order"))
    with page.expect_navigation():
        page.keyboard.press("Enter")
    kept = kitchen.tools.shelf.get("lentil_soup").graph
    assert set(kept.inner_edges) == set(pairwise(range(1, 11))) - {(4, 5)}
    assert desk.problems == []
    page.context.close()
    with on_screen(kitchen, browser) as tablet:
        cooked(kitchen, tablet)


def cooked(kitchen: Any, tablet: Any) -> None:
    """Cook the soup on the tablet, by the keys of one that is plugged in."""
    page, keys = tablet.page, Keyboard(tablet.page)
    keys.press(page.locator("#recipes").get_by_role("button", name="Lentil soup"))
    tablet.screen("recipe")
    keys.button("Begin", exact=True)
    tablet.screen("instructions")
    keys.button("Continue", exact=True)
    tablet.screen("checklist")
    recording = str(page.url.split("/")[-2])
    for box in page.get_by_role("checkbox").all():
        keys.press(box, "Space")
    keys.write("Pseudonym of the second person", "Clove")
    keys.press(page.locator("#start"))
    tablet.screen("follow")
    order = ops(kitchen, recording, "recording")[0]["body"]["order"]
    assert [node for node in order if node < 5] == [1, 2, 3, 4]
    assert [node for node in order if node > 4] == [5, 6, 7, 8, 9, 10]
    for done in range(11):  # the first touch begins the first step
        tablet.rest()
        keys.press(page.locator("footer .done"))
        while (len(ops(kitchen, recording, "start")), len(ops(kitchen, recording, "done"))) != (
            min(done + 1, 10),
            done,
        ):
            page.wait_for_timeout(50)
    assert [op["body"]["node"] for op in ops(kitchen, recording, "done")] == order


def test_circles_and_implied_edges_are_named_and_two_touches_make_an_edge(
    kitchen: Any, browser: Any, tmp_path: Path
) -> None:
    desk = at_the_desk(browser, kitchen.url, researcher(kitchen))
    page, keys = desk.page, Keyboard(desk.page)
    desk.go("/recipes/tea_and_toast")
    page.locator("#order .count", has_text="valid orders").wait_for()
    fit_to_be_shown(page)
    edges = kitchen.tools.shelf.get("tea_and_toast").graph.inner_edges
    before, after = edges[0]
    later = next(v for u, v in edges if u == after)
    node = "[data-node='{}']".format
    page.locator(node(before)).click()
    page.locator(node(later)).click()
    page.locator(".edges .redundant").wait_for()
    assert page.locator(".edges .redundant").count() == 1
    fit_to_be_shown(page)
    page.locator(".edges .redundant").click()  # and back
    page.locator(".edges .redundant").wait_for(state="detached")
    assert page.get_by_role("button", name="Keep this order").is_disabled()

    keys.press(page.locator(node(after)))
    keys.press(page.locator(node(before)))
    alert = page.locator("#order .cycle")
    alert.wait_for()
    assert f"{before} " in alert.inner_text()
    assert page.locator(".drawing path.wrong").count() == 2
    assert page.get_by_role("button", name="Keep this order").is_disabled()
    fit_to_be_shown(page)
    page.locator(node(after)).drag_to(page.locator(node(before)))
    alert.wait_for(state="hidden")
    assert desk.problems == []


def test_a_published_graph_is_opened_and_saved_and_only_the_removed_edge_differs(
    kitchen: Any, browser: Any, shared_data: Callable[[str], Path]
) -> None:
    path = shared_data("captaincook4d/task_graphs/ramen.json")
    desk = at_the_desk(browser, kitchen.url, researcher(kitchen))
    page = desk.page
    desk.go("/recipes")
    page.get_by_label("File").set_input_files(path)
    desk.tap("Add a recipe")
    desk.follow("Ramen")
    page.locator("#order .count", has_text="valid order").wait_for()
    fit_to_be_shown(page)
    link = page.get_by_role("link", name="Download as a file")
    with page.expect_download() as download:
        link.click()
    assert Path(download.value.path()).read_bytes() == path.read_bytes()
    was = kitchen.tools.shelf.get("ramen").graph
    page.locator(".edges button").first.click()
    with page.expect_navigation():
        page.get_by_role("button", name="Keep this order").click()
    now = kitchen.tools.shelf.get("ramen").graph
    assert len(set(was.inner_edges) - set(now.inner_edges)) == 1
    assert set(now.inner_edges) < set(was.inner_edges)
    assert now.nodes == was.nodes
    assert desk.problems == []


def test_recipes_are_searched_and_filtered_on_the_tablet_by_what_the_desk_states(
    kitchen: Any, browser: Any
) -> None:
    desk = at_the_desk(browser, kitchen.url, researcher(kitchen))
    for name, facts in (
        ("tea_and_toast", ["kettle, toaster", "pouring", "mug", "15"]),
        ("pan_quesadilla", ["pan", "frying", "pan", "25"]),
    ):
        desk.go(f"/recipes/{name}")
        desk.page.locator("#facts summary").click()
        for field, words in zip(("heating", "skills", "tools", "minutes"), facts, strict=True):
            desk.page.locator(f"#{field}").fill(words)
        desk.page.locator("#ingredients").fill("bread, one tea bag" if name == "tea_and_toast" else "cheese")
        fit_to_be_shown(desk.page)
        with desk.page.expect_navigation():
            desk.page.locator("form[data-send$=facts]").get_by_role("button", name="Save").click()
    assert desk.problems == []
    with on_screen(kitchen, browser) as tablet:
        page, cards = tablet.page, tablet.page.locator("#recipes .card .name")
        cards.nth(5).wait_for()
        fit_to_be_shown(page)
        for label, value, left in (
            ("Heated with", "toaster", ["Tea and toast"]),
            ("Skill", "frying", ["Pan quesadilla"]),
            ("Tool", "mug", ["Microwave egg rice", "Tea and toast"]),
            ("At most", "15", ["Fresh lemonade", "Microwave egg rice", "Tea and toast", "Yogurt bowl"]),
        ):
            page.get_by_label(label, exact=True).select_option(value)
            assert cards.all_inner_texts() == left
            page.get_by_label(label, exact=True).select_option("")
        page.get_by_label("Search").fill("CHEESE")
        assert cards.all_inner_texts() == ["Pan quesadilla"]
        page.get_by_label("Search").fill("nothing such")
        page.get_by_text("0 recipes fit").wait_for()
        page.get_by_label("Search").fill("")
        assert cards.count() == 6
