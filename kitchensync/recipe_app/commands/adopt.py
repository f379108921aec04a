"""`kitchensync adopt`: make a recording from videos that were filmed elsewhere."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NotRequired

import click

from kitchensync.dataset.commands.export_source import Assessed, status_of
from kitchensync.recipe_app.exchange.adopt import AdoptedFile
from kitchensync.recipe_app.exchange.adopt import adopt as make
from kitchensync.shell.answer import Answer, answers
from kitchensync.shell.progress import byte_bar
from kitchensync.storage.options.data_folder import data_option
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.redact.to_destroy import check_no_pauses_in
from kitchensync.storage.timeline.alignment import NOT_ALIGNED
from kitchensync.sync.answers import RecordingAnswer
from kitchensync.sync.commands.sync import show_recording
from kitchensync.sync.synchronize import synchronize


class AdoptedVideos(Assessed):
    """The object `adopt/1`."""

    recording: str
    files: list[AdoptedFile]
    path: str
    sync: NotRequired[RecordingAnswer]
    "With --sync."
    report: NotRequired[str]
    "With --sync: the page."


@click.command()
@click.argument("recording", metavar="ID")
@click.argument("files", nargs=-1, required=True, type=given_path(exists=True, dir_okay=False))
@data_option("Data folder.")
@click.option("--consent", default="none", show_default=True, help="Reference of the participant's consent.")
@click.option("--participant", default="", help="Pseudonym of whoever is seen.")
@click.option("--sync", "aligns", is_flag=True, help="Align the films by their motion and write report.html.")
@answers("adopt/1")
def adopt(
    recording: str,
    files: tuple[Path, ...],
    data: Path,
    consent: str,
    participant: str,
    aligns: bool,
) -> Answer[AdoptedVideos]:
    """Make the recording ID from videos (FILES) that were filmed elsewhere.

    They are copied, read back and hashed; the originals stay as they are. The tablet then offers the recording, so
    that steps and errors can be logged and reviewed on it. With --sync films of cameras that record motion, such as
    GoPros, are put on the time of the first.

    \b
    Example:
      kitchensync adopt lab2-017 kitchen.mp4 --data recordings --consent form-12
      kitchensync adopt lab2-018 GX010001.MP4 GX010042.MP4 --sync
    """
    for file in files:
        check_no_pauses_in(file)
    with byte_bar() as tell:
        made = make(data, recording, files, consent=consent, participant=participant, tell=tell)
    paces = {file["original"]: file["video"]["pace"] for file in made["files"] if "pace" in file["video"]}
    warnings = [f"{name}: {words}" for name, words in paces.items()]
    answer: AdoptedVideos = {
        "recording": recording, "status": status_of(warnings), **made, "warnings": warnings
    }  # fmt: skip
    failed = False
    if aligns:
        from kitchensync.sync.report.page import write_report

        answer["sync"] = synchronize(Path(made["path"]))
        answer["report"] = str(write_report(Path(made["path"])))
        failed = answer["sync"].get("status") == NOT_ALIGNED
    return Answer(answer, partial(_show, data), warnings, failed=failed)


def _show(data: Path, answer: AdoptedVideos) -> None:
    videos = f"{answer['path']}: {len(answer['files'])} videos"
    click.echo(f"{videos}; log errors on it with `kitchensync app --data {data}`")
    if "sync" in answer:
        show_recording({**answer["sync"]})
        click.echo(answer["report"])
