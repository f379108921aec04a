"""Twenty sessions with errors of every kind: what is true of each error is in every table, release and MCAP file.

Each truth is written before the touch that enters it. Seventeen sessions are entered by HTTP requests of a tablet,
three by touches in a browser.
"""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas
import pytest
from browser import Tablet, on_screen
from cooked_recording import film_s
from mcap_files import read
from numbered_recording import write_numbered
from small_recordings import HOST0_NS
from typed_commands import answer

import kitchensync as ks
from kitchensync.recipe_app.store.app_records import new_id
from kitchensync.storage.manifest import edit_manifest
from kitchensync.virtual_kitchen.kitchen import Kitchen as VirtualKitchen

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
BY_HTTP, BY_TOUCH = 17, 3
TAGS = ("Preparation Error", "Measurement Error", "Order Error", "Timing Error", "Technique Error")
TAGS += ("Temperature Error", "Missing Step", "Other")
NOTICED = {
    "at_once": "by_the_cook",
    "later": "by_the_cook",
    "somebody_else": "by_somebody_else",
    "not": "not",
}
"""What the tablet sends, and what tables hold."""
FILM_S = (2.5, 24.5)
"""World seconds that the camera filmed."""
NEAR_S = 0.05


@dataclass
class Session:
    """One session at the tablet; `true` holds what is true of each error, times in world seconds."""

    kitchen: Any
    name: str
    number: int
    recording: str = ""
    order: list[int] = field(default_factory=list)
    labels: dict[int, str] = field(default_factory=dict)
    true: dict[str, dict[str, Any]] = field(default_factory=dict)
    ids: int = 0

    def begin(self, **choice: Any) -> None:
        bundle = self.kitchen.choose(strategy="induced", seed=self.number, **choice)
        frozen = bundle["ops"][0]["body"]
        self.recording, self.order = str(bundle["recording"]), list(frozen["order"])
        self.labels = {int(node): step["label"] for node, step in frozen["steps"].items()}

    def give_folder(self) -> None:
        self.kitchen.tools.records.give_folder(self.recording, self.name, actor="")

    def error(self, node: int, category: int, **known: Any) -> str:
        """Write down what is true of an error, before it is entered; return its id."""
        self.ids += 1
        error_id = new_id(1000 * self.number + self.ids)
        nothing = {"planned": False, "source": "entered", "node": node, "step": self.labels[node]}
        self.true[error_id] = nothing | {"categories": [TAGS[category]]} | known
        return error_id

    def touch(self, at_s: float, kind: str, body: dict[str, Any]) -> str:
        """Touch the tablet at a moment of the world; return the operation's id."""
        self.kitchen.now_ns = host_ns(at_s)
        clock = {"touch_ms": 0, "sent_ms": 0, "received_ms": 0, **self.kitchen.clock()}
        operation = self.kitchen.operation(self.recording, kind, body, clock=clock)
        (receipt,) = self.kitchen.post(operation)
        assert "error" not in receipt, receipt
        return str(operation["op_id"])


def host_ns(world_s: float) -> int:
    return HOST0_NS + round(world_s * 1e9)


