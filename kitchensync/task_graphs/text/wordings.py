"""The texts of a recipe in one more language: as many lines as steps, in the order of their ids."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.model import Graph, Wording

LANGUAGE = re.compile(r"[a-z]{2,3}")


def with_wording(graph: Graph, language: str, title: str, lines: Sequence[str], *, own: str = "") -> Graph:
    """Return the graph with its steps said in a language, an earlier wording of that language replaced.

    `own` names the language of the graph itself where the graph does not. Raises BadGraph.
    """
    own = graph.language or own
    for name in (language, own):
        if not LANGUAGE.fullmatch(name):
            raise BadGraph(graph.name, "language", "a language is two or three small letters: en, de, ar")
    if language == own:
        raise BadGraph(graph.name, "language", f"is {own} itself; change its steps by a new version")
    said = [" ".join(line.split()) for line in lines if line.strip()]
    if len(said) != len(graph.steps):
        raise BadGraph(
            graph.name,
            language,
            f"{len(said)} lines for {len(graph.steps)} steps; write a line for each step",
        )
    labels = tuple((step.node, label_of(line)) for step, line in zip(graph.steps, said, strict=True))
    others = tuple(wording for wording in graph.wordings if wording.language != language)
    return replace(
        graph, language=own, wordings=(*others, Wording(language, labels, " ".join(title.split())))
    )


def label_of(line: str) -> str:
    """Make a step's label of what a person reads: led by its first word, so that a hyphen in it stays one."""
    return f"{re.split(r'[ -]', line, maxsplit=1)[0]}-{line}"
