"""Fixtures of the capture tests; each test has its own real queue server."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kitchensync.capture.plan import HeadsetPlan, Plan
from kitchensync.capture.process import health
from kitchensync.capture.queue.queue_connection import connect
from kitchensync.capture.queue.server import QueueServer


@pytest.fixture(autouse=True)
def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not let drainers wait at their end for a supervisor: tests have none."""
    monkeypatch.setattr(health, "LINGER_MS", 0)


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Return a folder whose path is short enough for socket names."""
    with tempfile.TemporaryDirectory(prefix="ks") as name:
        yield Path(name)


@pytest.fixture
def server(tmp_path, short_folder) -> Iterator[QueueServer]:
    """Run a queue server with its append-only file in tmp_path."""
    server = QueueServer(tmp_path, short_folder / "q")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def client(server):
    """Connect to the server."""
    with connect(server.url) as client:
        yield client


@pytest.fixture
def plan(server, tmp_path, short_folder) -> Plan:
    """Return the plan of a recording of one headset with two streams and one drainer."""
    recording, work = tmp_path / "take", tmp_path / "work"
    recording.mkdir()
    work.mkdir()
    headset = HeadsetPlan("hololens", "127.0.0.1", ["gyroscope", "pv"], {})
    return Plan(
        recording="take",
        uuid="u-1",
        path=str(recording),
        work=str(work),
        runtime=str(short_folder),
        queue_url=server.url,
        headsets=[headset],
        drainers=1,
        supervisor_pid=os.getpid(),
    )
