"""A bar of bytes on a terminal for long work, and nothing where a script reads us."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sensors.progress import terminal_bar

Show = Callable[[str, int, int], None]
"""What is being worked on, bytes done, bytes in all."""


@contextmanager
def byte_bar() -> Iterator[Show]:
    """Show a bar on stderr for as long as the block lasts, if that is a terminal."""
    from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn

    with terminal_bar(BarColumn(), DownloadColumn(), TimeRemainingColumn()) as bar:
        task = bar.add_task("", total=None)
        yield lambda text, done, total: bar.update(task, description=text, completed=done, total=total)
