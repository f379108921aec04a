"""`kitchensync replay`: serve a recording as the headset that it was."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kitchensync.storage.options.given_path import GivenRecording

if TYPE_CHECKING:
    from kitchensync.storage.exports.sent_streams import SentByHeadset

USUAL = {"link": "wifi"}
"""Default settings."""


def _of_this_computer(_context: click.Context, _parameter: click.Parameter, host: str) -> str:
    with contextlib.suppress(ValueError):
        if ipaddress.IPv4Address(host).is_loopback:
            return host
    raise click.BadParameter(f"{host} is no loopback address such as 127.3.2.1")


@click.command()
@click.argument("path", type=GivenRecording(usable=True))
@click.option(
    "--hololens-host",
    "host",
    default="127.0.0.1",
    show_default=True,
    callback=_of_this_computer,
    help="Address of the headset's ports; a loopback one, since whoever connects is served.",
)
@click.pass_obj
def replay(joined: dict[str, Any], path: Path, host: str) -> None:
    """Serve a recording as a headset on the real wire, to record or to read it anew.

    Once clients have connected every packet leaves when it arrived then, with its stamp and pose; what lies in a
    privacy pause is left out. Streams are to be asked for in the form in which they were recorded: the line that does
    so is printed. Prints `ready hololens=ADDRESS`; ends after the last packet, when nobody is connected any more.
    Cameras are not served.

    \b
    Example: kitchensync replay data/take-1 --hololens-host 127.3.2.1
    """
    from kitchensync.storage.exports.sent_streams import sent_by_headset
    from kitchensync.storage.recording import open_recording

    with open_recording(path) as recording:
        if sys.stderr.isatty():
            click.echo(f"reading {recording.id} ...", err=True)
        sent = sent_by_headset(recording)
        for device in sent.left_out:
            click.echo(f"{device}: is not served", err=True)
        click.echo(_how_to_record(sent, host), err=True)
        joined["replay"](sent, host)


def _how_to_record(sent: SentByHeadset, host: str) -> str:
    """Return how to record the streams in their recorded form."""
    line = ["kitchensync", "record", f"{sent.recording}-again"]
    rig_text = ""
    if sent.settings == USUAL:
        line += ["--hololens", host]
    else:
        values = [f"{key} = {json.dumps(value)}" for key, value in sent.settings.items()]
        rig_text = "\n".join(["rig.toml:", *values, "[hololens]", f'hololens = "{host}"', ""])
        line += ["--rig", "rig.toml"]
    names = ",".join(stream.name for stream in sent.streams)
    return (
        f"{rig_text}in another terminal: {shlex.join([*line, '--streams', names, '--consent', sent.consent])}"
    )
