"""The virtual kitchen and our commands as real processes, for tests of the whole."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from processes import COMMAND, LIMIT_S, Kitchen, running


@pytest.fixture
def runtime(tmp_path_factory, monkeypatch) -> Path:
    """A private folder for sockets, so that tests side by side may use the same recording ids."""
    folder = Path("/tmp") / f"ks-test-{os.getpid()}-{tmp_path_factory.mktemp('r').name}"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    left = [path.name for path in folder.glob("kitchensync/*")]
    for recording in left:  # a red test leaves its recorder running, which outlives the app
        subprocess.run(
            [COMMAND, "stop", recording, "--abort", "a test left it"],
            stdout=subprocess.DEVNULL,
            check=False,
            timeout=LIMIT_S,
        )
    assert left == [], "sockets were left behind"
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir()
    folder.rmdir()


@pytest.fixture
def kitchen(tmp_path, tmp_path_factory, loopback_host) -> Iterator[Callable[..., Kitchen]]:
    """Start virtual kitchens; end them after the test. Rings of packets are made once for all tests."""
    base = tmp_path_factory.getbasetemp()
    rings = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "rings"
    with contextlib.ExitStack() as stack:
        count = 0

        def start(*options: str, seed: int = 1, seconds: float = 6, host: str = loopback_host) -> Kitchen:
            nonlocal count
            count += 1
            out = tmp_path / f"sim{count}"
            command = [COMMAND, "simulate", "--seed", str(seed), "--seconds", str(seconds), *options]
            command += ["--hololens-host", host, "--gopro-host", host]
            command += ["--gopro-port", "0", "--out", str(out)]
            command += ["--ring-store", str(rings)] if "--rings" in options else []
            process = stack.enter_context(running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            timer = threading.Timer(LIMIT_S, process.kill)
            timer.start()
            line = next((line for line in process.stdout if line.startswith("ready gopro=")), None)
            timer.cancel()
            assert line is not None, "the virtual kitchen did not get ready"
            return Kitchen(host, f"http://{host}:{int(line[12:])}", out, process)

        yield start
