"""What people entered, as far as it belongs into a manifest: recipe, script, and a consent that was taken back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from storage.disk.self_check import is_sound, whole_lines

RECIPE = ("name", "graph_hash", "order", "seed", "source")


def entered(recording: Path) -> dict[str, Any]:
    """Return `recipe` and `script` of the last choice, and `withdrawn`, where somebody entered them."""
    found: dict[str, Any] = {}
    for event in _events(recording):
        body = event.get("body") or {}
        if event.get("kind") == "recipe":
            found["recipe"] = {key: body.get(key) for key in RECIPE}
            script = {"strategy": body.get("strategy"), "display": body.get("display")}
            found["script"] = script | {"certificate": body.get("script")}
        if event.get("kind") == "withdraw":
            found["withdrawn"] = {"host_ns": event.get("host_ns")}
    return found


def _events(recording: Path) -> Iterator[dict[str, Any]]:
    """Yield every event whose line is as it was written, damaged neighbours or not."""
    for path in sorted((recording / "events").glob("*.jsonl")):
        for line in whole_lines(path.read_bytes()):
            if is_sound(line):
                yield json.loads(line)
