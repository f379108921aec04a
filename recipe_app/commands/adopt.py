"""`kitchensync adopt`: a recording of videos that were filmed elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import click

from recipe_app.commands.options import show
from recipe_app.errors import RecipeError
from storage.errors import StorageError
from storage.shell.given_path import given_path
from storage.shell.output_options import OutputFolder
from storage.shell.progress import byte_bar
from storage.shell.refusal import Answered

SCHEMA = "adopt/1"


@click.command()
@click.argument("recording", metavar="ID")
@click.argument("files", nargs=-1, required=True, type=given_path(exists=True, dir_okay=False))
@click.option(
    "--data",
    type=OutputFolder(),
    default=Path("recordings"),
    show_default=True,
    help="Data folder.",
)
@click.option("--consent", default="none", show_default=True, help="Reference of the participant's consent.")
@click.option("--participant", default="", help="Pseudonym of whoever is seen.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def adopt(
    recording: str,
    files: tuple[Path, ...],
    data: Path,
    consent: str,
    participant: str,
    as_json: bool,
) -> None:
    """Make the recording ID of videos (FILES) that were filmed elsewhere.

    They are copied, read back and hashed; the originals stay as they are. The tablet then offers the recording, so
    that steps and errors can be logged and reviewed on it.

    \b
    Example: kitchensync adopt lab2-017 kitchen.mp4 --data recordings --consent form-12
    """
    from recipe_app.exchange.adopt import adopt as make

    with byte_bar() as tell:
        try:
            made = make(data, recording, files, consent=consent, participant=participant, tell=tell)
        except (RecipeError, StorageError) as error:
            _refuse(recording, error, as_json=as_json)
    answer: dict[str, Any] = {"schema": SCHEMA, "recording": recording, "status": "PASS", **made}
    answer.pop("manifest")
    if as_json:
        show(answer)
    else:
        click.echo(
            f"{made['path']}: {len(made['files'])} videos; log on it with `kitchensync app --data {data}`"
        )


def _refuse(recording: str, error: Exception, *, as_json: bool) -> NoReturn:
    if as_json:
        refused = {"status": "refused", "reason": " ".join(str(error).split()), "error": str(error)}
        show({"schema": SCHEMA, "recording": recording, **refused})
    raise Answered(str(error)) from error
