"""Progress of a recording for the operator: a table updated in place, or plain lines without a terminal."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kitchensync.shell.terminal import console, live
from kitchensync.storage.disk.space_guard import OK
from kitchensync.storage.ledger import BY_DEVICE

if TYPE_CHECKING:
    from kitchensync.capture.session.supervisor import Supervisor

SHOW_S = 0.5
LINE_S = 10.0  # without a terminal every line stays in a log
STYLES = {
    "streaming": "green",
    BY_DEVICE: "cyan",
    "stopped": "cyan",
    "recording": "green",
    "done": "cyan",
}


class RecordingProgress:
    """Shows the state of a recording on stderr."""

    def __init__(self, recording: str, seconds: float | None, *, enabled: bool) -> None:
        """Store the settings; `enabled` False prints plain lines for scripts."""
        self._recording = recording
        self._seconds = seconds
        self._start_s = time.monotonic()
        self._shown_s = 0.0
        self._reported: set[str] = set()
        self._live: Live | None = None
        if enabled and sys.stderr.isatty():
            self._live = Live(console=console(stderr=True), auto_refresh=False, transient=True)
        self._open = ExitStack()

    def __enter__(self) -> RecordingProgress:
        """Start the live table."""
        if self._live:
            self._open.enter_context(live(self._live))
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the table."""
        self._open.close()

    def update(self, supervisor: Supervisor) -> None:
        """Show the newest state, at most twice a second; new problems are shown immediately."""
        now_s = time.monotonic()
        news = set(supervisor.problems()) - self._reported
        if not news and now_s - self._shown_s < (SHOW_S if self._live else LINE_S):
            return
        self._reported |= news
        self._shown_s = now_s
        if self._live:
            self._live.update(self._screen(supervisor, now_s - self._start_s), refresh=True)
        else:
            print(self._plain_line(supervisor, now_s - self._start_s), file=sys.stderr, flush=True)

    def _screen(self, supervisor: Supervisor, passed_s: float) -> Group:
        length = f" of {self._seconds:g} s" if self._seconds else " s, Ctrl-C ends"
        headline = Text(f"recording {self._recording}: {passed_s:.0f}{length}", style="bold")
        parts: list[Text | Table] = [headline, self._table(supervisor.streams(), supervisor)]
        if supervisor.outlook is not None:
            style = "" if supervisor.outlook.level == OK else "bold red"
            parts.append(Text(f"disk: {supervisor.outlook.text}", style=style))
        if supervisor.waiting:
            parts.append(Text(supervisor.waiting))
        return Group(*parts, *(Text(problem, style="bold red") for problem in supervisor.problems()))

    def _plain_line(self, supervisor: Supervisor, passed_s: float) -> str:
        streams = supervisor.streams()
        received = sum(int(facts.get("received", 0)) for facts in streams.values())
        missing = [name for name, facts in streams.items() if not facts.get("first_host_ns")]
        text = f"{self._recording}: {passed_s:.0f} s, {received} packets"
        if supervisor.outlook is not None and supervisor.outlook.level != OK:
            text += f", disk: {supervisor.outlook.text}"
        if missing:
            text += f", waiting for {', '.join(missing)}"
        if supervisor.waiting:
            text += f", {supervisor.waiting}"
        for camera in supervisor.cameras:
            facts = f" ({camera.state.facts})" if camera.state.facts else ""
            text += f"; {camera.device}: {camera.state.state}{facts}"
        return "; ".join([text, *supervisor.problems()])

    def _table(self, streams: dict[str, dict[str, Any]], supervisor: Supervisor) -> Table:
        table = Table("stream", "state", "packets", "MB", "packets/s", "not yet on disk", box=None)
        for name, facts in streams.items():
            state = str(facts.get("state", "starting"))
            span_s = (facts.get("last_host_ns", 0) - facts.get("first_host_ns", 0)) / 1e9
            rate = facts.get("received", 0) / span_s if span_s > 1 else 0.0
            table.add_row(
                name,
                Text(state, style=STYLES.get(state, "yellow")),
                str(facts.get("received", 0)),
                f"{facts.get('bytes', 0) / 1e6:.1f}",
                f"{rate:.1f}",
                str(facts.get("held", 0)),
            )
        for camera in supervisor.cameras:
            status = camera.state
            fetched = f"{status.fetched_bytes / 1e6:.1f}" if status.fetched_bytes else ""
            style = "bold red" if status.problem else STYLES.get(status.state, "yellow")
            table.add_row(camera.device, Text(status.state, style=style), "", fetched, "", "")
            if status.facts:
                table.add_row("", Text(status.facts))
        return table