def cook(session: Session) -> None:
    """Cook by HTTP requests: planned errors, spontaneous ones, overlapping steps, undone, removed, added, moved."""
    rng = random.Random(session.number)
    session.begin()
    first, second, third, fourth, fifth, last = session.order[:6]
    touch = session.touch
    made = session.error(first, 4, planned=True, description="drops it", intent="on_purpose")
    fields = {"node": first, "categories": [4], "description": "drops it", "recovery": "Pick it up"}
    touch(2.6, "plan_error", {"error_id": made, "fields": fields})
    never = session.error(last, 0)
    touch(2.7, "plan_error", {"error_id": never, "fields": {"node": last, "categories": [0]}})
    touch(3.0, "start", {"node": first})
    touch(4.0, "done", {"node": first})
    left_out = rng.random() < 0.5
    session.true[made] |= {"corrected_by": "none"} if left_out else {"corrected_by": made, "corrected_s": 4.5}
    touch(4.5, "recovered", {"error_id": made, "left_out": left_out})
    touch(5.0, "start", {"node": second})
    touch(5.5, "start", {"node": third})
    node, category = rng.choice((second, third)), rng.randrange(8)
    quick = session.error(node, category, reported_s=6.5)
    touch(6.5, "error", {"error_id": quick, "fields": {"node": node, "categories": [category]}})
    undone = session.error(second, 3)
    op = touch(7.0, "error", {"error_id": undone, "fields": {"node": second, "categories": [3]}})
    del session.true[undone]
    touch(7.3, "undo", {"undoes": [op]})
    touch(8.0, "done", {"node": second})
    touch(8.5, "done", {"node": third})
    touch(9.0, "start", {"node": fourth})
    removed = session.error(fourth, 5)
    touch(9.5, "error", {"error_id": removed, "fields": {"node": fourth, "categories": [5]}})
    touch(10.0, "done", {"node": fourth})
    touch(11.0, "start", {"node": fifth})
    moved = session.error(fifth, 1, reported_s=11.5)
    touch(11.5, "error", {"error_id": moved, "fields": {"node": fifth, "categories": [1]}})
    touch(12.0, "done", {"node": fifth})
    touch(13.0, "end", {"rest": "stopped_early"})
    outcome = rng.choice(("as_planned", "differently"))
    touch(14.0, "edit_error", {"error_id": made, "fields": {"outcome": outcome, "intent": "on_purpose"}})
    del session.true[never], session.true[removed]
    touch(14.2, "edit_error", {"error_id": never, "fields": {"outcome": "not_done"}})
    touch(14.4, "edit_error", {"error_id": removed, "fields": {"removed": True}})
    review(session, rng, quick, moved, fifth)
    touch(21.0, "finish", {})


def review(session: Session, rng: random.Random, quick: str, moved: str, node: int) -> None:
    """Move an error, say more of another and add one, each with some of the fields, or with all of them."""
    names = ("at", "end", "point_of_no_return", "noticed_at", "corrected_at")
    columns = dict(
        zip(names, ("at_s", "end_s", "point_of_no_return_s", "noticed_s", "corrected_s"), strict=True)
    )
    times = dict(zip(names, (10.7, 11.2, 11.0, 11.1, 19.8), strict=True))
    given = {name: at_s for name, at_s in times.items() if name == "at" or rng.random() < 0.7}
    session.true[moved] |= {columns[name]: at_s for name, at_s in given.items()}
    fields = {name: host_ns(at_s) for name, at_s in given.items()}
    session.touch(15.0, "edit_error", {"error_id": moved, "fields": fields})
    told: dict[str, Any] = {}
    if intent := rng.choice(("", "on_purpose", "by_accident")):
        told["intent"] = intent
    if noticed := rng.choice(("", *NOTICED)):
        told["noticed"] = noticed
    corrector: int | str | None = rng.choice((None, -1, node, moved))
    true = told | ({"noticed": NOTICED[noticed]} if noticed else {})
    if corrector is not None:
        told["corrected_by"] = corrector
        true["corrected_by"] = "none" if corrector == -1 else str(corrector)
    session.true[quick] |= true | {"description": "too quick", "categories": [TAGS[7], TAGS[3]]}
    fields = told | {"description": "too quick", "categories": [7, 3]}
    session.touch(16.0, "edit_error", {"error_id": quick, "fields": fields})
    at = {"at": host_ns(9.9)} if rng.random() < 0.5 else {}
    known = {"at_s": 9.9} if at else {}
    added = session.error(session.order[0], 2, reported_s=17.0, description="later", **known)
    fields = {"node": session.order[0], "categories": [2], "description": "later", **at}
    session.touch(17.0, "add_error", {"error_id": added, "fields": fields})


def logged(session: Session, kind: str) -> list[dict[str, Any]]:
    return [op for op in session.kitchen.tools.records.ops(session.recording) if op["kind"] == kind]


def world_s(op: dict[str, Any]) -> float:
    return float((op["host_ns"] - HOST0_NS) / 1e9)


class Timed:
    """Checks that the log has an operation of a touch at the moment of the touch."""

    def __init__(self, session: Session, tablet: Tablet) -> None:
        self.session, self.tablet = session, tablet

    def __call__(self, kind: str, act: Callable[[], None]) -> dict[str, Any]:
        clock, count = self.session.kitchen.tools.records.now_ns, len(logged(self.session, kind))
        self.tablet.rest()
        before_ns = clock()
        act()
        while len(found := logged(self.session, kind)) == count:
            time.sleep(0.02)
        assert before_ns - found[-1]["uncertainty_ns"] <= found[-1]["host_ns"] <= clock(), kind
        return found[-1]


