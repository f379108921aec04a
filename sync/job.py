"""Synchronize one recording: align every camera file with the headset, index the frames, write `sync/`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from storage.manifest import write_json
from storage.recording import Recording, StoredStream, open_recording
from sync.cameras import CameraFile, camera_files
from sync.clock_map import ClockMap, sample_rows
from sync.errors import BadArrays, TooShort
from sync.fusion import by_clocks, by_sound, with_sound
from sync.gyro import HEAD_POSE, HeadsetGyro, PairAlignment, Prior, align_pair
from sync.head_pose import head_pose_gyro
from sync.headset import InertialClock, gyroscope, head_poses, inertial_clock, probes_of
from sync.host_clock import HostClock, constant_clock
from sync.listening import camera_sound, headset_sound
from sync.prior import prior_of
from sync.result import (
    alignment_object,
    clock_sigma,
    fallback_object,
    plain,
    plot_arrays,
    refusal_object,
    sound_sigma,
)
from sync.sound import Heard, align_sounds
from sync.tables import write_tables

INERTIAL = ("accelerometer", "gyroscope", "magnetometer")
ORDER = ("not_aligned", "check", "aligned")
NOTHING = "nothing_to_align"
FILETIME_OF_UNIX = 116_444_736_000_000_000
ANCHOR_BOUND_NS = 5_000_000_000
CLOCKS_SERVE_S = 0.5  # clocks worse than this place no frame anywhere


@dataclass(slots=True)
class Session:
    """What one run knows of a recording."""

    recording: Recording
    headset: str | None
    cameras: list[CameraFile]
    inertial: dict[str, InertialClock] = field(default_factory=dict)
    host: HostClock | None = None
    gyro: HeadsetGyro | None = None
    maps: dict[str, ClockMap] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where everything that can be recomputed lies."""
        return self.recording.path / "sync"


def synchronize(path: Path | str, *, master: str | None = None) -> dict[str, Any]:
    """Align and index one recording; return its entry of `sync/1`.

    `master` is `pv` or `gopro`; the default is PV when it was recorded. Writes only below `sync/`: alignments with
    their plot data, `index.parquet`, `poses.parquet`. No index when nothing could be aligned, and none from before
    is left. Raises NotARecording.
    """
    with open_recording(path) as recording:
        session = _open(recording)
        pairs = [] if _is_alone(session) else [_align(session, file) for file in session.cameras]
        pairs += [] if _is_alone(session) else _missing_cameras(session)
        _forget_others(session.folder / "alignment", {_file_name(session, pair["source"]) for pair in pairs})
        status = next((s for s in ORDER if any(pair["status"] == s for pair in pairs)), NOTHING)
        answer: dict[str, Any] = {"recording": recording.id, "status": status, "path": str(recording.path)}
        answer |= write_tables(session, master=master, usable=not pairs or bool(session.maps))
        return answer | {"pairs": pairs}


def _is_alone(session: Session) -> bool:
    """Tell whether only one device with a clock was armed: then there is nothing to align."""
    kinds = [device.get("kind") for device in (session.recording.manifest.get("devices") or {}).values()]
    return sum(kind in ("hololens", "gopro") for kind in kinds) < 2


def _open(recording: Recording) -> Session:
    devices = recording.manifest.get("devices") or {}
    names = [name for name, device in devices.items() if device.get("kind") == "hololens"]
    headset = names[0] if names else None
    session = Session(recording, headset, camera_files(recording))
    if headset is None:
        return session
    for short in INERTIAL:
        name = f"{headset}/{short}"
        clock = inertial_clock(recording[name]) if name in recording.streams else None
        if clock is not None:
            session.inertial[short] = clock
    session.host = probes_of(recording, headset) or _host_clock_of_utc(recording, headset)
    if session.cameras and "gyroscope" in session.inertial:
        session.gyro = gyroscope(recording[f"{headset}/gyroscope"], session.inertial["gyroscope"])
    elif session.cameras and f"{headset}/spatial_input" in recording.streams:
        session.gyro = _gyro_of_poses(recording[f"{headset}/spatial_input"])
    return session


