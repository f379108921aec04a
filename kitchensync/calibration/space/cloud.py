"""From a recording to one coloured cloud of its kitchen: `kitchensync cloud`."""

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
    """Write a cloud whole. Raises OutputRefused."""
    rows = np.empty(len(cloud.points), _VERTEX)
    rows["place"], rows["colour"], rows["seen"] = cloud.points, cloud.colours, cloud.count
    with written(path, force=force) as part, part.open("wb") as file:
        file.write(_HEADER.format(count=len(rows)).encode("ascii"))
        file.write(rows.view(np.uint8).data)


SCHEMA = "cloud/1"
COLOUR_WITHIN_S = 0.05
LEAST_SEEN = 2


@dataclass(frozen=True)
class CloudRequest:
    """What is wanted."""

    depth: str | None = None
    "Stream; by default far depth before near."
    cameras: tuple[str, ...] | None = None
    "Which cameras give colour; by default all that can, and none when empty."
    voxel_m: float = VOXEL_M
    start_s: float = 0.0
    seconds: float | None = None


def make_cloud(
    path: Path,
    out: Path,
    data: Path,
    wanted: CloudRequest,
    progress: Progress | None = None,
    *,
    force: bool = False,
) -> dict[str, Any]:
    """Write the coloured cloud of a recording as PLY and return what it holds; work that was cut off is taken up.

    One depth picture and one picture a camera are in memory at a time, beside the cubes of the room. `data` holds the
    calibrations; `force` lets `out` be replaced. Raises Refused, NotAligned, StorageError.
    """
    with OpenedRecording(path) as recording, ExitStack() as stack:
        source = DepthSource(recording, depth_stream(recording, wanted.depth))
        eyes, without = _eyes(recording, data, wanted, source.headset)
        names = [eye.name for eye in eyes]
        request = [
            SCHEMA,
            recording.id,
            recording.stored.pauses,
            [eye.rests_on for eye in eyes],
            wanted.voxel_m,
        ]
        walk = DepthWalk(source, wanted.start_s, wanted.seconds, out, request, force=force)
        for eye in eyes:
            stack.enter_context(eye)
        colourists = [_Colourist(eye, source, walk.rows) for eye in eyes]
        voxels = Voxels(wanted.voxel_m)
        if walk.kept is not None:
            voxels.load(walk.kept)
        for view in walk.views(voxels.save, ".npy", progress):
            _add(voxels, source, view, colourists)
        cloud = voxels.cloud(LEAST_SEEN)
        write_cloud(out, cloud, force=force)
        return walk.done(SCHEMA, recording.id) | {
            "points": len(cloud.points),
            "voxel_mm": wanted.voxel_m * 1e3,
            "coloured": round(float(cloud.coloured.mean()), 4) if len(cloud.points) else 0.0,
            "cameras": names,
            "cameras_left_out": without,
        }


def _eyes(
    recording: OpenedRecording, data: Path, wanted: CloudRequest, headset: str
) -> tuple[list[Eye], dict[str, str]]:
    if wanted.cameras is not None:
        return [eye_of(recording, camera, data) for camera in wanted.cameras], {}
    eyes, without = usable_eyes(recording, data)
    other = [eye for eye in eyes if eye.headset != headset]
    return [eye for eye in eyes if eye not in other], without | {
        eye.name: f"it rides with {eye.headset}" for eye in other
    }


def _add(voxels: Voxels, source: DepthSource, view: DepthView, colourists: list[_Colourist]) -> None:
    points, order = source.points(view)
    shades = np.zeros((len(points), 3), np.uint8)
    known = np.zeros(len(points), np.bool_)
    for colourist in colourists:
        shot = colourist.near(view)
        if shot is None or shot.view is None or shot.view.world != view.world:
            continue
        in_camera = moved(shot.view.camera_from_world, points)
        found, seen = colours(shot.view.camera, in_camera, order, shot.rgb)
        new = seen & ~known
        shades[new], known[new] = found[new], True
    voxels.add(points, shades, known)


class _Colourist:
    """Gives the picture of one camera nearest to each depth picture, rising."""

    def __init__(self, eye: Eye, source: DepthSource, rows: Rows) -> None:
        self._ticks = eye.ticks
        self._of_depth: dict[int, int] = {}
        if len(eye.ticks):
            for row in rows.rows:
                at = int(source.ticks[row])
                after = int(np.searchsorted(eye.ticks, at).clip(1, max(len(eye.ticks) - 1, 1)))
                two = [min(index, len(eye.ticks) - 1) for index in (after - 1, after)]
                near = min(two, key=lambda index: abs(int(eye.ticks[index]) - at))
                if abs(int(eye.ticks[near]) - at) <= COLOUR_WITHIN_S * TICKS_PER_S:
                    self._of_depth[row] = near
        self._eye = eye
        self._shots: Iterator[Shot] | None = None
        self._held: Shot | None = None

    def near(self, view: DepthView) -> Shot | None:
        """Return the picture nearest to a depth picture, at most 50 ms away."""
        wanted = self._of_depth.get(view.row)
        if wanted is None:
            return None
        if self._shots is None:
            rest = sorted({row for depth, row in self._of_depth.items() if depth >= view.row})
            self._shots = self._eye.shots(rest)
            self._held = next(self._shots, None)
        while self._held is not None and self._held.row < wanted:
            self._held = next(self._shots, None)
        return self._held if self._held is not None and self._held.row == wanted else None
