"""From a recording's depth to a mesh of its kitchen: `kitchensync mesh`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibration.space.depth_views import DepthSource, depth_stream
from calibration.space.depth_walk import DepthWalk, Progress
from calibration.space.mesh_fusion import VOXEL_M, Fusion
from storage.recording import open_recording

SCHEMA = "mesh/1"


@dataclass(frozen=True)
class MeshRequest:
    """What is wanted."""

    depth: str | None = None
    "Stream; by default far depth before near."
    voxel_m: float = VOXEL_M
    start_s: float = 0.0
    seconds: float | None = None


def make_mesh(
    path: Path, out: Path, wanted: MeshRequest, progress: Progress | None = None, *, force: bool = False
) -> dict[str, Any]:
    """Write the mesh of a recording's depth as PLY and return what it holds; work that was cut off is taken up.

    `force` lets `out` be replaced. Raises Refused (also without Open3D), StorageError.
    """
    with open_recording(path) as recording:
        source = DepthSource(recording, depth_stream(recording, wanted.depth))
        request = [SCHEMA, recording.id, recording.pauses, wanted.voxel_m]
        fusion = Fusion(source.table, wanted.voxel_m)
        walk = DepthWalk(source, wanted.start_s, wanted.seconds, out, request, force=force)
        if walk.kept is not None:
            fusion.load(walk.kept, walk.pictures)
        for view in walk.views(fusion.save, ".npz", progress):
            fusion.add(view.depth_mm, view.world_from_depth)
        points, triangles = fusion.write(out, force=force)
        of_mesh = {"points": points, "triangles": triangles, "voxel_mm": wanted.voxel_m * 1e3}
        return walk.done(SCHEMA, recording.id) | of_mesh
