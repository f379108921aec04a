"""The tablet's own scripts, run without a browser."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest


def node() -> str:
    """A JavaScript engine: the system's, or the one that the browser tests bring. Skips where there is none."""
    found = shutil.which("node")
    if found is None:
        driver = pytest.importorskip("playwright._impl._driver", reason="no node and no playwright here")
        found = str(driver.compute_driver_executable()[0])
        if not os.access(found, os.X_OK):
            pytest.skip("no node here: the tablet's scripts cannot run")
    return found


def run(code: str, given: str = "") -> str:
    """Run a module; return what it printed."""
    command = [node(), "--no-warnings", "--input-type=module", "-e", code]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout
