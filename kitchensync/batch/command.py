"""`kitchensync batch VERB PATHS... -- OPTIONS`: one command over many recordings, on this computer or a cluster."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections import Counter
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypedDict

import click

from kitchensync.batch.jobs import job_of, options_of
from kitchensync.shell.answer import Answer, answers, say, show_table
from kitchensync.shell.progress import Bar
from kitchensync.shell.workforce_options import JOBS, SCHEDULER
from kitchensync.storage.batch.runner import Workforce, run_all
from kitchensync.storage.batch.workers import JobResult
from kitchensync.storage.catalogue.listing import recordings_below
from kitchensync.storage.errors import NotARecording, words_of
from kitchensync.storage.names import MANIFEST
from kitchensync.storage.options.given_path import given_path
from kitchensync.sync.report.overview import refresh_summary


class BatchAnswer(TypedDict):
    """The object `batch/1`."""

    verb: str
    counts: dict[str, int]
    "Status -> number of recordings."
    failed: int
    recordings: list[JobResult]


class Journal:
    """The finished rows of a command with the same options, paths and version, to resume it after an interruption."""

    def __init__(self, command: list[object]) -> None:
        """Choose the file of the journal; nothing is written yet."""
        about = json.dumps([version("kitchensync"), *command], sort_keys=True, default=str)
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        name = f"{hashlib.sha256(about.encode()).hexdigest()[:16]}.jsonl"
        self.path = state / "kitchensync" / "batch" / name
        self._is_kept = True

    def done(self) -> dict[Path, JobResult]:
        """Return the rows of an interrupted run whose recordings still have the same manifest."""
        newest: dict[Path, dict[str, Any]] = {}
        with contextlib.suppress(OSError):
            for line in self.path.read_bytes().splitlines():
                with contextlib.suppress(ValueError, KeyError, TypeError):  # the last line may be cut off
                    entry = json.loads(line)
                    newest[Path(entry["row"]["path"])] = entry
        return {path: entry["row"] for path, entry in newest.items() if entry["manifest"] == _manifest(path)}

    def add(self, row: JobResult) -> None:
        """Append a finished row; if that fails, print once that the run cannot be resumed."""
        if not self._is_kept or row["exit"] != 0:
            return
        line = json.dumps({"manifest": _manifest(Path(row["path"])), "row": row})
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            self._is_kept = False
            say(f"this run cannot be resumed after Ctrl-C: {words_of(error)}")

    def close(self) -> None:
        """Remove the journal of a completed run: the next run starts from the beginning."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def _manifest(recording: Path) -> str:
    try:
        return hashlib.sha256((recording / MANIFEST).read_bytes()).hexdigest()
    except OSError:
        return ""


OPTIONS = "kitchensync.batch.options"
VERBS = ("verify", "sync", "archive", "report", "export", "upload")


class _WithOptions(click.Command):
    """A command that passes the words after `--` on to another command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remove these words and keep them in the context."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[OPTIONS] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Add them to the usage line."""
        return [*super().collect_usage_pieces(ctx), "[-- OPTIONS OF VERB]"]


@click.command(cls=_WithOptions)
@click.argument("verb", type=click.Choice(VERBS))
@click.argument("paths", nargs=-1, required=True, type=given_path())
@JOBS
@SCHEDULER
@answers("batch/1")
@click.pass_context
def batch(
    context: click.Context,
    verb: str,
    paths: tuple[Path, ...],
    jobs: int | None,
    scheduler: str | None,
) -> Answer[BatchAnswer]:
    """Run VERB on many recordings, several at a time.

    PATHS are recordings, or folders of them at any depth. Words after -- are options of VERB itself (for upload
    the URL, for export the form and --out). A failed recording is reported and does not stop the others; the exit
    code is then 1. After Ctrl-C or a power cut the same command resumes with the remaining recordings.

    \b
    Example:
      kitchensync batch verify data --jobs 4 -- --deep
      kitchensync batch export data -- tables --out tables
      kitchensync batch upload data -- s3://lab-recordings/kitchen
    """
    options = options_of(verb, context.meta[OPTIONS], context)
    recordings = _recordings_in(paths)
    journal = Journal([verb, options, sorted(map(str, paths))])
    rows = {path: row for path, row in journal.done().items() if path in recordings}
    if rows:
        say(f"resuming: {len(rows)} of {len(recordings)} were finished by the interrupted run")
    todo = [path for path in recordings if path not in rows]
    force = Workforce(scheduler, jobs, apart=True)
    results = closing(run_all(job_of(verb, options), todo, force))
    with Bar(f"batch {verb}", unit="recordings", lines=True) as bar, results as done:
        for path, row in done:
            rows[path] = row | {"path": str(path)}  # a worker elsewhere may use another path
            journal.add(rows[path])
            bar.show(len(rows), len(recordings), f"{row['status']}  {row['recording']}")
    journal.close()
    if verb in ("sync", "report"):
        for path in paths:
            refresh_summary(path)
    return _answer_of([rows[path] for path in recordings], verb)


def _recordings_in(paths: tuple[Path, ...]) -> list[Path]:
    """Return every recording once. Raises NotARecording for a path without any."""
    recordings: list[Path] = []
    for path in paths:
        if not path.is_dir():
            raise NotARecording(path, "there is no such folder")
        here = list(recordings_below(path))
        if not here:
            raise NotARecording(path, "there is no recording in it")
        recordings += here
    return list(dict.fromkeys(recordings))


def _answer_of(rows: list[JobResult], verb: str) -> Answer[BatchAnswer]:
    failed = [row for row in rows if row["exit"] != 0]
    counts = dict(Counter(row["status"] for row in rows).most_common())
    content: BatchAnswer = {"verb": verb, "counts": counts, "failed": len(failed), "recordings": rows}
    reasons = [
        row["reason"] if row["recording"] in row["reason"] else f"{row['recording']}: {row['reason']}"
        for row in failed
    ]
    return Answer(content, _show, reasons, bool(failed))


def _show(answer: BatchAnswer) -> None:
    rows = answer["recordings"]
    show_table(("recording", "status"), ((row["recording"], row["status"]) for row in rows), left=2)
    counts = ", ".join(f"{count} {status}" for status, count in answer["counts"].items())
    click.echo(f"{len(rows)} recordings: {counts}")
