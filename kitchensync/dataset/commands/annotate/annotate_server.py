"""`kitchensync annotate push|pull`: send tasks to a Label Studio server, and download annotations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import click

from kitchensync.dataset.annotation.hand_out import ExportOptions, ServerTask, server_task
from kitchensync.dataset.commands.annotate.annotate_export import ERRORS, FORM, recordings_with_consent
from kitchensync.dataset.commands.export_source import Assessed, answer, status_of
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.consent import Purpose
from kitchensync.storage.copies.derived import sent
from kitchensync.storage.options.given_path import WITHOUT_CONSENT, GivenRecording, given_path


class TasksOnServer(Assessed):
    """The object `annotate-push/1`."""

    projects: list[str]
    "Names of new projects."
    added: list[str]
    "Recordings with a new task."
    there: list[str]
    "Recordings that had a task."


class PulledVersions(TypedDict):
    """The annotations of a recording."""

    recording: str
    task: int
    new: list[int]
    "Ids of annotations that are new or changed."
    same: list[int]


class PulledAnnotations(Assessed):
    """The object `annotate-pull/1`."""

    recordings: list[PulledVersions]
    refused: list[str]


def _of_server(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add PATHS, the server and its token, and the options that select a project."""
    token = click.option(
        "--token-file",
        type=given_path(exists=True, dir_okay=False),
        required=True,
        help="File with only your token of the server (Account & Settings, Personal Access Token).",
    )
    url = click.option(
        "--url", required=True, metavar="URL", help="Address of the server: https, or this computer."
    )
    paths = click.argument("paths", nargs=-1, required=True, type=GivenRecording())
    return paths(url(token(ERRORS(FORM(command)))))


@click.command()
@_of_server
@WITHOUT_CONSENT
@answers("annotate-push/1")
def push(
    paths: tuple[Path, ...], url: str, token_file: Path, errors: str, form: str, without_consent: str
) -> Answer[TasksOnServer]:
    """Add a task for each recording to a Label Studio server, one project for each recipe version.

    The videos must have been written with `annotate export`, and the server must serve them. A recording that
    already has a task is skipped: after a network failure, the same command continues.

    \b
    Example:
      kitchensync annotate push data --url http://127.0.0.1:8080 --token-file token
    """
    from kitchensync.dataset.annotation import exchange
    from kitchensync.dataset.annotation.label_server import Server

    tasks = _tasks(paths, errors, form, Purpose.ANNOTATE, without_consent)
    sent(url)
    with Server(url, token_file) as server:
        pushed = exchange.push(server, tasks)
    report: TasksOnServer = {
        "status": "PASS",
        "projects": pushed.projects,
        "added": pushed.added,
        "there": pushed.there,
        "warnings": [],
    }
    summary = f"{len(pushed.added)} tasks added, {len(pushed.there)} were there"
    return answer(report, summary, strict=False)


@click.command()
@_of_server
@answers("annotate-pull/1")
def pull(
    paths: tuple[Path, ...], url: str, token_file: Path, errors: str, form: str
) -> Answer[PulledAnnotations]:
    """Download annotations from a Label Studio server, unchanged, into `annotations/` of each recording.

    This accepts nothing: see `annotate accept`. A second pull changes nothing. Invalid regions give warnings; a
    deleted task or a renamed label is reported too, and the exit code is 1.

    \b
    Example:
      kitchensync annotate pull data --url http://127.0.0.1:8080 --token-file token
    """
    from kitchensync.dataset.annotation import exchange
    from kitchensync.dataset.annotation.label_server import Server

    tasks = _tasks(paths, errors, form, Purpose.LOOK)
    with Server(url, token_file) as server:
        pulled, refused = exchange.pull(server, tasks)
    warnings = [f"{result.recording}: {finding}" for result in pulled for finding in result.findings]
    report: PulledAnnotations = {
        "status": "FAIL" if refused else status_of(warnings),
        "recordings": [
            {"recording": r.recording, "task": r.task, "new": r.new, "same": r.same} for r in pulled
        ],
        "refused": refused,
        "warnings": warnings,
    }
    lines = [f"WARN: {line}" for line in warnings] + [f"FAIL: {line}" for line in refused]
    return Answer(report, _show_pulled, lines, failed=bool(refused))


def _show_pulled(report: PulledAnnotations) -> None:
    for row in report["recordings"]:
        numbers = ", ".join(map(str, row["new"])) or "none"
        click.echo(f"{row['recording']}: new annotations: {numbers}; {len(row['same'])} were kept before")
    click.echo(report["status"])


def _tasks(
    paths: tuple[Path, ...], errors: str, form: str, purpose: Purpose, without_consent: str = ""
) -> list[tuple[Path, ServerTask]]:
    """Return the task of each recording. Raises NotPermitted if one lacks consent."""
    tasks = []
    for path in recordings_with_consent(paths, purpose, without_consent):
        with OwnRecording.open(path, purpose=purpose, without_consent=without_consent) as own:
            tasks.append((path, server_task(own, ExportOptions(form, errors == "shown"))))
    return tasks
