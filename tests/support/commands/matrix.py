"""Commands x lives of a recording x conditions of the computer: the cells, what each may change, and who runs them.

Run as a program it plays the cells of a JSON file one after the other in its own process, where a disk can be full or
read-only for it alone, and prints what each did.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))  # it is run as a script, too
from rehearsal.small_disks import FILLER, fill

TAKE = "data/take"
COMMANDS: dict[str, list[str]] = {
    "list": ["data"],
    "info": [TAKE],
    "verify": [TAKE],
    "archive": [TAKE],
    "move": [TAKE, "--to", "store"],
    "upload": [TAKE, "file://PLACE/cloud"],
    "sync": [TAKE, "--jobs", "1"],
    "side-by-side": [TAKE, "--out", "out.mp4", "--to", "0.4"],
    "report": [TAKE],
    "calibrate rig": [TAKE],
    "calibrate check": [TAKE],
    "calibrate imu": [TAKE],
    "view": [TAKE, "--save", "out.rrd", "--to", "0.5"],
    "cloud": [TAKE, "--out", "out.ply", "--seconds", "0.3", "--voxel-mm", "40"],
    "mesh": [TAKE, "--out", "out.ply", "--seconds", "0.3", "--voxel-mm", "40"],
    "overlay": [TAKE, "--out", "out.mp4", "--seconds", "0.4", "--width", "320"],
    "gopro fetch": [TAKE],
    "gopro import": ["card", "--recording", TAKE, "--yes"],
    "gopro free": [TAKE],
    "recover": ["--data", "data"],
    "consent": [TAKE, "--reference", "form-2", "--scopes", "annotate", "--by", "operator-2"],
    "release captaincook4d": ["data", "--out", "released"],
}
"""Commands that work on a recording, as the README calls them: paths from the folder around the data.

`redact` is not among them: it destroys in the store that all cells share."""
HAS_JSON = COMMANDS.keys() - {"side-by-side", "report", "view", "recover"}
LIVES = (
    "recording",
    "copying",
    "complete",
    "aborted",
    "archived",
    "elsewhere",
    "damaged",
    "manifest_lost",
    "withdrawn",
)
NO_LIVES = ("no such path", "no recording", "empty folder")
CONDITIONS = ("relative path", "read-only folder", "read-only disk", "full disk", "Ctrl-C")

MAY_CHANGE: dict[str, tuple[str, ...]] = {
    "archive": ("data/take/",),
    "move": ("data/take/", "store/"),
    "upload": ("cloud/", "cloud", "data/take/copies.jsonl"),
    "sync": ("data/take/sync", "data/sync-summary.html"),
    "report": ("data/take/sync",),
    "verify": ("data/take/sync",),
    "calibrate rig": ("data/take/sync", "data/calibrations"),
    "calibrate check": ("data/take/sync",),
    "calibrate imu": ("data/calibrations",),
    "side-by-side": ("out.mp4",),
    "view": ("out.rrd",),
    "cloud": ("out.ply",),
    "mesh": ("out.ply",),
    "overlay": ("out.mp4",),
    "gopro import": ("data/take/",),
    "gopro fetch": ("data/take/gopro",),
    "recover": ("data/take/", "data/.kitchensync"),
    "consent": ("data/take/recording.json",),
    "release captaincook4d": ("released",),
}
"""What a command may write when it does what it is asked; nothing else ever changes."""


@contextlib.contextmanager
def folder_of(life: str, made: Path, place: Path) -> Iterator[None]:
    """Lay out the recording of a life and what lies around it."""
    place.mkdir(parents=True)
    for name in ("card", "data", "store"):
        (place / name).mkdir()
    if life not in NO_LIVES:
        shutil.copytree(made / life, place / TAKE, symlinks=True)
    elif life == "no recording":
        (place / TAKE).mkdir()
        (place / TAKE / "holiday.txt").write_text("sun")
    elif life == "empty folder":
        (place / TAKE).mkdir()
    shutil.copy(made / "card.MP4", place / "card" / "GX010001.MP4")
    yield
    shutil.rmtree(place)


def state_of(place: Path) -> dict[str, str]:
    """Every name below a folder but the filler of a full disk; files with the hash of what they hold."""
    return {
        path.relative_to(place).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else ""
        for path in sorted(place.rglob("*"))
        if path.name != FILLER
    }


def changed(before: dict[str, str], after: dict[str, str]) -> dict[str, str]:
    """What is new, gone or other, by path."""
    return {
        path: "gone" if path not in after else "new" if path not in before else "other"
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    }


@contextlib.contextmanager
def under(condition: str, place: Path) -> Iterator[None]:
    """Make the computer so; needs a mount namespace of its own for disks."""
    locked = str(place if condition == "read-only disk" else place / "data")
    is_locked = condition.startswith("read-only")
    if is_locked:
        subprocess.run(["mount", "--bind", locked, locked], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", locked], check=True)
        os.chdir(place)
    elif condition == "full disk":
        fill(place)
    try:
        yield
    finally:
        if is_locked:
            os.chdir("/")
            subprocess.run(["umount", locked], check=True)
        elif condition == "full disk":
            (place / FILLER).unlink()


def words_of(cell: dict[str, Any], place: Path) -> list[str]:
    """Return the arguments of a cell."""
    words = [word.replace("PLACE", str(place)) for word in COMMANDS[cell["command"]]]
    return [*cell["command"].split(), *words, *(["--json"] if cell["json"] else [])]


def call(words: list[str]) -> dict[str, Any]:
    """Run a command in this process."""
    from kitchensync.cli import main

    done = CliRunner().invoke(main, words)
    crashed = done.exception is not None and not isinstance(done.exception, SystemExit)
    told = "".join(__import__("traceback").format_exception(*done.exc_info)) if crashed else ""
    return {"code": done.exit_code, "stdout": done.stdout, "stderr": done.stderr, "crash": told}


def interrupted(words: list[str], after_s: float) -> dict[str, Any]:
    """Run a command as a process and press Ctrl-C some time after it could listen."""
    code = "import sys, kitchensync.cli; print('ready', file=sys.stderr, flush=True); kitchensync.cli.main()"
    command = [sys.executable, "-c", code, *words]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    process.stderr.readline()
    time.sleep(after_s)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    # A signal inside one of Python's own callbacks is told as ignored; the command goes on and says what it did.
    crash = stderr if "Traceback" in stderr and "Exception ignored in" not in stderr else ""
    return {"code": process.returncode, "stdout": stdout, "stderr": stderr, "crash": crash}


def play(cell: dict[str, Any], made: Path, place: Path) -> dict[str, Any]:
    """Play one cell and tell what the command said and what it changed."""
    with folder_of(cell["life"], made, place):
        before = state_of(place)
        here = Path.cwd()
        os.chdir(place)
        begun = time.monotonic()
        try:
            with under(cell["condition"], place):
                words = words_of(cell, place)
                if cell["condition"] == "Ctrl-C":
                    answer = interrupted(words, cell["after_s"])
                    answer["left"] = changed(before, state_of(place))
                    answer["again"] = call(words)
                else:
                    answer = call(words)
        finally:
            os.chdir(here)
        seconds = round(time.monotonic() - begun, 2)
        return {**cell, **answer, "changed": changed(before, state_of(place)), "seconds": seconds}


def main() -> None:
    """Play the cells of a file: MADE PLACE CELLS."""
    made, place, cells = map(Path, sys.argv[1:])
    for cell in json.loads(cells.read_text()):
        print(json.dumps(play(cell, made, place)), flush=True)


if __name__ == "__main__":
    main()
