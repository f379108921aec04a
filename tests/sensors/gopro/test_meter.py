"""Progress of downloads: a bar on a terminal, otherwise a line at intervals."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from kitchensync.shell import progress as meter_module
from kitchensync.shell.progress import ByteMeter


def test_a_terminal_gets_a_bar_with_a_rate() -> None:
    out = io.StringIO()
    with ByteMeter(Console(file=out, force_terminal=True, width=120)) as meter:
        meter.begin("take-1/left")
        meter.say("take-1/left: 1 files, 2.0 MB")
        meter.update(500_000, 2_000_000)
        meter.update(2_000_000, 2_000_000)
    assert "take-1/left: 1 files, 2.0 MB" in out.getvalue()
    assert "2.0/2.0 MB" in out.getvalue()


def test_a_script_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter_module, "LINE_S", 0.0)
    out = io.StringIO()
    with ByteMeter(Console(file=out, width=40, soft_wrap=True)) as meter:
        meter.begin("[take]/left")
        meter.update(1_000_000, 4_000_000)
        meter.update(3_000_000, 4_000_000)
    lines = out.getvalue().splitlines()
    assert [line.partition(" MB,")[0] for line in lines] == ["[take]/left: 1 of 4", "[take]/left: 3 of 4"]
