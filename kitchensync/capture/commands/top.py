"""The command `top`."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from rich.live import Live

from kitchensync.capture.commands.steer import only_in_data
from kitchensync.capture.errors import NotRunning
from kitchensync.capture.monitor.metrics import LOOPBACK, MetricsServer, metrics_text
from kitchensync.capture.monitor.screen import screen
from kitchensync.shell.answer import Answer, answers
from kitchensync.shell.end_signals import ending_at_signals
from kitchensync.shell.terminal import console, live

if TYPE_CHECKING:
    from kitchensync.capture.monitor.monitor import RecordingView

LOOK_S = 0.5  # above REUSE_NS of the monitor, so every look gets a new view
ONCE_MS = 3000  # a recorder that is silent for longer is outdated anyway (NO_NEWS_S)


class RunningRecordings(NamedTuple):
    """The object `top/1`."""

    recordings: list[RecordingView]


@click.command()
@click.argument("recording", metavar="[ID]", required=False)
@only_in_data
@click.option("--once", is_flag=True, help="Print the state once and exit; so does --json.")
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Also answer http://127.0.0.1:PORT/metrics for Prometheus; 0 takes a free port.",
)
@answers("top/1")
def top(
    recording: str | None, data: Path | None, once: bool, metrics_port: int | None
) -> Answer[RunningRecordings]:
    """Show the state of running recordings: all of this user's, those of a data folder, or the recording ID.

    Problems come first, with what to do. A recording whose recorder has not answered for 3 s is `unknown`.
    Ctrl-C leaves; the recordings go on.

    \b
    Example:
      kitchensync top
    """
    from kitchensync.capture.monitor.monitor import RecordingMonitor

    monitor = RecordingMonitor()
    views = monitor.views(recording, data, wait_ms=ONCE_MS)
    if recording is not None and not views:
        raise NotRunning(recording, [view["recording"] for view in monitor.views(data=data)])
    as_json = bool(click.get_current_context().params.get("as_json"))
    if once or as_json:
        return Answer(RunningRecordings(views), _show_once)
    ending, newest = threading.Event(), monitor.views(recording, data)
    display = Live(screen(newest), console=console(), auto_refresh=False)
    with (
        ending_at_signals(ending.set),
        _metrics(metrics_port, lambda: newest),
        live(display),
    ):
        while not ending.wait(LOOK_S):
            newest = monitor.views(recording, data)
            display.update(screen(newest), refresh=True)
    return Answer(RunningRecordings([]), lambda _: None)


def _show_once(running: RunningRecordings) -> None:
    console(width=None if sys.stdout.isatty() else 160, highlight=False).print(screen(running.recordings))


@contextlib.contextmanager
def _metrics(port: int | None, newest: Callable[[], list[RecordingView]]) -> Iterator[None]:
    """Serve /metrics while the block runs, if a port was given."""
    if port is None:
        yield
        return
    try:
        server = MetricsServer(port, lambda: metrics_text(newest()))
    except OSError as error:
        raise click.UsageError(f"port {port} cannot be used ({error.strerror}); choose another") from error
    click.echo(f"ready metrics=http://{LOOPBACK}:{server.port}/metrics")
    with contextlib.closing(server):
        yield
