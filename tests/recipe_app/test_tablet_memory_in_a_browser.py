"""What a tablet keeps, in a real browser: its memory lost, full or taken away; other devices and tabs beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browser import Tablet, on_screen, ops

from kitchensync.recipe_app.exchange.dumps import read_dump, take_in

pytestmark = pytest.mark.timeout(240)
HOLD_CONNECTIONS = """
const open = indexedDB.open.bind(indexedDB);
window.connections = [];
indexedDB.open = (...given) => {
    const request = open(...given);
    request.addEventListener("success", () => window.connections.push(request.result));
    return request;
};
"""
FULL = """
const put = IDBObjectStore.prototype.put;
window.full = false;
IDBObjectStore.prototype.put = function (...given) {
    if (window.full && this.name === "outbox") throw new DOMException("no room", "QuotaExceededError");
    return put.apply(this, given);
};
"""


def cooking(kitchen: Any, tablet: Tablet) -> str:
    """A recording whose first step is begun, everything sent."""
    recording = tablet.begin("Tea and toast")
    tablet.checklist()
    tablet.begin_first_step(kitchen, recording)
    return recording


def log_error(tablet: Tablet) -> None:
    tablet.tap("Error", exact=True)
    tablet.tap("Measurement")
    tablet.page.locator("dialog").wait_for(state="detached")


def test_a_browser_that_lost_its_memory_and_kept_its_cookie_goes_on(kitchen: Any, tablet: Tablet) -> None:
    """As when room is short or a site was not used for a week: then the tablet would count from one again."""
    page, recording = tablet.page, cooking(kitchen, tablet)
    page.goto(f"{tablet.url}/doctor")
    session = page.context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", {"origin": tablet.url, "storageTypes": "indexeddb"})
    page.goto(f"{tablet.url}/t/rec/{recording}/follow")
    tablet.screen("follow")
    log_error(tablet)
    tablet.saved()
    assert len(ops(kitchen, recording, "error")) == 1
    assert page.get_by_text("not accepted").count() == 0


def test_who_looks_at_a_recording_that_was_destroyed_comes_to_the_recipes(
    kitchen: Any, tablet: Tablet, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = cooking(kitchen, tablet)
    monkeypatch.setattr("kitchensync.recipe_app.web.tablet.api_sign_in.to_forget", lambda *_: [recording])
    tablet.page.reload()
    tablet.screen("choose")
    tablet.page.get_by_text("Tea and toast").first.wait_for()
    assert tablet.page.url == f"{tablet.url}/t/choose"


def test_what_came_before_a_receipt_is_not_taken_for_seen(kitchen: Any, tablet: Tablet) -> None:
    """The desk changes an error while this tablet is busy with others: the tablet's own change does not end that."""
    page = tablet.page
    recording = tablet.begin("Tea and toast", strategy="induced")
    tablet.tap("Plan an error")
    page.locator(".hint-row").first.click()
    tablet.tap("Save", exact=True)
    page.get_by_role("button", name="Change", exact=True).wait_for()
    tablet.saved()
    (error_id,) = kitchen.tools.records.state(recording)["errors"]
    change = {"error_id": error_id, "fields": {"description": "as the desk says"}}
    seen = kitchen.tools.records.ops(recording)[-1]["n"]
    with kitchen.tools.records.changing() as connection:
        kitchen.tools.records.note_within(connection, "edit_error", recording, change, actor="", seen=seen)
    tablet.rest()
    tablet.tap("Plan an error")
    page.locator(".hint-row").last.click()
    tablet.tap("Save", exact=True)
    page.get_by_role("button", name="Change", exact=True).nth(1).wait_for()
    tablet.saved()  # its receipt is younger than what the desk did
    tablet.tap("Change", exact=True)
    page.get_by_label("What is different").fill("as the tablet says")
    tablet.tap("Save", exact=True)
    page.get_by_text("as the tablet says").first.wait_for()
    tablet.saved()
    found = kitchen.tools.records.state(recording)["errors"][error_id]
    values = {version["value"] for version in found["conflicts"]["description"]}
    assert values == {"as the desk says", "as the tablet says"}
    page.reload()
    page.get_by_text("2 versions").wait_for()


