"""`kitchensync annotate`: step times that people mark in films with other tools."""

from __future__ import annotations

from typing import Any

import click

from storage.shell.lazy_group import LazyGroup, Table

VERBS: Table = {
    "read": ("recipe_app.commands.annotate_read:read", "Read what an annotation tool exported."),
    "agree": (
        "recipe_app.commands.annotate_agree:agree",
        "Say how well every two people agree.",
    ),
    "accept": (
        "recipe_app.commands.annotate_accept:accept",
        "Make an annotation the step times of a recording.",
    ),
}


@click.group(cls=LazyGroup, table=VERBS)
def annotate(**_: Any) -> None:
    """Let people mark step times with other tools, and take back what they marked.

    \b
    Example:
      kitchensync annotate read tasks.json --config config.xml --fps 30000/1001
    """
