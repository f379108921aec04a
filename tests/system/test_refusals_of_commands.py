"""Every command on a path that does not exist, is none of its kind, is broken, or may not be written: one table.

Each refusal is one line on stderr, `kitchensync: REASON; WHAT TO DO`, with the exit code of the contract (1, or 2 for
what was asked for wrongly), and with `--json` one object {"schema", "status": "refused", "reason"} on stdout.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from command_tree import COMMANDS, FILE, FOLDER, GRAPH, RECORDING, ROWS

from kitchensync.cli import main
from kitchensync.storage.manifest import write_json

NO_PATH = {
    "app": "serves until it is stopped; tests/recipe_app/test_app_command.py has what it refuses",
    "record": "makes its folder: below",
    "stop": "takes the name of a recording that runs",
    "mark": "takes the name of a recording that runs",
    "pause": "takes the name of a recording that runs",
    "resume": "takes the name of a recording that runs",
    "top": "takes the name of a recording that runs",
    "recover": "takes the data folder, which may be empty; the matrix has it",
    "rig init": "writes its file: below",
    "doctor": "takes a host",
    "backup": "writes its file: below",
    "annotations export": "writes a folder from the app's log",
    "calibrate board": "writes a sheet: below",
    "gopro discover": "looks around in the network",
    "rehearse": "makes its own recordings",
    "sample": "makes its own folder: below",
    "simulate": "makes its own folder: below",
}
LOOKS_AT_ANYTHING = {
    ("list", "none of its kind"): "a folder without recordings holds none, and that is an answer",
    ("verify", "broken"): "FAIL is an answer, with its reasons",
    ("calibrate check", "broken"): "FAIL is an answer, with its reasons",
    ("release check", "broken"): "FAIL is an answer, with what differs",
    ("gopro free", "broken"): "it answers recording by recording, with `problems`; the exit code is 1",
    ("sync", "broken"): "it answers recording by recording, with what is wrong; the exit code is 1",
    (
        "move",
        "broken",
    ): "it answers recording by recording, with what it says of the store; the exit code is 1",
    ("list", "broken"): "it lists what is broken",
    ("batch", "broken"): "it answers recording by recording, with what is wrong; the exit code is 1",
    ("gopro inspect", "none of its kind"): "says what it found, which is nothing",
}
"""What is no refusal, and why."""


def test_the_table_has_every_command():
    assert ROWS.keys() | NO_PATH.keys() == COMMANDS.keys()
    assert not ROWS.keys() & NO_PATH.keys()


def promised(command: str) -> str:
    """The schema that the help of `--json` names, if it does."""
    option = next(parameter for parameter in COMMANDS[command].params if "--json" in parameter.opts)
    found = re.search(r"\(([a-z0-9-]+/1)\)", getattr(option, "help", None) or "")
    return found[1] if found else ""


def has_json(command: str) -> bool:
    return any("--json" in parameter.opts for parameter in COMMANDS[command].params)


def laid_out(case: str, kind: str, place: Path) -> Path:
    """Make what a command is given; a path of one kind a case."""
    path = place / ("given.json" if kind == FILE else "given")
    if case == "no such path":
        return path
    if case == "none of its kind":
        if kind == FILE:
            path.write_text("sun")
        else:
            path.mkdir()
            (path / "holiday.txt").write_text("sun")
    elif kind == FILE:
        path.write_bytes(b"\x00\x01{[" * 100)
    else:
        for folder in ("hololens/pv", "annotation_json"):
            (path / folder).mkdir(parents=True)
        (path / "recording.json").write_bytes(b'{"schema": "recording/1", "state": [')
        (path / "annotation_json" / "complete_step_annotations.json").write_text("[")
        (path / "broken.json").write_text("{")
        (path / "hololens" / "pv" / "000001.h5").write_bytes(b"\x89HDF garbage")
    return path


def words_of(command: str, case: str, place: Path, as_json: bool) -> list[str]:
    made = {kind: laid_out(case, kind, place / kind) for kind in {*ROWS[command]} & {RECORDING, FILE, FOLDER}}
    row = [
        str(made.get(word, word)).replace("WRITTEN", str(place)).replace("STORE", f"{place}/store")
        for word in ROWS[command]
    ]
    return [*command.split(), *row, *(["--json"] if as_json else [])]


def run(words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command: in this process, which is quick, or as one of its own where it changes its process."""
    if words[0] == "move":  # it lowers its own priority
        command = [sys.executable, "-m", "kitchensync", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)
    done = CliRunner().invoke(main, words)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)


def refused(done: subprocess.CompletedProcess[str], command: str, as_json: bool) -> None:
    lines = done.stderr.strip().splitlines()
    told = f"{command}: {done.returncode} {done.stdout[:300]!r} {done.stderr[-800:]!r}"
    assert done.returncode in (1, 2), told
    assert len(lines) == 1, told
    assert re.fullmatch(r"kitchensync: \S.*", lines[0]), told
    assert ";" in lines[0] or ":" in lines[0].removeprefix("kitchensync:"), told
    if as_json:
        answer: dict[str, Any] = json.loads(done.stdout)
        assert answer["schema"] == (promised(command) or answer["schema"]), told
        assert re.fullmatch(r"[a-z0-9-]+/1", answer["schema"]), told
        assert (answer["status"], answer["reason"] in lines[0]) == ("refused", True), told
    else:
        assert done.stdout == "", told