def _gyro_of_poses(stream: StoredStream) -> HeadsetGyro | None:
    """The last resort: rotation rates of the head pose."""
    track = head_poses(stream)
    try:
        return head_pose_gyro(track.ticks, track.rotation_wxyz)
    except BadArrays:
        return None


def _host_clock_of_utc(recording: Recording, headset: str) -> HostClock | None:
    """Without probes: both clocks know UTC, good to seconds."""
    offset = recording.manifest["devices"][headset].get("utc_offset_ticks")
    started = recording.manifest.get("started") or {}
    if offset is None or not {"host_ns", "utc_ns"} <= set(started):
        return None
    ticks = int(started["utc_ns"]) // 100 + FILETIME_OF_UNIX - int(offset)
    at = int(started["host_ns"])
    return constant_clock(ticks, at, ANCHOR_BOUND_NS)


def _align(session: Session, file: CameraFile) -> dict[str, Any]:
    """Align one camera file, write its files, and return the alignment object."""
    answer, plots = _compare(session, file)
    answer = {"source": file.source, "master": f"{session.headset or 'none'}/gyroscope", **answer}
    target = session.folder / "alignment" / _file_name(session, file.source)
    target.parent.mkdir(parents=True, exist_ok=True)
    plot = target.with_name(target.name.removesuffix(".json") + ".plot.npz")
    if plots:
        part = plot.with_name(plot.name + ".part")
        with part.open("wb") as out:
            np.savez_compressed(out, **plots)
        os.replace(part, plot)
    else:
        plot.unlink(missing_ok=True)
    write_json(target, answer)
    return answer


def _compare(session: Session, file: CameraFile) -> tuple[dict[str, Any], dict[str, Any]]:
    """Motion first; sound when motion is missing, too little or doubted; clocks when there is nothing else."""
    inputs = _inputs(session, file)
    epoch = _epoch(session)
    if session.headset is None or epoch is None:
        return refusal_object("no headset was recorded to align with", inputs=inputs), {}
    host = session.host
    prior, timestamps = prior_of(
        list(file.starts) if host else [], ticks_of_host=host.to_ticks if host else None, epoch_ticks=epoch
    )
    if host is not None:
        timestamps["host_clock"] = {"probes": host.probes, "bound_ms": host.bound_ns / 1e6}
        timestamps["host_clock"]["stretches"] = len(host.lines)
    found, problem = _by_motion(session, file, prior)
    doubted = found is None or found.verdict.status != "aligned"
    heard = _listen(session, file, epoch) if doubted else None
    if found is not None and (found.clock_map is not None or found.saw_motion):
        return _told_by_motion(session, file, with_sound(found, heard), heard, inputs, timestamps)
    problem = problem or "; ".join(found.verdict.reasons if found else ())
    if heard is not None and heard.is_usable:
        verdict, clock_map = by_sound(heard, epoch)
        sigma = sound_sigma(heard)
    elif prior is not None and found is None and file.can_be_placed and prior.sigma_s <= CLOCKS_SERVE_S:
        verdict, clock_map = by_clocks(prior, epoch, float(file.frame_times_s[-1]))
        sigma = clock_sigma(prior)
    else:
        return refusal_object(problem, inputs=inputs), {}
    if clock_map is not None:
        session.maps[file.source] = clock_map
    answer = fallback_object(
        replace(verdict, reasons=(problem, *verdict.reasons)), clock_map, sigma=sigma, inputs=inputs
    )
    evidence = {"gyro": None, "audio": heard.as_object() if heard else None, "timestamps": timestamps}
    samples = sample_rows(clock_map, float(file.frame_times_s[-1])) if clock_map else []
    return plain(answer | {"epoch_hl2_qpc": epoch, "evidence": evidence, "samples": samples}), {}


