"""The command `rig`: write a commented rig file, check one."""

from __future__ import annotations

import json
from pathlib import Path

import click

from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import output_file
from kitchensync.storage.options.outputs import write_output


@click.group()
def rig() -> None:
    """Write or check rig.toml, the file that lists the devices to record.

    \b
    Example:
      kitchensync rig init rig.toml
    """


@rig.command()
@output_file("path", default=Path("rig.toml"))
@click.option("--hololens", default="192.168.1.20", show_default=True, help="Address of the headset.")
@click.option(
    "--gopro", default="http://172.27.111.51:8080", show_default=True, help="Address of the camera."
)
def init(path: Path, force: bool, hololens: str, gopro: str) -> None:
    """Write a commented rig file.

    \b
    Example:
      kitchensync rig init rig.toml --hololens 192.168.1.20
    """
    from kitchensync.capture.rig.rig_file import template

    write_output(path, template(hololens, gopro).encode(), force=force)
    click.echo(f"wrote {path}; change what differs, then: kitchensync rig check {path}")


@rig.command()
@click.argument("path", type=given_path(exists=True), default=Path("rig.toml"))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(path: Path, as_json: bool) -> None:
    """Check a rig file without contacting a device, and show what it records and what it loses.

    \b
    Example:
      kitchensync rig check rig.toml
    """
    from kitchensync.capture.rig.rig_file import order_of
    from kitchensync.sensors.hololens.catalogue import headset_stream
    from kitchensync.sensors.hololens.profile import Profile

    order = order_of(path)
    streams = {
        f"{headset.name}/{short}": headset_stream(short).describe(Profile(**headset.profile))
        for headset in order.headsets
        for short in headset.streams
    }
    streams |= {f"{sensor.name}/{short}": {} for sensor in order.sensors for short in sensor.streams}
    if as_json:
        click.echo(json.dumps({"schema": "rig/1", "streams": streams, "cameras": order.cameras}))
        return
    for name, facts in streams.items():
        loses = "; ".join(facts.get("loses", []))
        click.echo(f"{name:32} {facts.get('codec', ''):12} {'loses: ' + loses if loses else ''}".rstrip())
    for name, url in order.cameras.items():
        click.echo(f"{name:32} {url}")
