"""`kitchensync gopro import` and `gopro free`: copy clips from a memory card to recordings, and free the card."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from kitchensync.sensors.errors import SensorError
from kitchensync.shell.progress import ByteMeter
from kitchensync.storage.errors import StorageError
from kitchensync.storage.options.given_path import GivenRecording, given_path
from kitchensync.storage.options.named_url import NAMED_URL


@click.command("import")
@click.argument("folder", type=given_path(exists=True, file_okay=False))
@click.option(
    "--recording",
    type=GivenRecording(usable=True),
    help="The recording that all files of the card belong to.",
)
@click.option(
    "--match",
    "root",
    type=given_path(exists=True),
    help="Folder of recordings among which the right ones are found.",
)
@click.option("--yes", is_flag=True, help="Import as proposed without asking.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; copies only with --yes.")
def import_card(folder: Path, recording: Path | None, root: Path | None, yes: bool, as_json: bool) -> None:
    """Import the files of a camera's card (FOLDER) into the recordings they belong to.

    A clip is matched by the camera's serial number, by its clock, by its motion against the headset's, then by the
    slate that a tablet played (`slate = true` in lab.toml). What is proposed is shown first; copies are read back and
    compared; the card is left as it is.

    \b
    Example:
      kitchensync gopro import /media/card --match data
    """
    from kitchensync.sensors.gopro.files.memory_card import scan_card
    from kitchensync.sync.memory_cards.match import propose, recordings_below

    if (recording is None) == (root is None):
        raise click.UsageError("give either --recording FOLDER or --match ROOT")
    clips, bad = scan_card(folder)
    paths, lost = ([recording], []) if recording is not None else recordings_below(root or folder)
    for line in lost:
        click.echo(f"kitchensync: {line}", err=True)
    proposals = propose(clips, paths, chosen=recording is not None)
    answer: dict[str, Any] = {
        "schema": "gopro-import/1",
        "unreadable": [{"files": [str(path) for path in clip.paths], "why": clip.why} for clip in bad],
        "imported": [],
    }
    if not as_json:
        _show(proposals, bad)
    importable = [proposal for proposal in proposals if proposal.recording is not None]
    if importable and (yes or (not as_json and click.confirm(f"copy {len(importable)} clips?"))):
        answer["imported"] = _copy(importable, quiet=as_json)
    failed = [proposal for proposal in proposals if proposal.problem]
    answer["proposals"] = [proposal.as_dict() for proposal in proposals]
    if as_json:
        click.echo(json.dumps(answer))
    if bad or failed:
        first = bad[0].why if bad else f"{failed[0].clip.name}: {failed[0].problem}"
        click.echo(f"kitchensync: {len(bad) + len(failed)} not imported: {' '.join(first.split())}", err=True)
        sys.exit(1)


def _copy(proposals: list[Any], *, quiet: bool) -> list[dict[str, Any]]:
    """Copy the clips; a failure is reported at the end and does not stop the others."""
    from kitchensync.sync.memory_cards.import_card import import_clip

    done = []
    for proposal in proposals:
        try:
            with ByteMeter() as meter:
                meter.begin(proposal.clip.name)
                names = import_clip(proposal, meter.update)
        except (SensorError, StorageError) as error:
            proposal.problem = str(error)
            continue
        done.append({"recording": str(proposal.recording), "device": proposal.device, "files": names})
        if not quiet:
            click.echo(f"{', '.join(names)} -> {proposal.recording}/{proposal.device}")
    return done


def _show(proposals: list[Any], bad: list[Any]) -> None:
    for proposal in proposals:
        files = ", ".join(path.name for path in proposal.clip.paths)
        where = (
            f"-> {proposal.recording}/{proposal.device}" if proposal.recording else f"-- {proposal.problem}"
        )
        click.echo(f"{files} {where}")
        for line in proposal.evidence:
            click.echo(f"    {line}")
    for clip in bad:
        click.echo(f"{', '.join(path.name for path in clip.paths)} -- {clip.why}")


@click.command("free")
@click.argument("recordings", nargs=-1, required=True, type=GivenRecording())
@click.option(
    "--copies",
    default=2,
    show_default=True,
    type=click.IntRange(1),
    help="How many verified copies a file needs before it is erased.",
)
@click.option(
    "--copy",
    "roots",
    multiple=True,
    type=given_path(),
    help="Folder in which further copies lie; may be repeated.",
)
@click.option(
    "--gopro",
    "addresses",
    multiple=True,
    type=NAMED_URL,
    help="Present address of a camera; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def free(
    recordings: tuple[Path, ...],
    copies: int,
    roots: tuple[Path, ...],
    addresses: tuple[tuple[str, str], ...],
    as_json: bool,
) -> None:
    """Delete from the cameras the files of RECORDINGS that have enough verified copies.

    Places are the recording itself, every store that `kitchensync move` or `record --nas` copied it to, and
    ROOT/<id>/<camera>/<file> below each --copy ROOT. Every copy is read and compared now; a file with fewer than
    --copies stays on the card.

    \b
    Example:
      kitchensync gopro free data/take-1
    """
    from kitchensync.storage.life import usable_manifest
    from kitchensync.sync.memory_cards.free import ErasedFile, EraseRule, free_recording

    rows: list[ErasedFile] = []
    problems: list[str] = []
    for recording in recordings:
        try:
            files = free_recording(recording, EraseRule(copies, roots), dict(addresses))
            if not files:
                usable_manifest(recording)  # a damaged recording must not be reported as "no camera files"
            rows += files
        except (SensorError, StorageError) as error:
            problems.append(" ".join(str(error).split()))
    if as_json:
        click.echo(json.dumps({"schema": "gopro-free/1", "files": rows, "problems": problems}))
    for row in rows if not as_json else ():
        click.echo(f"{row['recording']}/{row['file']}: {'erased' if row['erased'] else row['why']}")
    if not rows and not problems and not as_json:
        click.echo("no camera files")
    staying = sum(not row["erased"] for row in rows)
    if staying and not problems:
        problems.append(f"{staying} files stay on their card")
    for problem in problems:
        click.echo(f"kitchensync: {problem}", err=True)
    if problems:
        sys.exit(1)
