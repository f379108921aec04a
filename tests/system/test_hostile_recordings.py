"""A fixed hundred of the recordings that mean harm, and forty other things, through commands and the running app."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "benchmarks" / "hostile_recordings"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def played(*options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", str(BENCH), *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=580)


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(
            0,
            marks=pytest.mark.promise(
                "A recording from elsewhere changes nothing outside of it, is obeyed by nothing, "
                "and hangs nothing"
            ),
        ),
        50,
    ],
)
def test_nothing_outside_is_touched_and_nothing_hangs(first: int, tmp_path: Path) -> None:
    done = played("--first", first, "--count", 50, "--app", 50, "--place", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.splitlines()[-1].startswith("50 recordings, 100 commands, 50 below the app")
    assert not list(tmp_path.iterdir())


def test_other_gifts_of_strangers_do_no_harm_either(tmp_path: Path) -> None:
    """Forty data sets, archives, backups and dumps of the app."""
    done = played("--others", "--count", 40, "--commands", 1, "--place", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.splitlines()[-1].startswith("40 other gifts, 40 commands")
    assert not list(tmp_path.iterdir())


def test_what_is_wrong_is_found(tmp_path: Path) -> None:
    """The bench is told that a command which deletes a folder outside is one of the commands."""
    program = f"""
import runpy, sys, shutil
from pathlib import Path
import kitchensync.storage.catalogue.kept_lines as kept_lines
def obeys(root):
    home = Path(root).parent / "home"
    print((home / "notes.txt").read_text())
    shutil.rmtree(home / "thesis")
    raise KeyError("a bug of ours")
kept_lines.folders_in = obeys
sys.argv = ["bench", "--count", "1", "--commands", "1", "--app", "0", "--place", {str(tmp_path)!r}]
runpy.run_path({str(BENCH)!r}, run_name="__main__")
"""
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 1, done.stderr
    for words in ("KeyError", "changed a file outside", "read out a file outside (printed)"):
        assert words in done.stdout