def follow(session: Session, tablet: Tablet) -> Any:
    session.begin(display="steps")
    session.kitchen.agree(session.recording, "annotate", "release_raw")
    tablet.page.goto(f"{tablet.url}/t/rec/{session.recording}/follow")
    tablet.screen("follow")
    return tablet.page


def end(tablet: Tablet) -> None:
    tablet.end_early()
    tablet.screen("review")


def error_of_a_chosen_step(session: Session, tablet: Tablet) -> None:
    """Two steps are open: the error's step is asked for; another error is undone."""
    page, timed = follow(session, tablet), Timed(session, tablet)
    first, second = session.order[:2]
    timed("start", lambda: page.keyboard.press("ArrowRight"))
    timed("start", lambda: page.locator('[data-key="also"]').click())
    error_id = session.error(second, 4)

    def enter(node: int, category: int) -> None:
        page.locator('[data-key="error"]').click()
        page.locator(f'[data-key="at-{node}"]').click()
        page.locator(f'[data-category="{category}"]').click()

    true = session.true.pop(error_id) | {"reported_s": world_s(timed("error", lambda: enter(second, 4)))}
    session.true[logged(session, "error")[-1]["body"]["error_id"]] = true
    timed("error", lambda: enter(first, 0))
    timed("undo", lambda: page.locator('[data-key="undo"]').click())
    end(tablet)


def error_added_in_the_review(session: Session, tablet: Tablet) -> None:
    """Nothing was entered while cooking: an error is added with all that the form asks."""
    page, timed = follow(session, tablet), Timed(session, tablet)
    node = session.order[0]
    timed("start", lambda: page.keyboard.press("ArrowRight"))
    timed("done", lambda: page.keyboard.press("ArrowRight"))
    end(tablet)
    corrector = session.order[1]
    known = {"intent": "by_accident", "noticed": "by_the_cook", "corrected_by": str(corrector)}
    error_id = session.error(node, 1, description="half of it", **known)
    page.locator('[data-key="add"]').click()
    page.locator("dialog .hint-row").first.click()
    for key in ("c1", "intent-by_accident", "noticed-later"):
        page.locator(f'[data-key="{key}"]').click()
    page.locator("#corrected_by").select_option(str(corrector))
    page.locator("#description").fill("half of it")
    op = timed("add_error", lambda: page.locator('[data-key="save"]').click())
    true = session.true.pop(error_id) | {"reported_s": world_s(op)}
    if "at" in op["body"]["fields"]:
        true["at_s"] = (op["body"]["fields"]["at"] - HOST0_NS) / 1e9
    session.true[op["body"]["error_id"]] = true


def error_corrected_in_the_review(session: Session, tablet: Tablet) -> None:
    """The category of one error is exchanged and its time moved; another one is removed."""
    page, timed = follow(session, tablet), Timed(session, tablet)
    node = session.order[0]
    start = timed("start", lambda: page.keyboard.press("ArrowRight"))

    def enter(category: int) -> None:
        page.locator('[data-key="error"]').click()
        page.locator(f'[data-category="{category}"]').click()

    kept = timed("error", lambda: enter(5))
    gone = timed("error", lambda: enter(3))["body"]["error_id"]
    timed("done", lambda: page.keyboard.press("ArrowRight"))
    end(tablet)
    error_id = kept["body"]["error_id"]
    moved_s = world_s(start)  # to the beginning of the line
    true = {"reported_s": world_s(kept), "at_s": moved_s, "planned": False, "source": "entered"}
    session.true[error_id] = true | {"node": node, "step": session.labels[node], "categories": [TAGS[6]]}
    page.locator(f'[data-key="edit-{error_id}"]').click()
    page.locator('[data-key="c6"]').click()
    page.locator("#at").press("End")
    page.locator("#at").press("Home")
    timed("edit_error", lambda: page.locator('[data-key="save"]').click())
    timed("edit_error", lambda: page.locator(f'[data-key="remove-{gone}"]').click())


TOUCHED = (error_of_a_chosen_step, error_added_in_the_review, error_corrected_in_the_review)


