"""`kitchensync gopro inspect`, `discover` and `remember`: what a camera file holds, and which cameras there are."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kitchensync.storage.shell.answer import Answer, answers
from kitchensync.storage.shell.given_path import given_path

if TYPE_CHECKING:
    from rich.table import Table


@click.command("inspect")
@click.argument("file", type=given_path(exists=True, dir_okay=False))
@answers("gopro-inspect/1", is_bare=True)
def inspect_file(file: Path) -> Answer:
    """Show what FILE contains: frames, sound, and every telemetry stream with its count, timestamps and rate.

    FILE is an MP4; any other file is tried as bare GPMF payloads. Values are as stored, divided by SCAL.

    \b
    Example:
      kitchensync gopro inspect GX010001.MP4 --json
    """
    from kitchensync.sensors.gopro.files.inspect import inspect

    return Answer(inspect(file), partial(_show, file))


@click.command("discover")
@click.option("--seconds", default=5.0, show_default=True, help="How many seconds to listen.")
@answers("gopro-discover/1")
def discover_cameras(seconds: float) -> Answer:
    """List the cameras that announce themselves on USB and on the network.

    \b
    Example:
      kitchensync gopro discover
    """
    from kitchensync.sensors.gopro.control.open_camera import discover

    return Answer({"cameras": [camera._asdict() for camera in discover(seconds)]}, _show_cameras)


def _show_cameras(said: dict[str, Any]) -> None:
    for camera in said["cameras"]:
        click.echo(f"usb:{camera['serial']}  {camera['address']}:{camera['port']}")
    if not said["cameras"]:
        click.echo("no camera announces itself; over USB give its serial number: usb:SERIAL")


@click.command("remember")
@click.argument("name")
@click.option("--address", required=True, metavar="HOST[:PORT]", help="The camera on the home network.")
@click.option("--username", default="gopro", show_default=True, help="User name that the camera gave out.")
@click.option(
    "--certificate",
    required=True,
    type=given_path(exists=True),
    help="Its root certificate, PEM.",
)
@click.option("--password", prompt=True, hide_input=True, help="Asked for when not given.")
@answers("gopro-remember/1")
def remember(name: str, address: str, username: str, certificate: Path, password: str) -> Answer:
    """Store the address and password of a camera on the home network, as cohn:NAME, in a private file (0600).

    The camera gives address, name, password and certificate out when it joins the network (GoPro's app or SDK).

    \b
    Example:
      kitchensync gopro remember kitchen --address 192.168.1.40 --certificate cohn.crt
    """
    from kitchensync.sensors.gopro.control.entry import write_credentials

    path = write_credentials(
        name, address=address, username=username, password=password, certificate=certificate.read_text()
    )
    said = {"camera": f"cohn:{name}", "path": str(path)}
    return Answer(said, lambda _: click.echo(f"cohn:{name} is kept in {path}"))


def _show(file: Path, described: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console()
    console.print(f"{file.name}  {described.get('device', 'no telemetry')}", highlight=False, markup=False)
    for line in _facts(described):
        console.print(line, highlight=False, markup=False)
    if described["streams"]:
        console.print(_table(described["streams"]))
    if "clues" in described:
        console.print(_clue_table(described["clues"]))
    for damaged in described.get("damage", []):
        console.print(f"damaged: {damaged}", style="red", highlight=False, markup=False)


def _facts(described: dict[str, Any]) -> list[str]:
    lines = []
    if "video" in described:
        video = described["video"]
        size = f"{video['width']}x{video['height']}"
        lines.append(
            f"video   {video['codec']} {size}, {video['frames']} frames at {video['fps']}, {video['duration_s']} s"
        )
    if "audio" in described:
        audio = described["audio"]
        lines.append(f"audio   {audio['codec']} {audio['rate']} Hz, {audio['duration_s']} s")
    if "tmcd_wall_seconds_since_midnight" in described:
        minutes, seconds = divmod(described["tmcd_wall_seconds_since_midnight"], 60)
        lines.append(
            f"started {int(minutes) // 60:02}:{int(minutes) % 60:02}:{seconds:06.3f} by the camera's local clock"
        )
    lines.append(f"telemetry {described['payloads']} payloads, {sum(described['payload_bytes'])} bytes")
    if "gyro_first_minus_picture_first_us" in described:
        lines.append(
            f"first gyroscope sample {described['gyro_first_minus_picture_first_us']} us from picture 0"
        )
    return lines


def _clue_table(clues: list[dict[str, Any]]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table("clue", "where telemetry lies on the pictures", "agrees")
    marks = {True: "yes", False: "[red]no[/red]", None: "-"}
    for clue in clues:
        table.add_row(clue["name"], escape(clue["says"]), marks[clue["agrees"]])
    return table


def _table(streams: dict[str, dict[str, Any]]) -> Table:
    from rich.table import Table

    table = Table("stream", "samples", "rate Hz", "unit", "first sample")
    for name, stream in streams.items():
        rate = stream.get("rate_hz_from_stmp", stream.get("rate_hz_from_tick", "-"))
        first = stream["first_scaled_stored_order"] or []
        values = " ".join("text" if value is None else f"{value:g}" for value in first)
        table.add_row(name, str(stream["samples"]), str(rate), stream.get("SIUN", ""), values)
    return table
