"""Rebuild a lost manifest from the recorded files and, if it still exists, the recorder's work folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kitchensync.capture.errors import AlreadyRunning
from kitchensync.capture.plan import RecordingRequest, is_running, load_plan, runtime_folder
from kitchensync.capture.session.first_manifest import first_manifest
from kitchensync.storage.names import WORK
from kitchensync.storage.rebuild import Rebuilt
from kitchensync.storage.rebuild import rebuild as rebuild_from_files


def rebuild(recording: Path) -> tuple[Rebuilt, bool]:
    """Rebuild the manifest of a recording; also return whether packets may wait in its queue for `recover`.

    Raises CannotRebuild, NotARecording, BadPlan, AlreadyRunning, OSError.
    """
    if is_running(runtime_folder(recording)):
        raise AlreadyRunning(recording.name)
    # By the recording's name, because a later recorder may have renamed the work folder.
    plans = (load_plan(file) for file in sorted((recording.parent / WORK).glob("*/plan.json")))
    plan = next((plan for plan in plans if plan.recording == recording.name), None)
    if plan is None:
        return rebuild_from_files(recording), False
    devices = {
        headset.name: {"kind": "hololens", "address": headset.host, "gyroscope_unit": "auto"}
        for headset in plan.headsets
    }
    order = RecordingRequest(
        plan.recording, recording.parent, plan.headsets, plan.cameras, sensors=plan.sensors
    )
    planned = first_manifest(order, replace(plan, path=str(recording)), devices)
    devices |= {name: {"kind": "gopro", "address": url} for name, url in plan.cameras.items()}
    return rebuild_from_files(recording, planned), True
