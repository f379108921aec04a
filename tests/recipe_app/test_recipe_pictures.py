"""Pictures of recipes: put in at the desk, made small and bare, shown beside the step; what is fetched before."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from browser import at_the_desk, on_screen, ops
from made_up_pictures import black
from screens import fit_to_be_shown, serious

from kitchensync.operations.errors import BadOperation
from kitchensync.recipe_app.cooking import recipe_pictures
from kitchensync.recipe_app.cooking.mise_en_place import ingredients_in, to_fetch, tools_in
from kitchensync.recipe_app.store.shelf import OWN_RECIPES, Shelf
from kitchensync.task_graphs.model import Graph, Step

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
BLUE, GREEN = (200, 40, 10), (20, 160, 30)
PASSWORD = "a long enough pass phrase"


def photograph(path: Path) -> Path:
    """A JPEG of 2000 x 1000, blue left and green right, that lies on its side and says where it was taken."""
    image = np.full((1000, 2000, 3), BLUE, np.uint8)
    image[:, 1000:] = GREEN
    jpeg = cv2.imencode(".jpg", image)[1].tobytes()
    maker = b"KITCHEN OF SOMEBODY 52.5200N\x00"
    fields = struct.pack("<HHII", 0x0112, 3, 1, 6) + struct.pack(
        "<HHII", 0x010F, 2, len(maker), 8 + 2 + 24 + 4
    )
    exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 2) + fields + struct.pack("<I", 0) + maker
    path.write_bytes(jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + jpeg[2:])
    return path


def segments(jpeg: bytes) -> list[int]:
    """The markers of a JPEG up to its pixels, read by hand."""
    found, place = [], 2
    while jpeg[place + 1] != 0xDA:
        found.append(jpeg[place + 1])
        place += 2 + int(struct.unpack(">H", jpeg[place + 2 : place + 4])[0])
    return found


def test_a_picture_is_turned_upright_made_small_and_says_nothing_of_its_maker(tmp_path: Path) -> None:
    small = recipe_pictures.small_jpeg(photograph(tmp_path / "photo.jpg"))
    assert b"SOMEBODY" not in small
    assert 0xE1 not in segments(small)
    image = cv2.imdecode(np.frombuffer(small, np.uint8), cv2.IMREAD_COLOR)
    assert image.shape[:2] == (960, 480)
    assert np.abs(image[100, 240].astype(int) - BLUE).max() < 12
    assert np.abs(image[-100, 240].astype(int) - GREEN).max() < 12


def test_what_is_no_picture_or_a_bomb_is_refused_and_nothing_is_kept(kitchen: Any, tmp_path: Path) -> None:
    (tmp_path / "words.png").write_text("not a picture")
    for path in (black(tmp_path / "bomb.png", 40_000), tmp_path / "words.png"):
        with pytest.raises(BadOperation, match="no picture that can be read"):
            recipe_pictures.small_jpeg(path)
    desk = kitchen.desk("researcher")
    address = "/api/v1/desk/recipes/tea_and_toast/pictures"
    photo = photograph(tmp_path / "photo.jpg").read_bytes()
    for place, sent, kind in (
        ("7", b"no", "image/png"),
        ("99", photo, "image/jpeg"),
        ("x", photo, "image/jpeg"),
    ):
        answer = desk.put(f"{address}/{place}", content=sent, headers={"content-type": kind})
        assert answer.status_code == 422, answer.text
    assert desk.put(f"{address}/7", content=photo, headers={"content-type": "text/html"}).status_code == 415
    assert kitchen.desk("operator").put(f"{address}/7", content=photo).status_code == 401
    assert recipe_pictures.of_all(kitchen.tools.records) == {}
    assert not list(kitchen.data.glob(".picture-*"))


@pytest.mark.slow
def test_a_picture_of_a_step_stands_beside_it_without_network_too(
    kitchen: Any, browser: Any, tmp_path: Path
) -> None:
    person = kitchen.tools.accounts.add_person("Rosemary", ["researcher"], actor="")
    kitchen.tools.accounts.accept_invite(kitchen.tools.accounts.invite(person, actor=""), PASSWORD)
    login = kitchen.tools.accounts.sign_in(person, "password", PASSWORD, device="", desk=True)
    desk = at_the_desk(browser, kitchen.url, login)
    desk.go("/recipes/tea_and_toast")
    desk.page.locator("#pictures summary").click()
    with desk.page.expect_navigation():
        desk.page.get_by_label("Picture of: 1. Fill the kettle").set_input_files(
            photograph(tmp_path / "photo.jpg")
        )
    shown = desk.page.get_by_role("img", name="Picture of: 1. Fill the kettle")
    assert shown.evaluate("(image) => image.naturalHeight") == 960
    fit_to_be_shown(desk.page)
    assert desk.problems == []
    with on_screen(kitchen, browser) as tablet:
        page = tablet.page
        page.locator("html[data-offline=ready]").wait_for()
        page.reload()
        tablet.screen("choose")
        recording = tablet.begin("Tea and toast")
        tablet.checklist()
        frozen = kitchen.tools.records.frozen(recording)
        for _ in range(12):  # to the step with the picture
            if page.locator(".current").get_attribute("data-node") == "1":
                break
            page.locator("footer .done").click()
            tablet.rest()
        page.locator(".step-picture").wait_for()
        tablet.saved()
        page.context.set_offline(True)
        page.reload()
        tablet.screen("follow")
        picture = page.locator(".step-picture")
        picture.wait_for()
        page.evaluate("document.querySelector('.step-picture').decode()")
        box = picture.bounding_box()
        glass = cv2.imdecode(np.frombuffer(page.screenshot(), np.uint8), cv2.IMREAD_COLOR)
        blue = glass[int(box["y"] + box["height"] * 0.2), int(box["x"] + box["width"] / 2)].astype(int)
        green = glass[int(box["y"] + box["height"] * 0.8), int(box["x"] + box["width"] / 2)].astype(int)
        assert blue[0] > 2 * max(blue[1], blue[2])
        assert green[1] > 2 * max(green[0], green[2])
        text = page.locator(".current").bounding_box()
        assert text["x"] + text["width"] <= box["x"]
        assert serious(page) == []
        page.context.set_offline(False)
        tablet.saved()
        assert frozen["pictures"]["1"] == recipe_pictures.of_all(kitchen.tools.records)["tea_and_toast"]["1"]
    desk.page.get_by_role("button", name="Remove the picture of: 1. Fill the kettle").click()
    desk.page.get_by_role("button", name="Remove the picture of").wait_for(state="detached")
    assert recipe_pictures.of_all(kitchen.tools.records) == {}
    assert kitchen.choose()["ops"][0]["body"]["pictures"] == {"result": "/static/dishes/tea_and_toast.svg"}


@pytest.mark.slow
def test_what_is_fetched_is_ticked_off_and_kept_and_may_be_skipped(kitchen: Any, browser: Any) -> None:
    with on_screen(kitchen, browser) as tablet:
        page = tablet.page
        recording = tablet.begin("Yogurt bowl")
        tablet.screen("checklist")
        page.get_by_role("button", name="Get everything ready").click()
        tablet.screen("gather")
        assert page.get_by_role("checkbox").all_inner_texts() == [
            "150 g of yogurt", "1 handful of blueberries", "1 banana", "6 almonds", "1 tsp of honey",
            "bowl", "knife", "cutting board", "spoon",
        ]  # fmt: skip
        fit_to_be_shown(page)
        for name in ("1 banana", "spoon", "bowl"):
            page.get_by_role("checkbox", name=name).click()
        tablet.rest()
        page.get_by_role("checkbox", name="bowl").click()
        page.get_by_text("2 of 9 stand ready").wait_for()
        page.reload()
        tablet.screen("gather")
        page.get_by_text("2 of 9 stand ready").wait_for()
        tablet.tap("To the checklist")
        tablet.screen("checklist")
        tablet.checklist()  # the rest is skipped
        ticked = [(op["body"]["item"], op["body"]["checked"]) for op in ops(kitchen, recording, "check")][:4]
        assert ticked == [("ingredients_2", True), ("tools_3", True), ("tools_0", True), ("tools_0", False)]


def test_what_the_desk_states_is_fetched_and_else_what_the_recipe_says(kitchen: Any) -> None:
    recipe = Shelf(OWN_RECIPES).get("yogurt_bowl")
    assert to_fetch(recipe, {}, "de")["ingredients"][1] == "1 Handvoll Heidelbeeren"
    assert to_fetch(recipe, {"tools": ["big bowl"]}, "de")["tools"] == ["big bowl"]
    desk = kitchen.desk("researcher")
    stated = {
        "ingredients": "200 g of yogurt, 2 bananas",
        "heating": "",
        "skills": "",
        "tools": "",
        "minutes": "7",
    }
    assert desk.post("/api/v1/desk/recipes/yogurt_bowl/facts", json=stated).status_code == 200
    found = kitchen.choose(recipe="yogurt_bowl")["ops"][0]["body"]["fetch"]
    assert found == {
        "ingredients": ["200 g of yogurt", "2 bananas"],
        "tools": ["bowl", "knife", "cutting board", "spoon"],
    }
    card = next(
        one
        for one in kitchen.tablet.get("/api/v1/recipes").json()["recipes"]
        if one["recipe"] == "yogurt_bowl"
    )
    assert (card["minutes"], card["picture"]) == (7, "/static/dishes/yogurt_bowl.svg")


def test_the_words_of_steps_are_asked_where_nobody_said_what_is_needed() -> None:
    texts = [
        *("Fill-Fill the kettle with 300 ml of water", "Cut-Cut the toast into two triangles"),
        *("Mix-Mix 1/4 tsp salt, 2 eggs and pepper in a bowl", "Cut-Cut 1/2 inch off the end"),
        *("Fill-Fill two glasses",),
    ]
    graph = Graph("words", tuple(Step(node, text) for node, text in enumerate(texts)), ())
    assert ingredients_in(graph) == ["300 ml of water", "1/4 tsp salt", "2 eggs", "pepper"]
    assert tools_in(graph) == ["kettle", "bowl"]


def test_every_recipe_of_ours_has_a_small_drawing_and_facts_in_three_languages() -> None:
    for recipe in Shelf(OWN_RECIPES).recipes():
        drawing = Path(recipe_pictures.__file__).parents[1] / recipe_pictures.of_result(recipe, {}).lstrip(
            "/"
        )
        assert 500 < drawing.stat().st_size < 4000
        facts = json.loads(recipe.graph.extra)["facts"]
        lengths = {
            language: {
                key: len(facts[language][key]) for key in ("ingredients", "tools", "skills", "heating")
            }
            for language in ("en", "de", "ar")
        }
        assert lengths["en"] == lengths["de"] == lengths["ar"]
        texts = " ".join(step.text.lower() for step in recipe.graph.steps)
        for said in facts["en"]["ingredients"]:
            assert said.split()[-1] in texts
