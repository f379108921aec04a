"""Problems during a recording are shown to the operator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kitchensync.capture.process.health import HealthSender
from kitchensync.capture.process.outcome import NO_SPACE
from kitchensync.capture.session import stream_lines as progress
from kitchensync.capture.session.stream_lines import RecordingProgress
from kitchensync.capture.session.supervisor import Supervisor
from kitchensync.storage.names import LOGS


@pytest.fixture
def supervisor(server, plan) -> Iterator[Supervisor]:
    """Return a supervisor that was not started."""
    plan.save(Path(plan.work) / "plan.json")
    (Path(plan.path) / LOGS).mkdir()
    supervisor = Supervisor(plan, server, [])
    yield supervisor
    supervisor.close()


@pytest.mark.parametrize("terminal", [False, True])
def test_a_drainer_that_cannot_store_is_shown(supervisor, plan, monkeypatch, capsys, terminal):
    monkeypatch.setattr(progress, "LINE_S", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    health = HealthSender(plan.health, "drainer 0")
    with RecordingProgress("take", None, enabled=True) as shown:
        for problem, expected in (
            (NO_SPACE, []),  # reported by the disk guard instead
            ("[Errno 5] Input/output error", ["[Errno 5] Input/output error; its packets stay in the queue"]),
            ("", []),
        ):
            health.send(streams={}, problem=problem)
            supervisor.board.update(5_000)
            assert [
                problem.removeprefix("a drainer cannot go on: ") for problem in supervisor.problems()
            ] == expected
            monkeypatch.setattr(shown, "_shown_s", 0.0)
            shown.update(supervisor)
            printed = capsys.readouterr().err
            assert ("its packets stay" in printed) == bool(expected)
    health.close()
