"""Gather the stamps of a recording and write `index.parquet` and `poses.parquet`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from storage.recording import Recording
from sync.errors import NoSuchMaster
from sync.frames import (
    Columns,
    FrameStamps,
    RunStamps,
    build_index,
    build_poses,
    file_stamps,
    packet_stamps,
)
from sync.headset import PoseTrack, frame_poses, head_poses, sample_ticks
from sync.result import plain

if TYPE_CHECKING:
    from sync.session import Session

Int64 = npt.NDArray[np.int64]

INDEX, POSES = "index.parquet", "poses.parquet"
RUNS = ("accelerometer", "gyroscope", "magnetometer", "microphone")
POSED = ("pv", "depth_ahat", "depth_longthrow", "vlc_leftfront")
MEDIA_TICKS_PER_S = 10_000_000


def write_tables(session: Session, *, master: str | None, usable: bool) -> dict[str, Any]:
    """Write both tables, or remove them when there is nothing to say; return what the answer says of them."""
    if not usable:
        return _no_tables(session, "nothing is aligned, so there is no index")
    frames, runs = _headset_stamps(session)
    cameras = _camera_stamps(session)
    lone_camera = session.headset is None
    if lone_camera:
        cameras = _media_stamps(session)
    try:
        chosen = choose_master(master, frames, cameras, session.recording)
    except NoSuchMaster as error:
        if master is not None:
            raise
        return _no_tables(session, str(error))
    others = [stream for stream in [*frames, *cameras] if stream is not chosen]
    columns, about = build_index(chosen, others, runs)
    about["clock"] = "media_100ns" if lone_camera else "hl2_qpc_100ns"
    about["files"] = [file.relative for file in session.cameras]
    about["picture_late_ms"] = {source: late_s * 1e3 for source, late_s in session.picture_late_s.items()}
    _write(session.folder / INDEX, columns, about)
    poses = build_poses(columns["master_i"], columns["master_ticks"], _pose_tracks(session))
    _write(session.folder / POSES, poses, {"master": chosen.name, "frame": "headset world, metres, w x y z"})
    return {"master": chosen.name, "index": about}


def choose_master(
    wanted: str | None, frames: list[FrameStamps], cameras: list[FrameStamps], recording: Recording
) -> FrameStamps:
    """PV unless something else is wanted or it was not recorded; then a camera, then what there is.

    Raises NoSuchMaster when the wanted one, or any, has no frames.
    """
    pv = [stream for stream in frames if stream.name == "pv"]
    found = [
        s for s in {"pv": pv, "gopro": cameras}.get(wanted or "", [*pv, *cameras, *frames]) if len(s.ticks)
    ]
    if found:
        return found[0]
    reason = "it has no frames on the headset's clock here" if wanted else "there are no frames to index"
    raise NoSuchMaster(wanted or "anything", recording.id, reason)


def _headset_stamps(session: Session) -> tuple[list[FrameStamps], list[RunStamps]]:
    """Stamps of the headset's own streams; inertial ones sample by sample on their repaired clocks."""
    frames: list[FrameStamps] = []
    runs: list[RunStamps] = []
    for name in session.recording.streams:
        device, _, short = name.partition("/")
        stream = session.recording[name]
        if device != session.headset or len(stream) == 0:
            continue
        ticks = stream.index["device_ticks"].astype(np.int64)
        if short in session.inertial:
            runs.append(RunStamps(short, sample_ticks(stream, session.inertial[short])))
        elif short in RUNS:
            runs.append(RunStamps(short, ticks))
        else:
            frames.append(packet_stamps(short, ticks))
    return frames, runs


def _camera_stamps(session: Session) -> list[FrameStamps]:
    """When every picture of the aligned camera files was taken, on the headset's clock, one stream a camera."""
    found: dict[str, list[tuple[int, Int64]]] = {}
    for number, file in enumerate(session.cameras):
        clock_map = session.maps.get(file.source)
        if clock_map is not None and len(file.frame_times_s):
            taken_s = file.frame_times_s + session.picture_late_s.get(file.source, 0.0)
            found.setdefault(file.device, []).append((number, clock_map.to_ticks(taken_s)))
    return [file_stamps(device, files) for device, files in found.items()]


def _media_stamps(session: Session) -> list[FrameStamps]:
    """Without a headset: the first take of a camera on its own media time."""
    numbers = {file.source: number for number, file in enumerate(session.cameras)}
    for take in session.takes:
        files = [
            (numbers[file.source], _ticks_of_media(file.start_s + file.frame_times_s))
            for file in take.readable
        ]
        if files:
            return [file_stamps(take.device, files)]
    return []


def _ticks_of_media(media_s: npt.NDArray[np.floating]) -> Int64:
    return np.rint(media_s * MEDIA_TICKS_PER_S).astype(np.int64)


def _pose_tracks(session: Session) -> list[PoseTrack]:
    tracks: list[PoseTrack] = []
    for name in session.recording.streams:
        device, _, short = name.partition("/")
        stream = session.recording[name]
        if device != session.headset or len(stream) == 0:
            continue
        if short == "spatial_input":
            tracks.insert(0, head_poses(stream))
        elif short in POSED:
            track = frame_poses(short, stream)
            tracks += [track] if track is not None else []
    return tracks


def _no_tables(session: Session, reason: str) -> dict[str, Any]:
    for name in (INDEX, POSES):
        (session.folder / name).unlink(missing_ok=True)
    return {"master": None, "index": None, "reasons": [reason]}


def _write(path: Path, columns: Columns, about: dict[str, Any]) -> None:
    """Write a table whole or not at all; `about` goes into its metadata under `kitchensync`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = json.dumps(plain(about), sort_keys=True)
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    table = table.replace_schema_metadata({"kitchensync": text})
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    pq.write_table(table, part, compression="zstd")
    os.replace(part, path)
