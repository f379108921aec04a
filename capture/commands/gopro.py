"""`kitchensync gopro`: the commands around cameras, each in the folder it belongs to, loaded when called."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from kitchensync.storage.shell.answer import Answer, answers
from kitchensync.storage.shell.given_path import GivenRecording, given_path
from kitchensync.storage.shell.lazy_group import LazyGroup, Table
from kitchensync.storage.shell.named_url import NAMED_URL
from kitchensync.storage.shell.output_options import output_file

COMMANDS: Table = {
    "inspect": ("capture.commands.gopro_files:inspect_file", "Show what a camera file contains."),
    "join": ("capture.commands.gopro:join_files", "Join the chapters of a recording into one MP4."),
    "discover": (
        "capture.commands.gopro_files:discover_cameras",
        "List the cameras that announce themselves.",
    ),
    "remember": (
        "capture.commands.gopro_files:remember",
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


@click.group(cls=LazyGroup, table=COMMANDS)
def gopro() -> None:
    """GoPro cameras: inspect, join, download and import their files.

    \b
    Example:
      kitchensync gopro inspect GX010001.MP4
    """


@click.command("join")
@click.argument("files", nargs=-1, required=True, type=given_path(exists=True))
@output_file("target", "--out", "-o", required=True, help="The new MP4.")
@click.option("--strip-location", is_flag=True, help="Leave no GPS record, place or serial number in it.")
@answers("gopro-join/1")
def join_files(files: tuple[Path, ...], target: Path, force: bool, strip_location: bool) -> Answer:
    """Join the chapters of one recording into one MP4 without re-encoding, keeping every track.

    One FILE means all its chapters in the same folder; several are joined in the order given.

    \b
    Example:
      kitchensync gopro join card/GX010007.MP4 --out clip.MP4 --strip-location
    """
    from kitchensync.sensors.gopro.files.clip import open_clip
    from kitchensync.sensors.gopro.files.join import join
    from kitchensync.storage.copies.derived import will_write
    from kitchensync.storage.redact.to_destroy import check_no_pauses_in

    clip = open_clip(*files)
    for chapter in clip.chapters:
        check_no_pauses_in(chapter.path)
    paths = [chapter.path for chapter in clip.chapters]
    will_write(target)
    joined = join(paths, target, strip_location=strip_location, replace=force)
    return Answer({**joined._asdict(), "path": str(joined.path)}, _show_joined)


def _show_joined(said: dict[str, Any]) -> None:
    chapters = f"{len(said['chapters'])} chapters, {said['frames']} frames"
    click.echo(f"{said['path']}: {chapters}, {said['bytes']} bytes")
    if said["stripped"]:
        click.echo(f"taken out: {', '.join(said['stripped'])}")


@click.command("fetch")
@click.argument("path", type=GivenRecording(usable=True))
@click.option(
    "--pending", is_flag=True, help="Fetch only recordings whose files are not here yet (the default)."
)
@click.option("--proxies", is_flag=True, help="Fetch the camera's small copies and thumbnails too.")
@click.option(
    "--gopro",
    "addresses",
    multiple=True,
    type=NAMED_URL,
    help="Present address of a camera; may be repeated.",
)
@answers("gopro-fetch/1")
def fetch(path: Path, pending: bool, proxies: bool, addresses: tuple[tuple[str, str], ...]) -> Answer:
    """Download from the cameras the files of the recording PATH, or of all recordings in the folder PATH.

    A download that was cut goes on where it stopped. A camera that is still recording is stopped first, unless a
    recording that runs now is what it films for; the files of that one come by themselves.

    \b
    Example:
      kitchensync gopro fetch data --pending
    """
    from kitchensync.capture.camera.fetch import fetch_pending, pending_in
    from kitchensync.storage.shell.progress import ByteMeter

    known = dict(addresses)
    chosen = [one for one in pending_in(path) if one.is_open or (proxies and not pending)]
    done = []
    with ByteMeter() as meter:
        for one in chosen:
            name = f"{one.recording.name}/{one.device}"
            meter.begin(name)
            address = known.get(one.device)
            fetched = fetch_pending(one, address, proxies=proxies, say=meter.say, meter=meter.update)
            if fetched is None:
                meter.say(f"{name}: being recorded now, left alone")
            else:
                done.append(fetched)
    failed = [f"{one.recording}/{one.device}: {one.problem}" for one in done if one.problem]
    return Answer({"takes": [asdict(one) for one in done]}, _show_fetched, failed, failed=bool(failed))


def _show_fetched(said: dict[str, Any]) -> None:
    for one in said["takes"]:
        files = ", ".join(one["files"] + one["proxies"]) or "nothing was left to fetch"
        click.echo(f"{one['recording']}/{one['device']}: {'not fetched' if one['problem'] else files}")
    if not said["takes"]:
        click.echo("nothing is pending")
