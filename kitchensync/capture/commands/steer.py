"""Commands that an operator sends to a running recording: stop, mark, pause, resume."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import click

from kitchensync.capture.errors import NotRunning
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.given_path import given_path

MESSAGES = {
    "mark": "the mark is stored",
    "pause": "its privacy pause began: nothing of it is shown until `kitchensync resume`",
    "resume": "its privacy pause ended",
    "swap": "a battery or card is being changed: gaps from now on get the cause `device_swap`",
    "swapped": "the change is done",
}


class StoppedRecording(NamedTuple):
    """The object `stop/1`."""

    recording: str
    path: Path
    films_awaited: list[str]
    "Cameras whose videos are still downloading."


class SentEvent(NamedTuple):
    """The object `mark/1`."""

    recording: str
    kind: str
    "mark, pause, resume, swap or swapped."
    host_ns: int
    "Time of the event, CLOCK_MONOTONIC of the capture computer."


only_in_data = click.option(
    "--data", type=given_path(), help="Only recordings that are made in this folder  [default: any]"
)


@click.command()
@click.argument("recording", metavar="[ID]", required=False)
@only_in_data
@click.option("--abort", metavar="REASON", help="Abandon the recording: it is kept, with this reason.")
@click.option(
    "--leave-films",
    is_flag=True,
    help="Do not wait for videos: they stay on the cards for `kitchensync gopro fetch`.",
)
@answers("stop/1")
def stop(
    recording: str | None, data: Path | None, abort: str | None, leave_films: bool
) -> Answer[StoppedRecording]:
    """Stop the recording ID; return when every packet is accounted for.

    Without ID it asks for one on a terminal; without a terminal it lists the running recordings and stops none.
    Videos may still be downloading when it returns; a second `stop --leave-films` leaves them on the cards.

    \b
    Example:
      kitchensync stop take-1
      kitchensync stop take-1 --abort "the smoke alarm went off"
    """
    from kitchensync.capture.session.control import ask, find, wait_for_ledger
    from kitchensync.capture.station import keep_reason

    name, endpoint = find(recording or _ask_which(data), data)
    state = ask(endpoint, "abort" if abort is not None else "stop")
    if state is None:
        raise NotRunning(name, [])
    path = Path(state["path"])
    state = wait_for_ledger(endpoint) or state
    if abort is not None:
        keep_reason(path, abort)
    if leave_films:
        ask(endpoint, "leave_films")
    cameras = state["cameras"].items()
    awaited = [camera for camera, facts in cameras if facts["state"] not in ("done", "pending")]
    return Answer(StoppedRecording(name, path, [] if leave_films else awaited), _show_stopped)


def _ask_which(data: Path | None) -> str | None:
    """Ask which running recording to stop; None if none runs. Raises click.UsageError without a terminal."""
    from kitchensync.capture.session.control import ask, running
    from kitchensync.shell.host_clock import utc_anchor

    recordings: dict[str, str] = {}
    for name, endpoint in running(data):
        minutes = (utc_anchor().utc_ns - endpoint.stat().st_mtime_ns) / 60e9
        path = (ask(endpoint, "state") or {}).get("path", "it does not answer")
        recordings[name] = f"{path}, for {minutes:.0f} min"
    if not recordings:
        return None
    if not sys.stdin.isatty():
        names = "; ".join(f"{name} ({place})" for name, place in recordings.items())
        raise click.UsageError(f"which recording? Give its ID. Running: {names}")
    if len(recordings) == 1:
        ((name, place),) = recordings.items()
        click.confirm(f"Stop {name} ({place})?", abort=True, err=True)
        return name
    for name, place in recordings.items():
        click.echo(f"{name}  {place}", err=True)
    return str(click.prompt("Which one", type=click.Choice(list(recordings)), err=True))


def _show_stopped(stopped: StoppedRecording) -> None:
    cameras = ", ".join(stopped.films_awaited)
    videos = f"; the videos of {cameras} are downloading" if cameras else ""
    click.echo(f"{stopped.recording} is stopped and its ledger closed{videos}")


@click.command()
@click.argument("recording", metavar="ID")
@click.argument("text", default="")
@click.option("--swap", "kind", flag_value="swap", help="A battery or card is being changed from now on.")
@click.option("--swapped", "kind", flag_value="swapped", help="The change is done.")
@answers("mark/1")
def mark(recording: str, text: str, kind: str | None) -> Answer[SentEvent]:
    """Mark this moment of the running recording ID, with an optional TEXT; it is kept in its events.

    \b
    Example:
      kitchensync mark take-1 "the pan burns"
    """
    return _send(recording, kind or "mark", text)


@click.command()
@click.argument("recording", metavar="[ID]", required=False)
@answers("mark/1")
def pause(recording: str | None) -> Answer[SentEvent]:
    """Begin a privacy pause of the recording ID, or of the only one that runs: nothing of it is shown.

    \b
    Example:
      kitchensync pause take-1
    """
    return _send(recording, "pause")


@click.command()
@click.argument("recording", metavar="[ID]", required=False)
@answers("mark/1")
def resume(recording: str | None) -> Answer[SentEvent]:
    """End the privacy pause of the recording ID, or of the only one that runs.

    \b
    Example:
      kitchensync resume take-1
    """
    return _send(recording, "resume")


def _send(recording: str | None, kind: str, text: str = "") -> Answer[SentEvent]:
    """Send an event to a running recording. Raises NotRunning, click.UsageError."""
    from kitchensync.capture.session.control import MAX_TEXT_LENGTH, ask, find

    if len(text) > MAX_TEXT_LENGTH:
        raise click.UsageError(f"the remark has {len(text)} characters, at most {MAX_TEXT_LENGTH} are kept")
    name, endpoint = find(recording)
    state = ask(endpoint, kind, text)
    if state is None or state["stop_asked"]:
        raise NotRunning(name, [])
    sent = SentEvent(name, kind, state["host_ns"])
    return Answer(sent, lambda _: click.echo(f"{name}: {MESSAGES[kind]}"))
