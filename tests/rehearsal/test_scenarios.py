"""What is drawn, what the simulator understands of it, and what is not played again."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from rehearsal.account import Account
from rehearsal.run import ROW, answer_of, kept, last_line_of, line_of
from rehearsal.scenarios import CAUSES, KINDS, LONG_STOPS, draw

from kitchensync.capture.errors import CaptureError
from kitchensync.virtual_kitchen.faults import parse_faults


def test_the_same_seed_draws_the_same_and_every_kind_comes_in_turn():
    drawn = draw(100, 1, can_mount=True)
    assert drawn == draw(100, 1, can_mount=True)
    assert drawn != draw(100, 2, can_mount=True)
    assert {scenario.kind.name for scenario in drawn[: len(KINDS)]} == set(KINDS)
    assert len({scenario.seed for scenario in drawn}) == 100


def test_without_small_disks_the_full_ones_are_left_out():
    assert not any(scenario.kind.mounts for scenario in draw(50, 1, can_mount=False))


def test_the_virtual_kitchen_understands_its_faults():
    for scenario in draw(100, 3, can_mount=True):
        options = scenario.simulator_options
        assert bool(options) == bool(scenario.kind.in_simulator)
        plan = parse_faults(options[1::2])
        found = [*plan.faults, *plan.camera.faults]
        assert [fault.name for fault in found] == [scenario.kind.in_simulator] * bool(options)


OTHERWISE = {
    "relative_paths": ["kill_supervisor"],
    "clustered_server": [],
    "long_stop": ["stop_producer", "stop_drainer", "stop_queue", "stop_supervisor", "suspend"],
}
"""Kinds whose faults have names of their own."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_says_what_it_may_cost(kind):
    verb, _, target = kind.partition("_")
    parts = ("supervisor", "producer", "drainer", "queue", "mover")
    made = [f"{verb}_{part}" for part in parts] if target in ("any", "recorder") else [kind]
    made = OTHERWISE.get(kind, made)
    assert kind == "nothing" or all(fault in CAUSES for fault in made)


def test_long_stops_take_everybody_in_turn_and_last_up_to_a_minute():
    drawn = [one for one in draw(200, 2, can_mount=True) if one.kind.name == "long_stop"]
    assert {one.target for one in drawn} == set(LONG_STOPS)
    assert all(20 <= one.lasts_s <= 60 < one.seconds + 40 for one in drawn)


def played(folder, scenario) -> Account:
    account = Account(scenario.name, produced=7, stored=7, seconds=12.0)
    place = folder / scenario.name
    place.mkdir()
    (place / ROW).write_text(json.dumps(asdict(account)))
    (place / "scenario.json").write_text(json.dumps({"recording": "take", **scenario.facts, "faults": []}))
    return account


def test_a_scenario_that_was_accounted_for_is_taken_from_its_folder(tmp_path):
    first, second = draw(2, 1, can_mount=False)
    account = played(tmp_path, first)
    assert kept(first, tmp_path) == account
    assert kept(second, tmp_path) is None


def test_a_folder_of_another_seed_is_refused(tmp_path):
    played(tmp_path, draw(1, 1, can_mount=False)[0])
    with pytest.raises(CaptureError, match="another seed"):
        kept(draw(1, 2, can_mount=False)[0], tmp_path)


def test_the_last_line_sums_what_the_object_holds():
    fine = Account("000-nothing", produced=10, stored=10)
    bad = Account("001-kill_queue", produced=9, stored=5, named_losses=1, unexplained=3, notes="gone")
    answer = answer_of([fine, bad])
    assert (answer["scenarios"], answer["unexplained"]) == (2, 3)
    assert [row["name"] for row in answer["rows"]] == ["000-nothing", "001-kill_queue"]
    assert "gone" in line_of(bad)
    assert (
        last_line_of(answer) == "2 scenarios: 3 unexplained, 0 duplicates, 0 unreadable files, 0 wrong causes"
    )
    assert not bad.is_fine
    assert fine.is_fine
