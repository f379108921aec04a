"""The commands `cloud`, `mesh` and `overlay`: a recording seen in one space."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from kitchensync.shell.progress import Bar
from kitchensync.storage.options.given_path import GivenRecording, given_path
from kitchensync.storage.options.output_options import output_file

Command = Callable[..., Any]


def _common(command: Command) -> Command:
    """Add what all three take."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
        click.option(
            "--seconds",
            type=click.FloatRange(min=0.0, min_open=True),
            help="Length in seconds.  [default: to the end]",
        ),
        click.option(
            "--start",
            "start_s",
            type=click.FloatRange(min=0.0),
            default=0.0,
            help="Begin this many seconds after the first picture.",
        ),
        click.argument("recording", type=GivenRecording(usable=True)),
    ):
        command = option(command)
    return command


def _data(command: Command) -> Command:
    return click.option(
        "--data",
        type=given_path(exists=True, file_okay=False),
        help="Folder whose calibrations are used.  [default: the recording's folder]",
    )(command)


def _out(what: str, ending: str) -> Callable[[Command], Command]:
    """Declare `--out` and `--force`; the default lies in this folder and is named after the recording."""

    def name(given: dict[str, Any]) -> str:
        stem = Path(given["camera"]).stem if "camera" in given else ending.partition(".")[0]
        return f"{given['recording'].resolve().name}-{stem}{Path(ending).suffix}"

    words = f"{what}  [default: <recording>-{ending}]"
    return output_file("out", "--out", default_name=name, help=words)


def _voxel_mm(least: float, default: float, what: str) -> Callable[[Command], Command]:
    size = click.FloatRange(min=least)
    return click.option(
        "--voxel-mm", type=size, default=default, show_default=True, help=f"Side of a {what} in millimetres."
    )


def _depth(command: Command) -> Command:
    return click.option(
        "--depth", metavar="STREAM", help="Depth stream.  [default: far depth, else near depth]"
    )(command)


@click.command()
@_common
@_out("The PLY to write.", "cloud.ply")
@_depth
@click.option(
    "--cameras",
    metavar="A,B,...",
    help="Which give colour: pv, gopro, a film's name, none.  [default: all that can]",
)
@_voxel_mm(1.0, 10.0, "cube")
@_data
def cloud(
    recording: Path,
    out: Path,
    force: bool,
    depth: str | None,
    cameras: str | None,
    voxel_mm: float,
    data: Path | None,
    start_s: float,
    seconds: float | None,
    as_json: bool,
) -> None:
    """Write all depth of RECORDING as one coloured point cloud in world coordinates.

    Each cube of the room becomes a point at the mean of what was measured in it; cubes that a single depth pixel fell
    into are left out. Colour comes from the pictures nearest in time, where nothing is in front of a point. Work that
    was cut off goes on where it was.

    \b
    Example:
      kitchensync cloud data/take-1 --out kitchen.ply
      kitchensync cloud data/take-1 --depth depth_ahat --cameras pv --voxel-mm 4 --start 60 --seconds 10
    """
    from kitchensync.calibration.space.cloud import CloudRequest, make_cloud

    names = (
        None
        if cameras is None
        else tuple(n.strip() for n in cameras.split(",") if n.strip() not in ("", "none"))
    )
    wanted = CloudRequest(depth, names, voxel_mm / 1e3, start_s, seconds)
    with Bar(out.name, unit="pictures") as bar:
        answer = make_cloud(
            recording, out, data or recording.absolute().parent, wanted, bar.show, force=force
        )
    if as_json:
        click.echo(json.dumps(answer))
        return
    colours = (
        f"{answer['coloured']:.0%} coloured by {', '.join(answer['cameras'])}"
        if answer["cameras"]
        else "no colours"
    )
    click.echo(f"{out}  {answer['points']} points of {answer['pictures']} pictures, {colours}")
    for name, why in answer["cameras_left_out"].items():
        click.echo(f"  {name} gives no colour: {why}")
    _left_out(answer)


@click.command()
@_common
@_out("The PLY to write.", "mesh.ply")
@_depth
@_voxel_mm(2.0, 20.0, "cell")
def mesh(
    recording: Path,
    out: Path,
    force: bool,
    depth: str | None,
    voxel_mm: float,
    start_s: float,
    seconds: float | None,
    as_json: bool,
) -> None:
    """Fuse the depth of RECORDING into a mesh of its kitchen.

    Far depth (Long Throw) sees the room; near depth (AHAT) is taken without the pixels that wrapped. Needs Open3D,
    the extra `calib`. Work that was cut off goes on where it was.

    \b
    Example:
      kitchensync mesh data/take-1 --out kitchen.ply
    """
    from kitchensync.calibration.space.mesh import MeshRequest, make_mesh

    wanted = MeshRequest(depth, voxel_mm / 1e3, start_s, seconds)
    with Bar(out.name, unit="pictures") as bar:
        answer = make_mesh(recording, out, wanted, bar.show, force=force)
    if as_json:
        click.echo(json.dumps(answer))
        return
    click.echo(f"{out}  {answer['triangles']} triangles of {answer['pictures']} pictures")
    _left_out(answer)


@click.command()
@_common
@_out("The MP4.", "<camera>.mp4")
@click.option(
    "--camera",
    default="pv",
    show_default=True,
    help="pv, gopro, or the name of a film where there are several.",
)
@click.option(
    "--depth", metavar="STREAM", help="Depth stream, or none.  [default: far depth, else near depth]"
)
@click.option(
    "--width",
    type=click.IntRange(min=0),
    default=1280,
    show_default=True,
    help="Width of the film in pixels; 0 keeps the camera's own.",
)
@_data
def overlay(
    recording: Path,
    out: Path,
    force: bool,
    camera: str,
    depth: str | None,
    width: int,
    data: Path | None,
    start_s: float,
    seconds: float | None,
    as_json: bool,
) -> None:
    """Draw hands, gaze and the outlines of objects into a camera's video of RECORDING.

    Joints are full where the camera sees them and hollow where depth shows something in front. The ring is
    what the eyes look at, with a dot where depth gives its distance. A GoPro wants `sync`, `calibrate gopro`
    and `calibrate rig` before. Work that was cut off goes on where it was.

    \b
    Example:
      kitchensync overlay data/take-1 --camera gopro --start 60 --seconds 30 --out look.mp4
    """
    from kitchensync.calibration.space.overlay import OverlayRequest, make_overlay

    wanted = OverlayRequest(camera, depth, start_s, seconds, width or None)
    with Bar(out.name, unit="pictures") as bar:
        answer = make_overlay(
            recording, out, data or recording.absolute().parent, wanted, bar.show, force=force
        )
    if as_json:
        click.echo(json.dumps(answer))
        return
    click.echo(f"{out}  {answer['pictures']} pictures of {answer['camera']}")
    if answer["drawn_now"]["unplaced"]:
        click.echo(f"  {answer['drawn_now']['unplaced']} without a known pose are left as they were")


def _left_out(answer: dict[str, Any]) -> None:
    words = {
        "untracked": "without a pose",
        "other_world": "of another world frame",
        "undecodable": "not decoded",
    }
    for key, why in words.items():
        if answer["left_out"][key]:
            click.echo(f"  {answer['left_out'][key]} pictures left out: {why}")
    if answer["wrapped_pixels"]:
        click.echo(f"  {answer['wrapped_pixels']} near-depth pixels left out: they wrapped")
