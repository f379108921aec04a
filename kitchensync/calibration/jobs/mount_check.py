"""Check the mount of every camera of a recording and store the result for the report in `sync/mounts.json`.

It answers whether the camera moved on the head, whether its mount is as calibrated, and which lens and mount apply to
the recording (by serial number, lens mode and date).
"""

from __future__ import annotations

import hashlib
import os
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from kitchensync.calibration.estimate.motion import MOVED_DEG, MOVED_SIGMAS
from kitchensync.calibration.jobs.mount import mount_by_motion
from kitchensync.reader.cameras.recorded import alignments, started_at
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.shell.files_on_disk import matching
from kitchensync.shell.untrusted_json import load_json
from kitchensync.storage.errors import StorageError, Unusable
from kitchensync.storage.geometry.errors import CalibrationError, Refused
from kitchensync.storage.manifest import write_json
from kitchensync.storage.reading.alignments import FOLDER, FilmClock, alignment_files
from kitchensync.storage.reading.calibration_results import find, folder_of
from kitchensync.storage.recording import Recording, open_recording

SCHEMA = "calibrate-check/1"
KEPT = Path("sync") / "mounts.json"


def check_recording(path: Path, data: Path | None = None) -> dict[str, Any]:
    """Check the mount of each camera of a recording by motion, minute by minute.

    Calibrations are searched in `data` (default: the folder of the recording). Raises Refused, NotAligned,
    StorageError.
    """
    data = data or path.absolute().parent
    with open_recording(path) as recording:
        mounts = [_check_camera(recording, alignment, data) for alignment in alignments(recording)]
        reasons = [mount["words"] for mount in mounts if mount["status"] != "PASS"]
        return {
            "schema": SCHEMA,
            "recording": recording.id,
            "status": "WARN" if reasons else "PASS",
            "reasons": reasons,
            "mounts": mounts,
        }


def check_and_keep(path: Path, data: Path | None = None) -> dict[str, Any]:
    """Check a recording and store the answer, or why it failed, in its `sync/mounts.json`."""
    try:
        answer = check_recording(path, data)
    except Unusable as error:
        return _failed(path, error)  # an earlier answer stays while the files cannot be read
    except (CalibrationError, SensorError, StorageError) as error:
        answer = _failed(path, error)
    if (path / FOLDER).is_dir():
        write_json(path / KEPT, answer | {"rests_on": rests_on(path, answer, data)})
    return answer


def _failed(path: Path, error: Exception) -> dict[str, Any]:
    reason = " ".join(str(error).split())
    return {"schema": SCHEMA, "recording": path.name, "status": "FAIL", "reasons": [reason], "mounts": []}


def refresh(path: Path) -> None:
    """Check a recording unless its alignments and calibrations are the same as for the stored answer."""
    try:
        kept = load_json(path / KEPT)
        if kept["rests_on"] == rests_on(path, kept, None):
            return
    except (OSError, ValueError, KeyError, TypeError):
        pass  # it is missing or damaged
    if (path / FOLDER).is_dir():
        check_and_keep(path)


def rests_on(path: Path, answer: dict[str, Any], data: Path | None) -> str:
    """Return a digest of the inputs of an answer: software, alignments, and the calibrations of its cameras."""
    digest = hashlib.sha256(version("kitchensync").encode())
    files = alignment_files(path)
    for serial in sorted({str(mount["serial"]) for mount in answer["mounts"]}):
        files += matching(folder_of(data or path.absolute().parent, serial), "*.json")
    for file in files:
        digest.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _check_camera(recording: Recording, alignment: FilmClock, data: Path) -> dict[str, Any]:
    """Return one mount with its verdict and the calibrations that apply to it."""
    media = open_media(alignment.file)
    serial, mode = media.serial or "unknown", media.mode.lens_name
    when = started_at(recording)
    lens, rig = (
        _valid_calibration(data, recording.path, serial, what, mode, when) for what in ("lens", "rig")
    )
    facts = {
        "file": alignment.file.relative_to(recording.readable).as_posix(),
        "headset": alignment.headset, "serial": serial, "mode": mode, "lens": lens,
    }  # fmt: skip
    try:
        motion = mount_by_motion(recording, alignment)
    except Refused as refusal:
        message = f"{alignment.file.name} could not be checked: {refusal.reason}"
        return facts | {"status": "WARN", "words": message, "moved": None, "rig": rig, "minutes": []}
    rig = _compared(rig, motion)
    moved_since = rig is not None and rig["turned_deg"] > rig["limit_deg"]
    is_fine = not motion["moved"] and not moved_since
    verdict = {
        "status": "PASS" if is_fine else "WARN",
        "words": _verdict(alignment.file.name, motion, rig),
        "rig": rig,
    }
    return motion | facts | verdict


