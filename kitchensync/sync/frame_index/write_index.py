"""The frame index of a recording, `index.parquet`, with the samples of each master frame; `poses.parquet`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.hololens.catalogue import FRONT_CAMERA, STREAMS, is_front_camera, is_head_pose
from kitchensync.shell.array_types import Int64
from kitchensync.storage.errors import BadChunk, pass_on_trouble
from kitchensync.storage.ledger import Note
from kitchensync.storage.ledger_reader import read_notes
from kitchensync.storage.reading.inertial import sample_ticks
from kitchensync.storage.timeline.pose_track import PoseTrack
from kitchensync.sync.align.nearest import nearest, offsets_us, slices, strictly_increasing, tolerance_ticks
from kitchensync.sync.answers import RecordingAnswer, plain
from kitchensync.sync.errors import NoSuchMaster, NothingToSync
from kitchensync.sync.frame_index.masters import RUNS
from kitchensync.sync.recording.headset import frame_poses, head_poses

if TYPE_CHECKING:
    from kitchensync.sync.recording.sync_session import Session

TableColumns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class FrameStamps:
    """A stream with a nearest sample per master frame; `file` (n,) for cameras, whose rows are counted by file."""

    name: str
    ticks: Int64
    row: Int64
    file: npt.NDArray[np.int16] | None = None


def _build_index(
    master: FrameStamps, frames: list[FrameStamps], runs: dict[str, Int64]
) -> tuple[TableColumns, dict[str, Any]]:
    """Build the columns of `index.parquet`, and facts about each stream.

    `master_i` and `<stream>_i` are frame or packet numbers in the stream (in the file `<stream>_file` for cameras),
    -1 if none is near enough; `<stream>_dt_us` is sample minus master; `<run>_i0`, `<run>_i1` half-open ranges.
    Raises NothingToSync if the master has no frames.
    """
    if len(master.ticks) == 0:
        raise NothingToSync(master.name, "no stream with device stamps, nothing to index")
    order = strictly_increasing(master.ticks)
    at = master.ticks[order.rows]
    columns: TableColumns = {"master_i": master.row[order.rows].astype(np.int32), "master_ticks": at}
    if master.file is not None:
        columns["master_file"] = master.file[order.rows]
    about: dict[str, Mapping[str, float | None]] = {}
    for stream in frames:
        about[stream.name] = _add_nearest(columns, stream, at)
    for name, ticks in runs.items():
        columns[f"{name}_i0"], columns[f"{name}_i1"] = slices(ticks, at)
        about[name] = {"samples": len(ticks), "unsorted": int((np.diff(ticks) <= 0).sum())}
    repairs = {"unsorted": order.unsorted, "duplicates": order.duplicates}
    return columns, {"name": master.name, "frames": len(at), **repairs, "streams": about}


def _add_nearest(columns: TableColumns, stream: FrameStamps, at: Int64) -> dict[str, float | None]:
    order = strictly_increasing(stream.ticks)
    ticks = stream.ticks[order.rows]
    tolerance = tolerance_ticks(ticks)
    sample = nearest(ticks, at, tolerance=tolerance, what=stream.name)
    is_matched = sample >= 0
    where = order.rows[sample[is_matched]]
    columns[f"{stream.name}_i"] = np.full(len(at), -1, np.int32)
    columns[f"{stream.name}_i"][is_matched] = stream.row[where]
    if stream.file is not None:
        columns[f"{stream.name}_file"] = np.full(len(at), -1, np.int16)
        columns[f"{stream.name}_file"][is_matched] = stream.file[where]
    away_us = offsets_us(ticks, sample, at)
    columns[f"{stream.name}_dt_us"] = away_us
    return {
        "samples": len(stream.ticks),
        "unsorted": order.unsorted,
        "duplicates": order.duplicates,
        "tolerance_us": tolerance / 10.0,
        "matched": int(is_matched.sum()),
        "median_dt_us": float(np.median(np.abs(away_us[is_matched]))) if is_matched.any() else None,
    }


def _build_poses(master_i: npt.NDArray[Any], master_ticks: Int64, tracks: list[PoseTrack]) -> TableColumns:
    """Build the columns of `poses.parquet`: every pose at every master time, NaN and not valid in gaps."""
    columns: TableColumns = {"master_i": master_i, "master_ticks": master_ticks}
    for track in tracks:
        poses = track.at(master_ticks)
        for axis, name in enumerate("xyz"):
            columns[f"{track.name}_{name}_m"] = poses.position_m[:, axis]
        for axis, name in enumerate("wxyz"):
            columns[f"{track.name}_q{name}"] = poses.rotation_wxyz[:, axis]
        columns[f"{track.name}_valid"] = poses.valid
        columns[f"{track.name}_world"] = poses.world.astype(np.int16)
    return columns


INDEX, POSES = "index.parquet", "poses.parquet"
POSED = [name for name, stream in STREAMS.items() if stream.in_pose_table]
MEDIA_TICKS_PER_S = 10_000_000


def write_tables(session: Session, *, master: str | None, usable: bool) -> RecordingAnswer:
    """Write both tables if there is an index; return their facts for the answer."""
    if not usable:
        return {"master": None, "index": None, "reasons": ["nothing is aligned, so there is no index"]}
    frames, runs = _headset_stamps(session)
    cameras = _camera_stamps(session)
    try:
        chosen = _choose_master(master, frames, cameras, session)
    except NoSuchMaster as error:
        if master is not None:
            raise
        return {"master": None, "index": None, "reasons": [str(error)]}
    others = [stream for stream in [*frames, *cameras] if stream is not chosen]
    columns, about = _build_index(chosen, others, runs)
    about["clock"] = "media_100ns" if session.main is None else "hl2_qpc_100ns"
    own = session.own_clip
    about["clock_of"] = session.main.name if session.main else session.name_of(own) if own else chosen.name
    about["files"] = [file.relative for file in session.cameras]
    about["picture_late_ms"] = {source: late_s * 1e3 for source, late_s in session.picture_late_s.items()}
    _write(session.folder / INDEX, columns, about)
    notes, answer = {}, RecordingAnswer(master=chosen.name, index=about)
    try:
        notes = read_notes(session.recording.readable)  # for new world frames
    except BadChunk as error:
        pass_on_trouble(error)
        why = " ".join(str(error).split())
        answer["warnings"] = [f"poses may mix world frames, since the ledger is damaged: {why}"]
    poses = _build_poses(columns["master_i"], columns["master_ticks"], list(_pose_tracks(session, notes)))
    world_frames = next(iter(answer.get("warnings", [])), "ledger")
    of_poses = {"frame": "headset world, metres, w x y z", "world_frames": world_frames}
    _write(session.folder / POSES, poses, {"master": chosen.name, **of_poses})
    return answer


def _choose_master(
    requested: str | None, frames: list[FrameStamps], cameras: list[FrameStamps], session: Session
) -> FrameStamps:
    """Return the requested master; by default PV, else a camera, else any stream with frames.

    `requested` is a name of the index, or of the recording, or `pv` or `gopro` for the first of its kind. Raises
    NoSuchMaster if it, or by default any stream, has no frames.
    """
    kinds = {FRONT_CAMERA: [s for s in frames if is_front_camera(s.name)], "gopro": cameras}
    if requested is None:
        candidates = [*kinds[FRONT_CAMERA], *cameras, *frames]
    else:
        full = {f"{session.main.name}/{s.name}" if session.main else s.name: s for s in frames}
        full |= {f"{s.name}/video": s for s in cameras}
        matching = [s for s in [*frames, *cameras] if s.name == requested]
        candidates = [*matching, *([full[requested]] if requested in full else []), *kinds.get(requested, [])]
    usable = [stream for stream in candidates if len(stream.ticks)]
    if usable:
        return usable[0]
    available = ", ".join(stream.name for stream in [*frames, *cameras] if len(stream.ticks)) or "nothing"
    reason = f"it has no frames here; there are: {available}" if requested else "there are no frames to index"
    raise NoSuchMaster(session.recording.id, f"cannot use {requested or 'anything'} as master: {reason}")


def _to_main(session: Session, headset: str, ticks: Int64) -> Int64 | None:
    """Convert ticks of a headset to those of the main one; None if they are not aligned."""
    if session.main is not None and headset == session.main.name:
        return ticks
    bridge = session.bridges.get(headset)
    return bridge.to_ticks(ticks) if bridge is not None else None


def _headset_stamps(session: Session) -> tuple[list[FrameStamps], dict[str, Int64]]:
    """Return stamps of the headsets' streams; of inertial ones all samples on their repaired clocks."""
    frames: list[FrameStamps] = []
    runs: dict[str, Int64] = {}  # streams with all samples between two master frames
    for headset in sorted(session.headsets, key=lambda headset: headset is not session.main):
        for short, stream in headset.streams:
            raw = stream.index["device_ticks"].astype(np.int64)
            if short in headset.inertial:
                raw = sample_ticks(stream, headset.inertial[short])
            ticks, name = _to_main(session, headset.name, raw), session.column(headset, short)
            if ticks is None:
                continue
            if short in RUNS:
                runs[name] = ticks
            else:
                frames.append(FrameStamps(name, ticks, np.arange(len(ticks), dtype=np.int64)))
    return frames, runs


