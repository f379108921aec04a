"""Calibrations on disk: one JSON file each, beside the recordings, never overwritten, found by device and date.

`<data>/calibrations/<serial>/<what>-<mode>-<time>.json`; `time` is that of filming (UTC, to the second).
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from kitchensync.storage.geometry.camera_models import Fisheye, Pinhole, lens_of
from kitchensync.storage.geometry.errors import BadResult, Refused
from kitchensync.storage.manifest import write_json

SCHEMA = "calibration-result/1"
FOLDER = "calibrations"
_UNSAFE = re.compile(r"[^A-Za-z0-9.x+-]+")
_AGAIN = re.compile(r"Z-(\d+)$")


def folder_of(data: Path, serial: str) -> Path:
    """Return the folder of a device's calibrations."""
    return data / FOLDER / _safe(serial)


def save(data: Path, serial: str, what: str, mode: str, measured: datetime, answer: dict[str, Any]) -> Path:
    """Write a calibration and return its file; one of the same second is not overwritten."""
    folder = folder_of(data, serial)
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{what}-{_safe(mode)}-{measured.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    path = unused(folder / f"{stem}.json")
    head = {
        "schema": SCHEMA,
        "what": what,
        "serial": serial,
        "mode": mode,
        "measured_utc": measured.astimezone(UTC).isoformat(timespec="seconds"),
        "software": version("kitchensync"),
    }
    write_json(path, head | answer)
    return path


def unused(path: Path) -> Path:
    """Return a path, with the next free number if it exists."""
    free, number = path, 1
    while free.exists():
        number += 1
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free


def load(path: Path) -> dict[str, Any]:
    """Read a calibration. Raises BadResult if the file is not a calibration."""
    try:
        answer = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadResult(path, str(error)) from error
    if not isinstance(answer, dict) or answer.get("schema") != SCHEMA:
        raise BadResult(path, f"it has not the schema {SCHEMA}")
    return answer


def find(data: Path, serial: str, what: str, mode: str, when: datetime) -> tuple[Path, dict[str, Any]] | None:
    """Return the calibration for a time: the last one before it, else the first one after it.

    Of several evaluations of one film, which have the same second, it is the newest.
    """
    candidates = []
    for path in sorted(folder_of(data, serial).glob(f"{what}-*.json")):
        answer = load(path)
        if answer["mode"] == mode:
            again = _AGAIN.search(path.stem)
            measured = datetime.fromisoformat(answer["measured_utc"])
            candidates.append((measured, int(again[1]) if again else 1, path, answer))
    if not candidates:
        return None
    candidates.sort(key=lambda entry: entry[:2])
    before = [entry for entry in candidates if entry[0] <= when]
    *_, path, answer = (before or [entry for entry in candidates if entry[0] == candidates[0][0]])[-1]
    return path, answer


def lens_result(data: Path, serial: str, mode: str, when: datetime) -> tuple[Path, dict[str, Any]]:
    """Return the calibration of a GoPro's lens for a time. Raises Refused if there is none."""
    result = find(data, serial, "lens", mode, when)
    if result is None:
        why = "run `kitchensync calibrate gopro` on a film first"
        raise Refused(f"the lens of {serial} in mode {mode} is not known: {why}")
    return result


def mount_result(data: Path, serial: str, mode: str, when: datetime) -> tuple[Path, dict[str, Any]]:
    """Return the mount of a GoPro on the headset, `camera_from_pv`, for a time. Raises Refused if it is unknown."""
    result = find(data, serial, "rig", mode, when)
    if result is None:
        why = "run `kitchensync calibrate rig` on a recording of a board first"
        raise Refused(f"how {serial} in mode {mode} sits on the headset is not known: {why}")
    return result


def lens_from_words(answer: dict[str, Any]) -> tuple[Pinhole | Fisheye, np.ndarray]:
    """Return the lens of a result and its covariance (p, p)."""
    lens = lens_of(answer["model"], answer["width"], answer["height"], answer["parameters"])
    return lens, np.array(answer["covariance"])


def _safe(words: str) -> str:
    return _UNSAFE.sub("_", words).strip(".") or "unknown"
