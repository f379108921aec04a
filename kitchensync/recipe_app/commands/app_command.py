"""The command `kitchensync app`: serve the tablet and the desk."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

import click

from kitchensync.recipe_app.web.serve import Setup, serve
from kitchensync.storage.options.data_folder import RULE
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import OutputFolder


class RigOfKitchen(click.ParamType):
    """A rig file, for every kitchen, or after `NAME=` for the kitchen of that name."""

    name = "[KITCHEN=]rig.toml"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> str:
        """Return the value unchanged after checking that the file exists."""
        path = value if Path(value).exists() else value.rpartition("=")[2]
        given_path(exists=True).convert(path, parameter, context)
        return str(value)


class ProxyAddress(click.ParamType):
    """The address of a proxy, or its network."""

    name = "address"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> str:
        """Return the address or network in canonical form."""
        try:
            return str(ipaddress.ip_network(value) if "/" in value else ipaddress.ip_address(value))
        except ValueError:
            self.fail(f"{value!r} is no IP address and no network like 10.0.0.0/24", parameter, context)


@click.command()
@click.option(
    "--data",
    type=OutputFolder(),
    help=f"Folder of the recordings, made if absent  [default: {RULE}]",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to serve on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one."
)
@click.option(
    "--recipes",
    type=given_path(exists=True, file_okay=False),
    help="Folder of task-graph files [default: our own].",
)
@click.option(
    "--database", metavar="URL", help="postgresql://... instead of the app's own file in the data folder."
)
@click.option(
    "--rig",
    multiple=True,
    type=RigOfKitchen(),
    help="Let the tablet and the desk start and stop its devices; may be repeated, one for each kitchen.",
)
@click.option(
    "--trusted-proxy",
    multiple=True,
    type=ProxyAddress(),
    help="Proxy in front of the app, by the address it connects from. Only its X-Forwarded-For and X-Forwarded-Proto "
    "are read; may be repeated  [default: none]",
)
@click.option(
    "--mine",
    is_flag=True,
    help="The data folder was this user's on another computer: what its `_app` names is obeyed here too from now on.",
)
@click.option(
    "--demo", is_flag=True, help="The guided tour: our own recipes and a data folder removed at the end."
)
def app(demo: bool, **options: Any) -> None:
    """Serve the tablet and the desk: choose a recipe, prepare errors, follow the steps, log, review.

    The first start prints a single-use invite for the admin. Beyond loopback everything is HTTPS by an authority of
    our own; the page /doctor has its certificate for tablets. Prints `ready app=ADDRESS`; Ctrl-C ends it.

    \b
    Example: kitchensync app --demo
    Example: kitchensync app --data recordings --host 0.0.0.0 --rig rig.toml
    """
    serve(Setup(**options, demo=demo), say=click.echo)
