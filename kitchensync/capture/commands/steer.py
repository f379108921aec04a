"""What an operator tells a running recording by command, through its own signed channel."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kitchensync.capture.errors import NotRunning
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.given_path import given_path

IN_WORDS = {
    "mark": "the mark is kept",
    "pause": "its privacy pause began: nothing of it is shown until `kitchensync resume`",
    "resume": "its privacy pause ended",
    "swap": "a battery or card is being changed: a gap from now on is named `device_swap`",
    "swapped": "the change is done",
}


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
    help="Do not wait for films: they stay on the cards for `kitchensync gopro fetch --pending`.",
)
@answers("stop/1")
def stop(recording: str | None, data: Path | None, abort: str | None, leave_films: bool) -> Answer:
    """Stop the recording ID; return when every packet is accounted for.

    Without ID it asks, on a terminal; elsewhere it says what runs and stops nothing. Films of cameras may still be
    on their way to this computer when it returns; a second `stop --leave-films` lets them stay.

    \b
    Example:
      kitchensync stop take-1
      kitchensync stop take-1 --abort "the smoke alarm went off"
    """
    from kitchensync.capture.session.control import ask, find, wait_for_ledger
    from kitchensync.capture.station import keep_reason

    name, endpoint = find(recording or _chosen(data), data)
    told = ask(endpoint, "abort" if abort is not None else "stop")
    if told is None:
        raise NotRunning(name, [])
    path = Path(told["path"])
    told = wait_for_ledger(endpoint) or told
    if abort is not None:
        keep_reason(path, abort)
    if leave_films:
        ask(endpoint, "leave_films")
    films = [camera for camera, facts in told["cameras"].items() if facts["state"] not in ("done", "pending")]
    answer = {"recording": name, "path": str(path), "films_awaited": [] if leave_films else films}
    return Answer(answer, _say_stopped)


def _chosen(data: Path | None) -> str | None:
    """Ask which running recording is meant; None where none runs. Raises click.UsageError without a terminal."""
    from kitchensync.capture.session.control import running

    found = {name: _where(endpoint) for name, endpoint in running(data)}
    if not found:
        return None
    if not sys.stdin.isatty():
        known = "; ".join(f"{name} ({where})" for name, where in found.items())
        raise click.UsageError(f"which recording? Give its ID. Running: {known}")
    if len(found) == 1:
        ((name, where),) = found.items()
        click.confirm(f"Stop {name} ({where})?", abort=True, err=True)
        return name
    for name, where in found.items():
        click.echo(f"{name}  {where}", err=True)
    return str(click.prompt("Which one", type=click.Choice(list(found)), err=True))


def _where(endpoint: Path) -> str:
    """Say in which folder a recording is made, and since when."""
    from kitchensync.capture.session.control import ask
    from kitchensync.shell.host_clock import utc_anchor

    minutes = (utc_anchor().utc_ns - endpoint.stat().st_mtime_ns) / 60e9
    return f"{(ask(endpoint, 'state') or {}).get('path', 'it does not answer')}, for {minutes:.0f} min"


def _say_stopped(said: dict[str, object]) -> None:
    films = said["films_awaited"]
    assert isinstance(films, list)
    more = f"; the films of {', '.join(films)} are on their way" if films else ""
    click.echo(f"{said['recording']} is stopped and its ledger closed{more}")


@click.command()
@click.argument("recording", metavar="ID")
@click.argument("text", default="")
@click.option("--swap", "kind", flag_value="swap", help="A battery or card is being changed from now on.")
@click.option("--swapped", "kind", flag_value="swapped", help="The change is done.")
@answers("mark/1")
def mark(recording: str, text: str, kind: str | None) -> Answer:
    """Mark this moment of the running recording ID, with a TEXT where one is given; it is kept in its events.

    \b
    Example:
      kitchensync mark take-1 "the pan burns"
    """
    return _told(recording, kind or "mark", text)


@click.command()
@click.argument("recording", metavar="[ID]", required=False)
@answers("mark/1")
def pause(recording: str | None) -> Answer:
    """Begin a privacy pause of the recording ID, or of the only one that runs: nothing of it is shown.

    \b
    Example:
      kitchensync pause take-1
    """
    return _told(recording, "pause")


@click.command()
@click.argument("recording", metavar="[ID]", required=False)
@answers("mark/1")
def resume(recording: str | None) -> Answer:
    """End the privacy pause of the recording ID, or of the only one that runs.

    \b
    Example:
      kitchensync resume take-1
    """
    return _told(recording, "resume")


def _told(recording: str | None, kind: str, text: str = "") -> Answer:
    """Tell a running recording something about this moment. Raises NotRunning, click.UsageError."""
    from kitchensync.capture.session.control import LONGEST_TEXT, ask, find

    if len(text) > LONGEST_TEXT:
        raise click.UsageError(f"the remark has {len(text)} characters, at most {LONGEST_TEXT} are kept")
    name, endpoint = find(recording)
    told = ask(endpoint, kind, text)
    if told is None or told["stop_asked"]:
        raise NotRunning(name, [])
    answer = {"recording": name, "kind": kind, "host_ns": told["host_ns"]}
    return Answer(answer, lambda said: click.echo(f"{said['recording']}: {IN_WORDS[str(said['kind'])]}"))
