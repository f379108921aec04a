"""A recording of the app's own, cooked and filmed, that can be annotated: its pictures are numbered."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from numbered_recording import FRAME_S, film_host_ns, write_numbered

from kitchensync.cli import main
from kitchensync.storage.manifest import edit_manifest
from kitchensync.virtual_kitchen.kitchen import Kitchen

DONE_S = [2.5, 5.5, 8.0, 11.0]
"""When the first steps were touched as done, seconds of the film."""


def cook_on_film(kitchen: Any, done_s: Iterable[float] = DONE_S, **choice: Any) -> tuple[str, Path, Kitchen]:
    """Cook in the app `kitchen` what a camera films; return the recording's id, its folder, and the truth."""
    recording = str(kitchen.choose(**choice)["recording"])
    world = write_numbered(kitchen.data, "take1")
    folder = kitchen.data / "take1"
    with edit_manifest(folder) as manifest:
        manifest["consent_scopes"] = ["annotate", "release_raw"]
    assert CliRunner().invoke(main, ["sync", str(folder), "--jobs", "1"]).exit_code == 0
    kitchen.tools.records.give_folder(recording, "take1", actor="")
    order = kitchen.tools.records.state(recording)["recording"]["order"]
    for node, at_s in zip(order, done_s, strict=False):
        kitchen.now_ns = round(film_host_ns(world, at_s / FRAME_S))
        kitchen.post(kitchen.operation(recording, "done", {"node": node}))
    kitchen.tools.intake.file()
    return recording, folder, world
