"""Score a folder of annotated recordings against its task graphs: the numbers of an `expected.json`.

Counts per graph and per recipe, their totals, the agreement of violations with the annotators' tags, and lists of the
recordings in which both disagree.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from kitchensync.task_graphs.errors import TooManyStates
from kitchensync.task_graphs.formats.annotations import (
    MISSING_STEP,
    ORDER_ERROR,
    AnnotatedRecording,
    Annotations,
    Entry,
)
from kitchensync.task_graphs.formats.graph_files import read_annotations, read_text
from kitchensync.task_graphs.formats.strict_json import Reader, load
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.order.closure import find_cycle, redundant_edges, relation
from kitchensync.task_graphs.order.orders import Orders
from kitchensync.task_graphs.scoring.evidence import Observation
from kitchensync.task_graphs.scoring.judge import Judgement, Performed, Prerequisites, judge, match_texts
from kitchensync.task_graphs.scoring.validate import between_start_and_end

WINDOWS = (2, 3, 4, 5)  # numbers of steps in the published clips

Counts = Counter[str]
Agreement = dict[str, Counter[str]]


class GraphNumbers(TypedDict):
    """Numbers of a graph; None if a cycle makes them meaningless or they cannot be counted."""

    nodes_with_start_end: int
    steps: int
    edges: int
    is_dag: bool
    redundant_edges: int | None
    every_node_between_start_and_end: bool
    topological_orders: int | None
    down_sets: int | None
    "Sets of steps that may be done at one moment."
    shared_texts: list[str]
    "Texts of several steps."
    unused_node_ids: list[int]


class FolderScores(TypedDict):
    """The object `graph-score/1`."""

    graphs: dict[str, GraphNumbers]
    recipes: dict[str, dict[str, int]]
    "Recipe: counts by name."
    totals: dict[str, int]
    tags: dict[str, dict[str, int]]
    "Violation and tag: both, only_violation, only_tag, neither."
    lists: dict[str, list[str] | list[list[str | int]]]
    "Recordings, or recordings with a step, in which tags, times and texts contradict each other."


@dataclass(frozen=True)
class JudgedRecording:
    """One recording: its performed entries in order of time with their nodes, judged by time and in list order."""

    recording: AnnotatedRecording
    sequence: list[tuple[Entry, int | None]]
    by_time: Judgement
    by_list: Judgement

    @property
    def first_entries(self) -> dict[int, Entry]:
        """The entry of the first performance of each step."""
        entries: dict[int, Entry] = {}
        for entry, node in self.sequence:
            if node is not None:
                entries.setdefault(node, entry)
        return entries

    def tagged(self, tag: str) -> bool:
        """Return whether any entry has this tag."""
        return any(entry.has_tag(tag) for entry in self.recording.entries)


def judge_recording(
    recording: AnnotatedRecording, order: Prerequisites, step_texts: Mapping[int, str]
) -> JudgedRecording:
    """Match entries to steps by the text of their step id, and judge them in order of time and of the list."""
    in_list = [entry for entry in recording.entries if entry.performed]
    in_time = sorted(in_list, key=lambda entry: (entry.start_s, entry.end_s))
    judgements, sequence = [], []
    for entries in (in_list, in_time):
        nodes = match_texts(order, (step_texts.get(entry.step_id, "") for entry in entries))
        sequence = list(zip(entries, nodes, strict=True))
        judgements.append(judge(order, [Performed(n, e.start_s, e.end_s) for e, n in sequence]))
    return JudgedRecording(recording, sequence, by_time=judgements[1], by_list=judgements[0])


def score(graphs: Mapping[str, Graph], annotations: Annotations) -> FolderScores:
    """Return all numbers. Recordings without a graph are left out: see `without_graph`."""
    orders = {stem: Prerequisites(graph) for stem, graph in graphs.items() if not find_cycle(graph)}
    judged: dict[str, list[JudgedRecording]] = defaultdict(list)
    for recording in annotations.recordings:
        if recording.graph_stem in orders:
            order = orders[recording.graph_stem]
            judged[recording.graph_stem].append(judge_recording(recording, order, annotations.step_texts))
    per_graph = {stem: graph_numbers(graph) for stem, graph in sorted(graphs.items())}
    texts = annotations.step_texts
    per_recipe = {stem: recipe_numbers(judged[stem], texts) for stem in sorted(judged)}
    everything = [recording for stem in sorted(judged) for recording in judged[stem]]
    return {
        "graphs": per_graph,
        "recipes": {stem: dict(counts) for stem, counts in per_recipe.items()},
        "totals": _totals(per_recipe.values(), per_graph.values()),
        "tags": {name: dict(counts) for name, counts in tag_agreement(everything).items()},
        "lists": disagreements(everything, texts),
    }


def observations(
    graph: Graph, stem: str, annotations: Annotations
) -> tuple[Prerequisites, list[Observation]]:
    """Return the order of a recipe and its judged recordings, for the evidence of its edges. Raises CyclicGraph."""
    order = Prerequisites(graph)
    return order, [
        Observation(
            recording.recording_id,
            judge_recording(recording, order, annotations.step_texts).by_time,
            not recording.is_error,
        )
        for recording in annotations.recordings
        if recording.graph_stem == stem
    ]


def without_graph(graphs: Mapping[str, Graph], annotations: Annotations) -> list[str]:
    """Return the recipes that have recordings but no usable graph; `score` leaves them out."""
    usable = {stem for stem, graph in graphs.items() if not find_cycle(graph)}
    return sorted({recording.graph_stem for recording in annotations.recordings} - usable)


def graph_numbers(graph: Graph) -> GraphNumbers:
    """Return the numbers of one graph."""
    is_dag = find_cycle(graph) is None
    orders = None
    if is_dag:
        with suppress(TooManyStates):
            orders = Orders(relation(graph))
    labels = Counter(step.label for step in graph.steps)
    ids = {step.node for step in graph.nodes}
    return {
        "nodes_with_start_end": len(graph.nodes),
        "steps": len(graph.steps),
        "edges": len(graph.edges),
        "is_dag": is_dag,
        "redundant_edges": len(redundant_edges(graph)) if is_dag else None,
        "every_node_between_start_and_end": between_start_and_end(graph),
        "topological_orders": orders.total if orders else None,
        "down_sets": orders.down_sets if orders else None,
        "shared_texts": sorted(label for label, count in labels.items() if count > 1),
        "unused_node_ids": sorted(set(range(max(ids) + 1)) - ids),
    }


def recipe_numbers(judged: Sequence[JudgedRecording], step_texts: Mapping[int, str]) -> Counts:
    """Sum the numbers of a recipe's recordings."""
    counts: Counts = Counter()
    for recording in judged:
        counts.update(_entry_numbers(recording, step_texts))
        counts.update(_pair_numbers(recording.by_time))
        counts.update(_recording_numbers(recording))
        performed = len(recording.sequence)
        counts.update({f"windows_of_{size}": max(0, performed - size + 1) for size in WINDOWS})
    return Counter(dict(sorted(counts.items())))


