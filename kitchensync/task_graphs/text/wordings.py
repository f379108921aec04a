"""The texts of a recipe in another language: one line per step, in the order of their ids."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.model import Graph, Wording

LANGUAGE = re.compile(r"[a-z]{2,3}")


def with_wording(graph: Graph, language: str, title: str, lines: Sequence[str], *, own: str = "") -> Graph:
    """Return the graph with its steps in one more language, replacing earlier texts of that language.

    `own` is the language of the graph if the graph does not have it. Raises BadGraph.
    """
    own = graph.language or own
    for name in (language, own):
        if not LANGUAGE.fullmatch(name):
            raise BadGraph(graph.name, "language", "a language is two or three small letters: en, de, ar")
    if language == own:
        raise BadGraph(
            graph.name, "language", f"is the recipe's own ({own}); change its steps in a new version"
        )
    texts = [" ".join(line.split()) for line in lines if line.strip()]
    if len(texts) != len(graph.steps):
        why = f"{len(texts)} lines for {len(graph.steps)} steps; write a line for each step"
        raise BadGraph(graph.name, language, why)
    labels = tuple((step.node, label_of(text)) for step, text in zip(graph.steps, texts, strict=True))
    others = tuple(wording for wording in graph.wordings if wording.language != language)
    new = Wording(language, labels, " ".join(title.split()))
    return replace(graph, language=own, wordings=(*others, new))


def label_of(line: str) -> str:
    """Return a step's label for a text: its first word, a hyphen, and the text, so that hyphens in it are kept."""
    return f"{re.split(r'[ -]', line, maxsplit=1)[0]}-{line}"
