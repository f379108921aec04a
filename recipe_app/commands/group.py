"""Commands of the recipe app: `kitchensync graph ...` and `kitchensync app`."""

from __future__ import annotations

from typing import Any

import click

from recipe_app.commands.check_and_orders import check, orders
from recipe_app.commands.convert import agree, convert
from recipe_app.commands.score_and_evidence import evidence, score
from recipe_app.commands.scripts_and_hints import hints, script
from storage.shell.given_path import given_path
from storage.shell.output_options import OutputFolder


@click.group()
def graph() -> None:
    """Check task graphs, draw orders and error scripts from them, and judge recordings against them.

    \b
    Example: kitchensync graph orders examples/recipes/tea_and_toast.json --count 3 --seed 1
    """


for command in (check, orders, script, hints, score, evidence, agree, convert):
    graph.add_command(command)


@click.command()
@click.option(
    "--data",
    type=OutputFolder(),
    help="Folder of the recordings [default: recordings, made if absent].",
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
    type=given_path(exists=True),
    help="rig.toml: let the tablet and the desk start and stop its devices.",
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
    from recipe_app.web.serve import Setup, serve

    joined = click.get_current_context().find_object(dict) or {}
    serve(Setup(**options, demo=demo, station=joined.get("station")), say=click.echo)
