"""The command `kitchensync graph ...`."""

from __future__ import annotations

import click

from kitchensync.recipe_app.commands.graph.check_and_orders import check, orders
from kitchensync.recipe_app.commands.graph.convert import agree, convert
from kitchensync.recipe_app.commands.graph.score_command import score
from kitchensync.recipe_app.commands.graph.scripts_and_hints import hints, script


@click.group()
def graph() -> None:
    """Check task graphs, draw orders and error scripts from them, and score recordings against them.

    \b
    Example: kitchensync graph orders kitchensync/examples/recipes/tea_and_toast.json --count 3 --seed 1
    """


for command in (check, orders, script, hints, score, agree, convert):
    graph.add_command(command)
