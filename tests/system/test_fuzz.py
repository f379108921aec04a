"""`make fuzz` with few inputs of each parser, and that it finds what it looks for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).resolve().parents[2] / "benchmarks" / "fuzz"
pytestmark = pytest.mark.slow


def fuzz(keep: Path, *options: str, beside: str = "") -> subprocess.CompletedProcess[str]:
    """Run it; `beside` runs before it in its process."""
    program = f"import runpy, sys\nsys.path.insert(0, {str(FUZZ.parents[1])!r})\n{beside}\n"
    program += f"sys.argv[1:] = {[*options, '--keep', str(keep)]}\n"
    program += f"runpy.run_path({str(FUZZ)!r}, run_name='__main__')"
    command = [sys.executable, "-P", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)


@pytest.mark.timeout(300)
def test_no_parser_crashes_hangs_or_takes_memory(tmp_path: Path) -> None:
    done = fuzz(tmp_path, "--count", "60", "--apart", "4", "--together")
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "0 crashes, 0 hangs" in done.stdout
    assert len(done.stdout.splitlines()) >= 65
    assert not list(tmp_path.iterdir())


RAISING = """
import kitchensync.storage.lab
def wrong(*_): raise KeyError("a bug of ours")
kitchensync.storage.lab.lab_of = wrong
"""
SLOW = """
import kitchensync.storage.lab, time
kitchensync.storage.lab.lab_of = lambda _: time.sleep(20)
import signal
signal.setitimer = lambda which, seconds, real=signal.setitimer: real(which, seconds and 0.2)
"""


@pytest.mark.parametrize(
    ("beside", "found"),
    [(RAISING, "KeyError at storage"), (SLOW, "Hangs"), ("", "0 crashes")],
    ids=["an error of another kind", "no end", "nothing"],
)
def test_what_is_wrong_is_found_and_its_input_kept(tmp_path: Path, beside: str, found: str) -> None:
    done = fuzz(tmp_path, "lab-file", "--count", "2", "--together", beside=beside)
    assert found.split()[0] in done.stdout, done.stdout + done.stderr
    assert (done.returncode, bool(list(tmp_path.rglob("1-*")))) == ((1, True) if beside else (0, False))


def test_unknown_parsers_are_named(tmp_path: Path) -> None:
    assert fuzz(tmp_path, "no-such-parser").returncode == 2
