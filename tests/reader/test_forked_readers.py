"""Reading in processes that were forked or spawned, before and after the parent itself has read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cooked_recording import write_cooked

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[1] / "support" / "processes" / "forked_readers.py"
HANGS_S = 300


@pytest.fixture(scope="module")
def cooked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cooked")
    write_cooked(root)
    return root / "take1"


@pytest.mark.parametrize("parent", ["reads-first", "fresh"])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_read_the_same_as_their_parent(cooked: Path, method: str, parent: str) -> None:
    command = [sys.executable, str(SCRIPT), str(cooked), method, parent]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert done.returncode == 0, done.stderr
    count, is_same = done.stdout.split()
    assert int(count) >= 5
    assert is_same == "True"


def test_a_child_that_ends_by_itself_does_not_wait_for_its_parent_s_threads(cooked: Path) -> None:
    script = (
        "import os, sys, kitchensync as ks\n"
        "rec = ks.open(sys.argv[1]); rec.gopro[3]\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    rec.gopro[5]; rec.close(); sys.exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    command = [sys.executable, "-c", script, str(cooked)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr
