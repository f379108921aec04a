"""Labels of a recipe's steps for annotators, the same in every recording of a recipe version."""

from __future__ import annotations

import hashlib
import json
import re

from kitchensync.dataset.annotation.forms.marked_steps import Spans
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.operations.entries import entries_of
from kitchensync.operations.session_state import Frozen
from kitchensync.task_graphs.model import Step

_NO_LETTERS = re.compile("[\x00-\x1f\x7f-\x9f\ufffe\uffff]")


def labels_of(frozen: Frozen) -> dict[int, str]:
    """Return node -> label, `S05 · Add 1 banana`: the number distinguishes equal texts.

    `frozen` is the recipe as chosen before cooking, without planned errors.
    """
    nodes = sorted(map(int, frozen["steps"]))
    labels = {}
    for number, node in enumerate(nodes, 1):
        text = Step(node, frozen["steps"][str(node)]["label"]).instruction
        # XML cannot hold control characters.
        labels[node] = f"S{number:02} · {' '.join(_NO_LETTERS.sub(' ', text).split())}"
    return labels


def version_of(frozen: Frozen) -> str:
    """Return the name of a recipe version: recipe name, safe as a folder name, and 12 digits of the graph's hash."""
    content = json.dumps([frozen["steps"], sorted(frozen["edges"])], sort_keys=True)
    graph = frozen.get("graph_hash") or hashlib.sha256(content.encode()).hexdigest()
    return f"{re.sub('[^A-Za-z0-9._-]', '_', frozen['name'])}-{graph[:12]}"


def touched_spans(own: OwnRecording) -> Spans:
    """Return label -> [from, to) in seconds of the video of every step that was touched as done."""
    labels = labels_of(own.state["recording"])
    spans: Spans = {}
    for notes in entries_of(own.state, own.place, lambda _: 0):
        if notes.entry.end_s >= 0:
            spans.setdefault(labels[notes.node], []).append((notes.entry.start_s, notes.entry.end_s))
    return spans