def _valid_calibration(
    data: Path, recording: Path, serial: str, what: str, mode: str, when: datetime
) -> dict[str, Any] | None:
    """Return facts of the calibration ("lens" or "rig") that applies at a time, None if there is none."""
    calibration = find(data, serial, what, mode, when)
    if calibration is None:
        return None
    path, answer = calibration
    common = ("measured_utc", "rms_px", "held_out_px", "model")
    facts: dict[str, Any] = {name: answer[name] for name in common if name in answer}
    picture = path.with_suffix(".png")
    # A report only shows pictures from the folder of its recording.
    is_shown = picture.exists() and data.absolute() == recording.absolute().parent
    facts |= {"file": path.name, "picture": os.path.relpath(picture, recording) if is_shown else None}
    if what == "rig":
        names = ("camera_from_pv", "distance_mm", "angle_deg", "sigma_deg", "sigma_mm", "recording")
        facts |= {name: answer[name] for name in names}
    else:
        facts |= {"picture_sigma_px": answer["picture_sigma_px"], "views": len(answer["used"])}
    return facts


def _compared(rig: dict[str, Any] | None, motion: dict[str, Any]) -> dict[str, Any] | None:
    """Add the rotation of the mount relative to its calibration, and the limit for it."""
    if rig is None:
        return None
    turn = np.array(motion["camera_from_pv"]) @ np.array(rig["camera_from_pv"])[:3, :3].T
    sigma_deg = float(np.hypot(motion["sigma_deg"], rig["sigma_deg"]))
    return rig | {
        "turned_deg": round(float(np.degrees(Rotation.from_matrix(turn).magnitude())), 4),
        "limit_deg": round(max(MOVED_DEG, MOVED_SIGMAS * sigma_deg), 4),
    }


def _verdict(name: str, motion: dict[str, Any], rig: dict[str, Any] | None) -> str:
    """Return a message about the mount."""
    minutes = [minute for minute in motion["minutes"] if minute["turned_deg"] is not None]
    if motion["moved"]:
        worst = max(minutes, key=lambda minute: minute["turned_deg"])
        message = (
            f"{name} moved on the head: around {worst['middle_s'] / 60:.1f} min it is turned by "
            f"{worst['turned_deg']:.1f} degrees against the whole recording"
        )
    elif len(minutes) < 2:
        why = "was filmed too briefly" if len(motion["minutes"]) < 2 else "turned too little"
        message = f"{name} {why} to tell whether it moved on the head"
    else:
        most = max(0.01, *(minute["turned_deg"] for minute in minutes))
        message = (
            f"{name} stayed where it was on the head (no part is turned by more than {most:.2f} degrees)"
        )
    if rig is None:
        return f"{message}; its mount was never calibrated"
    date = rig["measured_utc"][:10]
    if rig["turned_deg"] > rig["limit_deg"]:
        return (
            f"{message}; its mount is not as calibrated on {date}: turned by {rig['turned_deg']:.1f} degrees,"
            " so run `kitchensync calibrate rig` again"
        )
    return f"{message} and sits as calibrated on {date} ({rig['turned_deg']:.2f} degrees by motion)"
