"""A bar on stderr where a person looks on; plain lines where a log is written."""

from __future__ import annotations

import sys


class Bar:
    """Progress of one command: `show(done, whole, words)` as often as there is something new."""

    def __init__(self, name: str, *, unit: str = "", lines: bool = False) -> None:
        """`lines` writes one line a call where stderr is no terminal."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._is_terminal = sys.stderr.isatty()
        self._lines = lines and not self._is_terminal
        count = TextColumn("{task.completed:.0f} of {task.total:.0f} " + unit)
        columns = TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn()
        console = Console(stderr=True)
        self._bar = Progress(*columns, console=console, transient=True, disable=not self._is_terminal)
        self._name = name
        self._task = self._bar.add_task(name, total=1.0, visible=False)

    def __enter__(self) -> Bar:
        """Begin."""
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bar away."""
        self._bar.stop()

    def show(self, done: float, whole: float, words: str = "") -> None:
        """Say how much of `whole` is done, and what was last."""
        if self._lines and whole > 1:
            print(f"{done:.0f}/{whole:.0f}  {words}", file=sys.stderr, flush=True)
        text = f"{self._name}  {words}" if words else self._name
        self._bar.update(self._task, completed=done, total=whole, description=text, visible=True)
