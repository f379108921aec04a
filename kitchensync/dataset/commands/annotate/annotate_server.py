"""`kitchensync annotate push|pull`: tasks to a Label Studio server, and what people marked back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kitchensync.dataset.commands.annotate.annotate_export import ERRORS, FORM
from kitchensync.dataset.commands.export_source import answer
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.copies.derived import sent
from kitchensync.storage.names import recordings_in
from kitchensync.storage.options.given_path import WITHOUT_CONSENT, GivenRecording, given_path

if TYPE_CHECKING:
    from kitchensync.dataset.annotation.hand_out import ServerTask
    from kitchensync.storage.consent import Purpose


def _of_server(command: Callable[..., Any]) -> Callable[..., Any]:
    """Declare recordings, the server and its token, and which of its projects is meant."""
    token = click.option(
        "--token-file",
        type=given_path(exists=True, dir_okay=False),
        required=True,
        help="File that holds your token of the server alone (Account & Settings, Personal Access Token).",
    )
    url = click.option(
        "--url", required=True, metavar="URL", help="Address of the server: https, or this computer."
    )
    paths = click.argument("paths", nargs=-1, required=True, type=GivenRecording())
    return functools.reduce(lambda made, option: option(made), (FORM, ERRORS, token, url, paths), command)


@click.command()
@_of_server
@WITHOUT_CONSENT
@answers("annotate-push/1")
def push(
    paths: tuple[Path, ...], url: str, token_file: Path, errors: str, form: str, without_consent: str
) -> Answer:
    """Add a task for each recording to a Label Studio server, one project for each recipe version.

    The films must have been written with `annotate export`, and the server must serve them. A recording that has its
    task already is left alone: after a network that was lost, the same command goes on.

    \b
    Example:
      kitchensync annotate push data --url http://127.0.0.1:8080 --token-file token
    """
    from kitchensync.dataset.annotation import exchange
    from kitchensync.dataset.annotation.label_server import Server
    from kitchensync.storage.consent import Purpose

    wanted = _handed_out(paths, errors, form, Purpose.ANNOTATE, without_consent)
    sent(url)
    with Server(url, token_file) as server:
        made = exchange.push(server, wanted)
    said = {"projects": made.projects, "added": made.added, "there": made.there}
    words = f"{len(made.added)} tasks added, {len(made.there)} were there"
    return answer(said, [], words, strict=False)


@click.command()
@_of_server
@answers("annotate-pull/1")
def pull(paths: tuple[Path, ...], url: str, token_file: Path, errors: str, form: str) -> Answer:
    """Download what people marked on a Label Studio server, unchanged, into `annotations/` of each recording.

    Nothing is accepted by that: see `annotate accept`. The same again changes nothing. What cannot count is named; a
    recording whose task was deleted or whose labels were renamed is named too, and the exit code is 1.

    \b
    Example:
      kitchensync annotate pull data --url http://127.0.0.1:8080 --token-file token
    """
    from kitchensync.dataset.annotation import exchange
    from kitchensync.dataset.annotation.label_server import Server
    from kitchensync.storage.consent import Purpose

    wanted = _handed_out(paths, errors, form, Purpose.LOOK)
    with Server(url, token_file) as server:
        pulled, refused = exchange.pull(server, wanted)
    warnings = [f"{one.recording}: {finding}" for one in pulled for finding in one.findings]
    said = {
        "status": "FAIL" if refused else "WARN" if warnings else "PASS",
        "recordings": [
            {"recording": one.recording, "task": one.task, "new": one.new, "same": one.same} for one in pulled
        ],
        "refused": refused,
        "warnings": warnings,
    }
    lines = [f"WARN: {line}" for line in warnings] + [f"FAIL: {line}" for line in refused]
    return Answer(said, _show_pulled, lines, failed=bool(refused))


def _show_pulled(said: Any) -> None:
    for one in said["recordings"]:
        numbers = ", ".join(map(str, one["new"])) or "none"
        click.echo(f"{one['recording']}: new annotations: {numbers}; {len(one['same'])} were kept before")
    click.echo(said["status"])


def _handed_out(
    paths: tuple[Path, ...], errors: str, form: str, purpose: Purpose, without_consent: str = ""
) -> list[tuple[Path, ServerTask]]:
    """Return what annotators get of each recording; consent to all is asked first."""
    from kitchensync.dataset.annotation.hand_out import Choice, handed_out
    from kitchensync.dataset.source.own_recording import OwnRecording
    from kitchensync.storage.consent import note_override, require_consent

    recordings = list(dict.fromkeys(one for path in paths for one in recordings_in(path)))
    for path in recordings:
        require_consent(path, purpose, without_consent=without_consent)
    for path in recordings:
        note_override(path, purpose, without_consent)
    made = []
    for path in recordings:
        with OwnRecording.open(path, purpose=purpose, without_consent=without_consent) as own:
            made.append((path, handed_out(own, Choice(form, errors == "shown"))))
    return made
