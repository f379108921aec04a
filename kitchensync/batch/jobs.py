"""The commands that `kitchensync batch` runs on each recording; each returns one row."""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from kitchensync.cli import main
from kitchensync.command_shell import foreseen
from kitchensync.shell.answer import say
from kitchensync.storage.batch.runner import Job
from kitchensync.storage.batch.workers import JobResult
from kitchensync.storage.copies.derived import may_write, noting
from kitchensync.storage.move.upload import upload
from kitchensync.sync.batch.batch import NOT_DONE, synchronize_one

FORMS = ("mcap", "tables")
"""Exports that write files for each recording by itself."""


# Each function below imports what its command alone needs, since every worker process imports this module.


@dataclass(frozen=True)
class Verb:
    """A command: `do` takes the folder of a recording, and the options named in `takes`."""

    do: Callable[..., JobResult]
    takes: tuple[str, ...]
    loads: str
    "Module that worker processes load before forking."
    writes: str | None
    "Folder in the recording that it writes to; None for none."


def _verify(recording: Path, *, deep: bool, strict: bool) -> JobResult:
    from kitchensync.storage.verify import FAIL, WARN, keep_if_closed, verify

    answer = verify(recording, deep=deep)
    keep_if_closed(recording, answer)
    is_bad = answer["status"] == FAIL or (strict and answer["status"] == WARN)
    return _row(answer["status"], answer, bad=answer["reasons"] if is_bad else None)


def _sync(recording: Path, *, master: str | None, again: bool, strict: bool) -> JobResult:
    from kitchensync.sync.answers import plain
    from kitchensync.sync.result.state import finished

    answer = plain((None if again else finished(recording, master)) or synchronize_one(recording, master))
    is_bad = answer["status"] in ("not_aligned", NOT_DONE) or (strict and answer["status"] == "check")
    row = _row(answer["status"], answer, bad=answer.get("reasons", []) if is_bad else None)
    if "error" in answer:
        row |= {"exit": 1, "error": answer["error"], "reason": answer["error"]}
    return row


def _archive(recording: Path) -> JobResult:
    from kitchensync.storage.move.archive import archive

    return _row("packed", {"streams": [asdict(packed) for packed in archive(recording)]})


def _report(recording: Path) -> JobResult:
    from kitchensync.calibration.jobs.mount_check import refresh
    from kitchensync.sync.report.page import write_report

    refresh(recording)
    return _row("written", {"page": str(write_report(recording))})


def _upload(recording: Path, *, url: str, without_consent: str) -> JobResult:
    return _row("sent", asdict(upload(recording, url, without_consent=without_consent)))


def _export(recording: Path, *, form: str, given: dict[str, Any]) -> JobResult:
    with noting(f"batch export {form}", say), contextlib.redirect_stderr(io.StringIO()):
        may_write(given["out"])
        answer = _form(form).callback.__wrapped__(paths=(recording,), **given)  # type: ignore[union-attr]
    return _row("exported", answer.content)


def _form(name: str) -> click.Command:
    command = getattr(importlib.import_module(f"kitchensync.exports.export_{name}"), name)
    assert isinstance(command, click.Command)
    return command


VERBS = {
    "verify": Verb(_verify, ("deep", "strict"), "kitchensync.storage.verify", None),
    "sync": Verb(_sync, ("master", "again", "strict"), "kitchensync.sync.batch.loaded", "sync"),
    "archive": Verb(_archive, (), "kitchensync.storage.move.archive", ""),
    "report": Verb(_report, (), "kitchensync.sync.report.page", "sync"),
    "upload": Verb(_upload, ("url", "without_consent"), "kitchensync.storage.move.upload", ""),
    "export": Verb(_export, ("form", "given"), "kitchensync.reader.opened_recording", ""),
}


def _row(status: str, answer: Mapping[str, object], *, bad: Sequence[str] | None = None) -> JobResult:
    """Make a row; `bad` are the reasons why it counts as failed."""
    row: JobResult = {"status": status, "exit": 0, "answer": answer}
    return row if bad is None else row | {"exit": 1, "reason": "; ".join(bad) or status}


def job_of(name: str, options: Mapping[str, object]) -> Job:
    """Return the job of a command with these options."""
    verb = VERBS[name]
    return Job(partial(work, name, options), not_done, loads=verb.loads, writes=verb.writes)


def work(name: str, options: Mapping[str, object], recording: Path) -> JobResult:
    """Run a command on one recording without raising; return its row."""
    try:
        return _name_of(recording) | VERBS[name].do(recording, **options)
    except Exception as error:  # noqa: BLE001  a fault in one recording must not stop four hundred
        reason = foreseen(error)
        if reason is None:
            return not_done(recording, f"{recording.name}: unforeseen {type(error).__name__}: {error}")
        if isinstance(error, OSError):
            return not_done(recording, reason)
        code = int(getattr(error, "exit_code", 1))
        return _name_of(recording) | {"status": "refused", "exit": code, "reason": " ".join(reason.split())}


def not_done(recording: Path, reason: str) -> JobResult:
    """Return the row for a problem other than of the data: another worker may succeed."""
    reason = " ".join(reason.split())
    return _name_of(recording) | {"status": NOT_DONE, "exit": 1, "reason": reason, "error": reason}


def _name_of(recording: Path) -> JobResult:
    return {"recording": recording.name, "path": str(recording)}


def options_of(name: str, words: Sequence[str], context: click.Context) -> dict[str, Any]:
    """Parse options as the command itself does. Raises click.UsageError."""
    if name == "export":
        form, *words = words or [""]
        if form not in FORMS:
            raise click.UsageError(f"say after -- what to export: {', '.join(FORMS)}, and --out DIRECTORY")
        known = [param for param in _form(form).params if param.name not in ("paths", "as_json")]
        return {"form": form, "given": _parse(form, known, words, context)}
    command = main.get_command(context, name)
    assert command is not None
    known = [param for param in command.params if param.name in VERBS[name].takes]
    return _parse(name, known, words, context)


def _parse(
    name: str, known: list[click.Parameter], words: Sequence[str], context: click.Context
) -> dict[str, Any]:
    return dict(click.Command(name, params=known).make_context(name, list(words), parent=context).params)
