"""The frame index of a recording: for every master frame, what each stream held at that instant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Int64
from kitchensync.storage.timeline.pose_track import PoseTrack
from kitchensync.sync.align.nearest import (
    nearest,
    offsets_us,
    slices,
    strictly_increasing,
    tolerance_ticks,
)
from kitchensync.sync.errors import NothingToSync

TableColumns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class FrameStamps:
    """A stream of which the nearest sample is taken; `file` (n,) for cameras, whose rows count in a file."""

    name: str
    ticks: Int64
    row: Int64
    file: npt.NDArray[np.int16] | None = None


@dataclass(frozen=True, slots=True)
class RunStamps:
    """A stream of which all samples between two master frames are taken."""

    name: str
    ticks: Int64


def packet_stamps(name: str, ticks: Int64) -> FrameStamps:
    """Stamps of a stream's packets, put in strictly increasing order."""
    return FrameStamps(name, ticks, np.arange(len(ticks), dtype=np.int64))


def file_stamps(name: str, files: list[tuple[int, Int64]]) -> FrameStamps:
    """Stamps of a camera's frames over several files, each with its number."""
    ticks = np.concatenate([stamps for _, stamps in files])
    row = np.concatenate([np.arange(len(stamps), dtype=np.int64) for _, stamps in files])
    number = np.concatenate([np.full(len(stamps), number, dtype=np.int16) for number, stamps in files])
    return FrameStamps(name, ticks, row, number)


def build_index(
    master: FrameStamps, frames: list[FrameStamps], runs: list[RunStamps]
) -> tuple[TableColumns, dict[str, Any]]:
    """Build the columns of `index.parquet`, and what is worth knowing about each stream.

    `master_i` and `<stream>_i` are frame or packet numbers in the stream (in the file `<stream>_file` for cameras),
    -1 when none is near enough; `<stream>_dt_us` is sample minus master; `<run>_i0`, `<run>_i1` half-open ranges.
    Raises NothingToSync when the master has no frames.
    """
    if len(master.ticks) == 0:
        raise NothingToSync(master.name)
    order = strictly_increasing(master.ticks)
    at = master.ticks[order.rows]
    columns: TableColumns = {"master_i": master.row[order.rows].astype(np.int32), "master_ticks": at}
    if master.file is not None:
        columns["master_file"] = master.file[order.rows]
    about: dict[str, Mapping[str, float | None]] = {}
    for stream in frames:
        about[stream.name] = _add_nearest(columns, stream, at)
    for run in runs:
        first, last = slices(run.ticks, at)
        columns[f"{run.name}_i0"], columns[f"{run.name}_i1"] = first, last
        about[run.name] = {"samples": len(run.ticks), "unsorted": int((np.diff(run.ticks) <= 0).sum())}
    repairs = {"unsorted": order.unsorted, "duplicates": order.duplicates}
    return columns, {"name": master.name, "frames": len(at), **repairs, "streams": about}


def _add_nearest(columns: TableColumns, stream: FrameStamps, at: Int64) -> dict[str, float | None]:
    order = strictly_increasing(stream.ticks)
    ticks = stream.ticks[order.rows]
    tolerance = tolerance_ticks(ticks)
    found = nearest(ticks, at, tolerance=tolerance, what=stream.name)
    hit = found >= 0
    where = order.rows[found[hit]]
    columns[f"{stream.name}_i"] = np.full(len(at), -1, np.int32)
    columns[f"{stream.name}_i"][hit] = stream.row[where]
    if stream.file is not None:
        columns[f"{stream.name}_file"] = np.full(len(at), -1, np.int16)
        columns[f"{stream.name}_file"][hit] = stream.file[where]
    away_us = offsets_us(ticks, found, at)
    columns[f"{stream.name}_dt_us"] = away_us
    return {
        "samples": len(stream.ticks),
        "unsorted": order.unsorted,
        "duplicates": order.duplicates,
        "tolerance_us": tolerance / 10.0,
        "matched": int(hit.sum()),
        "median_dt_us": float(np.median(np.abs(away_us[hit]))) if hit.any() else None,
    }


def build_poses(master_i: npt.NDArray[Any], master_ticks: Int64, tracks: list[PoseTrack]) -> TableColumns:
    """Build the columns of `poses.parquet`: every pose at every master time, NaN and not valid across gaps."""
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