def _camera_stamps(session: Session) -> list[FrameStamps]:
    """Return capture times of all pictures of placed camera files on the clock of the tables, one stream per camera.

    The clock is that of the main headset, without one the media time of the first clip.
    """
    by_camera: dict[str, list[FrameStamps]] = {}
    numbers = {file.source: number for number, file in enumerate(session.cameras)}
    for clip in sorted(session.clips, key=lambda clip: clip is not session.own_clip):
        for file in clip.readable:
            taken_s = file.frame_times_s + session.picture_late_s.get(file.source, 0.0)
            clock_map, ticks = session.maps.get(file.source), None
            if clip is session.own_clip:
                ticks = np.rint((file.start_s + taken_s) * MEDIA_TICKS_PER_S).astype(np.int64)
            elif clock_map is not None and session.is_on_tables(file.source):
                ticks = clock_map.to_ticks(taken_s)
                if session.main is not None:
                    ticks = _to_main(session, session.rides_with[file.source].name, ticks)
            if ticks is not None:
                name, row = session.name_of(clip), np.arange(len(ticks), dtype=np.int64)
                number = np.full(len(ticks), numbers[file.source], dtype=np.int16)
                by_camera.setdefault(name, []).append(FrameStamps(name, ticks, row, number))
    joined = []
    for name, files in by_camera.items():
        columns = zip(*((part.ticks, part.row, part.file) for part in files), strict=True)
        ticks, row, number = map(np.concatenate, columns)
        joined.append(FrameStamps(name, ticks, row, number))
    return joined


def _pose_tracks(session: Session, notes: dict[str, list[Note]]) -> Iterator[PoseTrack]:
    """Yield head poses first, then poses of pictures, all on the main headset's clock."""
    for headset in sorted(session.headsets, key=lambda headset: headset is not session.main):
        for short, stream in sorted(headset.streams, key=lambda item: not is_head_pose(item[0])):
            own, track = notes.get(stream.name, []), None
            if is_head_pose(short):
                track = head_poses(stream, own)
            elif short in POSED:
                track = frame_poses(short, stream, own)
            ticks = _to_main(session, headset.name, track.ticks) if track is not None else None
            if track is not None and ticks is not None:
                yield replace(track, name=session.column(headset, track.name), ticks=ticks)


def _write(path: Path, columns: TableColumns, about: Mapping[str, object]) -> None:
    """Write a table; `about` goes into its metadata under `kitchensync`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = json.dumps(plain(about), sort_keys=True)
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    table = table.replace_schema_metadata({"kitchensync": text})
    pq.write_table(table, path, compression="zstd")
