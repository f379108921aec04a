"""Commands x lives of a recording x conditions of the computer: the contract of each, and nothing changed beside it.

Pairwise, every two of a command, a life and a condition meet; `make matrix` plays all of them.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matrix
import pytest
from lives import AWAY, make_lives
from rehearsal.small_disks import can_mount

from kitchensync.storage.options.outputs import PART

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]

WHOLE = os.environ.get("KITCHENSYNC_MATRIX", "") == "whole"
LIVES = [*matrix.LIVES, AWAY, *matrix.NO_LIVES]
DISK_MB = 64
USABLE = ("recording", "complete", "aborted", "archived", "elsewhere")
"""Lives whose bytes can be read: here, or in a copy."""
UNUSABLE = ("damaged", "manifest_lost", "withdrawn", AWAY)


def cells_of(condition: str) -> list[dict[str, Any]]:
    """Every cell of a condition, or those in which each command and each life meet it."""
    return [
        {"command": command, "life": life, "condition": condition, "json": command in matrix.HAS_JSON}
        | {"after_s": (0.03, 0.3, 0.8, 1.5, 2.5)[(column + 2 * row) % 5]}
        for row, command in enumerate(matrix.COMMANDS)
        for column, life in enumerate(LIVES)
        if WHOLE or (row + column) % len(matrix.CONDITIONS) == matrix.CONDITIONS.index(condition)
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lives, made once by whichever worker comes first."""
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if os.environ.get("PYTEST_XDIST_WORKER") else folder) / "lives"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            folder.mkdir()
            make_lives(folder)
            (folder / "done").touch()
    return folder


