"""Progress bars on stderr for long work, hidden if it is not a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from kitchensync.shell.terminal import console as terminal_console
from kitchensync.shell.terminal import live

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

Show = Callable[[str, int, int], None]
"""Takes the current item, bytes done and bytes in total."""


def terminal_bar(*columns: ProgressColumn, console: Console | None = None, shown: bool = True) -> Progress:
    """Make a bar with these columns after its description, hidden unless the console is a terminal."""
    from rich.progress import Progress, TextColumn

    console = console or terminal_console(stderr=True)
    words = TextColumn("{task.description}", markup=False)
    return Progress(
        words, *columns, console=console, transient=True, disable=not (shown and console.is_terminal)
    )


class Bar:
    """Progress of one command; call `show(done, whole, words)` after each step."""

    def __init__(self, name: str = "", *, unit: str = "", lines: bool = False, shown: bool = True) -> None:
        """Set up the bar; with `lines`, each call prints a line if stderr is not a terminal."""
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

        count = TextColumn("{task.completed:.0f}{task.fields[of_whole]} " + unit)
        self._bar = terminal_bar(BarColumn(), count, TimeRemainingColumn(), shown=shown)
        self._open = ExitStack()
        self._lines = lines and shown and self._bar.disable
        self._name = name
        self._task = self._bar.add_task(name, total=None, visible=False, of_whole="")

    def __enter__(self) -> Bar:
        """Show the bar."""
        self._open.enter_context(live(self._bar))
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bar."""
        self._open.close()

    def show(self, done: float, whole: float | None = None, words: str = "") -> None:
        """Show that `done` of `whole` is done (None if unknown), and the last item."""
        if self._lines and whole is not None and whole > 1:
            print(f"{done:.0f}/{whole:.0f}  {words}", file=sys.stderr, flush=True)
        text = "  ".join(filter(None, (self._name, words)))
        of_whole = "" if whole is None else f" of {whole:.0f}"
        self._bar.update(
            self._task, completed=done, total=whole, description=text, visible=True, of_whole=of_whole
        )


@contextmanager
def byte_bar() -> Iterator[Show]:
    """Show a bar of bytes while the block runs."""
    from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn

    bar = terminal_bar(BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with live(bar):
        task = bar.add_task("", total=None)
        yield lambda text, done, total: bar.update(task, description=text, completed=done, total=total)


LINE_S = 10.0  # without a terminal every line stays in a log


class ByteMeter:
    """Progress and speed of downloads, one after the other; a context manager."""

    def __init__(self, console: Console | None = None) -> None:
        """Set up the bar, by default on stderr."""
        from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn, TransferSpeedColumn

        self._console = console or terminal_console(stderr=True, soft_wrap=True)
        columns = BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
        self._bar = terminal_bar(*columns, console=self._console)
        self._open = ExitStack()
        self._name = ""
        self._task = self._bar.add_task("", visible=False)
        self._begun_s = self._told_s = time.monotonic()
        self._first_bytes = 0

    def __enter__(self) -> ByteMeter:
        """Show the bar."""
        self._open.enter_context(live(self._bar))
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bar."""
        self._open.close()

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self._console.print(line, markup=False, highlight=False)

    def begin(self, name: str) -> None:
        """Start the next download."""
        self._name, self._first_bytes = name, -1
        self._begun_s = self._told_s = time.monotonic()
        self._bar.reset(self._task, description=name, visible=False)

    def update(self, here: int, promised: int) -> None:
        """Show the bytes received; those of an earlier run do not count for the speed."""
        if self._first_bytes < 0:
            self._first_bytes = here
        self._bar.update(self._task, completed=here, total=promised, visible=True)
        now_s = time.monotonic()
        if self._console.is_terminal or now_s - self._told_s < LINE_S:
            return
        self._told_s = now_s
        rate = (here - self._first_bytes) / max(now_s - self._begun_s, 1e-9) / 1e6
        self.say(f"{self._name}: {here / 1e6:.0f} of {promised / 1e6:.0f} MB, {rate:.1f} MB/s")