WRITING = {
    "rig init": ["LOCKED/rig.toml"],
    "withdraw": ["LOCKED/take"],
    "redact": ["LOCKED/take", "--reason", "a visitor", "--from", "0", "--to", "1"],
    "consent": ["LOCKED/take", "--reference", "form", "--scopes", "annotate", "--by", "op"],
    "report": ["LOCKED/take"],
    "app": ["--data", "LOCKED/data", "--port", "0"],
    "adopt": ["film-1", "FILM", "--data", "LOCKED/data"],
    "backup": ["LOCKED/backup.zip", "--data", "LOCKED/data"],
    "restore": ["FILM", "--data", "LOCKED/data"],
    "annotations import": ["FOLDER", "--data", "LOCKED/data"],
    "calibrate board": ["--out", "LOCKED/board.pdf"],
    "gopro join": ["FILM", "--out", "LOCKED/out.mp4"],
    "graph convert": [GRAPH, "--to", "dot", "--out", "LOCKED/graph.dot"],
    "simulate": ["--seed", "1", "--hololens-host", "127.9.8.7", "--gopro-port", "0", "--out", "LOCKED/s"],
    "sample": ["LOCKED/sample"],
    "record": ["take-2", "--data", "LOCKED/data", "--hololens", "127.9.8.6", "--start-timeout", "1"],
}
"""Commands that write where nothing can be written; the matrix has the others on recordings."""
LOCK = """
set -e
mount --bind {place} {place}
mount -o remount,bind,ro {place}
exec {python} -m kitchensync {words}
"""


@pytest.mark.parametrize("command", WRITING)
def test_a_place_that_may_not_be_written_is_one_line(
    command: str, finished_recording: Path, tmp_path: Path
) -> None:
    place, film = tmp_path / "locked", tmp_path / "film.MP4"
    film.write_bytes(b"film")
    (tmp_path / "folder").mkdir()
    finished_recording.rename(place)
    known = {"FILM": str(film), "FOLDER": str(tmp_path / "folder")}
    words = [
        *command.split(),
        *(known.get(word, word).replace("LOCKED", str(place)) for word in WRITING[command]),
    ]
    words += ["--json"] if has_json(command) else []
    script = LOCK.format(place=place, python=sys.executable, words=shlex.join(words))
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False
    )
    refused(done, command, has_json(command))
    assert done.returncode in (1, 2)


@pytest.fixture
def finished_recording(tmp_path: Path) -> Path:
    """A folder that holds the recording `take`: one that was begun and holds nothing yet."""
    made = tmp_path / "made"
    (made / "take").mkdir(parents=True)
    manifest = {"schema": "recording/1", "recording": "take", "uuid": "u", "state": "complete"}
    write_json(made / "take" / "recording.json", manifest | {"files": {}, "streams": {}, "devices": {}})
    return made


@pytest.mark.parametrize("case", ["no such path", "none of its kind", "broken"])
@pytest.mark.parametrize("command", ROWS)
def test_a_command_refuses_in_one_line(command: str, case: str, tmp_path: Path):
    if (command, case) in LOOKS_AT_ANYTHING:
        pytest.skip(LOOKS_AT_ANYTHING[command, case])
    for as_json in {False, has_json(command)}:
        place = tmp_path / str(as_json)
        for kind in (RECORDING, FILE, FOLDER, "store"):
            (place / kind).mkdir(parents=True)
        before = set(place.rglob("*"))
        done = run(words_of(command, case, place, as_json))
        refused(done, command, as_json)
        if case == "no such path":
            assert set(place.rglob("*")) == before, f"{command} made something"
            assert (done.returncode, str(place) in done.stderr) == (2, True), f"{command}: {done.stderr}"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["verfy", "x"], "verify"),
        (["graph", "chek", "x"], "check"),
        (["gopro", "ftch"], "fetch"),
        (["lst"], "list"),
    ],
)
def test_a_mistyped_command_is_told_what_may_be_meant(words: list[str], meant: str) -> None:
    done = run(words)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert f"Did you mean '{meant}'?" in done.stderr


def test_an_option_that_is_mistyped_is_told_too() -> None:
    assert "--deep" in run(["verify", "x", "--dep"]).stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands(shell: str) -> None:
    environment = {"_KITCHENSYNC_COMPLETE": f"{shell}_source", "PATH": "/usr/bin:/bin"}
    command = Path(sys.executable).with_name("kitchensync")
    done = subprocess.run([command], env=environment, capture_output=True, text=True, check=False)
    assert "_KITCHENSYNC_COMPLETE" in done.stdout, done.stderr
