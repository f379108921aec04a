"""`kitchensync annotate`: step times that people mark in films with other tools."""

from __future__ import annotations

from typing import Any

import click

from kitchensync.shell.lazy_group import LazyGroup, Table

VERBS: Table = {
    "export": (
        "dataset.commands.annotate.annotate_export:export",
        "Write films, labels and proposals for an annotation server.",
    ),
    "push": ("dataset.commands.annotate.annotate_server:push", "Add tasks to a Label Studio server."),
    "pull": (
        "dataset.commands.annotate.annotate_server:pull",
        "Download what people marked on the server.",
    ),
    "read": ("dataset.commands.annotate.annotate_read:read", "Read the export of an annotation tool."),
    "agree": (
        "dataset.commands.annotate.annotate_read:agree",
        "Show how well each pair of annotators agrees.",
    ),
    "accept": (
        "dataset.commands.annotate.annotate_accept:accept",
        "Accept an annotation as the step times of a recording.",
    ),
}


@click.group(cls=LazyGroup, sections={"Commands": VERBS})
def annotate(**_: Any) -> None:
    """Exchange step times with other annotation tools: export tasks, import what people marked.

    \b
    Example:
      kitchensync annotate export data --out to-annotate
      kitchensync annotate push data --url http://127.0.0.1:8080 --token-file token
      kitchensync annotate pull data --url http://127.0.0.1:8080 --token-file token
      kitchensync annotate accept data/take-1 --annotation 1000
    """
