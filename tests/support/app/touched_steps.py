"""Steps touched as done in a recording, in order, as a tablet logs them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kitchensync.storage.events import EventLog
from kitchensync.storage.recording import open_recording


def touch_steps(recording: Path, recipe: str, done_s: Mapping[str, float], wrong: str) -> None:
    """Log a recipe of consecutive steps, each touched at a session second, one with an error of technique.

    A step is written `Verb-Verb the rest`, as recipes label it; times start at second 2.
    """
    numbered = dict(enumerate(done_s, start=1))
    steps = {str(n): {"label": label, "text": label.partition("-")[2]} for n, label in numbered.items()}
    frozen = {
        "name": recipe, "title": recipe.capitalize(), "order": list(numbered), "planned": [], "strategy": "normal",
        "steps": steps, "edges": [[n - 1, n] for n in numbered], "display": "step", "seed": 1,
    }  # fmt: skip
    with open_recording(recording) as opened:
        first_ns = opened.session_time.to_host([0])[0]
    log = EventLog(recording, "tablet")

    def tell(kind: str, at_s: float, op_id: str, body: dict[str, Any]) -> None:
        log.append(kind, host_ns=int(first_ns + at_s * 1e9), uncertainty_ns=0, body=body, op_id=op_id)

    tell("recipe", 1.0, "recipe", frozen)
    for n, label in numbered.items():
        if label == wrong:
            fields = {"node": n, "categories": [4], "description": "burnt"}
            tell("error", done_s[label] - 0.1, "error", {"error_id": "e1", "device": "t", "fields": fields})
        tell("done", done_s[label], f"done {n}", {"node": n, "device": "t"})