def test_what_is_kept_while_the_list_is_read_stays_in_it(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    recording = cooking(kitchen, tablet)
    page.context.set_offline(True)
    kinds = page.evaluate(
        """async (recording) => {
            const outbox = await import("/static/core/outbox.js");
            let go;
            const gate = new Promise((resolve) => { go = resolve; });
            const getAll = IDBObjectStore.prototype.getAll;
            IDBObjectStore.prototype.getAll = function () { // large voice notes are slow to read
                const request = getAll.apply(this);
                if (this.name !== "sounds") return request;
                const late = {};
                request.onsuccess = () => gate.then(() => late.onsuccess(late.result = request.result));
                return late;
            };
            const loading = outbox.load();
            const touch = { page: "", touch_ms: 0, wall_ms: Date.now() };
            await outbox.add(recording, 0, [{ kind: "mark", body: { text: "here" } }], touch);
            go();
            await loading;
            return outbox.pending(recording).map(({ kind }) => kind);
        }""",
        recording,
    )
    assert kinds == ["mark"]
    page.context.set_offline(False)
    tablet.saved()
    assert len(ops(kitchen, recording, "mark")) == 1


def test_what_is_kept_while_something_is_sent_is_sent_when_the_next_drain_is_done(
    kitchen: Any, tablet: Tablet
) -> None:
    """The devices are started on its word: a checklist still on its way must have arrived by then."""
    recording = cooking(kitchen, tablet)
    tablet.saved()
    waiting = tablet.page.evaluate(
        """async (recording) => {
            const outbox = await import("/static/core/outbox.js");
            const read = IDBObjectStore.prototype.getAll;
            let go, is_reading;
            const gate = new Promise((resolve) => { go = resolve; });
            const reading = new Promise((resolve) => { is_reading = resolve; });
            IDBObjectStore.prototype.getAll = function () { // the last thing that a drain reads
                const request = read.apply(this);
                if (this.name !== "sounds") return request;
                const late = {};
                request.onsuccess = () => gate.then(() => late.onsuccess(late.result = request.result));
                is_reading();
                return late;
            };
            outbox.drain();
            await reading;
            const touch = { page: "", touch_ms: 0, wall_ms: Date.now() };
            await outbox.add(recording, 0, [{ kind: "mark", body: { text: "here" } }], touch);
            const drained = outbox.drain();
            IDBObjectStore.prototype.getAll = read;
            go();
            await drained;
            return outbox.pending(recording).map(({ kind }) => kind);
        }""",
        recording,
    )
    assert waiting == []
    assert len(ops(kitchen, recording, "mark")) == 1


def test_a_connection_that_was_taken_away_is_made_again(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    page.add_init_script(HOLD_CONNECTIONS)
    page.reload()
    recording = cooking(kitchen, tablet)
    assert page.evaluate("window.connections.map((one) => one.close()).length") == 1
    log_error(tablet)
    tablet.saved()
    assert len(ops(kitchen, recording, "error")) == 1


def test_what_cannot_be_kept_is_said_and_can_be_touched_again(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    page.add_init_script(FULL)
    page.reload()
    recording = cooking(kitchen, tablet)
    page.evaluate("window.full = true")
    tablet.tap("Error", exact=True)
    tablet.tap("Measurement")
    page.locator("#saved", has_text="Not kept").wait_for()
    assert page.locator("dialog[open]").count() == 1  # what was not kept looks like it
    page.evaluate("window.full = false")
    tablet.rest()
    tablet.tap("Measurement")
    page.locator("dialog").wait_for(state="detached")
    tablet.saved()
    assert len(ops(kitchen, recording, "error")) == 1
    assert tablet.problems  # the browser's own words, for whoever looks for the cause
    tablet.problems.clear()


def test_a_half_written_note_outlives_what_else_is_touched(kitchen: Any, tablet: Tablet) -> None:
    page, recording = tablet.page, cooking(kitchen, tablet)
    log_error(tablet)
    tablet.saved()
    page.goto(f"{tablet.url}/t/rec/{recording}/review")
    page.locator("#note").fill("The butter was cold")
    tablet.tap("Remove", exact=True)
    page.get_by_text("None.").first.wait_for()
    assert page.locator("#note").input_value() == "The butter was cold"
    tablet.tap("Keep the remark")
    page.locator("li", has_text="The butter was cold").wait_for()
    tablet.saved()
    assert [op["body"]["text"] for op in ops(kitchen, recording, "note")] == ["The butter was cold"]
    assert page.locator("#note").input_value() == ""


def test_many_hints_make_no_text_that_the_server_refuses(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    recording = tablet.begin("Tea and toast", strategy="induced")
    tablet.tap("Plan an error")
    page.get_by_label("What is different").fill("x" * 590)
    page.locator(".hint-row").first.click()
    tablet.tap("Save", exact=True)
    page.get_by_role("button", name="Change", exact=True).wait_for()
    tablet.saved()
    ((_, error),) = kitchen.tools.records.state(recording)["errors"].items()
    assert len(error["description"]) == 600


def test_too_much_at_once_and_one_that_nobody_knows_hold_nothing_up(kitchen: Any, tablet: Tablet) -> None:
    page, recording = tablet.page, cooking(kitchen, tablet)
    page.context.set_offline(True)
    page.evaluate(
        """async (recording) => {
            const { add } = await import("/static/core/outbox.js");
            const touch = { page: "", touch_ms: 0, wall_ms: Date.now() };
            const body = { text: "\\u{1f373}".repeat(600) }; // four bytes each
            const notes = [...Array(100).keys()].map(() => ({ kind: "note", body }));
            await add(recording, 0, [...notes, { kind: "dance" }, { kind: "mark", body: { text: "after" } }], touch);
        }""",
        recording,
    )
    page.context.set_offline(False)
    page.locator("#saved", has_text="1 not accepted").wait_for()
    assert len(ops(kitchen, recording, "note")) == 100
    assert len(ops(kitchen, recording, "mark")) == 1


def test_what_another_tab_sent_stays_on_this_one(kitchen: Any, tablet: Tablet) -> None:
    page = tablet.page
    recording = tablet.begin("Tea and toast", strategy="induced")
    tablet.saved()
    page.route("**/api/v1/ops", lambda route: route.abort())
    other = page.context.new_page()
    other.goto(f"{tablet.url}/t/choose")
    for _ in range(2):
        cards = page.get_by_role("button", name="Change", exact=True).count()
        tablet.tap("Plan an error")
        page.locator(".hint-row").first.click()
        tablet.tap("Save", exact=True)
        page.get_by_role("button", name="Change", exact=True).nth(cards).wait_for()
        tablet.saved()
    assert len(ops(kitchen, recording, "plan_error")) == 2
    other.close()


def test_a_tablet_that_is_let_in_no_more_can_still_save_what_waits(
    kitchen: Any, tablet: Tablet, tmp_path: Path
) -> None:
    page, recording = tablet.page, cooking(kitchen, tablet)
    device = ops(kitchen, recording, "start")[0]["device"]
    page.locator("html[data-offline=ready]").wait_for()
    page.context.set_offline(True)
    log_error(tablet)
    page.get_by_text("1 unsent").wait_for()
    kitchen.tools.accounts.remove_device(device, actor="")
    page.context.set_offline(False)
    page.reload()
    tablet.screen("pair")
    with page.expect_download() as saved:
        tablet.tap("Save what waits to a file")
    file = tmp_path / "dump.json"
    saved.value.save_as(file)
    assert json.loads(json.loads(file.read_text())["content"])["device"] == device
    dump = read_dump(file.read_text(), "dump")
    outcome = take_in(dump, kitchen.tools.records, kitchen.tools.intake, actor="", corrects=True)
    assert (outcome.new, outcome.refused) == (1, [])
    assert len(ops(kitchen, recording, "error")) == 1


def test_a_part_of_the_app_that_does_not_come_is_asked_for_again(kitchen: Any, browser: Any) -> None:
    with on_screen(kitchen, browser, service_workers="block") as tablet:
        page, cut = tablet.page, []

        def cut_once(route: Any) -> None:
            cut.append(route.request.url)
            route.abort() if len(cut) == 1 else route.continue_()

        page.route("**/static/core/words.js", cut_once)
        page.reload()
        tablet.screen("choose")
        assert len(cut) == 2
