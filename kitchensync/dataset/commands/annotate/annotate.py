"""`kitchensync annotate`: step times that people mark in videos with other tools."""

from __future__ import annotations

from typing import Any

import click

from kitchensync.shell.lazy_group import LazyGroup, Table

_HERE = "dataset.commands.annotate.annotate"
VERBS: Table = {
    "export": (f"{_HERE}_export:export", "Write videos, labels and proposals for an annotation server."),
    "push": (f"{_HERE}_server:push", "Add tasks to a Label Studio server."),
    "pull": (f"{_HERE}_server:pull", "Download what people marked on the server."),
    "read": (f"{_HERE}_read:read", "Read the export of an annotation tool."),
    "agree": (f"{_HERE}_read:agree", "Show how well each pair of annotators agrees."),
    "accept": (f"{_HERE}_accept:accept", "Accept an annotation as the step times of a recording."),
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
