"""The page of faults and verdicts: every limit as in the code, every fault of the kitchen, and nothing too green."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from attack.hostile import OF_HEADSETS
from processes import COMMAND

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "faults-and-verdicts.md"
sys.path.insert(0, str(ROOT / "benchmarks" / "verdict_table"))


def rows() -> list[list[str]]:
    table = PAGE.read_text(encoding="utf-8").partition("| fault | played |")[2].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table if line.startswith("|")]


def test_every_fault_was_played_twice():
    known = subprocess.run(
        [COMMAND, "simulate", "--faults"], capture_output=True, text=True, check=True
    ).stdout
    every = {re.split(r"[@:\[ ]", line.strip())[0] for line in known.splitlines() if line.strip()}
    names = {
        name for name in every if not name.startswith("hostile_")
    }  # no truth, only bounds: `rehearse` has them
    assert every - names == {name for name in OF_HEADSETS if name.startswith("hostile_")}, (
        "and has all of them"
    )
    played = [row[0].partition(" ")[0] for row in rows()]
    assert {name for name in names if played.count(name) != 2} == set()
    assert set(played) - {"no_fault"} <= names


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_no_card_is_green_below_the_limit(row):
    _, _, verdict, card, said, true, words = row
    assert words or verdict == "PASS"
    if card == "green" or verdict == "PASS":
        assert float(said) >= 0.95
        assert float(true) >= 0.92  # the truth knows nothing of what was on its way at the stop
