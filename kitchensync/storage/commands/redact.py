"""`kitchensync redact`: destroy what was recorded in privacy pauses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.options.given_path import GivenRecording


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
) -> Answer:
    """Destroy the pictures and sound of a recording's privacy pauses, here and in every copy that can be reached.

    Whole chunks go, and films from key picture to key picture; all else stays to the bit. What was destroyed
    remains by size and hash in recording.json. Files that changed are removed from cloud stores: `upload` sends them
    again. What commands wrote of the recording before is named. Interrupted, the same command goes on. It cannot be
    undone. The exit code is 1 while something is left elsewhere.

    \b
    Example:
      kitchensync redact data/take-1 --reason "a visitor came in" --by researcher-3
    """
    from kitchensync.storage.redact.redaction import redact as destroy

    if (from_s is None) != (to_s is None) or (from_s is not None and to_s is not None and from_s >= to_s):
        raise click.UsageError("give both --from and --to, the first the smaller one")
    span_s = (from_s, to_s) if from_s is not None and to_s is not None else None
    said = destroy(path, reason=reason, by=by, span_s=span_s, whole_films=whole_films)
    trouble = [f"not reached yet: {why}; run it again then" for why in said["open"]]
    return Answer(said, _show, trouble, failed=bool(trouble))


def _show(said: dict[str, Any]) -> None:
    if said["status"] == "nothing":
        click.echo(f"{said['recording']}: nothing is left to be destroyed")
        return
    films = f" and parts of {', '.join(said['films'])}" if said["films"] else ""
    click.echo(f"{said['recording']}: destroyed {said['chunks']} chunks ({said['packets']:,} packets){films}")
    for place in said["places"]:
        click.echo(f"  in {place}")
    click.echo(f"now run `kitchensync sync {said['recording']}` again")
