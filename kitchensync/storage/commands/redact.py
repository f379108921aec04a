"""`kitchensync redact`: destroy what was recorded in privacy pauses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.given_path import GivenRecording

if TYPE_CHECKING:
    from kitchensync.storage.redact.redaction import RedactionReport


@click.command()
@click.argument("path", type=GivenRecording(usable=True))
@click.option("--reason", required=True, help="Why; it stays in the recording.")
@click.option("--by", default="", help="Who does it.")
@click.option(
    "--from", "from_s", type=click.FloatRange(0), help="Begin here instead, session seconds; with --to."
)
@click.option("--to", "to_s", type=click.FloatRange(0), help="End here, session seconds.")
@click.option(
    "--whole-films",
    is_flag=True,
    help="Destroy whole films whose pictures have no known capture time.",
)
@answers("redact/1")
def redact(
    path: Path, reason: str, by: str, from_s: float | None, to_s: float | None, whole_films: bool
) -> Answer[RedactionReport]:
    """Destroy the frames and sound of a recording's privacy pauses, here and in every reachable copy.

    Whole chunks are destroyed, and videos from key frame to key frame; all other bytes stay. recording.json keeps
    the size and hash of what was destroyed. Changed files are removed from cloud stores: `upload` sends them again.
    Earlier outputs of commands are listed. After an interruption, the same command continues. This cannot be undone.
    The exit code is 1 while something is left in other places.

    \b
    Example:
      kitchensync redact data/take-1 --reason "a visitor came in" --by researcher-3
    """
    from kitchensync.storage.redact.redaction import redact as destroy

    if (from_s is None) != (to_s is None) or (from_s is not None and to_s is not None and from_s >= to_s):
        raise click.UsageError("give both --from and --to, the first the smaller one")
    span_s = (from_s, to_s) if from_s is not None and to_s is not None else None
    report = destroy(path, reason=reason, by=by, span_s=span_s, whole_films=whole_films)
    problems = [f"not reached yet: {why}; run it again then" for why in report["open"]]
    return Answer(report, _show, problems, failed=bool(problems))


def _show(report: RedactionReport) -> None:
    if report["status"] == "nothing":
        click.echo(f"{report['recording']}: nothing is left to be destroyed")
        return
    films = f" and parts of {', '.join(report['films'])}" if report["films"] else ""
    click.echo(
        f"{report['recording']}: destroyed {report['chunks']} chunks ({report['packets']:,} packets){films}"
    )
    for place in report["places"]:
        click.echo(f"  in {place}")
    click.echo(f"now run `kitchensync sync {report['recording']}` again")
