"""The commands of `storage`: verify, archive, move, upload."""

from __future__ import annotations

import json
import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from storage.errors import words_of
from storage.shell.given_recording import GivenRecording
from storage.shell.output_options import OutputFolder
from storage.shell.progress import byte_bar

MARKS = {"PASS": "green", "WARN": "yellow", "FAIL": "red"}


@click.command()
@click.argument("paths", nargs=-1, required=True, type=GivenRecording())
@click.option("--strict", is_flag=True, help="Let WARN give exit code 1 too.")
@click.option("--deep", is_flag=True, help="Decode pictures and sound too: takes minutes for an hour.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify(paths: tuple[Path, ...], strict: bool, deep: bool, as_json: bool) -> None:
    """Recompute ledger and checksums of recordings from their files alone.

    PATHS are recordings, or folders of recordings.

    \b
    Example:
      kitchensync verify data/take-1
    """
    from storage.names import recordings_in
    from storage.verify import FAIL, WARN, verify_all
    from storage.verify import verify as check

    found = [recording for path in paths for recording in recordings_in(path)]
    results = [_checked(partial(check, deep=deep), path, quiet=as_json) for path in found]
    several = len(paths) > 1 or found != [paths[0]]
    answer = verify_all(results) if several else results[0]
    if as_json:
        click.echo(json.dumps(answer))
    else:
        for result in results:
            show(result)
    if answer["status"] == FAIL or (strict and answer["status"] == WARN):
        sys.exit(1)


def _checked(check: Any, path: Path, *, quiet: bool) -> dict[str, Any]:
    """Check one recording; on a terminal say which stream is being read."""
    if quiet or not sys.stderr.isatty():
        result: dict[str, Any] = check(path)
        return result
    from rich.console import Console

    with Console(stderr=True).status(f"{path.name}") as status:
        checked: dict[str, Any] = check(path, lambda stream: status.update(f"{path.name}: {stream}"))
        return checked


def show(result: dict[str, Any]) -> None:
    """Print the balance sheet of one recording for people."""
    click.secho(f"{result['status']}  {result['recording']}", fg=MARKS[result["status"]], bold=True)
    for reason in result["reasons"]:
        click.echo(f"  - {reason}")
    if "read_from" in result:
        click.echo(f"  read in the copy {result['read_from']}")
    for name, facts in result["streams"].items():
        unit = "bytes" if name.upper().endswith(".MP4") else "packets"
        megabytes = f"{facts['bytes'] / 1e6:9.2f} MB"
        line = f"  {name:28} {facts['stored']:>9} of {facts['received']:>9} {unit:7} {megabytes}"
        click.echo(f"{line}  {coverage_in_words(facts)}{_decoded_in_words(facts)}".rstrip())
    for name, facts in result.get("cameras", {}).items():
        click.echo(f"  {name:28} {coverage_in_words(facts)}{_decoded_in_words(facts)}")
    for note in result.get("notes", []):
        click.echo(f"  note: {note}")
    for sentence in result.get("good_for", []):
        click.echo(f"  {sentence}")


def _decoded_in_words(facts: dict[str, Any]) -> str:
    """Say what `--deep` found: pictures that decode, and how loud the loudest second is."""
    seen, level = facts.get("decoded"), facts.get("loudest_dbfs")
    words = f", {seen['pictures']} of {seen['asked']} pictures decode" if seen else ""
    return words if level is None else f"{words}, sound up to {level:g} dBFS"


def coverage_in_words(facts: dict[str, Any]) -> str:
    """Say which share of the session a stream or a camera covers; rounded down, so that 100 % is all of it."""
    share = facts.get("coverage")
    return "" if share is None else f"covers {math.floor(1000 * share + 1e-6) / 10:g} %"


@click.command()
@click.argument("paths", nargs=-1, required=True, type=GivenRecording())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def archive(paths: tuple[Path, ...], as_json: bool) -> None:
    """Pack the streams of finished recordings into one HDF5 file each, proved block by block.

    PATHS are recordings, or folders of recordings. The small files go only after the archive was read back.
    An interrupted run may be repeated. A recording that cannot be packed is named and does not stop the rest.

    \b
    Example:
      kitchensync archive data/take-1
    """
    from storage.names import recordings_in

    found = [recording for path in paths for recording in recordings_in(path)]
    rows = [_packed(recording, alone=found == list(paths[:1]), quiet=as_json) for recording in found]
    if as_json:
        click.echo(json.dumps({"schema": "archive/1", "recordings": rows}))
    if any("reason" in row for row in rows):
        sys.exit(1)


def _packed(recording: Path, *, alone: bool, quiet: bool) -> dict[str, Any]:
    """Pack one recording; one among others that cannot be packed gives its reason and says it."""
    from dataclasses import asdict

    from storage.errors import StorageError
    from storage.move.archive import archive as pack

    try:
        with byte_bar() as show:
            packed = pack(recording, show)
    except (StorageError, OSError) as error:
        if alone:
            raise
        reason = words_of(error)
        click.echo(f"kitchensync: {reason}", err=True)
        return {"recording": recording.name, "streams": [], "reason": reason}
    if not quiet:
        files = sum(entry.files for entry in packed)
        click.echo(f"{recording.name}: {files} files packed into {len(packed)}")
    return {"recording": recording.name, "streams": [asdict(entry) for entry in packed]}


@click.command()
@click.argument("paths", nargs=-1, required=True, type=GivenRecording())
@click.option("--to", "targets", multiple=True, required=True, type=OutputFolder(), help="Store; repeat it.")
@click.option("--copies", default=2, show_default=True, help="Verified copies before a local file is freed.")
@click.option(
    "--keep-days",
    default="7",
    show_default=True,
    help="Days that local files stay; `never` frees only for room.",
)
@click.option(
    "--room-gb", default=20.0, show_default=True, help="Below this much free space files go earlier."
)
@click.option("--keep", is_flag=True, help="Free nothing, whatever the rule says.")
@click.option("--follow", is_flag=True, help="Go along with running recordings and wait for stores.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def move(
    paths: tuple[Path, ...],
    targets: tuple[Path, ...],
    copies: int,
    keep_days: str,
    room_gb: float,
    keep: bool,
    follow: bool,
    as_json: bool,
) -> None:
    """Copy recordings to network stores, read every copy back, free local files by rule.

    PATHS are recordings, or folders of recordings. Local files go only when enough verified copies exist and
    they are old enough or room is short; manifest, events and reports always stay.

    \b
    Example:
      kitchensync move data/take-1 --to /mnt/nas-a/kitchen --to /mnt/nas-b/kitchen
    """
    from dataclasses import asdict

    from storage.move.freeing import FreeRule
    from storage.move.mover import run_mover
    from storage.move.mover_process import lower_priority
    from storage.names import recordings_in

    if keep_days != "never" and not keep_days.replace(".", "", 1).isdigit():
        raise click.BadParameter("give a number of days, or `never`", param_hint="--keep-days")
    if copies < 1:
        raise click.BadParameter("at least 1", param_hint="--copies")
    days = None if keep_days == "never" else float(keep_days)
    rule = None if keep else FreeRule(copies, days, int(room_gb * 1e9))
    lower_priority()
    recordings = [recording for path in paths for recording in recordings_in(path)]
    with byte_bar() as show:
        states = run_mover(
            recordings,
            targets,
            rule=rule,
            follow=follow,
            report=lambda state: show(f"{state.recording} -> {state.target}", state.bytes_safe, state.bytes),
        )
    if as_json:
        click.echo(json.dumps({"schema": "move/1", "recordings": [asdict(state) for state in states]}))
    for state in [] if as_json else states:
        freed = f", {state.freed} local files freed" if state.freed else ""
        click.echo(f"{state.recording} -> {state.target}: {state.files_done} of {state.files} files{freed}")
    unclosed = [state.recording for state in states if not state.finished and not state.problem]
    notes = [text for state in states for text in (state.warning, state.problem) if text]
    notes += [
        f"{name}: is not closed yet, what is sealed is copied; run it again after its end"
        for name in unclosed
    ]
    for note in dict.fromkeys(notes):
        click.echo(f"kitchensync: {note}", err=True)
    if not all(state.finished for state in states):
        sys.exit(1)


@click.command()
@click.argument("recording", type=GivenRecording())
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def upload(recording: Path, url: str, as_json: bool) -> None:
    """Copy a closed recording to a cloud store, read every file back, go on after an interruption.

    URL is anything that fsspec knows (s3://, gs://, sftp://, file://); keys come from the store's own
    environment or profile files. Needs the extra `cloud`.

    \b
    Example:
      kitchensync upload data/take-1 s3://lab-recordings/kitchen
    """
    from dataclasses import asdict

    from storage.move.upload import upload as send

    with byte_bar() as show:
        done = send(recording, url, show)
    if as_json:
        click.echo(json.dumps({"schema": "upload/1", **asdict(done)}))
    else:
        click.echo(f"{done.recording} -> {url}: {done.files} files there, {done.sent} sent now")
