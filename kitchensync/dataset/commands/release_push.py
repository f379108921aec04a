"""`kitchensync release push`: upload a data set."""

from __future__ import annotations

from pathlib import Path

import click

from kitchensync.dataset.source.consent_of_all import NotAgreed, check_release_consent, note_reason
from kitchensync.dataset.source.data_set_folder import read_data_set
from kitchensync.dataset.source.numbering import parse_numbering
from kitchensync.dataset.source.sums import SUMS, read_sums
from kitchensync.shell.answer import Answer, answers
from kitchensync.shell.progress import byte_bar
from kitchensync.storage.copies.derived import pushed
from kitchensync.storage.move.push import Pushed
from kitchensync.storage.move.push import push as send
from kitchensync.storage.names import HUB
from kitchensync.storage.options.data_folder import data_option
from kitchensync.storage.options.given_path import WITHOUT_CONSENT, given_path
from kitchensync.task_graphs.errors import BadGraph


@click.command()
@click.argument("folder", type=given_path(exists=True, file_okay=False))
@click.option("--to", required=True, metavar="URL", help="A folder, s3://..., or hf://datasets/OWNER/NAME.")
@data_option("Folder of the recordings: their consent is checked again.", kind=given_path(file_okay=False))
@click.option(
    "--numbering",
    type=given_path(exists=True, dir_okay=False),
    help="Table of the published ids [default: FOLDER.numbering.json].",
)
@click.option(
    "--keep-old", is_flag=True, help="Keep files of an earlier push that the data set no longer has."
)
@WITHOUT_CONSENT
@answers("release-push/1")
def push(
    folder: Path, to: str, data: Path, numbering: Path | None, keep_old: bool, without_consent: str
) -> Answer[Pushed]:
    """Copy the data set in FOLDER to a folder, cloud storage or the Hugging Face hub.

    Every file is compared with SHA256SUMS before it is sent and again at the destination; SHA256SUMS is sent last.
    Files that are already there are not sent again: FOLDER.pushed beside the data set records what was sent where.
    Files of an earlier push that the data set no longer has are removed; other files are listed and kept. Keys come
    from the store's own environment or profile files. A repository that does not exist on the hub is created,
    private.

    \b
    Example:
      kitchensync release push our-kitchens --to hf://datasets/our-lab/our-kitchens --data data
    """
    files = read_sums(folder)
    journal = folder.with_name(f"{folder.name}.pushed")
    data_set, recordings = read_data_set(folder), dict[str, Path]()
    to = to.rstrip("/") if "://" in to else str(Path(to).absolute())
    if data_set.is_own:
        ids = [recording.recording_id for recording in data_set.annotations.recordings]
        table = numbering or folder.with_name(f"{folder.name}.numbering.json")
        if not table.is_file():
            raise BadGraph(str(table), "", "is missing: it maps ids to recordings; give --numbering")
        numbers = parse_numbering(table.read_text(encoding="utf-8"), table.name)
        recordings, lacking = check_release_consent(ids, numbers, data)
        if lacking and not without_consent:
            raise NotAgreed(
                f"{'; '.join(lacking[:3])}; make a data set without them, or give --without-consent"
            )
        if lacking:
            journal.mkdir(exist_ok=True)
            note_reason(journal, without_consent, lacking)
    pushed(recordings.values(), folder.absolute(), to)
    with byte_bar() as tell:
        done = send(folder, files, to, journal, tell, data=data, keep_old=keep_old, holds=recordings)
    summary = f"{folder} -> {to}: {done.files} files there, {SUMS} last, {done.sent} sent now"
    warnings = [
        f"{len(done.foreign)} files there were not pushed from here; kept: {', '.join(done.foreign[:3])}"
    ]
    if done.removed:
        revisions = "; earlier revisions keep them" if to.startswith(HUB) else ""
        summary += f"; {len(done.removed)} old files removed: {', '.join(done.removed[:3])}{revisions}"
    return Answer(done, lambda _: click.echo(summary), warnings if done.foreign else ())
