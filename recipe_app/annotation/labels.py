"""The labels of a recipe's steps, as annotators see them: the same in every recording of one recipe version."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from recipe_app.graphs.model import Step

Frozen = dict[str, Any]


def labels_of(frozen: Frozen) -> dict[int, str]:
    """Return node -> label, `S05 · Add 1 banana`: numbered by node, so that equal texts stay apart.

    `frozen` is what was chosen before cooking; what was changed on purpose is not in these texts.
    """
    nodes = sorted(map(int, frozen["steps"]))
    texts = {node: Step(node, frozen["steps"][str(node)]["label"]).instruction for node in nodes}
    return {node: f"S{number:02} · {texts[node]}" for number, node in enumerate(nodes, 1)}


def version_of(frozen: Frozen) -> str:
    """Return the name of a recipe version: the recipe's, and 12 digits of the hash of its graph."""
    content = json.dumps([frozen["steps"], sorted(frozen["edges"])], sort_keys=True)
    graph = frozen.get("graph_hash") or hashlib.sha256(content.encode()).hexdigest()
    return f"{frozen['name']}-{graph[:12]}"
