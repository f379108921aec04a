"""`kitchensync gopro`: the commands for cameras."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from rich.markup import escape

from kitchensync.sensors.gopro.control.entry import write_credentials
from kitchensync.shell.answer import Answer, answers
from kitchensync.shell.lazy_group import LazyGroup, Table
from kitchensync.shell.progress import ByteMeter
from kitchensync.shell.terminal import console
from kitchensync.storage.copies.derived import will_write
from kitchensync.storage.options.given_path import GivenRecording, given_path
from kitchensync.storage.options.named_url import NAMED_URL
from kitchensync.storage.options.output_options import output_file

if TYPE_CHECKING:
    import rich.table

    from kitchensync.capture.camera.fetch import Fetched
    from kitchensync.sensors.gopro.control.open_camera import AnnouncedCamera
    from kitchensync.sensors.gopro.mp4.join import Joined

USERNAME = "gopro"
"""User name that every camera gives out."""
LISTEN_S = 5.0


class DiscoveredCameras(NamedTuple):
    """The object `gopro-discover/1`."""

    cameras: list[AnnouncedCamera]


class RememberedCamera(NamedTuple):
    """The object `gopro-remember/1`."""

    camera: str
    "Its address, `cohn:NAME`."
    path: Path
    "The private file."


class FetchedVideos(NamedTuple):
    """The object `gopro-fetch/1`."""

    takes: list[Fetched]


COMMANDS: Table = {
    "inspect": ("capture.commands.gopro:inspect_file", "Show what a camera file contains."),
    "join": ("capture.commands.gopro:join_files", "Join the chapters of a recording into one MP4."),
    "discover": (
        "capture.commands.gopro:discover_cameras",
        "List the cameras that announce themselves.",
    ),
    "remember": (
        "capture.commands.gopro:remember",
        "Store the password of a camera on the home network.",
    ),
    "fetch": ("capture.commands.gopro:fetch", "Download the videos that are still on the cameras."),
    "import": (
        "sync.commands.memory_card:import_card",
        "Import the videos on a memory card into their recordings.",
    ),
    "free": (
        "sync.commands.memory_card:free",
        "Delete videos from a camera once their copies are verified.",
    ),
}


@click.group(cls=LazyGroup, sections={"Commands": COMMANDS})
def gopro() -> None:
    """GoPro cameras: inspect, join, download and import their files.

    \b
    Example:
      kitchensync gopro inspect GX010001.MP4
    """


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
@answers("gopro-discover/1")
def discover_cameras() -> Answer[DiscoveredCameras]:
    """List the cameras that announce themselves on USB and on the network.

    \b
    Example:
      kitchensync gopro discover
    """
    from kitchensync.sensors.gopro.control.open_camera import discover

    return Answer(DiscoveredCameras(discover(LISTEN_S)), _show_cameras)


def _show_cameras(discovered: DiscoveredCameras) -> None:
    for camera in discovered.cameras:
        click.echo(f"usb:{camera.serial}  {camera.address}:{camera.port}")
    if not discovered.cameras:
        click.echo("no camera was discovered; over USB give its serial number: usb:SERIAL")


@click.command("remember")
@click.argument("name")
@click.option("--address", required=True, metavar="HOST[:PORT]", help="The camera on the home network.")
@click.option(
    "--certificate",
    required=True,
    type=given_path(exists=True),
    help="Its root certificate, PEM.",
)
@click.option("--password", prompt=True, hide_input=True, help="Asked for when not given.")
@answers("gopro-remember/1")
def remember(name: str, address: str, certificate: Path, password: str) -> Answer[RememberedCamera]:
    """Store the address and password of a camera on the home network, as cohn:NAME, in a private file (0600).

    The camera gives address, name, password and certificate out when it joins the network (GoPro's app or SDK).

    \b
    Example:
      kitchensync gopro remember kitchen --address 192.168.1.40 --certificate cohn.crt
    """
    path = write_credentials(
        name, address=address, username=USERNAME, password=password, certificate=certificate.read_text()
    )
    return Answer(
        RememberedCamera(f"cohn:{name}", path), lambda _: click.echo(f"cohn:{name} is stored in {path}")
    )


def _show(file: Path, described: dict[str, Any]) -> None:
    screen = console()
    screen.print(f"{file.name}  {described.get('device', 'no telemetry')}", highlight=False, markup=False)
    for line in _facts(described):
        screen.print(line, highlight=False, markup=False)
    if described["streams"]:
        screen.print(_table(described["streams"]))
    if "clues" in described:
        screen.print(_clue_table(described["clues"]))
    for damaged in described.get("damage", []):
        screen.print(f"damaged: {damaged}", style="red", highlight=False, markup=False)


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
            f"first gyroscope sample {described['gyro_first_minus_picture_first_us']} us from frame 0"
        )
    return lines


def _clue_table(clues: list[dict[str, Any]]) -> rich.table.Table:
    from rich.table import Table

    table = Table("clue", "telemetry relative to the frames", "agrees")
    marks = {True: "yes", False: "[red]no[/red]", None: "-"}
    for clue in clues:
        table.add_row(clue["name"], escape(clue["says"]), marks[clue["agrees"]])
    return table


def _table(streams: dict[str, dict[str, Any]]) -> rich.table.Table:
    from rich.table import Table

    table = Table("stream", "samples", "rate Hz", "unit", "first sample")
    for name, stream in streams.items():
        rate = stream.get("rate_hz_from_stmp", stream.get("rate_hz_from_tick", "-"))
        first = stream["first_scaled_stored_order"] or []
        values = " ".join("text" if value is None else f"{value:g}" for value in first)
        table.add_row(name, str(stream["samples"]), str(rate), stream.get("SIUN", ""), values)
    return table


@click.command("join")
@click.argument("files", nargs=-1, required=True, type=given_path(exists=True))
@output_file("target", "--out", "-o", required=True, help="The new MP4.")
@click.option("--strip-location", is_flag=True, help="Leave no GPS record, place or serial number in it.")
@answers("gopro-join/1")
def join_files(files: tuple[Path, ...], target: Path, force: bool, strip_location: bool) -> Answer[Joined]:
    """Join the chapters of one recording into one MP4 without re-encoding, keeping every track.

    One FILE means all its chapters in the same folder; several are joined in the order given.

    \b
    Example:
      kitchensync gopro join card/GX010007.MP4 --out clip.MP4 --strip-location
    """
    from kitchensync.sensors.gopro.files.clip import open_clip
    from kitchensync.sensors.gopro.mp4.join import join
    from kitchensync.storage.redact.to_destroy import check_no_pauses_in

    clip = open_clip(*files)
    for chapter in clip.chapters:
        check_no_pauses_in(chapter.path)
    paths = [chapter.path for chapter in clip.chapters]
    will_write(target)
    return Answer(join(paths, target, strip_location=strip_location, replace=force), _show_joined)


def _show_joined(joined: Joined) -> None:
    chapters = f"{len(joined.chapters)} chapters, {joined.frames} frames"
    click.echo(f"{joined.path}: {chapters}, {joined.bytes} bytes")
    if joined.stripped:
        click.echo(f"removed: {', '.join(joined.stripped)}")


@click.command("fetch")
@click.argument("path", type=GivenRecording(usable=True))
@click.option("--proxies", is_flag=True, help="Fetch the camera's small copies and thumbnails too.")
@click.option(
    "--gopro",
    "addresses",
    multiple=True,
    type=NAMED_URL,
    help="Present address of a camera; may be repeated.",
)
@answers("gopro-fetch/1")
def fetch(path: Path, proxies: bool, addresses: tuple[tuple[str, str], ...]) -> Answer[FetchedVideos]:
    """Download from the cameras the files of the recording PATH, or of all recordings in the folder PATH.

    An interrupted download is resumed. A camera that is still recording is stopped first, unless it records for a
    recording that runs now; that one fetches its files itself.

    \b
    Example:
      kitchensync gopro fetch data
    """
    from kitchensync.capture.camera.fetch import fetch_pending, pending_in

    chosen = [camera for camera in pending_in(path) if camera.is_open or proxies]
    takes, urls = [], dict(addresses)
    with ByteMeter() as meter:
        for camera in chosen:
            name = f"{camera.recording.name}/{camera.device}"
            meter.begin(name)
            url = urls.get(camera.device)
            take = fetch_pending(camera, url, proxies=proxies, print_line=meter.say, meter=meter.update)
            if take is None:
                meter.say(f"{name}: being recorded now, skipped")
            else:
                takes.append(take)
    failed = [f"{take.recording}/{take.device}: {take.problem}" for take in takes if take.problem]
    return Answer(FetchedVideos(takes), _show_fetched, failed, failed=bool(failed))


def _show_fetched(fetched: FetchedVideos) -> None:
    for take in fetched.takes:
        files = ", ".join([*take.files, *take.proxies]) or "nothing to fetch"
        click.echo(f"{take.recording}/{take.device}: {'not fetched' if take.problem else files}")
    if not fetched.takes:
        click.echo("nothing is pending")
