"""Commands of the recipe app: `kitchensync graph ...` and `kitchensync app`."""

from __future__ import annotations

from pathlib import Path

import click

from recipe_app.errors import RecipeError
from recipe_app.graph_cli import refuse
from recipe_app.graph_cli_convert import agree, convert
from recipe_app.graph_cli_errors import hints, script
from recipe_app.graph_cli_graphs import check, orders
from recipe_app.graph_cli_recordings import evidence, score


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
    type=click.Path(path_type=Path),
    help="Folder of the recordings [default: recordings, made if absent].",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to serve on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one."
)
@click.option(
    "--recipes", type=click.Path(path_type=Path), help="Folder of task-graph files [default: our own]."
)
@click.option(
    "--token",
    is_flag=False,
    flag_value="",
    envvar="KITCHENSYNC_APP_TOKEN",
    help="Let only those in who have this token; without a value one is made and printed with the address.",
)
@click.option(
    "--demo", is_flag=True, help="Try it: our own recipes and a data folder that is removed at the end."
)
def app(data: Path | None, host: str, port: int, recipes: Path | None, token: str | None, demo: bool) -> None:
    """Serve the tablet's pages: choose a recipe and an order, follow its steps, log errors.

    Steps and errors go into the events of the chosen recording under --data, or of a session without any device.
    Prints `ready app=ADDRESS` once the address accepts; Ctrl-C ends it.

    \b
    Example: kitchensync app --data recordings --port 8000
    Example: kitchensync app --data recordings --host 0.0.0.0 --token
    """
    from recipe_app.serve import Setup, serve

    try:
        serve(Setup(data=data, host=host, port=port, recipes=recipes, token=token, demo=demo), say=click.echo)
    except RecipeError as error:
        refuse(error)
