"""`kitchensync adopt`: a recording of videos that were filmed elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kitchensync.storage.shell.answer import Answer, answers
from kitchensync.storage.shell.given_path import given_path
from kitchensync.storage.shell.output_options import OutputFolder
from kitchensync.storage.shell.progress import byte_bar


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
@answers("adopt/1")
def adopt(
    recording: str,
    files: tuple[Path, ...],
    data: Path,
    consent: str,
    participant: str,
) -> Answer:
    """Make the recording ID from videos (FILES) that were filmed elsewhere.

    They are copied, read back and hashed; the originals stay as they are. The tablet then offers the recording, so
    that steps and errors can be logged and reviewed on it.

    \b
    Example: kitchensync adopt lab2-017 kitchen.mp4 --data recordings --consent form-12
    """
    from kitchensync.recipe_app.exchange.adopt import adopt as make
    from kitchensync.storage.redact.to_destroy import check_no_pauses_in

    for file in files:
        check_no_pauses_in(file)
    with byte_bar() as tell:
        made = make(data, recording, files, consent=consent, participant=participant, tell=tell)
    said: dict[str, Any] = {"recording": recording, "status": "PASS", **made}
    del said["manifest"]
    videos = f"{made['path']}: {len(made['files'])} videos"
    return Answer(said, lambda _: click.echo(f"{videos}; log on it with `kitchensync app --data {data}`"))
