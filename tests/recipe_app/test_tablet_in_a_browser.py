"""The tablet as a person uses it, in a real browser: the four stages, without network, with another tablet."""

from __future__ import annotations

import re
from typing import Any

import pytest
from browser import PIN, Tablet, on_screen, ops
from screens import serious

from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.web.desk import pages

pytestmark = pytest.mark.timeout(240)
KEPT_HERE = """new Promise((resolve) => {
    const request = indexedDB.open("kitchensync");
    request.onsuccess = () => {
        const all = request.result.transaction(["outbox"]).objectStore("outbox").getAll();
        all.onsuccess = () => resolve(all.result.map(({ operation }) => operation.kind));
    };
})"""


def finish_all_steps(tablet: Tablet) -> None:
    for _ in range(30):
        if tablet.page.get_by_text("All steps are done").count():
            return
        tablet.page.locator("footer .done").click()
        tablet.rest()
    raise AssertionError("the recipe does not end")


def test_a_card_signs_in_and_an_old_one_says_that_it_does_not(kitchen: Any, tablet: Tablet) -> None:
    page, asked = tablet.page, []
    page.on("request", lambda request: asked.append(request.url))
    thyme = kitchen.tools.accounts.add_person("Thyme", ["participant"], actor="")
    card = kitchen.tools.accounts.new_card(thyme, actor="")
    for old in ("/q/an-old-card", "/q", "/q#wrong"):
        page.goto(f"{tablet.url}{old}")
        page.get_by_text("ask for a new one").wait_for()
    page.goto(f"{tablet.url}/q#{card}")
    tablet.screen("choose")
    assert (page.url, page.evaluate("location.hash")) == (f"{tablet.url}/t/choose", "")
    assert (
        page.evaluate("fetch('/api/v1/me').then((answer) => answer.json())")["person"]["pseudonym"] == "Thyme"
    )
    assert [address for address in asked if card in address.partition("#")[0]] == []