def recorded(kitchen: Any) -> VirtualKitchen:
    """Write a filmed and synchronized recording for each session; return the world that was filmed."""
    data: Path = kitchen.data
    shutil.rmtree(data / "soup_1")  # it is being recorded for ever
    world = write_numbered(data, "take_0")
    with edit_manifest(data / "take_0") as manifest:
        manifest["consent_scopes"] = ["annotate", "release_raw"]
    answer("sync", data / "take_0", "--jobs", "1")
    for number in range(1, BY_HTTP + BY_TOUCH):
        path = data / f"take_{number}"
        shutil.copytree(data / "take_0", path)
        with edit_manifest(path) as manifest:
            manifest |= {"recording": path.name, "uuid": f"uuid of {path.name}"}
    return world


def known(row: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a row that are not missing."""
    return {key: value for key, value in row.items() if isinstance(value, list) or not pandas.isna(value)}


def agree(
    rows: list[dict[str, Any]], true: dict[str, dict[str, Any]], to_s: Callable[[float], float | None]
) -> None:
    """Assert that rows hold the truth in every field and nothing else; `to_s` gives the table's time of a moment."""
    found = {row["error_id"]: known(row) for row in rows}
    assert found.keys() == true.keys()
    for error_id, fields in true.items():
        row = found[error_id]
        row.pop("recording", None)
        wanted = {"error_id": error_id} | fields
        for name, at_s in fields.items():
            if name.endswith("_s") and (at := to_s(at_s)) is not None:
                assert row.pop(name) == pytest.approx(at, abs=NEAR_S), (error_id, name)
        wanted = {name: value for name, value in wanted.items() if not name.endswith("_s")}
        if "at_s" in fields and to_s(fields["at_s"]) is not None:
            assert 0 < row.pop("bound_s") < 1, error_id
        assert row == wanted, error_id


def test_every_field_of_every_error_is_as_it_was_true(kitchen: Any, browser: Any, tmp_path: Path) -> None:
    world = recorded(kitchen)
    sessions = [Session(kitchen, f"take_{number}", number) for number in range(BY_HTTP + BY_TOUCH)]
    for session in sessions[:BY_HTTP]:
        cook(session)
        session.give_folder()
    with on_screen(kitchen, browser) as tablet:
        records, began = kitchen.tools.records, time.monotonic_ns()
        records.now_ns = lambda: host_ns(3.0) + time.monotonic_ns() - began
        tablet.page.reload()  # the tablet compares its clock again
        tablet.screen("choose")
        for session, enter in zip(sessions[BY_HTTP:], TOUCHED, strict=True):
            enter(session, tablet)
            tablet.saved()
            session.give_folder()  # no devices are asked to stop
    kitchen.tools.intake.file()
    kitchen.tools.films.close()
    true = {error_id: fields for session in sessions for error_id, fields in session.true.items()}
    assert len(true) == 4 * BY_HTTP + BY_TOUCH

    table = ks.errors(kitchen.data)
    with ks.open(kitchen.data / "take_0") as rec:
        begin_s = float(rec.clock.of_host([HOST0_NS])[0]) / 1e9
    of_recording = {error_id: session.name for session in sessions for error_id in session.true}
    assert dict(zip(table["error_id"], table["recording"], strict=True)) == of_recording
    agree(table.to_dict("records"), true, lambda at_s: begin_s + at_s)

    out = tmp_path / "release"
    answer("release", "captaincook4d", kitchen.data, "--out", out)
    lines = [json.loads(line) for line in (out / "errors.jsonl").read_text().splitlines()]
    released = {error_id: fields | {"source": "entered"} for error_id, fields in true.items()}

    def of_film(at_s: float) -> float | None:
        return film_s(world, at_s) if FILM_S[0] <= at_s < FILM_S[1] else None

    agree(lines, released, of_film)

    answer("export", "tables", kitchen.data, "--out", tmp_path / "tables")
    for session in sessions:
        rows = pandas.read_parquet(tmp_path / "tables" / session.name / "errors.parquet")
        rows["categories"] = rows["categories"].map(list)
        agree(rows.to_dict("records"), session.true, lambda at_s: begin_s + at_s)

    for session in (*sessions[:2], *sessions[BY_HTTP:]):
        answer("export", "mcap", kitchen.data / session.name, "--out", tmp_path / "mcap")
        topics, _ = read(tmp_path / "mcap" / f"{session.name}.mcap")
        rows = [json.loads(message.message) for _, message in topics["/errors"]]
        agree(rows, session.true, lambda at_s: begin_s + at_s)
