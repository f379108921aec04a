"""A recording of a filmed, synchronized cooking session with a tablet's log: when each step was done is known."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner
from numbered_recording import FRAME_S, film_host_ns, write_numbered
from small_recordings import FRAMES, HOST0_NS

from kitchensync.cli import main
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest
from kitchensync.virtual_kitchen.kitchen import Kitchen

STEPS = {str(n): {"label": f"Do-Do thing {n}", "text": f"Do thing {n}"} for n in range(1, 5)}
FROZEN = {
    "name": "tea", "title": "Tea", "order": [1, 2, 3, 4], "steps": STEPS, "planned": [], "strategy": "normal",
    "edges": [[0, 1], [1, 2], [2, 3], [3, 4]], "display": "step", "seed": 1,
}  # fmt: skip
DONE_S = {1: 3.25, 2: 7.777, 3: 14.05}
"""World seconds at which steps were touched as done; step 4 never was."""
WRONG = 2
"""The step that was done wrong: an error of technique."""


def write_cooked(root: Path) -> Kitchen:
    """Write `take1` below `root`, synchronized."""
    kitchen = write_numbered(root)
    log = EventLog(root / "take1", "tablet")
    log.append("recipe", host_ns=HOST0_NS, uncertainty_ns=0, body=FROZEN, op_id="op0")
    for node, at_s in DONE_S.items():
        at_ns = HOST0_NS + round(at_s * 1e9)
        if node == WRONG:
            fields = {"node": node, "categories": [4], "description": "spilt"}
            error = {"error_id": "e1", "device": "t", "fields": fields}
            log.append("error", host_ns=at_ns - 10**8, uncertainty_ns=0, body=error, op_id="e1")
        body = {"node": node, "device": "t"}
        log.append("done", host_ns=at_ns, uncertainty_ns=0, body=body, op_id=f"op{node}")
    done = CliRunner().invoke(main, ["sync", str(root / "take1"), "--jobs", "1"])
    assert done.exit_code == 0, done.output
    return kitchen


def film_s(kitchen: Kitchen, world_s: float) -> float:
    """Return the second of the film that shows a moment of the world."""
    true_s = np.array([film_host_ns(kitchen, k) - HOST0_NS for k in range(FRAMES)]) / 1e9
    return float(np.interp(world_s, true_s, np.arange(FRAMES) * FRAME_S))


def copied(data: Path, name: str, change: Callable[[dict[str, Any]], None] = lambda _: None) -> Path:
    """Make another recording of `take1`, its manifest changed."""
    shutil.copytree(data / "take1", data / name)
    with edit_manifest(data / name) as manifest:
        manifest["recording"], manifest["uuid"] = name, f"uuid of {name}"
        change(manifest)
    return data / name
