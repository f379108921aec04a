"""Task graphs: one for each recipe, without a circle, with every step that was cooked."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import pairwise

from kitchensync.dataset.checks.release_faults import DataSetUnderCheck
from kitchensync.task_graphs.errors import RecipeError
from kitchensync.task_graphs.formats.annotations import ERRORS, AnnotatedRecording
from kitchensync.task_graphs.formats.captaincook4d import parse_captaincook4d
from kitchensync.task_graphs.order.closure import find_cycle


def check_graphs(checked: DataSetUnderCheck) -> None:
    """Check the graph of each recipe, and the steps of its recordings against it."""
    recipes: dict[str, list[AnnotatedRecording]] = defaultdict(list)
    for one in checked.annotations.recordings:
        recipes[one.graph_stem].append(one)
    for stem, recordings in sorted(recipes.items()):
        name = f"task_graphs/{stem}.json"
        if name not in checked.texts:
            checked.found.differs(name, "", "the graph of a recipe", "no file")
            continue
        try:
            graph = parse_captaincook4d(checked.texts[name], name=name)
        except RecipeError as error:
            checked.found.differs(name, "", "a task graph", str(error))
            continue
        if cycle := find_cycle(graph):
            checked.found.differs(
                name, "", "an order of the steps", f"steps that wait for each other: {cycle}"
            )
        labels = Counter(step.label for step in graph.nodes)
        for one in recordings:
            _tiers(checked, one, labels)
            for place, entry in enumerate(one.entries):
                if checked.annotations.step_texts.get(entry.step_id, entry.description) not in labels:
                    where = f"{one.recording_id}[{place}]"
                    checked.flaw(name, where, f"a step {entry.description!r}", "no such step")


def _tiers(checked: DataSetUnderCheck, one: AnnotatedRecording, labels: Mapping[str, int]) -> None:
    """Name a step whose repeats overlap each other; several nodes of one text are no repeats."""
    repeats: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    for place, entry in enumerate(one.entries):
        text = checked.annotations.step_texts.get(entry.step_id, entry.description)
        if entry.performed and labels[text] == 1:
            repeats[text].append((entry.start_s, entry.end_s, place))
    for found in repeats.values():
        for (_, end_s, first), (start_s, _, second) in pairwise(sorted(found)):
            if start_s < end_s:
                where = f"{one.recording_id}[{first}] and [{second}]"
                checked.flaw(ERRORS, where, "repeats of a step one after the other", "at the same time")
