"""The commands `cloud`, `mesh` and `overlay`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from kitchensync.shell.progress import Bar
from kitchensync.storage.options.given_path import GivenRecording, given_path
from kitchensync.storage.options.output_options import output_file

Command = Callable[..., Any]


def _common(command: Command) -> Command:
    """Add the options of all three commands."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
        click.option(
            "--to",
            "end_s",
            type=click.FloatRange(min=0.0, min_open=True),
            default=math.inf,
            help="End this many seconds after the first frame.  [default: at the last]",
        ),
        click.option(
            "--from",
            "start_s",
            type=click.FloatRange(min=0.0),
            default=0.0,
            help="Begin this many seconds after the first frame.",
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
    """Declare `--out` and `--force`; the default is in the current folder and named after the recording."""

    def name(params: dict[str, Any]) -> str:
        stem = Path(params["camera"]).stem if "camera" in params else ending.partition(".")[0]
        return f"{params['recording'].resolve().name}-{stem}{Path(ending).suffix}"

    help_text = f"{what}  [default: <recording>-{ending}]"
    return output_file("out", "--out", default_name=name, help=help_text)


def _voxel_mm(minimum: float, default: float, what: str) -> Callable[[Command], Command]:
    size = click.FloatRange(min=minimum)
    return click.option(
        "--voxel-mm", type=size, default=default, show_default=True, help=f"Side of a {what} in millimetres."
    )


@click.command()
@_common
@_out("The PLY to write.", "cloud.ply")
@click.option(
    "--cameras",
    metavar="A,B,...",
    help="Cameras for colour: pv, gopro, a video's name, none.  [default: all that can]",
)
@_voxel_mm(1.0, 10.0, "cube")
@_data
def cloud(
    recording: Path,
    out: Path,
    force: bool,
    cameras: str | None,
    voxel_mm: float,
    data: Path | None,
    start_s: float,
    end_s: float,
    as_json: bool,
) -> None:
    """Write all depth of RECORDING as one coloured point cloud in world coordinates.

    Each cube of the room becomes a point at the mean of the measurements in it; cubes with a single measurement are
    left out. Colour comes from the frames nearest in time in which the point is not hidden. An interrupted run is
    resumed.

    \b
    Example:
      kitchensync cloud data/take-1 --out kitchen.ply
      kitchensync cloud data/take-1 --cameras pv --voxel-mm 4 --from 60 --to 70
    """
    from kitchensync.calibration.space.cloud import CloudRequest, make_cloud

    names = None
    if cameras is not None:
        names = tuple(name.strip() for name in cameras.split(",") if name.strip() not in ("", "none"))
    request = CloudRequest(names, voxel_mm / 1e3, start_s, end_s)
    with Bar(out.name, unit="frames") as bar:
        answer = make_cloud(
            recording, out, data or recording.absolute().parent, request, bar.show, force=force
        )
    if as_json:
        click.echo(json.dumps(answer))
        return
    colours = "no colours"
    if answer["cameras"]:
        colours = f"{answer['coloured']:.0%} coloured by {', '.join(answer['cameras'])}"
    click.echo(f"{out}  {answer['points']} points from {answer['pictures']} frames, {colours}")
    for name, why in answer["cameras_left_out"].items():
        click.echo(f"  no colour from {name}: {why}")
    _show_left_out(answer)


@click.command()
@_common
@_out("The PLY to write.", "mesh.ply")
@_voxel_mm(2.0, 20.0, "cell")
def mesh(
    recording: Path,
    out: Path,
    force: bool,
    voxel_mm: float,
    start_s: float,
    end_s: float,
    as_json: bool,
) -> None:
    """Fuse the depth of RECORDING into a mesh of its kitchen.

    Far depth (Long Throw) covers the room; near depth (AHAT) is used without pixels that wrapped around. Needs
    Open3D, the extra `calib`. An interrupted run is resumed.

    \b
    Example:
      kitchensync mesh data/take-1 --out kitchen.ply
    """
    from kitchensync.calibration.space.mesh import MeshRequest, make_mesh

    request = MeshRequest(voxel_mm / 1e3, start_s, end_s)
    with Bar(out.name, unit="frames") as bar:
        answer = make_mesh(recording, out, request, bar.show, force=force)
    if as_json:
        click.echo(json.dumps(answer))
        return
    click.echo(f"{out}  {answer['triangles']} triangles from {answer['pictures']} frames")
    _show_left_out(answer)


@click.command()
@_common
@_out("The MP4.", "<camera>.mp4")
@click.option(
    "--camera",
    default="pv",
    show_default=True,
    help="pv, gopro, or the name of a video if there are several.",
)
@click.option(
    "--depth", metavar="STREAM", help="Depth stream, or none.  [default: far depth, else near depth]"
)
@click.option(
    "--width",
    type=click.IntRange(min=0),
    default=1280,
    show_default=True,
    help="Width of the video in pixels; 0 keeps the camera's own.",
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
    end_s: float,
    as_json: bool,
) -> None:
    """Draw hands, gaze and the outlines of objects into a camera's video of RECORDING.

    Visible joints are filled; joints that depth shows to be hidden are hollow. The ring is the point that the eyes
    look at, with a dot if depth gives its distance. A GoPro needs `sync`, `calibrate gopro` and `calibrate rig`
    before. An interrupted run is resumed.

    \b
    Example:
      kitchensync overlay data/take-1 --camera gopro --from 60 --to 90 --out look.mp4
    """
    from kitchensync.calibration.space.overlay import OverlayRequest, make_overlay

    request = OverlayRequest(camera, depth, start_s, end_s, width or None)
    with Bar(out.name, unit="frames") as bar:
        answer = make_overlay(
            recording, out, data or recording.absolute().parent, request, bar.show, force=force
        )
    if as_json:
        click.echo(json.dumps(answer))
        return
    click.echo(f"{out}  {answer['pictures']} frames of {answer['camera']}")
    if answer["drawn_now"]["unplaced"]:
        click.echo(f"  {answer['drawn_now']['unplaced']} of them without a known pose are not changed")


def _show_left_out(answer: dict[str, Any]) -> None:
    reasons = {
        "untracked": "without a pose",
        "other_world": "of another world frame",
        "undecodable": "not decoded",
    }
    for key, why in reasons.items():
        if answer["left_out"][key]:
            click.echo(f"  {answer['left_out'][key]} frames left out: {why}")
    if answer["wrapped_pixels"]:
        click.echo(f"  {answer['wrapped_pixels']} near-depth pixels left out: they wrapped")
