"""`make attack` as a command: it finds what does not hold, and says so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ATTACK = Path(__file__).resolve().parents[2] / "benchmarks" / "attack"


def attack(*options: str, beside: str = "") -> subprocess.CompletedProcess[str]:
    """Run the attacks; `beside` runs first in the process that judges."""
    program = f"import runpy, sys\n{beside}\nsys.argv[1:] = {list(options)}\n"
    program += f"runpy.run_path({str(ATTACK)!r}, run_name='__main__')"
    command = [sys.executable, "-P", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=400)


def test_every_kind_says_what_it_does() -> None:
    listed = attack("--list")
    assert listed.returncode == 0
    assert len(listed.stdout.splitlines()) >= 10
    assert attack("no-such-kind").returncode == 2


@pytest.mark.timeout(120)
def test_bodies_without_a_session_are_refused_and_cost_no_memory() -> None:
    done = attack("large-bodies", "--seconds", "1", "--alone")
    (row,) = done.stdout.splitlines()[1:]
    assert "memory" not in row, done.stdout + done.stderr
    assert "401:" in row or "413:" in row
    assert "200:" not in row


GROWING = f"""
import itertools
sys.path.insert(0, {str(ATTACK)!r})
import target
sizes = itertools.count(0, 150 << 20)
target.memory_of = lambda process: next(sizes)
"""


def test_what_does_not_hold_is_named_and_fails() -> None:
    done = attack("nothing", "--seconds", "0.5", "--alone", beside=GROWING)
    assert (done.returncode, "memory" in done.stdout.splitlines()[-1]) == (1, True), done.stdout + done.stderr


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_recording_whose_control_socket_is_attacked_loses_nothing() -> None:
    done = attack("hostile-frames", "--seconds", "1")
    attacked, beside = done.stdout.splitlines()[-2:]
    assert "no right end" not in attacked
    assert "refused:" in attacked
    sent, stored = re.findall(r"([\d,]+) (?:packets sent|stored)", beside)
    assert sent == stored
    assert int(sent.replace(",", "")) > 1000
