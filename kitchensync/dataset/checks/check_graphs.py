"""Check the task graphs: one for each recipe, without a cycle, with every step of its recordings."""

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
    for recording in checked.annotations.recordings:
        recipes[recording.graph_stem].append(recording)
    for stem, recordings in sorted(recipes.items()):
        name = f"task_graphs/{stem}.json"
        if name not in checked.texts:
            checked.faults.differs(name, "", "the graph of a recipe", "no file")
            continue
        try:
            graph = parse_captaincook4d(checked.texts[name], name=name)
        except RecipeError as error:
            checked.faults.differs(name, "", "a task graph", str(error))
            continue
        if cycle := find_cycle(graph):
            checked.faults.differs(
                name, "", "an order of the steps", f"steps that wait for each other: {cycle}"
            )
        labels = Counter(step.label for step in graph.nodes)
        for recording in recordings:
            _check_overlap(checked, recording, labels)
            for place, entry in enumerate(recording.entries):
                if checked.annotations.step_texts.get(entry.step_id, entry.description) not in labels:
                    where = f"{recording.recording_id}[{place}]"
                    checked.flaw(name, where, f"a step {entry.description!r}", "no such step")


def _check_overlap(
    checked: DataSetUnderCheck, recording: AnnotatedRecording, labels: Mapping[str, int]
) -> None:
    """Check that repeats of a step do not overlap; steps of several nodes with one text are not repeats."""
    repeats: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    for place, entry in enumerate(recording.entries):
        text = checked.annotations.step_texts.get(entry.step_id, entry.description)
        if entry.performed and labels[text] == 1:
            repeats[text].append((entry.start_s, entry.end_s, place))
    for spans in repeats.values():
        for (_, end_s, first), (start_s, _, second) in pairwise(sorted(spans)):
            if start_s < end_s:
                where = f"{recording.recording_id}[{first}] and [{second}]"
                checked.flaw(ERRORS, where, "repeats of a step one after the other", "at the same time")