def _entry_numbers(judged: JudgedRecording, step_texts: Mapping[int, str]) -> dict[str, int]:
    entries = judged.recording.entries
    labels = {step.label for step in judged.by_time.order.graph.steps}
    return {
        "entries": len(entries),
        "entries_not_performed": sum(not entry.performed for entry in entries),
        "entries_missing_step": sum(entry.has_tag(MISSING_STEP) for entry in entries),
        "entries_order_error": sum(entry.has_tag(ORDER_ERROR) for entry in entries),
        "entries_text_differs_from_step_id": sum(_text_differs(entry, step_texts) for entry in entries),
        "entries_without_node": sum(step_texts.get(entry.step_id) not in labels for entry in entries),
        "repeat_entries": len(judged.by_time.repeated),
    }


def _text_differs(entry: Entry, step_texts: Mapping[int, str]) -> bool:
    return entry.description != step_texts.get(entry.step_id)


def _pair_numbers(judgement: Judgement) -> dict[str, int]:
    prefixes = judgement.prefixes()
    return {
        "late_pairs": len(judgement.late_pairs),
        "late_pairs_hard": sum(state == "hard" for state in judgement.late_pairs.values()),
        "late_edges": len(judgement.late_edges),
        "absent_predecessor_edges": len(judgement.unmet),
        "prefixes": len(prefixes),
        "prefix_next_total": sum(len(prefix.next) for prefix in prefixes),
        "prefix_missing_total": sum(len(prefix.missing) for prefix in prefixes),
        "prefixes_with_missing": sum(bool(prefix.missing) for prefix in prefixes),
    }


def _recording_numbers(judged: JudgedRecording) -> dict[str, int]:
    judgement, is_error = judged.by_time, judged.recording.is_error
    violation, complete = bool(judgement.late_pairs), not judgement.missing
    starts = [entry.start_s for entry in judged.recording.entries if entry.performed]
    return {
        "recordings": 1,
        "recordings_is_error": is_error,
        "recordings_with_order_error": judged.tagged(ORDER_ERROR),
        "recordings_with_missing_step": judged.tagged(MISSING_STEP),
        "recordings_order_violation": violation,
        "recordings_hard_order_violation": judgement.has_hard,
        "recordings_strict_violation": judgement.is_strict_violation,
        "recordings_late_edge": bool(judgement.late_edges),
        "recordings_absent_predecessor": bool(judgement.unmet),
        "recordings_order_violation_by_list_order": bool(judged.by_list.late_pairs),
        "recordings_list_not_in_time_order": starts != sorted(starts),
        "recordings_all_steps_performed": complete,
        "recordings_valid_full_order": complete and not violation,
        "normal_recordings_with_order_violation": violation and not is_error,
        "normal_recordings_with_hard_violation": judgement.has_hard and not is_error,
        "normal_recordings_with_strict_violation": judgement.is_strict_violation and not is_error,
    }


