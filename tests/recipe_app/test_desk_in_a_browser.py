"""The desk as a person uses it, in a real browser: every page, every flow, in light and dark."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
import segno
from browser import LANDSCAPE, Desk, chromium, ops
from screens import fit_to_be_shown

from kitchensync.recipe_app.store import tables

pytestmark = pytest.mark.timeout(240)
LINK_CODE = "async (text) => (await import('/static/core/qr.js')).qrOfLink(text)"
PASSWORD = "a long enough pass phrase"
GRAPH = {
    "steps": {"0": "START", "1": "Add-1 egg", "2": "Whisk-the egg", "3": "END"},
    "edges": [[0, 1], [1, 2], [2, 3]],
}
COOKLANG = "Boil @water{1%l} in a #pot{}.\n\nAdd @rice{200%g} and cook for ~{12%minutes}.\n"


@pytest.fixture
def desk(kitchen: Any) -> Iterator[Desk]:
    """An admin who is signed in at the desk, after the invite."""
    admin = kitchen.tools.accounts.add_person("Ada", ["admin"], actor="")
    invite = kitchen.tools.accounts.invite(admin, actor="")
    with chromium() as browser:
        desk = Desk(browser.new_context(viewport=LANDSCAPE).new_page(), kitchen.url)
        desk.go(f"/sign-in#{invite}")
        fit_to_be_shown(desk.page)
        desk.fill("New password", PASSWORD)
        desk.tap("Save")
        desk.page.get_by_label("Password", exact=True).fill(PASSWORD)
        desk.tap("Sign in at the desk")
        desk.page.wait_for_url("**/desk/room")
        yield desk
        assert desk.problems == []


def test_people_kitchens_and_tablets(kitchen: Any, desk: Desk) -> None:
    page = desk.page
    fit_to_be_shown(page)
    desk.follow("Setup")
    fit_to_be_shown(page)
    desk.follow("Kitchens and tablets")
    desk.fill("Name", "<b>Kitchen</b> 7")
    desk.tap("Add a kitchen")
    page.get_by_role("heading", name="<b>Kitchen</b> 7").wait_for()  # escaped, never markup
    desk.tap("Pair a tablet")
    code = desk.secret()
    fit_to_be_shown(page)
    desk.tap("OK")
    device = kitchen.tools.accounts.pair(code, "Tablet by the sink", secure=False)[0]
    page.reload()
    page.get_by_text("not secure").wait_for()
    fit_to_be_shown(page)
    desk.tap("Remove")
    page.get_by_text("removed", exact=True).wait_for()
    assert not kitchen.tools.records.row(tables.device, device)["active"]

    desk.follow("People")
    desk.fill("Pseudonym", "Thyme")
    page.locator("#pin").fill("111111")
    page.locator("form .option", has_text="Researcher").click()
    desk.tap("Add a person")
    page.get_by_role("alert").get_by_text("anybody tries first").wait_for()
    assert kitchen.tools.records.rows(tables.person, tables.person.c.pseudonym == "Thyme") == []
    page.locator("#pin").fill("482916")
    desk.tap("Add a person")
    desk.secret("/desk/sign-in#")
    desk.tap("OK")
    row = page.get_by_role("row", name="Thyme")
    row.get_by_placeholder("PIN").fill("739155")
    with page.expect_navigation():
        row.get_by_role("button", name="Set the PIN").click()
    page.get_by_role("row", name="Thyme").get_by_role("button", name="QR card").click()
    desk.secret("/q#")
    desk.tap("OK")
    row.locator("summary").click()
    row.get_by_label("Annotator").check()
    with page.expect_navigation():
        row.get_by_role("button", name="Save").click()
    row.locator(".badge", has_text="Annotator").wait_for()
    page.get_by_role("row", name="Thyme").get_by_role("button", name="Switch off").click()
    page.get_by_role("button", name="Switch on").wait_for()
    fit_to_be_shown(page)
    (thyme,) = kitchen.tools.records.rows(tables.person, tables.person.c.pseudonym == "Thyme")
    assert not thyme["active"]
    assert set(json.loads(thyme["roles"])) == {"participant", "researcher", "annotator"}


def test_codes_are_drawn_in_the_page_and_stand_in_no_address_that_is_asked_for(
    kitchen: Any, desk: Desk
) -> None:
    page, asked = desk.page, []
    page.on("request", lambda request: asked.append(request.headers.get("referer", "") + request.url))
    assert kitchen.place
    assert kitchen.basil
    secrets = []
    for path, name in (("devices", "Pair a tablet"), ("people", "QR card")):
        desk.go(f"/{path}")
        page.get_by_role("button", name=name).first.click()
        shown = desk.secret()
        link = f"{kitchen.url}/t/pair#{shown}" if path == "devices" else shown
        assert modules_of(page, "dialog[open] #result-qr canvas") == page.evaluate(LINK_CODE, link)
        secrets.append(link.partition("#")[2])
    page.goto(link)  # as a camera opens it
    page.wait_for_selector("body[data-screen]")
    assert all(secrets)
    for text in ("https://192.168.1.20:8000/t/pair#ABCD-EFGH", f"https://kitchen/q#{'xyz-_' * 14}", "é" * 68):
        assert read(page.evaluate(LINK_CODE, text)) == text
    whole = segno.make(b"y" * 134, version=6, mask=2, error="l", mode="byte", boost_error=False).matrix
    assert page.evaluate(LINK_CODE, "y" * 134) == [[bool(dot) for dot in row] for row in whole]
    long = segno.make(b"y" * 271, version=10, mask=0, error="l", mode="byte", boost_error=False).matrix
    assert page.evaluate(LINK_CODE, "y" * 271) == [[bool(dot) for dot in row] for row in long]
    assert [secret for secret in secrets for address in asked if secret in address.partition("#")[0]] == []


def modules_of(page: Any, place: str) -> list[list[bool]]:
    """Tell light from dark in a canvas: a module is six points wide, and four of them are quiet around the code."""
    picture = page.locator(place).evaluate("(canvas) => canvas.toDataURL('image/png')")
    content = np.frombuffer(base64.b64decode(picture.partition(",")[2]), np.uint8)
    dark = cv2.imdecode(content, cv2.IMREAD_GRAYSCALE)[3::6, 3::6] < 128
    assert dark.sum() == dark[4:-4, 4:-4].sum()
    return dark[4:-4, 4:-4].tolist()  # type: ignore[no-any-return]


def read(modules: list[list[bool]]) -> str:
    """Read a code with another program than the one that drew it."""
    light = 255 - 255 * np.pad(np.array(modules, np.uint8), 4)
    return str(cv2.QRCodeDetector().detectAndDecode(np.kron(light, np.ones((6, 6), np.uint8)))[0])


def test_recipes_come_as_graph_text_and_cooklang_and_keep_their_versions(
    kitchen: Any, desk: Desk, tmp_path: Path
) -> None:
    page = desk.page
    desk.follow("Recipes")
    (tmp_path / "egg.json").write_text(json.dumps(GRAPH))
    page.get_by_label("File").set_input_files(tmp_path / "egg.json")
    desk.tap("Add a recipe")
    page.get_by_role("link", name="Egg", exact=True).wait_for()
    for title, form, words in (
        ("Lemon water", "txt", f"Cut a lemon.\nPour {'cold ' * 20}water.\nAdd the lemon.\n"),
        ("Rice", "cook", COOKLANG),
    ):
        desk.fill("Name", title)
        page.get_by_label("Written as").select_option(form)
        desk.fill("The recipe", words)
        desk.tap("Write a recipe here")
        if form == "txt":
            page.get_by_role("heading", name="What every line is taken for").wait_for()
            fit_to_be_shown(page)
            desk.tap("Keep these steps")
        page.get_by_role("link", name=title, exact=True).wait_for()
    desk.fill("Name", "Broken")
    page.get_by_label("Written as").select_option("json")
    desk.fill("The recipe", '{"steps": {"1": "Add-x"}, "edges": [[1, 1]]}')
    desk.tap("Write a recipe here")
    page.get_by_role("alert").get_by_text("Broken", exact=False).or_(
        page.get_by_role("alert").get_by_text("broken")
    ).wait_for()
    fit_to_be_shown(page)
    longer = {
        "steps": {**GRAPH["steps"], "3": "Salt-the egg", "4": "END"},
        "edges": [[0, 1], [1, 2], [2, 3], [3, 4]],
    }
    (tmp_path / "egg.json").write_text(json.dumps(longer))
    page.reload()
    page.get_by_label("File").set_input_files(tmp_path / "egg.json")
    desk.tap("Add a recipe")
    page.get_by_role("row", name="Egg 3").wait_for()
    page.get_by_role("link", name="Egg", exact=True).click()
    page.get_by_text("current").wait_for()
    assert page.locator(".rows li").count() == 2
    fit_to_be_shown(page)
    desk.go("/recipes/lemon_water")
    page.get_by_text("110 characters: shown in smaller letters").wait_for()
    desk.go("/recipes/egg")
    page.locator("#wording summary").click()
    desk.fill("The recipe itself is in", "en")
    desk.fill("Language (", "de")
    desk.fill("Name", "Ei")
    desk.fill("Steps", "1 Ei dazu\nDas Ei schlagen\nDas Ei salzen")
    fit_to_be_shown(page)
    desk.tap("Save")
    page.locator("[lang=de]", has_text="Ei").first.wait_for()
    assert page.locator(".rows code").all_inner_texts()[:2] == ["en", "de"]
    desk.go("/recipes/tea_and_toast")
    page.get_by_label("What is this session for?").select_option("disordered")
    desk.fill("Number of the draw", "7")
    desk.tap("Draw it")
    page.get_by_role("heading", name="What this script changes").wait_for()
    fit_to_be_shown(page)
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert page.locator(".certificate").is_visible()


def made(kitchen: Any) -> str:
    """A recording of three steps with an error; one error is in two versions."""
    bundle = kitchen.choose(strategy="induced")
    recording, order = str(bundle["recording"]), bundle["ops"][0]["body"]["order"]
    error_id = kitchen.operation(recording, "end", {})["op_id"]
    fields = {"node": order[0], "categories": [3], "description": "a minute too long"}
    kitchen.post(
        kitchen.operation(recording, "claim", {}),
        *(
            kitchen.operation(recording, kind, {"node": node})
            for node in order[:3]
            for kind in ("start", "done")
        ),
        kitchen.operation(recording, "error", {"error_id": error_id, "fields": fields}),
    )
    kitchen.agree(recording, "release_raw")
    change = {"error_id": error_id, "fields": {"description": "half a minute"}}
    operation = kitchen.operation(recording, "edit_error", change, seen=1)
    assert kitchen.second_tablet().post("/api/v1/ops", json={"operations": [operation]}).status_code == 200
    return recording


@pytest.mark.promise("An operator, a researcher and an annotator find their work at the desk")
def test_a_recording_is_judged_corrected_exported_and_freed(kitchen: Any, desk: Desk) -> None:
    page, recording = desk.page, made(kitchen)
    desk.go("")
    page.get_by_text("8 left out").wait_for()
    fit_to_be_shown(page)
    desk.follow("tea and toast")
    page.get_by_role("tab", name="Devices").click()
    page.get_by_text("Held by Tablet").wait_for()
    desk.tap("Take it from the tablet")
    page.get_by_text("Held by Tablet").wait_for(state="detached")
    fit_to_be_shown(page)
    page.get_by_role("tab", name="Errors").click()
    page.locator("details.error summary", has_text="2 versions").click()
    page.locator(".versions li", has_text="a minute too long").get_by_role("button").click()
    page.locator(".versions").wait_for(state="detached")
    page.get_by_text("+ Add an error").click()
    page.locator("#new").get_by_label("What is different").fill("too much butter")
    page.locator("#new").get_by_role("button", name="Save").click()
    page.locator(".error .what", has_text="too much butter").wait_for()
    page.get_by_text("More", exact=True).click()
    with page.expect_download() as download:
        desk.follow("Download everything as a file")
    content = json.loads(Path(download.value.path()).read_text())
    errors = content["state"]["errors"].values()
    assert {error["description"] for error in errors} == {"a minute too long", "too much butter"}
    assert all(error["conflicts"] == {} for error in errors)
    assert content["operations"] == kitchen.tools.records.ops(recording)

    desk.go("/audit")
    page.get_by_text("The chain of the log holds").wait_for()
    fit_to_be_shown(page)
    page.goto(f"{kitchen.url}/doctor")
    page.locator("#doctor li.good").nth(4).wait_for()
    fit_to_be_shown(page)


def test_only_an_admin_lets_a_recording_begin_with_open_points(kitchen: Any, desk: Desk) -> None:
    bundle = kitchen.choose()
    recording = bundle["recording"]
    version = bundle["checklist"]["consent"]
    page = desk.page
    desk.go(f"/recordings/{recording}")
    desk.fill("Why may it begin all the same?", "the mirror is bolted to the wall")
    desk.tap("Let it begin")
    page.get_by_role("alert").get_by_text("consent is not given").wait_for()
    kitchen.post(kitchen.operation(recording, "consent", {"version": version, "accepted": True}))
    desk.tap("Let it begin")
    page.get_by_role("button", name="Let it begin").wait_for(state="detached")
    checked = kitchen.tools.records.state(recording)["checked"]
    assert checked["confirmed_by"] == "Ada"
    assert checked["override"].startswith("the mirror is bolted to the wall (open: jewellery")
    operator = kitchen.desk("operator")
    body = {"op_id": recording, "reason": "because"}
    assert operator.post(f"/api/v1/desk/recordings/{recording}/override", json=body).status_code in (401, 403)


def test_a_correction_changes_what_was_changed_and_is_made_once(kitchen: Any, desk: Desk) -> None:
    page, bundle = desk.page, kitchen.choose()
    recording, node = bundle["recording"], bundle["ops"][0]["body"]["order"][0]
    error_id = kitchen.operation(recording, "end", {})["op_id"]
    fields = {"node": node, "categories": [1, 5], "description": "too much"}
    kitchen.post(kitchen.operation(recording, "error", {"error_id": error_id, "fields": fields}))
    desk.go(f"/recordings/{recording}")
    page.get_by_role("tab", name="Errors 1").click()
    editor = page.locator(f"#error-{error_id}")
    editor.locator("summary").click()
    at = kitchen.tools.records.state(recording)["errors"][error_id]["at"]
    editor.get_by_label("What is different").fill("two spoons")
    editor.get_by_role("button", name="Save").click()
    editor.locator(".what", has_text="two spoons").wait_for()
    found = kitchen.tools.records.state(recording)["errors"][error_id]
    assert (found["description"], found["categories"]) == ("two spoons", [1, 5])  # not one of several only
    assert (found["at"], found["node"], found["intent"], found["corrected_by"]) == (at, node, "", None)
    form = page.locator(f"form[data-error='{error_id}']")
    form.get_by_label("Timing").check()
    form.get_by_label("Step", exact=True).select_option(index=2)
    form.get_by_label("When, seconds").fill("1.5")
    form.get_by_label("On purpose?").select_option("by accident")
    form.get_by_label("Noticed").select_option("later")
    form.get_by_label("Corrected by step").select_option(index=5)
    editor.get_by_role("button", name="Save").click()
    editor.locator("summary .badge", has_text="Timing").wait_for()
    order = kitchen.tools.records.state(recording)["recording"]["order"]
    found = kitchen.tools.records.state(recording)["errors"][error_id]
    assert (found["categories"], found["node"], found["intent"]) == ([1, 3, 5], order[2], "by_accident")
    assert (found["noticed"], found["corrected_by"]) == ("later", order[3])
    assert found["at"] == 1_500_000_000  # no step was touched yet
    touched = [op["body"]["fields"] for op in ops(kitchen, recording, "edit_error")]
    assert (len(touched), "description" in touched[1]) == (2, False)  # both versions are kept

    def lose(route: Any) -> None:
        route.fetch()  # it is taken in, but the page never hears of it
        route.abort()

    new = page.locator("#new")
    new.locator("summary").click()
    new.get_by_label("What is different").fill("no salt")
    page.route("**/corrections", lose)
    new.get_by_role("button", name="Save").click()
    page.get_by_role("alert").get_by_text("No answer from the server").wait_for()
    page.unroute("**/corrections")
    new.get_by_role("button", name="Save").click()
    page.locator(".error .what", has_text="no salt").wait_for()
    said = [error["description"] for error in kitchen.tools.records.state(recording)["errors"].values()]
    assert said == ["two spoons", "no salt"]


def spoken() -> bytes:
    """Half a second of a tone as a tablet would record it."""
    file = io.BytesIO()
    with av.open(file, "w", format="webm") as container:
        stream = container.add_stream("libopus", rate=48_000, layout="mono")
        tone = (9000 * np.sin(np.arange(24_000) * 0.05)).astype(np.int16)
        frame = av.AudioFrame.from_ndarray(tone[None], format="s16", layout="mono")
        frame.sample_rate = 48_000
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)
    return file.getvalue()


def test_a_voice_note_is_heard_on_the_page_of_its_recording(kitchen: Any, desk: Desk) -> None:
    recording, content = kitchen.choose()["recording"], spoken()
    digest = hashlib.sha256(content).hexdigest()
    for sha256, seconds in ((digest, 0.5), ("0" * 64, 7)):
        body = {"sha256": sha256, "media_type": "audio/webm;codecs=opus", "seconds": seconds}
        kitchen.post(kitchen.operation(recording, "voice", body))
    headers = {"content-type": "audio/webm;codecs=opus"}
    kept = kitchen.tablet.put(f"/api/v1/voice/{recording}/{digest}", content=content, headers=headers)
    assert kept.status_code == 200
    page, refused = desk.page, []
    page.on("console", lambda said: refused.append(said.text) if said.type == "error" else None)
    desk.go(f"/recordings/{recording}")
    page.get_by_role("tab", name="Notes 2").click()
    page.get_by_text("Voice note 2, 7 s Its sound is not here").wait_for()
    heard = page.locator("audio").evaluate(
        """(audio) => new Promise((resolve, reject) => {
             audio.onended = () => resolve(audio.currentTime);
             audio.onerror = () => reject(audio.error.message);
             audio.muted = true;
             audio.play().catch(reject);
           })"""
    )
    assert 0.4 < heard < 0.7
    with page.expect_download() as download:
        desk.follow("Voice note 1")
    assert Path(download.value.path()).read_bytes() == content
    assert refused == []
    fit_to_be_shown(page)


def test_a_refusal_and_a_server_that_is_silent_are_told_in_the_language_of_the_page(
    kitchen: Any, desk: Desk
) -> None:
    page = desk.page
    with page.expect_response("**/locales/de.json"):
        desk.go("/devices?lang=de")
    for said, without_network in (
        ("Ein Name hat 1 bis 40 Zeichen.", False),
        ("Keine Antwort vom Server.", True),
    ):
        page.context.set_offline(without_network)
        desk.fill("Name", " ")
        desk.tap("Küche anlegen")
        page.get_by_role("alert").get_by_text(said).wait_for()


def test_a_browser_that_is_paired_says_where_the_desk_is(kitchen: Any, desk: Desk) -> None:
    page, link = desk.page, "Sign in at the desk instead"
    page.goto(f"{kitchen.url}/t/pair#{kitchen.tools.accounts.pairing_code(kitchen.place, actor='')}")
    page.get_by_role("link", name=link).wait_for()
    page.get_by_text("no desk any more").wait_for()
    page.locator("#pair").click()
    page.wait_for_selector('body[data-screen="sign-in"]')
    page.goto(f"{kitchen.url}/t/pair")
    page.get_by_text("This tablet belongs to").wait_for()
    assert page.get_by_role("link", name=link).count() == 0
    desk.go("#code-of-an-invite")
    page.get_by_text("Use another browser or a private window").wait_for()
    assert page.locator("form").count() == 0
    fit_to_be_shown(page)