@pytest.mark.promise("A cook with wet hands is led through a recipe on the glass")
def test_the_whole_way_through_four_stages(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    page.context.clear_cookies()  # as a tablet that nobody has paired yet
    tablet.pair(kitchen.tools.accounts.pairing_code(kitchen.place, actor=""))
    tablet.sign_in("Basil", PIN)
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
    page.locator("audio").wait_for()
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
    page.get_by_role("alert").get_by_text("No answer from the server").wait_for()
    page.unroute("**/api/v1/recordings")
    tablet.rest()
    tablet.tap("Begin", exact=True)
    tablet.instructed()
    (first,) = kitchen.tools.records.rows(tables.recording)
    assert page.url.split("/")[-2] == first["id"]
    tablet.page.goto(f"{tablet.url}/t/choose")
    tablet.begin("Tea and toast")  # another time is another recording
    assert len(kitchen.tools.records.rows(tables.recording)) == 2


@pytest.mark.promise("A cook with wet hands is led through a recipe on the glass")
def test_nothing_is_lost_without_network(kitchen: Any, tablet: Tablet) -> None:
    page, context = tablet.page, tablet.page.context
    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    page.locator("html[data-offline=ready]").wait_for()
    tablet.begin_first_step(kitchen, recording)
    context.set_offline(True)
    tablet.done_offline(3)
    tablet.tap("Error", exact=True)
    tablet.tap("Measurement")
    page.get_by_text("7 unsent").wait_for()
    tablet.tap("Undo")
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


def test_a_network_that_swallows_everything_is_not_waited_for(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    held: list[Any] = []
    page.route("**/api/v1/**", lambda route: held.append(route))
    page.reload()
    page.get_by_text("Loading").wait_for()
    tablet.screen("choose")
    for route in held:
        route.continue_()
    page.unroute("**/api/v1/**")
    assert {"me", "recipes"} <= {route.request.url.split("/")[-1] for route in held}
    tablet.begin("Tea and toast")  # the recipes came after all


def test_a_page_that_began_without_network_heals_itself(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    page.locator("html[data-offline=ready]").wait_for()
    page.context.set_offline(True)
    page.reload()
    page.get_by_text("No connection to the server").wait_for()
    page.context.set_offline(False)
    page.get_by_text("No connection to the server").wait_for(state="detached")
    tablet.begin("Tea and toast")


def test_a_refusal_and_a_server_that_is_silent_are_told_in_the_language_of_the_page(
    kitchen: Any, tablet: Tablet
) -> None:
    page = tablet.page
    page.goto(f"{tablet.url}/t/choose?lang=de")
    tablet.screen("choose")
    tablet.tap("Abmelden")
    tablet.screen("sign-in")
    tablet.tap("Basil")
    tablet.screen("pin")
    for said, without_network in (("Die PIN stimmt nicht.", False), ("Keine Antwort vom Server.", True)):
        page.context.set_offline(without_network)
        for digit in "602214":
            tablet.tap(digit, exact=True)
        page.get_by_role("alert").get_by_text(said).wait_for()
    page.context.set_offline(False)


def test_a_sign_in_that_ended_before_a_start_without_network_is_heeded(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    page.locator("html[data-offline=ready]").wait_for()
    page.context.set_offline(True)
    page.reload()
    tablet.screen("choose")
    page.context.clear_cookies(name="ks_login")
    page.context.set_offline(False)
    tablet.screen("sign-in")


def test_a_late_answer_that_nobody_is_signed_in_is_heeded(kitchen: Any, tablet: Tablet) -> None:
    """It comes while the lists are waited for; what they bring is not drawn over the sign-in."""
    page = tablet.page
    held: list[Any] = []

    def hold(route: Any) -> None:
        if held and route.request.url.endswith("/me"):
            route.continue_()
        else:
            held.append(route)

    page.context.clear_cookies(name="ks_login")
    page.route(re.compile(r"/api/v1/(me|recipes|recordings)$"), hold)
    page.reload()
    while len(held) < 3:
        page.wait_for_timeout(20)
    held[0].continue_()
    tablet.screen("sign-in")
    page.wait_for_timeout(2000)
    tablet.screen("sign-in")


def test_an_answer_of_before_the_sign_in_undoes_no_sign_in(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    tablet.tap("Sign out")
    tablet.screen("sign-in")
    old: list[tuple[Any, Any]] = []

    def hold_the_first(route: Any) -> None:
        if old:
            route.continue_()
        else:
            old.append((route, route.fetch()))

    page.route("**/api/v1/me", hold_the_first)
    page.reload()
    tablet.screen("sign-in")
    tablet.sign_in("Basil", PIN)
    ((route, answer),) = old
    route.fulfill(response=answer)
    page.wait_for_timeout(500)
    tablet.begin("Tea and toast")


def take_over(page: Any, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Let a new version of the shell take over while the page is open; mark the page."""
    page.evaluate("window.loadedBefore = true")
    monkeypatch.setattr(pages, "shell_version", lambda: version)
    while page.evaluate("caches.keys()") != [f"kitchensync-{version}"]:
        page.evaluate("navigator.serviceWorker.getRegistration().then((found) => void found.update())")
        page.wait_for_timeout(200)


def test_a_new_version_of_the_app_is_loaded_whole_at_the_next_screen(
    kitchen: Any, tablet: Tablet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its screens may want what the loaded modules do not have; what is open stays as it is."""
    page = tablet.page
    page.locator("html[data-offline=ready]").wait_for()
    take_over(page, monkeypatch, "next")
    assert page.evaluate("[document.body.dataset.screen, window.loadedBefore]") == ["choose", True]
    tablet.begin("Tea and toast", strategy="induced")
    assert page.evaluate("window.loadedBefore") is None
    assert page.locator("body").get_attribute("data-version") == "next"
    take_over(page, monkeypatch, "after-next")
    tablet.tap("Plan an error")
    page.get_by_role("dialog").wait_for()
    page.go_back()
    tablet.screen("recipe")
    assert page.evaluate("window.loadedBefore")
    page.get_by_role("dialog").wait_for()


def test_what_is_not_known_is_not_claimed(kitchen: Any, tablet: Tablet) -> None:
    """Without fresh health the state is unknown; without a wake lock a strip says so, and the log has it."""
    page = tablet.page
    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    page.locator(".dot.recording").wait_for()
    kitchen.utc_ns += 754 * 10**9
    page.get_by_text("Recording · 12 min").wait_for()
    page.add_init_script("navigator.wakeLock.request = () => Promise.reject(new Error('power save'))")
    page.locator("html[data-offline=ready]").wait_for()
    page.reload()
    page.get_by_text("The screen may go dark").wait_for()
    # It is said at once, and logged in its own time.
    while [op["body"] for op in ops(kitchen, recording, "awake")][-1:] != [{"held": False}]:
        page.wait_for_timeout(50)
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
    tablet.to_checklist()
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
    operation = kitchen.operation(
        recording, "edit_error", change, seen=kitchen.tools.records.ops(recording)[-1]["n"]
    )
    assert kitchen.second_tablet().post("/api/v1/ops", json={"operations": [operation]}).status_code == 200
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
