"""What fetching and importing show: a bar with bytes, rate, time left; without a terminal a line at times."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn, TransferSpeedColumn

from storage.shell.progress import terminal_bar

LINE_S = 10.0


class ByteMeter:
    """One take after the other; a context manager."""

    def __init__(self, console: Console | None = None) -> None:
        """Show on stderr unless another console is given."""
        self._console = console or Console(stderr=True, soft_wrap=True)
        columns = BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
        self._bar = terminal_bar(*columns, console=self._console)
        self._name = ""
        self._task = self._bar.add_task("", visible=False)
        self._begun_s = self._told_s = time.monotonic()
        self._first_bytes = 0

    def __enter__(self) -> ByteMeter:
        """Begin to show."""
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        self._bar.stop()

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self._console.print(line, markup=False, highlight=False)

    def begin(self, name: str) -> None:
        """Start with the next take."""
        self._name, self._first_bytes = name, -1
        self._begun_s = self._told_s = time.monotonic()
        self._bar.reset(self._task, description=name, visible=False)

    def update(self, here: int, promised: int) -> None:
        """Show how far it is; what an earlier run left does not count as speed."""
        if self._first_bytes < 0:
            self._first_bytes = here
        self._bar.update(self._task, completed=here, total=promised, visible=True)
        now_s = time.monotonic()
        if self._console.is_terminal or now_s - self._told_s < LINE_S:
            return
        self._told_s = now_s
        rate = (here - self._first_bytes) / max(now_s - self._begun_s, 1e-9) / 1e6
        self.say(f"{self._name}: {here / 1e6:.0f} of {promised / 1e6:.0f} MB, {rate:.1f} MB/s")