def played(condition: str, made: Path, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Play the cells of a condition in a process of their own, with a disk of its own where that is wanted."""
    (tmp_path / "cells.json").write_text(json.dumps(cells_of(condition)))
    (tmp_path / "disk").mkdir()
    script = Path(matrix.__file__)
    command = [
        sys.executable,
        str(script),
        str(made),
        str(tmp_path / "disk" / "place"),
        str(tmp_path / "cells.json"),
    ]
    if condition in ("read-only folder", "read-only disk", "full disk"):
        mount = f"mount -t tmpfs -o size={DISK_MB}m tmpfs {tmp_path / 'disk'}"
        unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
        command = [*unshare, "sh", "-c", f'{mount} && exec "$@"', "sh", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    yield from map(json.loads, done.stdout.splitlines())


def codes_for(cell: dict[str, Any]) -> set[int]:
    """Exit codes that the contract allows in a cell."""
    command, life, condition = cell["command"], cell["life"], cell["condition"]
    if condition == "Ctrl-C":  # -2: it was done, and pressed while the process went
        return {0, 1, -2} | ({2} if life in matrix.NO_LIVES else set())
    if command in ("list", "recover"):  # over a folder of recordings, which may be empty
        return {0, 1}
    if life in matrix.NO_LIVES:
        return {2}
    writes = bool(matrix.MAY_CHANGE.get(command))
    if condition in ("full disk", "read-only disk") and writes:
        return {0, 1} if command in QUIET else {1}
    return {EXPECTED[command].get(life, 1)} | ({1} if condition == "read-only folder" and writes else set())


QUIET = ("archive", "sync", "gopro fetch", "move", "verify")
"""Commands that may find nothing to write, or answer without."""
ALL_GOOD = dict.fromkeys(USABLE, 0)
EXPECTED: dict[str, dict[str, int]] = {
    "info": {**ALL_GOOD, AWAY: 0},
    "consent": {**ALL_GOOD, AWAY: 0},
    "release captaincook4d": {},
    "verify": {"copying": 0, "complete": 0, "archived": 0, "elsewhere": 0, AWAY: 0, "withdrawn": 0},
    "archive": {"complete": 0, "aborted": 0, "archived": 0},
    "move": {"complete": 0, "aborted": 0, "archived": 0, "elsewhere": 0},
    "upload": {"complete": 0, "aborted": 0, "archived": 0, "elsewhere": 0},
    "sync": {"complete": 0, "aborted": 0, "archived": 0, "elsewhere": 0, AWAY: 0},
    "side-by-side": ALL_GOOD,
    "report": ALL_GOOD,
    "calibrate rig": {},  # no lens is known
    "calibrate check": ALL_GOOD,
    "calibrate imu": {},  # nobody held still
    "view": ALL_GOOD,
    "cloud": ALL_GOOD,
    "mesh": ALL_GOOD,
    "overlay": ALL_GOOD,
    "gopro fetch": {**ALL_GOOD, AWAY: 0},
    "gopro import": {**ALL_GOOD, AWAY: 0},
    "gopro free": {},  # one copy is not enough
}
"""Exit codes when nothing is in the way; 1 where nothing is said."""


NOTES = ("cloud", "mesh", "overlay", "side-by-side", "view", "move", "upload", "gopro import", "gopro fetch")
"""Commands that enter into the installation's list what they write outside of a recording, or take in."""


def may_change(cell: dict[str, Any], path: str) -> bool:
    """Return whether a command was free to change a path: what it is for, or a partial that says so in its name."""
    if PART in path or ".partial" in path.partition("/")[0]:
        return False if PART in path else cell["condition"] in ("Ctrl-C", "full disk")
    if path in ("data/_app", "data/_app/app.key", "data/_app/own.jsonl") and cell["command"] in NOTES:
        return True
    allowed = path.startswith(matrix.MAY_CHANGE.get(cell["command"], ()))
    if cell["code"] == 0 or cell["condition"] == "Ctrl-C":
        return allowed
    return allowed and cell["command"] in GOES_ON


GOES_ON = (
    "archive",
    "move",
    "upload",
    "sync",
    "report",
    "verify",
    "calibrate check",
    "gopro import",
    "gopro fetch",
    "recover",
)
"""Commands of many steps, each whole: what was done before one failed stays."""


def problems_of(cell: dict[str, Any]) -> Iterator[str]:
    """Say everything that a cell did against the contract."""
    if cell["crash"]:
        yield f"traceback: {cell['crash']}"
    at_its_end = cell["condition"] == "Ctrl-C" and cell["code"] == -signal.SIGINT and cell["stderr"]
    if cell["code"] not in codes_for(cell) and not at_its_end:  # it had answered when the signal came
        yield f"exit code {cell['code']} instead of {codes_for(cell)}: {cell['stderr']}"
    for path, what in cell["changed"].items() if cell["condition"] != "Ctrl-C" else ():
        if not may_change(cell, path):
            yield f"{what}: {path}"
    for path, what in cell.get("left", {}).items():
        if not may_change(cell, path):
            yield f"left by Ctrl-C, {what}: {path}"
    if cell["condition"] != "Ctrl-C":
        yield from _words(cell)
    else:
        yield from _again(cell)


def _words(cell: dict[str, Any]) -> Iterator[str]:
    lines = cell["stderr"].splitlines()
    said = [line for line in lines if line.startswith("kitchensync: ")]
    if (
        cell["code"] in (1, 2)
        and cell["command"] not in ("verify", "calibrate check", "move")
        and len(lines) != 1
    ):
        yield f"a refusal is one line: {lines}"
    if len(said) != len(lines) and cell["command"] != "view":
        yield f"not our line: {lines}"
    if any("Errno" in line for line in lines):
        yield f"a raw error of the computer: {lines}"
    if cell["json"]:
        try:
            answer = json.loads(cell["stdout"])
        except ValueError:
            yield f"not one JSON object: {cell['stdout']!r}"
        else:
            if cell["code"] == 2 and (answer["status"], "reason" in answer) != ("refused", True):
                yield f"not the object of a refusal: {answer}"


def _again(cell: dict[str, Any]) -> Iterator[str]:
    """What was cut off goes on when the same command is run again; what was done may say that it is there."""
    again = cell["again"]
    if again["crash"]:
        yield f"traceback when run again: {again['crash']}"
    calm = codes_for({**cell, "condition": "relative path"})
    there = any(path.startswith("out.") and ".partial" not in path for path in cell["left"])
    if again["code"] not in calm and not (there and "--force" in again["stderr"]):
        yield f"run again: {again['code']} instead of {calm}: {again['stderr']}"


@pytest.mark.parametrize("condition", matrix.CONDITIONS)
def test_every_command_keeps_its_contract_with_every_life(condition, made, tmp_path):
    if condition in ("read-only folder", "read-only disk", "full disk") and not can_mount():
        pytest.skip("this computer lets nobody mount a disk of his own")
    cells = list(played(condition, made, tmp_path))
    assert len(cells) == len(cells_of(condition))
    found = {
        f"{cell['command']} x {cell['life']}": problems
        for cell in cells
        if (problems := list(problems_of(cell)))
    }
    assert found == {}


@pytest.mark.skipif(WHOLE, reason="all cells are played")
def test_every_two_meet():
    cells = [cell for condition in matrix.CONDITIONS for cell in cells_of(condition)]
    for one, other in (("command", "life"), ("command", "condition"), ("life", "condition")):
        met = {(cell[one], cell[other]) for cell in cells}
        sizes = {"command": len(matrix.COMMANDS), "life": len(LIVES), "condition": len(matrix.CONDITIONS)}
        assert len(met) == sizes[one] * sizes[other]
