"""Calibration of the headset's sensors, and the relation of the capture clock to UTC, for a data set."""

from __future__ import annotations

from typing import Any

import numpy as np

from kitchensync.dataset.release.headset_frames import Arrays
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.storage.errors import StorageError, pass_on_trouble
from kitchensync.storage.timeline.utc_times import utc_times

FOLDER = "calibration"


def calibration_of(own: OwnRecording) -> tuple[dict[str, Any], dict[str, Arrays]]:
    """Return the JSON description, and the constants of each sensor of the main headset by short name."""
    recording, headset = own.recording.stored, own.recording.stored.main_headset
    description: dict[str, Any] = {"clock": _clock(own), "sensors": {}}
    constants: dict[str, Arrays] = {}
    for name in recording.streams:
        device, _, short = name.rpartition("/")
        if device != headset:
            continue
        try:
            tables = recording.calibration(name)
        except StorageError as error:
            pass_on_trouble(error)
            continue
        constants[short] = {key: np.asarray(table.values) for key, table in tables.items()}
        description["sensors"][short] = {
            key: {"unit": table.unit, "frame": table.frame, "meaning": table.meaning}
            for key, table in tables.items()
        }
    return description, constants


def _clock(own: OwnRecording) -> dict[str, object]:
    """Describe `capture_ns` and its offset to UTC, None if not recorded.

    If the computer's clock was set during the recording, the nearest of the anchors `capture_ns_and_utc_ns` counts.
    """
    times = utc_times(own.manifest)
    anchors = [] if times is None else times.pairs()
    headset = own.recording.stored.main_headset
    host = own.recording.clock.host_clock(headset) if headset else None
    return {
        "capture_ns": "CLOCK_MONOTONIC of the capture computer",
        "utc_minus_capture_ns": anchors[0][1] - anchors[0][0] if anchors else None,
        "capture_ns_and_utc_ns": anchors,
        "headset_bound_ns": None if host is None else host.bound_ns,
    }
