"""The commands of `sync`: sync, align and report."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Literal

import click

from kitchensync.shell.progress import Bar
from kitchensync.shell.terminal import headline
from kitchensync.shell.workforce_options import JOBS, SCHEDULER
from kitchensync.storage.batch.workers import start_early
from kitchensync.storage.errors import StorageError
from kitchensync.storage.names import recordings_in
from kitchensync.storage.options.given_path import GivenRecording, check_recordings, given_path
from kitchensync.storage.options.output_options import output_file
from kitchensync.sync.errors import SyncError

MARKS = {
    "aligned": "green",
    "nothing_to_align": "green",
    "check": "yellow",
    "not_aligned": "red",
    "not_done": "red",
}
ONE_FILE = given_path(exists=True, dir_okay=False)


@click.command()
@click.option("--reference", type=ONE_FILE, help="Whose time is wanted: a film, or a table t_s,x,y,z (CSV).")
@click.option("--film", type=ONE_FILE, help="What is placed on it: a film, or a table t_s,x,y,z (CSV).")
@click.option(
    "--unit",
    type=click.Choice(["deg_per_s", "rad_per_s"]),
    help="Unit of the rates in tables.  [default: found by comparison with a film]",
)
@click.option("--hololens", type=ONE_FILE, help="Headset arrays: vinyl_ns, soc_ticks, rad_per_s.")
@click.option("--gopro", type=ONE_FILE, help="Camera arrays: t_s, rad_per_s.")
@click.option(
    "--epoch-ticks", type=int, help="Tick of the headset that --prior-s counts from.  [default: first sample]"
)
@click.option(
    "--prior-s",
    type=float,
    default=0.0,
    show_default=True,
    help="Expected time of the camera's media time 0, in seconds after --epoch-ticks.",
)
@click.option(
    "--prior-half-width-s",
    type=click.FloatRange(min=0.0, min_open=True),
    help="Half-width of the search window around --prior-s, in seconds.  [default: the whole overlap]",
)
@click.option("--strict", is_flag=True, help="Let `check` give exit code 1 too.")
@click.option("--json", "as_json", is_flag=True, help="Print the alignment object.")
def align(
    reference: Path | None,
    film: Path | None,
    unit: Literal["deg_per_s", "rad_per_s"] | None,
    hololens: Path | None,
    gopro: Path | None,
    epoch_ticks: int | None,
    prior_s: float,
    prior_half_width_s: float | None,
    strict: bool,
    as_json: bool,
) -> None:
    """Align two files by their motion: two cameras, or a camera and any gyroscope.

    --reference and --film are films of GoPros, films of other cameras and phones whose telemetry can be read, or
    tables of rotation rates: the answer places the film's seconds on those of the reference. --hololens and --gopro
    are arrays (.npz): the answer places media seconds of the camera on ticks of the headset.

    \b
    Example:
      kitchensync align --reference GX010001.MP4 --film GX010042.MP4
      kitchensync align --reference wrist.csv --unit deg_per_s --film GX010001.MP4
      kitchensync align --hololens headset.npz --gopro camera.npz --json
    """
    has_prior = epoch_ticks is not None or prior_s != 0.0 or prior_half_width_s is not None
    if film is not None and reference is not None and not (hololens or gopro or has_prior):
        from kitchensync.sync.given_files.film_pair import align_films

        name = f"{film} on {reference}"
        answer = align_films(reference, film, unit=unit or "auto")
    elif hololens is not None and gopro is not None and not (reference or film or unit):
        from kitchensync.sync.given_files.arrays import GivenArrays, align_arrays

        name = gopro.name
        answer = align_arrays(
            GivenArrays.of(hololens, "hololens"),
            GivenArrays.of(gopro, "gopro"),
            epoch_ticks=epoch_ticks,
            prior_s=prior_s,
            prior_half_width_s=prior_half_width_s,
        )
    else:
        raise click.UsageError("give --reference and --film, or --hololens and --gopro with their priors")
    if as_json:
        click.echo(json.dumps(answer))
    else:
        show_pair(name, answer)
    leave(answer["status"], strict=strict)


@click.command()
@click.argument("paths", nargs=-1, required=True, type=GivenRecording(files=True))
@click.option(
    "--compare",
    "old",
    metavar="OLD",
    type=GivenRecording(usable=True, files=True),
    help="Align nothing; show what changed from PATH to OLD, each a recording, a folder, or what --json printed.",
)
@click.option(
    "--master",
    metavar="STREAM",
    help="Whose frames are indexed: pv, gopro, or a name such as hololens-b/pv.  [default: pv]",
)
@SCHEDULER
@JOBS
@click.option("--again", is_flag=True, help="Recompute finished recordings of a folder.")
@output_file("summary", "--summary", help="Summary page of all recordings.  [FOLDER/sync-summary.html]")
@click.option("--strict", is_flag=True, help="Let `check` give exit code 1 too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def sync(
    paths: tuple[Path, ...],
    old: Path | None,
    master: str | None,
    scheduler: str | None,
    jobs: int | None,
    again: bool,
    summary: Path | None,
    force: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Align the clocks of recordings and index their frames.

    PATHS are recordings, or folders of recordings. Only files under `sync/` of a recording are written, and for a
    folder a summary page, worst first. A folder's finished recordings are not computed again. Where the computer
    is in the way (a full disk, a worker that dies) the last answer stays, with the reason, and the exit code is 1.

    \b
    Example:
      kitchensync sync data/take-1
      kitchensync sync data --jobs 4
      kitchensync sync before.json --compare after.json
    """
    if old is not None and len(paths) != 1:
        raise click.UsageError("--compare takes one PATH")
    for path in paths:
        if path.is_file() == (old is None):  # a file is nothing to align; what is compared must be usable
            check_recordings(path, usable=old is not None)
    if old is not None:
        _show_changes(paths[0], old, as_json=as_json)
        return
    if scheduler is None and jobs != 1:
        fresh = sum(not (one / "sync").exists() for path in paths for one in recordings_in(path))
        start_early(
            fresh, jobs, "kitchensync.sync.batch.loaded"
        )  # before the imports below, so that both load at once

    from kitchensync.sync.answers import plain
    from kitchensync.sync.batch.batch import synchronize_all
    from kitchensync.sync.report.overview import write_summary

    with Bar("synchronizing", unit="recordings", lines=True) as bar:
        answer = plain(
            synchronize_all(
                paths,
                master=master,
                scheduler=scheduler,
                workers=jobs,
                again=again,
                progress=lambda done, whole, last: bar.show(
                    done, whole, f"{'not done' if 'error' in last else last['status']}  {last['recording']}"
                ),
            )
        )
    if (target := _summary_target(paths, summary)) is not None:
        write_summary(answer, target, force=force or summary is None)
    if as_json:
        click.echo(json.dumps(answer))
    elif target is None:
        for recording in answer["recordings"]:
            show_recording(recording)
    else:
        for recording in answer["recordings"]:
            _show_line(recording)
        click.echo(f"summary: {target}")
    if any("error" in recording for recording in answer["recordings"]):
        sys.exit(1)
    leave(worst([recording["status"] for recording in answer["recordings"]]), strict=strict)


