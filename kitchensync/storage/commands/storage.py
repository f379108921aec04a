"""The commands of `storage`: verify, archive, move, upload."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NotRequired, TypedDict

import click

from kitchensync.shell.answer import Answer, answers, say
from kitchensync.shell.progress import Bar, byte_bar
from kitchensync.shell.terminal import headline
from kitchensync.storage.errors import StorageError, words_of
from kitchensync.storage.names import recordings_in
from kitchensync.storage.options.given_path import WITHOUT_CONSENT, GivenRecording
from kitchensync.storage.options.output_options import OutputFolder

if TYPE_CHECKING:
    from kitchensync.storage.move.archive import Packed
    from kitchensync.storage.move.mover import StoreProgress
    from kitchensync.storage.move.upload import Uploaded
    from kitchensync.storage.verify.by_life import CameraBalance, RecordingVerification
    from kitchensync.storage.verify.verification import VerificationOfAll


class PackedRecording(TypedDict):
    """A recording that was packed."""

    recording: str
    streams: list[Packed]
    reason: NotRequired[str]
    "Why it cannot be packed."


class PackedRecordings(TypedDict):
    """The object `archive/1`."""

    recordings: list[PackedRecording]


class MovedRecordings(TypedDict):
    """The object `move/1`."""

    recordings: list[StoreProgress]
    "One for each recording and store."


AS_RECORDED = (
    "left as it was recorded, with serial numbers and places; "
    "`kitchensync release captaincook4d` makes copies without"
)
MARKS = {"PASS": "green", "WARN": "yellow", "FAIL": "red"}


@click.command()
@click.argument("paths", nargs=-1, required=True, type=GivenRecording())
@click.option("--strict", is_flag=True, help="Let WARN give exit code 1 too.")
@click.option("--deep", is_flag=True, help="Decode pictures and sound too: takes minutes for an hour.")
@answers("verify/1")
def verify(
    paths: tuple[Path, ...], strict: bool, deep: bool
) -> Answer[RecordingVerification | VerificationOfAll]:
    """Recompute ledger and checksums of recordings from their files alone.

    PATHS are recordings, or folders of recordings. The answer is kept in `sync/verify.json` of a closed, writable
    recording: `list` and `study` use the last answer.

    \b
    Example:
      kitchensync verify data/take-1
    """
    from kitchensync.storage.verify import FAIL, WARN, keep_if_closed, verify_all

    recordings = [recording for path in paths for recording in recordings_in(path)]
    results = _checked(recordings, deep=deep)
    for recording, result in zip(recordings, results, strict=True):
        keep_if_closed(recording, result)
    several = len(paths) > 1 or recordings != [paths[0]]
    answer = verify_all(results) if several else results[0]
    failed = answer["status"] == FAIL or (strict and answer["status"] == WARN)
    return Answer(answer, lambda _: show_all(results), failed=failed)


def _checked(recordings: list[Path], *, deep: bool) -> list[RecordingVerification]:
    """Check recordings one by one; a bar shows the current stream."""
    from kitchensync.storage.verify import verify as check

    with Bar("verifying", unit="recordings") as bar:

        def tell(done: int, path: Path, stream: str = "") -> None:
            bar.show(done, len(recordings), f"{path.name}  {stream}")

        return [check(path, partial(tell, done, path), deep=deep) for done, path in enumerate(recordings)]


def show_all(results: list[RecordingVerification]) -> None:
    """Print the balances of recordings."""
    for result in results:
        show(result)


def show(result: RecordingVerification) -> None:
    """Print the balance of one recording."""
    headline(f"{result['status']}  {result['recording']}", MARKS[result["status"]])
    for reason in result["reasons"]:
        click.echo(f"  - {reason}")
    if "read_from" in result:
        click.echo(f"  read in the copy {result['read_from']}")
    for name, facts in result["streams"].items():
        unit = "bytes" if name.upper().endswith(".MP4") else "packets"
        megabytes = f"{facts['bytes'] / 1e6:9.2f} MB"
        line = f"  {name:28} {facts['stored']:>9} of {facts['received']:>9} {unit:7} {megabytes}"
        click.echo(f"{line}  {_coverage_in_words(facts)}{_decoded_in_words(facts)}".rstrip())
    for name, cover in result.get("cameras", {}).items():
        click.echo(f"  {name:28} {_coverage_in_words(cover)}{_decoded_in_words(cover)}")
    for note in result.get("notes", []):
        click.echo(f"  note: {note}")
    for sentence in result.get("good_for", []):
        click.echo(f"  {sentence}")


def _decoded_in_words(facts: CameraBalance) -> str:
    """Return the results of `--deep` as text: decoded frames, and the level of the loudest second."""
    decoded, level = facts.get("decoded"), facts.get("loudest_dbfs")
    text = f", {decoded['pictures']} of {decoded['asked']} pictures decode" if decoded else ""
    return text if level is None else f"{text}, sound up to {level:g} dBFS"


def _coverage_in_words(facts: CameraBalance) -> str:
    """Return the coverage of a stream or camera as text; rounded down, so that 100 % means all."""
    share = facts.get("coverage")
    return "" if share is None else f"covers {math.floor(1000 * share + 1e-6) / 10:g} %"


@click.command()
@click.argument("paths", nargs=-1, required=True, type=GivenRecording())
@answers("archive/1")
def archive(paths: tuple[Path, ...]) -> Answer[PackedRecordings]:
    """Pack the streams of finished recordings into one HDF5 file each, verified block by block.

    PATHS are recordings, or folders of recordings. The small files are removed only after the archive was read back.
    An interrupted run may be repeated. A recording that cannot be packed is reported and does not stop the rest.

    \b
    Example:
      kitchensync archive data/take-1
    """
    recordings = [recording for path in paths for recording in recordings_in(path)]
    rows = [_packed(recording, alone=recordings == list(paths[:1])) for recording in recordings]
    report: PackedRecordings = {"recordings": rows}
    return Answer(report, _show_packed, failed=any("reason" in row for row in rows))


def _packed(recording: Path, *, alone: bool) -> PackedRecording:
    """Pack one recording; return its streams, or why it cannot be packed. Raises the error if `alone`."""
    from kitchensync.storage.move.archive import archive as pack

    try:
        with byte_bar() as tell:
            packed = pack(recording, tell)
    except (StorageError, OSError) as error:
        if alone:
            raise
        reason = words_of(error)
        say(reason)
        return {"recording": recording.name, "streams": [], "reason": reason}
    return {"recording": recording.name, "streams": packed}


def _show_packed(report: PackedRecordings) -> None:
    for row in report["recordings"]:
        if "reason" not in row:
            files = sum(entry.files for entry in row["streams"])
            click.echo(f"{row['recording']}: {files} files packed into {len(row['streams'])}")


@click.command()
@click.argument("paths", nargs=-1, required=True, type=GivenRecording())
@click.option(
    "--to",
    "targets",
    multiple=True,
    required=True,
    type=OutputFolder(),
    help="Network store to copy to; may be repeated.",
)
@click.option(
    "--copies",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Verified copies before a local file is freed.",
)
@click.option(
    "--keep-days",
    default="7",
    show_default=True,
    help="Days that local files stay; `never` frees only for room.",
)
@click.option("--keep", is_flag=True, help="Free nothing, whatever the rule.")
@click.option(
    "--follow",
    is_flag=True,
    help="Keep copying while recordings run, and wait for stores that are unavailable.",
)
@answers("move/1")
def move(
    paths: tuple[Path, ...],
    targets: tuple[Path, ...],
    copies: int,
    keep_days: str,
    keep: bool,
    follow: bool,
) -> Answer[MovedRecordings]:
    """Copy recordings to network storage, read every copy back, free local files by rule.

    PATHS are recordings, or folders of recordings. Local files are removed only if enough verified copies exist and
    they are old enough or the disk is nearly full; manifest, events and reports always stay.

    \b
    Example:
      kitchensync move data/take-1 --to /mnt/nas-a/kitchen --to /mnt/nas-b/kitchen
    """
    from kitchensync.storage.move.freeing import FreeRule
    from kitchensync.storage.move.mover import run_mover
    from kitchensync.storage.move.mover_process import lower_priority

    rule = None if keep else FreeRule(copies, _days(keep_days))
    lower_priority()
    recordings = [recording for path in paths for recording in recordings_in(path)]
    with byte_bar() as tell:
        states = run_mover(
            recordings,
            targets,
            rule=rule,
            follow=follow,
            report=lambda state: tell(f"{state.recording} -> {state.target}", state.bytes_safe, state.bytes),
        )
    report: MovedRecordings = {"recordings": states}
    return Answer(report, _show_moved, _unmoved(states), failed=not all(state.finished for state in states))


def _days(text: str) -> float | None:
    if text != "never" and not text.replace(".", "", 1).isdigit():
        raise click.BadParameter("give a number of days, or `never`", param_hint="--keep-days")
    return None if text == "never" else float(text)


def _show_moved(report: MovedRecordings) -> None:
    for state in report["recordings"]:
        freed = f", {state.freed} local files freed" if state.freed else ""
        where = f"{state.recording} -> {state.target}"
        click.echo(f"{where}: {state.files_done} of {state.files} files{freed}")


def _unmoved(states: list[StoreProgress]) -> list[str]:
    """Return each problem of the copies once, and the recordings that are not closed yet."""
    notes = [text for state in states for text in (state.warning, state.problem) if text]
    notes += [
        f"{state.recording}: is not closed yet, its sealed files are copied; run this again after its end"
        for state in states
        if not state.finished and not state.problem
    ]
    return list(dict.fromkeys(notes))


@click.command()
@click.argument("recording", type=GivenRecording())
@click.argument("url")
@WITHOUT_CONSENT
@answers("upload/1")
def upload(recording: Path, url: str, without_consent: str) -> Answer[Uploaded]:
    """Copy a finished recording to cloud storage and read every file back; resumes after an interruption.

    URL is anything that fsspec knows (s3://, gs://, sftp://, file://); keys come from the store's own
    environment or profile files. Needs the extra `cloud`. The participant must have agreed to
    `release_raw` unless lab.toml, beside the recordings, lists the store as your own:
    stores = ["s3://lab-recordings/kitchen"]. Files are not changed: they have serial numbers and places.

    \b
    Example:
      kitchensync upload data/take-1 s3://lab-recordings/kitchen
    """
    from kitchensync.storage.move.upload import upload as send

    with byte_bar() as tell:
        done = send(recording, url, tell, without_consent=without_consent)
    summary = f"{done.recording} -> {url}: {done.files} files there, {done.sent} sent now"
    as_recorded = [] if done.is_own_store else [f"{done.recording}: {AS_RECORDED}"]
    return Answer(done, lambda _: click.echo(summary), as_recorded)
