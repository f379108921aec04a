"""Gather the stamps of a recording and write `index.parquet` and `poses.parquet`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kitchensync.sensors.hololens.catalogue import FRONT_CAMERA, STREAMS, is_front_camera, is_head_pose
from kitchensync.shell.array_types import Int64
from kitchensync.storage.errors import BadChunk, pass_on_trouble
from kitchensync.storage.ledger import Note
from kitchensync.storage.ledger_reader import read_notes
from kitchensync.storage.reading.inertial import sample_ticks
from kitchensync.storage.timeline.pose_track import PoseTrack
from kitchensync.sync.answers import RecordingAnswer, plain
from kitchensync.sync.errors import NoSuchMaster
from kitchensync.sync.frame_index.build_index import (
    FrameStamps,
    RunStamps,
    TableColumns,
    build_index,
    build_poses,
    file_stamps,
    packet_stamps,
)
from kitchensync.sync.frame_index.masters import RUNS
from kitchensync.sync.recording.headset import frame_poses, head_poses

if TYPE_CHECKING:
    from kitchensync.sync.recording.sync_session import Session


INDEX, POSES = "index.parquet", "poses.parquet"
POSED = [name for name, stream in STREAMS.items() if stream.in_pose_table]
MEDIA_TICKS_PER_S = 10_000_000


def write_tables(session: Session, *, master: str | None, usable: bool) -> RecordingAnswer:
    """Write both tables, or none when there is nothing to say; return what the answer says of them."""
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
    columns, about = build_index(chosen, others, runs)
    about["clock"] = "media_100ns" if session.main is None else "hl2_qpc_100ns"
    own = session.own_clip
    about["clock_of"] = session.main.name if session.main else session.name_of(own) if own else chosen.name
    about["files"] = [file.relative for file in session.cameras]
    about["picture_late_ms"] = {source: late_s * 1e3 for source, late_s in session.picture_late_s.items()}
    _write(session.folder / INDEX, columns, about)
    notes, answer = {}, RecordingAnswer(master=chosen.name, index=about)
    try:
        notes = read_notes(session.recording.readable)  # it tells of new world frames
    except BadChunk as error:
        pass_on_trouble(error)
        why = " ".join(str(error).split())
        answer["warnings"] = [f"poses may mix world frames, since the ledger is damaged: {why}"]
    poses = build_poses(columns["master_i"], columns["master_ticks"], list(_pose_tracks(session, notes)))
    world_frames = next(iter(answer.get("warnings", [])), "ledger")
    of_poses = {"frame": "headset world, metres, w x y z", "world_frames": world_frames}
    _write(session.folder / POSES, poses, {"master": chosen.name, **of_poses})
    return answer


def _choose_master(
    wanted: str | None, frames: list[FrameStamps], cameras: list[FrameStamps], session: Session
) -> FrameStamps:
    """PV unless something else is wanted or it was not recorded; then a camera, then what there is.

    `wanted` is a name of the index, or of the recording, or `pv` or `gopro` for the first of its kind. Raises
    NoSuchMaster when the wanted one, or any, has no frames.
    """
    kinds = {FRONT_CAMERA: [s for s in frames if is_front_camera(s.name)], "gopro": cameras}
    if wanted is None:
        candidates = [*kinds[FRONT_CAMERA], *cameras, *frames]
    else:
        full = {f"{session.main.name}/{s.name}" if session.main else s.name: s for s in frames}
        full |= {f"{s.name}/video": s for s in cameras}
        named = [s for s in [*frames, *cameras] if s.name == wanted]
        candidates = [*named, *([full[wanted]] if wanted in full else []), *kinds.get(wanted, [])]
    found = [stream for stream in candidates if len(stream.ticks)]
    if found:
        return found[0]
    there = ", ".join(stream.name for stream in [*frames, *cameras] if len(stream.ticks)) or "nothing"
    reason = f"it has no frames here; there are: {there}" if wanted else "there are no frames to index"
    raise NoSuchMaster(wanted or "anything", session.recording.id, reason)


def _to_main(session: Session, headset: str, ticks: Int64) -> Int64 | None:
    """Ticks of a headset as those of the main one; None when nothing relates them."""
    if session.main is not None and headset == session.main.name:
        return ticks
    bridge = session.bridges.get(headset)
    return bridge.to_ticks(ticks) if bridge is not None else None


def _headset_stamps(session: Session) -> tuple[list[FrameStamps], list[RunStamps]]:
    """Stamps of the headsets' streams; inertial ones sample by sample on their repaired clocks."""
    frames: list[FrameStamps] = []
    runs: list[RunStamps] = []
    for headset in sorted(session.headsets, key=lambda headset: headset is not session.main):
        for short, stream in headset.streams:
            raw = stream.index["device_ticks"].astype(np.int64)
            if short in headset.inertial:
                raw = sample_ticks(stream, headset.inertial[short])
            ticks, name = _to_main(session, headset.name, raw), session.column(headset, short)
            if ticks is None:
                continue
            if short in RUNS:
                runs.append(RunStamps(name, ticks))
            else:
                frames.append(packet_stamps(name, ticks))
    return frames, runs


def _camera_stamps(session: Session) -> list[FrameStamps]:
    """When every picture of the placed camera files was taken, on the clock of the tables, one stream a camera.

    That is the main headset's, without one the media time of the first clip.
    """
    found: dict[str, list[tuple[int, Int64]]] = {}
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
                found.setdefault(session.name_of(clip), []).append((numbers[file.source], ticks))
    return [file_stamps(name, files) for name, files in found.items()]


def _pose_tracks(session: Session, notes: dict[str, list[Note]]) -> Iterator[PoseTrack]:
    """Head poses first, then those that came with pictures, all on the main headset's clock."""
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
