"""The labels of a recipe's steps, as annotators see them: the same in every recording of one recipe version."""

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
    """Return node -> label, `S05 · Add 1 banana`: numbered by node, so that equal texts stay apart.

    `frozen` is what was chosen before cooking; what was changed on purpose is not in these texts.
    """
    nodes = sorted(map(int, frozen["steps"]))
    found = {}
    for number, node in enumerate(nodes, 1):
        text = Step(node, frozen["steps"][str(node)]["label"]).instruction
        # In one line, without what XML cannot hold.
        found[node] = f"S{number:02} · {' '.join(_NO_LETTERS.sub(' ', text).split())}"
    return found


def version_of(frozen: Frozen) -> str:
    """Return the name of a recipe version: the recipe's as a folder may be called, 12 digits of its graph's hash."""
    content = json.dumps([frozen["steps"], sorted(frozen["edges"])], sort_keys=True)
    graph = frozen.get("graph_hash") or hashlib.sha256(content.encode()).hexdigest()
    return f"{re.sub('[^A-Za-z0-9._-]', '_', frozen['name'])}-{graph[:12]}"


def touched_spans(own: OwnRecording) -> Spans:
    """Return label -> [from, to) in seconds of the film of every step that was touched as done."""
    labels = labels_of(own.state["recording"])
    found: Spans = {}
    for told in entries_of(own.state, own.place, lambda _: 0):
        if told.entry.end_s >= 0:
            found.setdefault(labels[told.node], []).append((told.entry.start_s, told.entry.end_s))
    return found