def _totals(recipes: Iterable[Counts], graphs: Iterable[GraphNumbers]) -> dict[str, int]:
    totals: Counts = Counter()
    for counts in recipes:
        totals.update(counts)
    graphs = list(graphs)
    return {
        **totals,
        "graphs": len(graphs),
        "all_dags": all(numbers["is_dag"] for numbers in graphs),
        "graph_steps": sum(numbers["steps"] for numbers in graphs),
        "graph_edges": sum(numbers["edges"] for numbers in graphs),
        "topological_orders": sum(numbers["topological_orders"] or 0 for numbers in graphs),
    }


def tag_agreement(judged: Iterable[JudgedRecording]) -> Agreement:
    """Count agreements of violations and annotators' tags, by recording and by step (first performances)."""
    counts: Agreement = defaultdict(lambda: Counter(both=0, only_violation=0, only_tag=0, neither=0))

    def note(question: str, violation: bool, tag: bool) -> None:
        answers = {(True, True): "both", (True, False): "only_violation", (False, True): "only_tag"}
        counts[question][answers.get((violation, tag), "neither")] += 1

    for recording in judged:
        judgement, order_tag = recording.by_time, recording.tagged(ORDER_ERROR)
        note("recordings_order_violation_vs_order_error", bool(judgement.late_pairs), order_tag)
        note("recordings_strict_violation_vs_order_error", judgement.is_strict_violation, order_tag)
        note("recordings_hard_violation_vs_order_error", judgement.has_hard, order_tag)
        by_list = bool(recording.by_list.late_pairs)
        note("recordings_violation_by_list_order_vs_order_error", by_list, order_tag)
        missing_tag = recording.tagged(MISSING_STEP)
        note("recordings_incomplete_vs_missing_step", bool(judgement.missing), missing_tag)
        early = {v for _, v in judgement.late_pairs}
        late = {u for u, _ in judgement.late_pairs}
        lacking = {v for _, v in [*judgement.late_edges, *judgement.unmet]}
        for node, entry in recording.first_entries.items():
            tag = entry.has_tag(ORDER_ERROR)
            note("steps_too_early_vs_order_error", node in early, tag)
            note("steps_too_late_vs_order_error", node in late, tag)
            note("steps_early_or_late_vs_order_error", node in early | late, tag)
            note("steps_lacking_predecessor_vs_order_error", node in lacking, tag)
    return counts


def disagreements(
    judged: Iterable[JudgedRecording], step_texts: Mapping[int, str]
) -> dict[str, list[str] | list[list[str | int]]]:
    """List the recordings and entries in which tags, times and texts contradict each other."""
    recordings: dict[str, list[str]] = {
        "order_tag_without_order_violation": [],
        "order_violation_without_tag": [],
    }
    entries: dict[str, list[list[str | int]]] = {
        "not_performed_without_missing_tag": [],
        "performed_with_missing_tag": [],
        "text_differs_from_step_id": [],
    }
    for judged_recording in judged:
        name, tag = judged_recording.recording.recording_id, judged_recording.tagged(ORDER_ERROR)
        if bool(judged_recording.by_time.late_pairs) != tag:
            key = "order_tag_without_order_violation" if tag else "order_violation_without_tag"
            recordings[key].append(name)
        for entry in judged_recording.recording.entries:
            if entry.performed and entry.has_tag(MISSING_STEP):
                entries["performed_with_missing_tag"].append([name, entry.step_id])
            if not entry.performed and not entry.has_tag(MISSING_STEP):
                entries["not_performed_without_missing_tag"].append([name, entry.step_id])
            if _text_differs(entry, step_texts):
                entries["text_differs_from_step_id"].append([name, entry.step_id])
    found: dict[str, list[str] | list[list[str | int]]] = {
        **{key: sorted(names) for key, names in recordings.items()},
        **{key: sorted(places) for key, places in entries.items()},
    }
    return {key: found[key] for key in sorted(found)}


def read_recorded(path: Path, graph: Graph) -> list[tuple[int, ...]]:
    """Read orders as node ids: an orders/1 object, a list of orders, or the recordings of an annotation folder.

    From a folder it reads the recordings of the recipe with the graph's file stem. Raises BadGraph.
    """
    if path.is_dir():
        _, recorded = observations(graph, graph.name.removesuffix(".json"), read_annotations(path))
        return [tuple(observation.judgement.first) for observation in recorded]
    read = Reader(path.name)
    document: Any = load(read_text(path), path.name)
    orders = document.get("orders") if isinstance(document, dict) else document
    node_orders = []
    for number, order in enumerate(read.array(orders, "orders")):
        place = f"orders[{number}]"
        nodes = tuple(read.whole(node, place) for node in read.array(order, place))
        if unknown := sorted(set(nodes) - {step.node for step in graph.steps}):
            raise read.fail(
                place, f"there is no step {unknown[0]} in {graph.name}; is it of another version?"
            )
        node_orders.append(nodes)
    return node_orders