def _by_motion(session: Session, file: CameraFile, prior: Prior | None) -> tuple[PairAlignment | None, str]:
    """The gyroscopes' answer, or why there is none."""
    if session.gyro is None:
        return (
            None,
            "the headset's gyroscope was not recorded, nor its head pose: there is no motion to compare",
        )
    if file.gyro is None:
        return None, file.problem
    device = session.recording.manifest["devices"][session.headset]
    unit = "rad_per_s" if session.gyro.source == HEAD_POSE else device.get("gyroscope_unit") or "auto"
    try:
        return align_pair(session.gyro, file.gyro, prior=prior, unit=unit), ""
    except TooShort as error:
        return None, str(error)


def _told_by_motion(
    session: Session,
    file: CameraFile,
    found: PairAlignment,
    heard: Heard | None,
    inputs: list[dict[str, Any]],
    timestamps: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    assert session.gyro is not None
    assert file.gyro is not None
    if found.clock_map is not None:
        session.maps[file.source] = found.clock_map
    by_pose = session.gyro.source == HEAD_POSE
    body = alignment_object(
        found,
        epoch_ticks=session.gyro.epoch_ticks,
        last_t_s=float(file.gyro.t_s[-1]),
        headset=session.gyro.repair.report() | ({"stamp": HEAD_POSE} if by_pose else {}),
        camera=file.gyro_report,
        inputs=inputs,
        timestamps=timestamps,
    )
    body["evidence"]["audio"] = plain(heard.as_object()) if heard else None
    return body, plot_arrays(found)


def _listen(session: Session, file: CameraFile, epoch: int) -> Heard | None:
    """Compare the sounds, where both were recorded; None where not."""
    name = f"{session.headset}/microphone"
    if name not in session.recording.streams or len(session.recording[name]) == 0:
        return None
    camera = camera_sound(file.path)
    headset = headset_sound(session.recording[name], epoch) if camera is not None else None
    return align_sounds(headset, camera) if headset is not None and camera is not None else None


def _epoch(session: Session) -> int | None:
    """Ticks that seconds of the headset count from: its gyroscope's first, or else its first packet's."""
    if session.gyro is not None:
        return session.gyro.epoch_ticks
    names = [n for n in session.recording.streams if n.startswith(f"{session.headset}/")]
    firsts = [int(session.recording[n].index["device_ticks"][0]) for n in names if len(session.recording[n])]
    return min(firsts, default=None)


def _inputs(session: Session, file: CameraFile) -> list[dict[str, Any]]:
    known = (session.recording.manifest.get("files") or {}).get(file.relative) or {}
    inputs: list[dict[str, Any]] = [{"path": file.relative, "sha256": known.get("sha256")}]
    if "gyroscope" in session.inertial:
        digest = session.inertial["gyroscope"].sha256
        inputs.insert(0, {"path": f"{session.headset}/gyroscope", "sha256": digest})
    return inputs


def _missing_cameras(session: Session) -> list[dict[str, Any]]:
    """A camera that was armed and left no file is said, not passed over."""
    devices = session.recording.manifest.get("devices") or {}
    armed = [name for name, device in devices.items() if device.get("kind") == "gopro"]
    missing = [name for name in armed if not any(file.device == name for file in session.cameras)]
    answers = []
    for name in missing:
        answer = {"source": name, "master": f"{session.headset or 'none'}/gyroscope"}
        answer |= refusal_object(f"{name} was recording, but none of its files is here", inputs=[])
        target = session.folder / "alignment" / _file_name(session, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_json(target, answer)
        answers.append(answer)
    return answers


def _file_name(session: Session, source: str) -> str:
    """`<file name>.json`; with the camera's name before it where two cameras have files."""
    device, _, name = source.partition("/")
    several = len({file.device for file in session.cameras}) > 1
    return f"{device}-{name}.json" if name and several else f"{name or device}.json"


def _forget_others(folder: Path, kept: set[str]) -> None:
    """Remove what an earlier run left for files that are no longer there."""
    if not folder.is_dir():
        return
    stems = {name.removesuffix(".json") for name in kept}
    for path in folder.iterdir():
        stem = path.name.removesuffix(".part").removesuffix(".json").removesuffix(".plot.npz")
        if path.is_file() and (stem not in stems or path.suffix == ".part"):
            path.unlink()
