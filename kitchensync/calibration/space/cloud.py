"""Build one coloured point cloud of the kitchen from a recording: `kitchensync cloud`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kitchensync.calibration.space.depth_walk import DepthWalk, Progress
from kitchensync.reader.cameras.depth_views import DepthSource, DepthView, Rows, depth_stream
from kitchensync.reader.cameras.eyes import Eye, Shot, eye_of, usable_eyes
from kitchensync.reader.cameras.recorded import TICKS_PER_S
from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.storage.geometry.clouds import moved
from kitchensync.storage.geometry.registration import colours
from kitchensync.storage.geometry.voxels import VOXEL_M, Cloud, Voxels
from kitchensync.storage.options.outputs import written

_VERTEX = np.dtype([("place", "<f4", (3,)), ("colour", "u1", (3,)), ("seen", "<u4")])
_HEADER = """ply
format binary_little_endian 1.0
comment metres, x right, y up, z towards the viewer at the start of the headset's app; seen: depth pixels in the cube
element vertex {count}
property float x
property float y
property float z
property uchar red
property uchar green
property uchar blue
property uint seen
end_header
"""


def write_cloud(path: Path, cloud: Cloud, *, force: bool = False) -> None:
    """Write a cloud as PLY. Raises OutputRefused."""
    rows = np.empty(len(cloud.points), _VERTEX)
    rows["place"], rows["colour"], rows["seen"] = cloud.points, cloud.colours, cloud.count
    with written(path, force=force) as part, part.open("wb") as file:
        file.write(_HEADER.format(count=len(rows)).encode("ascii"))
        file.write(rows.view(np.uint8).data)


SCHEMA = "cloud/1"
MAX_COLOUR_S = 0.05
MIN_COUNT = 2


@dataclass(frozen=True)
class CloudRequest:
    """Options of `make_cloud`."""

    cameras: tuple[str, ...] | None = None
    "Cameras that provide colour; by default all that can."
    voxel_m: float = VOXEL_M
    start_s: float = 0.0
    end_s: float = np.inf


def make_cloud(
    path: Path,
    out: Path,
    data: Path,
    request: CloudRequest,
    progress: Progress | None = None,
    *,
    force: bool = False,
) -> dict[str, Any]:
    """Write the coloured cloud of a recording as PLY and return its facts; an interrupted run is resumed.

    One depth frame and one frame of each camera are in memory at a time, besides the voxels. `data` is the folder of
    the calibrations; `force` allows to replace `out`. Raises Refused, NotAligned, StorageError.
    """
    with OpenedRecording(path) as recording, ExitStack() as stack:
        source = DepthSource(recording, depth_stream(recording))
        eyes, without = _eyes(recording, data, request, source.headset)
        names = [eye.name for eye in eyes]
        inputs = [
            SCHEMA,
            recording.id,
            recording.stored.pauses,
            [eye.rests_on for eye in eyes],
            request.voxel_m,
        ]
        walk = DepthWalk(source, request.start_s, request.end_s, out, inputs, force=force)
        for eye in eyes:
            stack.enter_context(eye)
        colourists = [_Colourist(eye, source, walk.rows) for eye in eyes]
        voxels = Voxels(request.voxel_m)
        if walk.saved is not None:
            voxels.load(walk.saved)
        for view in walk.views(voxels.save, ".npy", progress):
            _add(voxels, source, view, colourists)
        cloud = voxels.cloud(MIN_COUNT)
        write_cloud(out, cloud, force=force)
        return walk.done(SCHEMA, recording.id) | {
            "points": len(cloud.points),
            "voxel_mm": request.voxel_m * 1e3,
            "coloured": round(float(cloud.coloured.mean()), 4) if len(cloud.points) else 0.0,
            "cameras": names,
            "cameras_left_out": without,
        }


def _eyes(
    recording: OpenedRecording, data: Path, request: CloudRequest, headset: str
) -> tuple[list[Eye], dict[str, str]]:
    if request.cameras is not None:
        return [eye_of(recording, camera, data) for camera in request.cameras], {}
    eyes, without = usable_eyes(recording, data)
    other = [eye for eye in eyes if eye.headset != headset]
    return [eye for eye in eyes if eye not in other], without | {
        eye.name: f"it rides with {eye.headset}" for eye in other
    }


def _add(voxels: Voxels, source: DepthSource, view: DepthView, colourists: list[_Colourist]) -> None:
    points, order = source.points(view)
    shades = np.zeros((len(points), 3), np.uint8)
    has_colour = np.zeros(len(points), np.bool_)
    for colourist in colourists:
        shot = colourist.near(view)
        if shot is None or shot.view is None or shot.view.world != view.world:
            continue
        in_camera = moved(shot.view.camera_from_world, points)
        sampled, is_visible = colours(shot.view.camera, in_camera, order, shot.rgb)
        new = is_visible & ~has_colour
        shades[new], has_colour[new] = sampled[new], True
    voxels.add(points, shades, has_colour)


class _Colourist:
    """Finds the frame of one camera nearest to each depth frame, in ascending order."""

    def __init__(self, eye: Eye, source: DepthSource, rows: Rows) -> None:
        self._ticks = eye.ticks
        self._frames: dict[int, int] = {}
        if len(eye.ticks):
            for row in rows.rows:
                at = int(source.ticks[row])
                after = int(np.searchsorted(eye.ticks, at).clip(1, max(len(eye.ticks) - 1, 1)))
                two = [min(index, len(eye.ticks) - 1) for index in (after - 1, after)]
                near = min(two, key=lambda index: abs(int(eye.ticks[index]) - at))
                if abs(int(eye.ticks[near]) - at) <= MAX_COLOUR_S * TICKS_PER_S:
                    self._frames[row] = near
        self._eye = eye
        self._shots: Iterator[Shot] | None = None
        self._current: Shot | None = None

    def near(self, view: DepthView) -> Shot | None:
        """Return the frame nearest to a depth frame, None if none is within 50 ms."""
        row = self._frames.get(view.row)
        if row is None:
            return None
        if self._shots is None:  # only now, because a resumed run begins at a later frame
            remaining = sorted({row for depth, row in self._frames.items() if depth >= view.row})
            self._shots = self._eye.shots(remaining)
            self._current = next(self._shots, None)
        while self._current is not None and self._current.row < row:
            self._current = next(self._shots, None)
        return self._current if self._current is not None and self._current.row == row else None
