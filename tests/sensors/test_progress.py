"""Progress of long work is a bar on a terminal, and lines or nothing in a log."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.progress import DownloadColumn

from kitchensync.shell.progress import Bar, terminal_bar


def test_a_terminal_gets_a_bar_and_a_log_does_not():
    output = {}
    for is_terminal in (True, False):
        out = io.StringIO()
        console = Console(file=out, force_terminal=is_terminal, width=100)
        with terminal_bar(DownloadColumn(), console=console) as bar:
            task = bar.add_task("take-1", total=2e6)
            bar.update(task, completed=1e6)
            bar.refresh()
        output[is_terminal] = out.getvalue()
    assert "take-1" in output[True]
    assert "1.0/2.0 MB" in output[True]
    assert output[False].strip() == ""


def test_a_log_gets_one_line_per_step_on_request(capsys):
    with Bar("synchronizing", unit="recordings", lines=True) as bar:
        bar.show(1, 2, "take-1 aligned")
        bar.show(2, 2, "take-2 check")
    assert capsys.readouterr().err == "1/2  take-1 aligned\n2/2  take-2 check\n"


@pytest.mark.parametrize("total", [None, 60.0])
def test_the_total_may_be_unknown(total, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Bar(unit="s looked through") as bar:
        bar.show(12.0, total, "GX010042.MP4")
        bar._bar.refresh()
    text = capsys.readouterr().err
    assert "GX010042.MP4" in text
    assert ("12 of 60 s looked through" if total else "12 s looked through") in text
