"""Recordings that nobody is making any more: their work folders, and where their own folders are now."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from capture.plan import Plan, is_running, load_plan, runtime_folder
from storage.errors import NotARecording
from storage.manifest import read_manifest
from storage.names import MANIFEST, WORK


def work_folders(data: Path) -> Iterator[Path]:
    """Yield the work folder of every recording below `data` that was not settled."""
    for file in sorted((data.resolve() / WORK).glob("*/plan.json")):
        yield file.parent


def orphan_in(work: Path) -> Plan | None:
    """Return the plan of the recording that a work folder belongs to, with the path where the recording is now.

    None when it is being made, or has just ended. Raises BadPlan. The data folder may lie elsewhere than when it was
    recorded (a disk that is mounted under another name), and the recording may have another name below it.
    """
    try:
        plan = load_plan(work / "plan.json")
    except FileNotFoundError:
        return None  # its recorder has ended just now
    path = _where(work.parent.parent, plan)
    if is_running(Path(plan.runtime)) or is_running(runtime_folder(path)):
        return None
    return replace(plan, path=str(path))


def _where(data: Path, plan: Plan) -> Path:
    """Find a recording: under its own name, else by its uuid; what cannot be found is where it was."""
    usual = data / plan.recording
    try:
        if read_manifest(usual).get("uuid", plan.uuid) == plan.uuid:
            return usual
    except NotARecording:
        if (usual / MANIFEST).exists():
            return usual
    for folder, below, files in os.walk(data):
        if MANIFEST in files and _uuid_of(Path(folder)) == plan.uuid:
            return Path(folder)
        below[:] = [] if MANIFEST in files else [name for name in sorted(below) if name != WORK]
    return usual


def _uuid_of(recording: Path) -> str | None:
    try:
        return read_manifest(recording).get("uuid")
    except NotARecording:
        return None
