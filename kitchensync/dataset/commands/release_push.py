"""`kitchensync release push`: a data set goes to where others find it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kitchensync.dataset.source.numbering import parse_numbering
from kitchensync.shell.answer import Answer, answers
from kitchensync.shell.progress import byte_bar
from kitchensync.storage.copies.derived import pushed
from kitchensync.storage.names import HUB
from kitchensync.storage.options.data_folder import data_option
from kitchensync.storage.options.given_path import WITHOUT_CONSENT, given_path
from kitchensync.task_graphs.errors import BadGraph


@click.command()
@click.argument("folder", type=given_path(exists=True, file_okay=False))
@click.option("--to", required=True, metavar="URL", help="A folder, s3://..., or hf://datasets/OWNER/NAME.")
@data_option(
    "Folder of the recordings: each is asked for its consent again.", kind=given_path(file_okay=False)
)
@click.option(
    "--numbering",
    type=given_path(exists=True, dir_okay=False),
    help="Table of the published ids [default: FOLDER.numbering.json].",
)
@click.option(
    "--keep-old", is_flag=True, help="Leave files of an earlier push that the data set no longer has."
)
@WITHOUT_CONSENT
@answers("release-push/1")
def push(
    folder: Path, to: str, data: Path, numbering: Path | None, keep_old: bool, without_consent: str
) -> Answer:
    """Copy the data set in FOLDER to a folder, cloud storage or the Hugging Face hub.

    Every file is compared with SHA256SUMS before it is sent and again there; SHA256SUMS itself comes last. What is
    there is not sent again: FOLDER.pushed beside the data set keeps what was sent where. Files that an earlier push
    brought there and that the data set no longer has are removed; files of others are named and left. Keys come from
    the store's own environment or profile files. A repository that the hub does not know is made, private.

    \b
    Example:
      kitchensync release push our-kitchens --to hf://datasets/our-lab/our-kitchens --data data
    """
    from kitchensync.dataset.source.consent_of_all import NotAgreed, ask_for_all, keep_reason
    from kitchensync.dataset.source.data_set_folder import read_data_set
    from kitchensync.dataset.source.sums import SUMS, read_sums
    from kitchensync.storage.move.push import push as send

    files = read_sums(folder)
    journal = folder.with_name(f"{folder.name}.pushed")
    held, recordings = read_data_set(folder), dict[str, Path]()
    to = to.rstrip("/") if "://" in to else str(Path(to).absolute())
    if held.is_own:
        ids = [one.recording_id for one in held.annotations.recordings]
        table = numbering or folder.with_name(f"{folder.name}.numbering.json")
        if not table.is_file():
            why = "is not there, nobody knows which recordings these are; give --numbering"
            raise BadGraph(str(table), "", why)
        numbers = parse_numbering(table.read_text(encoding="utf-8"), table.name)
        recordings, lacking = ask_for_all(ids, numbers, data)
        if lacking and not without_consent:
            raise NotAgreed(
                f"{'; '.join(lacking[:3])}; make a data set without them, or say --without-consent"
            )
        if lacking and without_consent:
            journal.mkdir(exist_ok=True)
            keep_reason(journal, without_consent, lacking)
    pushed(recordings.values(), folder.absolute(), to)
    with byte_bar() as tell:
        done = send(folder, files, to, journal, tell, data=data, keep_old=keep_old, holds=recordings)
    said = {"status": "PASS", **asdict(done)}
    words = f"{folder} -> {to}: {done.files} files there, {SUMS} last, {done.sent} sent now"
    trouble = [f"{len(done.foreign)} files there are of nobody here, left: {', '.join(done.foreign[:3])}"]
    if done.removed:
        revisions = "; earlier revisions keep them" if to.startswith(HUB) else ""
        words += f"; {len(done.removed)} old ones removed: {', '.join(done.removed[:3])}{revisions}"
    return Answer(said, lambda _: click.echo(words), trouble if done.foreign else ())
