"""Locks that end with their processes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kitchensync.capture.lock import hold_lock, is_held


def test_a_lock_is_visible_and_ends_with_its_holder(tmp_path):
    path = tmp_path / "lock"
    assert not is_held(path)
    with hold_lock(path):
        assert is_held(path)
        with pytest.raises(BlockingIOError), hold_lock(path):
            pass
    assert not is_held(path)


def test_a_child_keeps_the_lock_after_its_parent_released_it(tmp_path):
    path = tmp_path / "lock"
    with hold_lock(path) as handle:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(handle,))
    assert is_held(path)
    child.communicate(b"\n")
    assert not is_held(path)
    with hold_lock(path, limit_s=60):
        pass


def test_a_killed_child_leaves_no_lock(tmp_path):
    path = tmp_path / "lock"
    code = "import sys, time\nfrom pathlib import Path\nfrom kitchensync.capture.lock import hold_lock\n"
    code += f"with hold_lock(Path({str(path)!r})):\n print('held', flush=True)\n time.sleep(60)\n"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"held\n"
        assert is_held(path)
        child.kill()
    assert not is_held(path)
