"""A study of forty sessions played by tablets: the plan made anew heals.

Some are lost, two people withdraw, a recipe gets a new version, and the clocks of the zone change.
"""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner
from small_recordings import write_manifest

from kitchensync.cli import main
from kitchensync.recipe_app.store.app_records import new_id
from kitchensync.recipe_app.study import next_sessions
from kitchensync.recipe_app.web.door.access import LOGIN_HEADER
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.verify.by_life import keep_verdict

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
PEOPLE = ("Ann", "Ben", "Cleo", "Dan", "Eve")
RECIPES = ("tea_and_toast", "fresh_lemonade", "yogurt_bowl", "microwave_egg_rice")
PIN = "482916"
EXAMPLES = Path(__file__).resolve().parents[2] / "kitchensync" / "examples" / "recipes"
CHANGED, NEW_STEP, CHANGE_AFTER = "yogurt_bowl", 77, 20
ZONE = ZoneInfo("Europe/Berlin")
WANTED = 5  # of each recipe, normal and induced: forty
STUDY = f"""
goals = [{{ recipe = {json.dumps(RECIPES)}, strategy = ["normal", "induced"], count = {WANTED} }}]
[study]
zone = "Europe/Berlin"
begin = 2026-10-19
days = 40
session_minutes = 60
""" + "".join(f'[people.{name}]\nhours = ["mon-fri 09:00-17:00"]\n' for name in PEOPLE) + """
[kitchens."Lab kitchen"]
hours = ["mon-fri 08:00-18:00"]
"""  # fmt: skip


class Lab:
    """Tablets of five people, a desk, and what became of each session: folder -> person, recipe, strategy, fate."""

    def __init__(self, kitchen: Any) -> None:
        self.kitchen, self.paired = kitchen, kitchen.pair()
        accounts = kitchen.tools.accounts
        self.people = {name: accounts.add_person(name, ["participant"], actor="") for name in PEOPLE}
        for person in self.people.values():
            accounts.set_pin(person, PIN, actor="")
        self.became: dict[str, tuple[str, str, str, str]] = {}
        self.orders: dict[str, tuple[int, ...]] = {}

    def signed_in(self, name: str) -> Any:
        """Somebody at the tablet, by its time now."""
        device, token = self.paired
        login = self.kitchen.tools.accounts.sign_in(self.people[name], "pin", PIN, device=device, desk=False)
        return self.kitchen.client(**{"authorization": f"Bearer {token}", LOGIN_HEADER: login})

    def plan(self) -> list[Any]:
        number, _ = next_sessions.kept_plan(self.kitchen.tools.records)
        desk = self.kitchen.desk("operator")
        answer = desk.post("/api/v1/desk/study", json={"study": STUDY, "seen": number, "locked": []})
        assert answer.status_code == 200, answer.text
        gone = next_sessions.taken(self.kitchen.tools.records)
        return [
            one for one in next_sessions.sessions_of(self.kitchen.tools.records) if one.session not in gone
        ]

    def cook(self, one: Any, fate: str) -> None:
        """Begin what the person's tablet offers first, at its time; leave its folder as capture does."""
        start = one.entry.start
        self.kitchen.utc_ns = int(start.timestamp() * 1e9)
        tablet, folder = self.signed_in(one.entry.person), f"take-{len(self.became)}"
        offered = tablet.get("/api/v1/next").json()["sessions"]
        assert offered[0]["session"] == one.session
        self.kitchen.record(folder)
        body = {"op_id": new_id(self.kitchen.utc_ns), "recipe": one.entry.recipe, "session": one.session}
        answer = tablet.post("/api/v1/recordings", json={**body, "folder": folder})
        assert answer.status_code == 200, answer.text
        frozen = self.kitchen.tools.records.frozen(answer.json()["recording"])
        assert (frozen["name"], frozen["strategy"]) == (one.entry.recipe, one.entry.strategy)
        self.leave(folder, one.entry.person, frozen, fate)

    def leave(self, folder: str, person: str, frozen: dict[str, Any], fate: str) -> None:
        path = self.kitchen.data / folder
        write_manifest(path, {}, {})
        with edit_manifest(path) as manifest:
            manifest |= {"pseudonym": person, "place": "Lab kitchen", "virtual": True}
            manifest["state"] = "aborted" if fate == "aborted" else "complete"
            manifest["recipe"] = {"name": frozen["name"], "order": frozen["order"]}
            manifest["script"] = {"strategy": frozen["strategy"], "display": frozen["display"]}
            manifest["started"] = {"utc_ns": self.kitchen.utc_ns, "host_ns": 1}
        if fate == "failed":
            keep_verdict(path, {"status": "FAIL"})
        self.became[folder] = person, frozen["name"], frozen["strategy"], fate
        self.orders[folder] = tuple(frozen["order"])

    def change_recipe(self, name: str) -> None:
        """Give a recipe a step that comes before all others: no order of its old version is one any more."""
        said = json.loads((EXAMPLES / f"{name}.json").read_text())
        said["nodes"].append({"id": NEW_STEP, "label": "Wash-Wash the hands"})
        for edge in said["edges"]:
            if edge["from"] == 0:
                edge["from"] = NEW_STEP
        said["edges"].append({"from": 0, "to": NEW_STEP})
        said = {key: said[key] for key in ("schema", "language", "nodes", "edges")}
        upload = {"file_name": f"{name}.json", "text": json.dumps(said)}
        answer = self.kitchen.desk("researcher").post("/api/v1/desk/recipes", json=upload)
        assert answer.status_code == 200, answer.text

    def withdraw(self, person: str) -> None:
        done = CliRunner().invoke(main, ["withdraw", "--person", person, "--data", str(self.kitchen.data)])
        assert done.exit_code == 0, done.output
        for folder, (whose, recipe, strategy, _) in self.became.items():
            if whose == person:
                self.became[folder] = whose, recipe, strategy, "withdrawn"


def recounted(data: Path) -> Counter[tuple[str, str]]:
    """Count recordings that hold, from the files alone."""
    found: Counter[tuple[str, str]] = Counter()
    for path in data.glob("take-*/recording.json"):
        said = json.loads(path.read_text())
        verdict = path.parent / "sync" / "verify.json"
        failed = verdict.exists() and json.loads(verdict.read_text()).get("status") == "FAIL"
        if said.get("state") == "complete" and not failed:
            found[said["recipe"]["name"], said["script"]["strategy"]] += 1
    return found


def in_opening_hours(sessions: list[Any]) -> bool:
    """Whether all begin by the clocks on the wall, before and after these are changed."""
    starts = [one.entry.start.astimezone(ZONE) for one in sessions]
    return all(start.weekday() < 5 and 9 <= start.hour <= 16 for start in starts)


def no_two_at_once(sessions: list[Any]) -> bool:
    starts = sorted(one.entry.start for one in sessions)
    return all(later - one >= timedelta(minutes=75) for one, later in pairwise(starts))


def test_a_plan_heals_and_coverage_is_what_the_folders_hold(kitchen: Any) -> None:
    rng, lab = random.Random(7), Lab(kitchen)
    coming = lab.plan()
    assert len(coming) == 2 * WANTED * len(RECIPES) == 40
    leaves, changed_from = {12: "Ben", 25: "Dan"}, set[str]()
    offsets = {one.entry.start.astimezone(ZONE).utcoffset() for one in coming}
    assert len(offsets) == 2, "the clocks are changed in between"
    while coming and len(lab.became) < 80:
        assert no_two_at_once(coming), "there is one kitchen"
        assert in_opening_hours(coming)
        for one in coming[:8]:
            lost = rng.random() < 0.1
            lab.cook(one, rng.choice(["aborted", "failed"]) if lost else "kept")
            if person := leaves.pop(len(lab.became), ""):
                lab.withdraw(person)
                break
            if len(lab.became) == CHANGE_AFTER:
                lab.change_recipe(CHANGED)
                changed_from = set(lab.became)
                break
        coming = lab.plan()
        assert {one.entry.person for one in coming} <= {*PEOPLE} - {
            whose for whose, _, _, fate in lab.became.values() if fate == "withdrawn"
        }
    fates = Counter(fate for _, _, _, fate in lab.became.values())
    assert (leaves, fates["kept"]) == ({}, 40)
    assert fates["withdrawn"] > 2 < fates["aborted"] + fates["failed"]
    kept = Counter((recipe, strategy) for _, recipe, strategy, fate in lab.became.values() if fate == "kept")
    assert kept == {(recipe, strategy): WANTED for recipe in RECIPES for strategy in ("normal", "induced")}
    assert recounted(kitchen.data) == kept
    later = [order for folder, order in lab.orders.items() if folder not in changed_from]
    of_changed = [order for order in later if NEW_STEP in order]
    assert of_changed
    assert all(order[0] == NEW_STEP for order in of_changed)
    assert len(of_changed) == sum(
        recipe == CHANGED for folder, (_, recipe, _, _) in lab.became.items() if folder not in changed_from
    ), "whoever cooks the new version is shown an order of it, whatever was planned"
    table = kitchen.desk("operator").get("/desk/coverage.csv?by=recipe&by=strategy").text
    rows = {(row["recipe"], row["strategy"]): row for row in csv.DictReader(table.splitlines())}
    assert {key: int(row["recorded"]) for key, row in rows.items()} == kept
    assert all(row["planned"] == "0" or row["planned"] == row["recorded"] for row in rows.values())
    normal = [
        (recipe, lab.orders[folder])
        for folder, (_, recipe, strategy, fate) in lab.became.items()
        if (strategy, fate) == ("normal", "kept")
    ]
    assert len(set(normal)) == len(normal) == 20, "each in an order of its own"
