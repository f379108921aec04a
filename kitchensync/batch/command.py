"""`kitchensync batch VERB PATHS... -- OPTIONS`: one command over many recordings, on this computer or a cluster."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections import Counter
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from kitchensync.shell.answer import show_table
from kitchensync.shell.progress import Bar
from kitchensync.shell.workforce_options import JOBS, SCHEDULER
from kitchensync.storage.batch.runner import Workforce, run_all
from kitchensync.storage.errors import NotARecording, words_of
from kitchensync.storage.names import MANIFEST
from kitchensync.storage.options.given_path import given_path

Row = dict[str, Any]


class Journal:
    """The rows of one command: of its verb, its options and its paths, with this software."""

    def __init__(self, command: list[Any]) -> None:
        """Open the journal of a command; nothing is written yet."""
        about = json.dumps([version("kitchensync"), *command], sort_keys=True, default=str)
        self.path = _folder() / f"{hashlib.sha256(about.encode()).hexdigest()[:16]}.jsonl"
        self._is_kept = True

    def done(self) -> dict[Path, Row]:
        """Return the rows of recordings that an interrupted run has done, and whose manifest is as it was."""
        found: dict[Path, Row] = {}
        with contextlib.suppress(OSError):
            for line in self.path.read_bytes().splitlines():
                with contextlib.suppress(ValueError, KeyError, TypeError):  # cut off in the middle of a line
                    said = json.loads(line)
                    found[Path(said["row"]["path"])] = said
        return {path: said["row"] for path, said in found.items() if said["manifest"] == _manifest(path)}

    def add(self, row: Row) -> None:
        """Note a recording that is done; where no note can be written, say once that the run cannot be continued."""
        if not self._is_kept or row["exit"] != 0:
            return
        line = json.dumps({"manifest": _manifest(Path(row["path"])), "row": row})
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            self._is_kept = False
            print(f"kitchensync: after Ctrl-C this run begins anew: {words_of(error)}", file=sys.stderr)

    def close(self) -> None:
        """Forget it all: the run came to its end, and the next one does everything anew."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def _folder() -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "kitchensync" / "batch"


def _manifest(recording: Path) -> str:
    try:
        return hashlib.sha256((recording / MANIFEST).read_bytes()).hexdigest()
    except OSError:
        return ""


OPTIONS = "kitchensync.batch.options"
VERBS = ("verify", "sync", "archive", "report", "export", "upload")


class _WithOptions(click.Command):
    """A command whose words after `--` are for somebody else."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set them aside."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[OPTIONS] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Name them in the usage."""
        return [*super().collect_usage_pieces(ctx), "[-- OPTIONS OF VERB]"]


@click.command(cls=_WithOptions)
@click.argument("verb", type=click.Choice(VERBS))
@click.argument("paths", nargs=-1, required=True, type=given_path())
@JOBS
@SCHEDULER
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (batch/1).")
@click.pass_context
def batch(
    context: click.Context,
    verb: str,
    paths: tuple[Path, ...],
    jobs: int | None,
    scheduler: str | None,
    as_json: bool,
) -> None:
    """Run VERB on many recordings, several at a time.

    PATHS are recordings, or folders of them at any depth. Words after -- are options of VERB itself (for upload
    the URL, for export the form and --out). One that fails is named and does not stop the others; the exit code is 1
    if any did. After Ctrl-C or a power cut the same command goes on with what is left.

    \b
    Example:
      kitchensync batch verify data --jobs 4 -- --deep
      kitchensync batch export data -- tables --out tables
      kitchensync batch upload data -- s3://lab-recordings/kitchen
    """
    from kitchensync.batch.jobs import job_of, options_of

    options = options_of(verb, context.meta[OPTIONS], context)
    found = _found(paths)
    journal = Journal([verb, options, sorted(map(str, paths))])
    rows = {path: row for path, row in journal.done().items() if path in found}
    if rows:
        told = f"kitchensync: {len(rows)} of {len(found)} were done by the run that was interrupted"
        click.echo(told, err=True)
    todo = [path for path in found if path not in rows]
    force = Workforce(scheduler, jobs, apart=True)
    results = closing(run_all(job_of(verb, options), todo, force))
    with Bar(f"batch {verb}", unit="recordings", lines=True) as bar, results as done:
        for path, row in done:
            rows[path] = row | {"path": str(path)}  # a worker elsewhere says it in another way
            journal.add(rows[path])
            bar.show(len(rows), len(found), f"{row['status']}  {row['recording']}")
    journal.close()
    _refresh_pages(verb, paths)
    _say([rows[path] for path in found], verb, as_json=as_json)


def _found(paths: tuple[Path, ...]) -> list[Path]:
    """Return every recording once. Raises NotARecording for a path that holds none."""
    from kitchensync.storage.catalogue.listing import recordings_below

    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            raise NotARecording(path, "there is no such folder")
        here = list(recordings_below(path))
        if not here:
            raise NotARecording(path, "there is no recording in it")
        found += here
    return list(dict.fromkeys(found))


def _refresh_pages(verb: str, paths: tuple[Path, ...]) -> None:
    """Write the summary pages of folders anew that are there and show what was just made."""
    if verb in ("sync", "report"):
        from kitchensync.sync.report.overview import refresh_summary

        for path in paths:
            refresh_summary(path)


def _say(rows: list[dict[str, Any]], verb: str, *, as_json: bool) -> None:
    failed = [row for row in rows if row["exit"] != 0]
    counts = dict(Counter(row["status"] for row in rows).most_common())
    if as_json:
        answer = {"schema": "batch/1", "verb": verb, "counts": counts, "failed": len(failed)}
        click.echo(json.dumps(answer | {"recordings": rows}))
    else:
        show_table(("recording", "status"), ((row["recording"], row["status"]) for row in rows), left=2)
        said = ", ".join(f"{count} {status}" for status, count in counts.items())
        click.echo(f"{len(rows)} recordings: {said}")
    for row in failed:
        where = "" if row["recording"] in row["reason"] else f"{row['recording']}: "
        click.echo(f"kitchensync: {where}{row['reason']}", err=True)
    if failed:
        sys.exit(1)
