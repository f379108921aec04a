"""The bar of long work: on a terminal it says what is done, in a log it says lines or nothing."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.progress import DownloadColumn

from kitchensync.shell.progress import Bar, terminal_bar


def test_a_terminal_sees_the_bar_and_a_log_does_not():
    seen = {}
    for is_terminal in (True, False):
        out = io.StringIO()
        console = Console(file=out, force_terminal=is_terminal, width=100)
        with terminal_bar(DownloadColumn(), console=console) as bar:
            task = bar.add_task("take-1", total=2e6)
            bar.update(task, completed=1e6)
            bar.refresh()
        seen[is_terminal] = out.getvalue()
    assert "take-1" in seen[True]
    assert "1.0/2.0 MB" in seen[True]
    assert seen[False].strip() == ""


def test_a_log_gets_one_line_a_step_where_that_was_asked_for(capsys):
    with Bar("synchronizing", unit="recordings", lines=True) as bar:
        bar.show(1, 2, "take-1 aligned")
        bar.show(2, 2, "take-2 check")
    assert capsys.readouterr().err == "1/2  take-1 aligned\n2/2  take-2 check\n"


@pytest.mark.parametrize("whole", [None, 60.0])
def test_how_much_there_is_may_be_unknown(whole, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Bar(unit="s looked through") as bar:
        bar.show(12.0, whole, "GX010042.MP4")
        bar._bar.refresh()
    text = capsys.readouterr().err
    assert "GX010042.MP4" in text
    assert ("12 of 60 s looked through" if whole else "12 s looked through") in text
