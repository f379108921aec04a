"""Run the tablet's scripts without a browser."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest


def node() -> str:
    """Return a JavaScript engine: the system's, or that of Playwright. Skips the test without one."""
    engine = shutil.which("node")
    if engine is None:
        driver = pytest.importorskip("playwright._impl._driver", reason="no node and no playwright here")
        engine = str(driver.compute_driver_executable()[0])
        if not os.access(engine, os.X_OK):
            pytest.skip("no node here: the tablet's scripts cannot run")
    return engine


def run(code: str, given: str = "") -> str:
    """Run a module; return what it printed."""
    command = [node(), "--no-warnings", "--input-type=module", "-e", code]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout
