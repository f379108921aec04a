"""The commands `kitchensync calibrate ...`: boards, lenses, mounts, inertial sensors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from kitchensync.shell.progress import Bar
from kitchensync.shell.terminal import headline
from kitchensync.storage.names import recordings_in
from kitchensync.storage.options.given_path import GivenRecording, given_path
from kitchensync.storage.options.output_options import OutputFolder, output_file

BOARD_HELP = "The board: squares across x down, size of a square / of a marker, optionally the dictionary."
DEFAULT_BOARD = "11x8:24mm/18mm"


@click.group()
def calibrate() -> None:
    """Calibrate lenses and camera mounts, and measure the noise of inertial sensors.

    \b
    Example:
      kitchensync calibrate board --out board.pdf
      kitchensync calibrate gopro GX010042.MP4 --data data
    """


@calibrate.command()
@click.option("--board", "board_text", default=DEFAULT_BOARD, show_default=True, help=BOARD_HELP)
@click.option("--paper", type=click.Choice(["a4", "a3", "a2", "letter"]), default="a4", show_default=True)
@output_file("out", "--out", default=Path("board.pdf"), show_default=True, help="The PDF.")
def board(board_text: str, paper: str, out: Path, force: bool) -> None:
    """Write a ChArUco board as PDF in true scale.

    Print it at 100 %, measure the ruler below it, and glue it on something flat and stiff: a bent board is the most
    common cause of a bad calibration.

    \b
    Example:
      kitchensync calibrate board --board 11x8:24mm/18mm --paper a4 --out board.pdf
    """
    from kitchensync.calibration.estimate.board import Board
    from kitchensync.calibration.jobs.board_print import print_board

    chosen = Board.from_text(board_text)
    print_board(chosen, paper, out, force=force)
    click.echo(f"{out}: {chosen.text()}; print at 100 %, then check that the ruler is 100 mm long")


@calibrate.command()
@click.argument("films", nargs=-1, required=True, type=given_path(exists=True, dir_okay=False))
@click.option("--board", "board_text", default=DEFAULT_BOARD, show_default=True, help=BOARD_HELP)
@click.option(
    "--model",
    type=click.Choice(["auto", "fisheye", "pinhole"]),
    default="auto",
    show_default=True,
    help="Lens model; auto takes the one that predicts held-out frames better.",
)
@click.option(
    "--data",
    type=OutputFolder(exists=True),
    default=Path(),
    show_default="this folder",
    help="Folder of recordings; the result is stored beside them, where other commands look for it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def gopro(films: tuple[Path, ...], board_text: str, model: str, data: Path, as_json: bool) -> None:
    """Calibrate the lens of a GoPro from FILMS, videos of a board in one lens mode.

    Film the board for a minute, stabilization off: slowly into every corner of the frame, near and far, slanted
    to all sides, holding still for a moment at each place.

    \b
    Example:
      kitchensync calibrate gopro GX010042.MP4 --board 11x8:24mm/18mm --data data
    """
    from kitchensync.calibration.estimate.board import Board
    from kitchensync.calibration.jobs.lens import calibrate_lens
    from kitchensync.storage.redact.to_destroy import check_no_pauses_in

    for film in films:
        check_no_pauses_in(film)
    chosen = Board.from_text(board_text)
    with Bar(unit="s searched", shown=not as_json) as bar:
        lens = calibrate_lens(films, chosen, model, data, _shown_by(bar))
    if as_json:
        click.echo(
            json.dumps({"schema": "calibrate/1", "status": "ok", "path": str(lens.path), **lens.answer})
        )
        return
    _show_lens(lens.answer)
    click.echo(f"  stored in {lens.path}\n  picture {lens.picture}")


@calibrate.command()
@click.argument("recording", type=GivenRecording())
@click.option("--board", "board_text", default=DEFAULT_BOARD, show_default=True, help=BOARD_HELP)
@click.option(
    "--data",
    type=OutputFolder(exists=True),
    show_default="the recording's folder",
    help="Folder of recordings whose calibrations are used and added to.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def rig(recording: Path, board_text: str, data: Path | None, as_json: bool) -> None:
    """Calibrate the mount of a GoPro on the headset from a synchronized RECORDING in which both see a board.

    Look at the board for a minute with the rig on, from near and far and all sides, holding the head still for a
    moment at each place. The GoPro's lens must be calibrated (`calibrate gopro`). The rotation is also estimated from
    motion.

    \b
    Example:
      kitchensync calibrate rig data/board-1 --board 11x8:24mm/18mm
    """
    from kitchensync.calibration.estimate.board import Board
    from kitchensync.calibration.jobs.joint_lenses import calibrate_rig

    chosen = Board.from_text(board_text)
    with Bar(unit="s searched", shown=not as_json) as bar:
        mounts = calibrate_rig(recording, chosen, data or recording.absolute().parent, _shown_by(bar))
    if as_json:
        answers = [{"path": str(mount.path), **mount.answer} for mount in mounts]
        click.echo(json.dumps({"schema": "calibrate/1", "status": "ok", "mounts": answers}))
        return
    for mount in mounts:
        _show_mount(mount.answer)
        click.echo(f"  stored in {mount.path}\n  picture {mount.picture}")


@calibrate.command()
@click.argument("recordings", nargs=-1, required=True, type=GivenRecording())
@click.option(
    "--data",
    type=given_path(exists=True, file_okay=False),
    show_default="the recording's folder",
    help="Folder with the calibrations to compare with.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 when a mount moved.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(recordings: tuple[Path, ...], data: Path | None, strict: bool, as_json: bool) -> None:
    """Check from motion alone that each camera kept its position on the head.

    RECORDINGS are synchronized recordings, or folders of them. Both gyroscopes give the rotation between camera and
    headset; a mount has moved if a minute differs from the whole recording by more than half a degree, or the
    recording from its calibration. The answer is stored for `kitchensync report`, which checks recordings that were
    not checked before.

    \b
    Example:
      kitchensync calibrate check data/take-1
    """
    from kitchensync.calibration.jobs.mount_check import check_and_keep

    answers = [check_and_keep(recording, data) for path in recordings for recording in recordings_in(path)]
    worst = max((answer["status"] for answer in answers), key=("PASS", "WARN", "FAIL").index)
    if as_json:
        click.echo(json.dumps({"schema": "calibrate-check-all/1", "status": worst, "recordings": answers}))
    else:
        for answer in answers:
            _show_check(answer)
    if worst == "FAIL" or (strict and worst == "WARN"):
        sys.exit(1)


@calibrate.command()
@click.argument("recording", type=GivenRecording())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def imu(recording: Path, as_json: bool) -> None:
    """Measure bias and noise of a headset's gyroscope and accelerometer from a RECORDING in which it lay still.

    Bias, noise, Allan deviation and the direction of gravity, from the longest rest of at least ten seconds; an hour
    on a table gives the bias instability too. The result is stored beside the recording.

    \b
    Example:
      kitchensync calibrate imu data/on-the-table
    """
    from kitchensync.calibration.jobs.mount import calibrate_imu

    answer, path = calibrate_imu(recording, recording.absolute().parent)
    if as_json:
        click.echo(json.dumps({"schema": "calibrate/1", "status": "ok", "path": str(path), **answer}))
        return
    _show_at_rest("gyroscope", answer["gyroscope"], "as sent")
    _show_at_rest("accelerometer", answer["accelerometer"], "m/s^2")
    click.echo(f"down in the sensor's axes: {', '.join(f'{v:.4f}' for v in answer['down'])}")
    click.echo(f"stored in {path}")


def _show_at_rest(name: str, sensor: dict[str, Any], unit: str) -> None:
    headline(f"{name}: still for {sensor['still_s']:.0f} s at {sensor['rate_hz']:.1f} Hz")
    click.echo(f"  mean   {', '.join(f'{v:.6f}' for v in sensor['mean'])} {unit}")
    click.echo(f"  noise  {', '.join(f'{v:.2e}' for v in sensor['white_noise_per_sqrt_hz'])} {unit}/sqrt(Hz)")


def _show_mount(answer: dict[str, Any]) -> None:
    headline(f"{answer['file']} on {answer['headset']}/pv", "green")
    place = f"{answer['distance_mm']:.1f} +- {2 * answer['sigma_mm']:.1f} mm"
    turn = f"{answer['angle_deg']:.2f} +- {2 * answer['sigma_deg']:.2f} degrees"
    click.echo(f"  {place} away, turned {turn}")
    rms_px = answer["rms_px"]
    click.echo(f"  RMS {rms_px['pv']:.2f} px in the front camera, {rms_px['camera']:.2f} px in this one")
    motion = answer["by_motion"]
    if "refused" in motion:
        click.echo(f"  no estimate from motion: {motion['refused']}")
    else:
        click.echo(
            f"  the estimate from motion differs by {motion['apart_deg']:.2f} degrees"
            f" (+- {2 * motion['sigma_deg']:.2f})"
        )
    click.echo(f"  {len(answer['used'])} instants used, {len(answer['left_out'])} left out")


def _show_check(answer: dict[str, Any]) -> None:
    colour = {"PASS": "green", "WARN": "yellow", "FAIL": "red"}[answer["status"]]
    headline(f"{answer['status']}  {answer['recording']}", colour)
    for reason in answer["reasons"]:
        click.echo(f"  - {reason}")
    for mount in answer["mounts"]:
        if mount["status"] == "PASS":
            click.echo(f"  {mount['words']}")
        for minute in mount["minutes"]:
            turned, sigma = minute["turned_deg"], minute["sigma_deg"]
            text = "too little motion" if turned is None else f"{turned:.2f} +- {2 * sigma:.2f} degrees"
            click.echo(f"    {minute['middle_s']:7.0f} s  {text}")


def _show_lens(answer: dict[str, Any]) -> None:
    lens, sigma = answer["parameters"], answer["sigma"]
    headline(f"{answer['device']} {answer['serial']}, {answer['mode']}: {answer['model']}", "green")
    click.echo(
        f"  focal length {lens['fx']:.2f} +- {2 * sigma['fx']:.2f} px, {lens['fy']:.2f} +- {2 * sigma['fy']:.2f} px"
    )
    click.echo(f"  distortion {', '.join(f'{name} {lens[name]:.5f}' for name in lens if name[0] in 'kp')}")
    size = answer["picture_sigma_px"]
    click.echo(
        f"  RMS {answer['rms_px']:.2f} px, {answer['held_out_px']:.2f} px on held-out frames; sigma of a ray "
        f"{size['median']:.2f} px, at most {size['largest']:.2f} px"
    )
    click.echo(f"  {len(answer['used'])} frames used, {len(answer['left_out'])} left out")


def _shown_by(bar: Bar) -> Callable[[str, float], None]:
    """Return a progress function that shows file and seconds on a bar."""
    return lambda name, seconds: bar.show(seconds, words=name)