def _summary_target(paths: tuple[Path, ...], wanted: Path | None) -> Path | None:
    """Where the page over several recordings goes: where it is wanted, or into the one folder that was given."""
    from kitchensync.sync.report.overview import PAGE

    folders = [path for path in paths if recordings_in(path) != [path]]
    return wanted or (folders[0] / PAGE if len(folders) == 1 else None)


def _show_changes(new: Path, old: Path, *, as_json: bool) -> None:
    """Print what changed between two recordings, folders of recordings, or outputs of `sync --json`."""
    from kitchensync.sync.report.overview import compare

    answer = compare(new, old)
    if as_json:
        click.echo(json.dumps(answer))
        return
    for row in answer["pairs"]:
        before, after = (status or "absent" for status in row["status"])
        moved = "" if row["moved_ms"] is None else f", moved by up to {row['moved_ms']:.4f} ms"
        mark = "*" if row["changed"] else " "
        was, now = (f"{bound:.2f}" if bound is not None else "none" for bound in row["bound95_ms"])
        bounds = f", bound {was} -> {now} ms" if was != now else ""
        click.echo(f"{mark} {row['recording']}  {row['source']}  {before} -> {after}{moved}{bounds}")
        later = [reason for reason in row["reasons"][1] if reason not in row["reasons"][0]]
        for reason in later if row["changed"] else ():
            click.echo(f"    now: {reason}")
    click.echo(f"{answer['changed']} of {len(answer['pairs'])} changed")


def worst(statuses: list[str]) -> str:
    """The status that the exit code follows."""
    order = ["not_aligned", "not_done", "check", "aligned", "nothing_to_align"]
    return next((status for status in order if status in statuses), "nothing_to_align")


def leave(status: str, *, strict: bool) -> None:
    """Exit 1 for `not_aligned` and `not_done`, and for `check` when strict."""
    if status in ("not_aligned", "not_done") or (strict and status == "check"):
        sys.exit(1)


def show_recording(answer: dict[str, Any]) -> None:
    """Print one recording for people."""
    headline(f"{answer['status']}  {answer['recording']}", MARKS[answer["status"]])
    for reason in [*answer.get("reasons", []), *answer.get("warnings", [])]:
        click.echo(f"  - {reason}")
    for pair in answer["pairs"]:
        show_pair(pair["source"], pair, indent="  ")


def _show_line(answer: dict[str, Any]) -> None:
    """Print one of many recordings in one line: its verdict, and the first reason or the worst bounds."""
    from kitchensync.storage.timeline.alignment import Alignment

    pairs = [Alignment.from_object(pair) for pair in answer["pairs"]]
    texts = [*answer.get("reasons", []), *answer.get("warnings", [])]
    texts += [text for pair in pairs for text in (*pair.reasons, *pair.warnings)]
    bounded = [pair for pair in pairs if pair.bound95_ms is not None]
    if not texts and bounded:
        texts = [max(bounded, key=lambda pair: pair.bound95_ms or 0.0).bounds_in_words]
    more = f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""
    line = "  ".join([answer["status"], answer["recording"], *texts[:1]])
    headline(line + more, MARKS[answer["status"]], bold=False)


def show_pair(name: str, answer: dict[str, Any], indent: str = "") -> None:
    """Print one alignment for people."""
    from kitchensync.storage.timeline.alignment import Alignment

    alignment = Alignment.from_object(answer)
    headline(f"{indent}{alignment.status}  {name}", MARKS[alignment.status], bold=False)
    for text in [*alignment.reasons, *alignment.warnings]:
        click.echo(f"{indent}  - {text}")
    if alignment.clock_map is None:
        return
    if alignment.bounds_in_words:
        click.echo(f"{indent}  {alignment.bounds_in_words}")
    if alignment.is_on_camera:
        click.echo(f"{indent}  begins at second {alignment.clock_map.tau_s(0.0):.4f} of {alignment.master}")
    elif not indent:
        offset_s = float(alignment.clock_map.tau_s(0.0))
        tick = int(alignment.clock_map.to_ticks(0.0))
        click.echo(f"offset {offset_s:.4f} s: second 0 of the camera is tick {tick} of the headset")
    fit = alignment.gyro.fit if alignment.gyro is not None else None
    if alignment.gyro is None or fit is None:
        return
    windows = (
        f"{alignment.gyro.windows_ok} of {alignment.gyro.windows} windows, agreement {fit.correlation:.3f}"
    )
    click.echo(f"{indent}  drift {fit.drift_ppm:.2f} ppm, {windows}")


@click.command()
@click.argument("paths", nargs=-1, required=True, type=GivenRecording())
@click.pass_context
def report(context: click.Context, paths: tuple[Path, ...]) -> None:
    """Write report.html, a self-contained summary of a recording, and print its path.

    PATHS are recordings, or folders of recordings, whose summary page then links to them. Damage is named on the page
    and does not stop it; a recording that cannot be opened does not stop the rest.

    \b
    Example:
      kitchensync report data/take-1
      kitchensync report data
    """
    from kitchensync.sync.report.overview import refresh_summary
    from kitchensync.sync.report.page import write_report

    bad = 0
    for path in paths:
        found = recordings_in(path)
        for recording in found:
            try:
                if (check_mounts := (context.obj or {}).get("mounts")) is not None:
                    check_mounts(recording)
                click.echo(write_report(recording))
            except (StorageError, SyncError) as error:
                bad += 1
                click.echo(f"kitchensync: {' '.join(str(error).split())}", err=True)
        if found != [path]:
            refresh_summary(path)
    if bad:
        sys.exit(1)
