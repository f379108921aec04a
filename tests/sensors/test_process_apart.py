"""The process that reads untrusted files: the reason of its end is reported, and the next call gets an answer."""

from __future__ import annotations

import os
import signal
from typing import Any

import psutil
import pytest

from kitchensync.shell.process_apart import (
    Bounds,
    ChildAnswer,
    OutOfMemory,
    OutOfTime,
    ProcessApart,
    ReaderFailed,
    ask_once,
)

SAYS = "kitchensync.shell.process_apart:ChildAnswer"
BOUNDS = Bounds(150.0, 1 << 30)


def test_an_answer_is_returned_unchanged() -> None:
    with ProcessApart(SAYS, BOUNDS) as apart:
        assert apart.ask({"a": [1, None, "ä\n"]}) == ChildAnswer({"a": [1, None, "ä\n"]}, [])
        assert apart.ask("again").value == "again"


@pytest.mark.parametrize(
    ("function", "arguments", "expected", "seconds"),
    [
        ("time:sleep", [600], OutOfTime, 0.2),
        ("builtins:bytearray", [2 << 30], OutOfMemory, 150.0),
        ("os:abort", [], ReaderFailed, 150.0),
        ("os:_exit", [0], ReaderFailed, 150.0),
        ("os:write", [1, 5], ReaderFailed, 150.0),
        ("signal:raise_signal", [signal.SIGALRM], OutOfTime, 150.0),
    ],
)
def test_reasons_of_an_end_are_reported(
    function: str, arguments: list[Any], expected: type, seconds: float
) -> None:
    before = psutil.Process().children()
    with pytest.raises(ReaderFailed) as ended:
        ask_once(function, Bounds(seconds, 1 << 30), *arguments)
    assert type(ended.value) is expected
    assert psutil.Process().children() == before


def test_a_killed_process_gives_no_verdict_and_is_replaced() -> None:
    with ProcessApart(SAYS, BOUNDS) as apart:
        assert apart.ask(1).value == 1
        assert apart._process is not None
        os.kill(apart._process.pid, signal.SIGKILL)
        with pytest.raises(OSError, match="was killed"):
            apart.ask(2)
        assert apart.ask(3).value == 3


def test_a_process_that_does_not_start_gives_no_verdict() -> None:
    with pytest.raises(OSError, match="does not start"):
        ask_once("no_such_module:f", BOUNDS)
