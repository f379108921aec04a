"""From a recording's depth to a mesh of its kitchen: `kitchensync mesh`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibration.depth_views import DepthSource, depth_stream, skipped
from calibration.fusion import VOXEL_M, Fusion
from calibration.partial import Partial
from storage.recording import open_recording

SCHEMA = "mesh/1"
Progress = Callable[[float, float, str], None]


@dataclass(frozen=True)
class MeshRequest:
    """What is wanted."""

    depth: str | None = None
    "Stream; by default far depth before near."
    voxel_m: float = VOXEL_M
    start_s: float = 0.0
    seconds: float | None = None


def make_mesh(path: Path, out: Path, wanted: MeshRequest, progress: Progress | None = None) -> dict[str, Any]:
    """Write the mesh of a recording's depth as PLY and return what it holds; work that was cut off is taken up.

    Raises Refused (also without Open3D), StorageError.
    """
    with open_recording(path) as recording:
        source = DepthSource(recording, depth_stream(recording, wanted.depth))
        rows = source.rows(wanted.start_s, wanted.seconds)
        request = [recording.manifest["recording"], source.name, len(source.ticks), wanted.voxel_m]
        partial = Partial(out, {"schema": SCHEMA, "of": request, "rows": [rows.rows.start, rows.rows.stop]})
        fusion, state = Fusion(source.table, wanted.voxel_m), partial.begin()
        begin, wrapped = rows.rows.start, 0
        if state:
            fusion.load(partial.folder / state["file"], int(state["pictures"]))
            begin, wrapped = int(state["next"]), int(state["wrapped"])
        for view in source.views(begin, rows.rows.stop):
            if view.world == rows.world:
                wrapped += view.wrapped
                fusion.add(view.depth_mm, view.world_from_depth)
            if progress is not None:
                progress(view.row + 1 - rows.rows.start, len(rows.rows), source.name)
            if partial.due:
                file = f"volume-{view.row + 1}.npz"
                fusion.save(partial.folder / file)
                pictures = fusion.pictures
                partial.keep({"file": file, "next": view.row + 1, "wrapped": wrapped, "pictures": pictures})
        points, triangles = fusion.write(out)
        partial.remove()
        return {
            "schema": SCHEMA,
            "recording": recording.id,
            "status": "ok",
            "path": str(out),
            "stream": source.name,
            "pictures": fusion.pictures,
            "left_out": skipped(rows, source.stream),
            "world": rows.world,
            "wrapped_pixels": wrapped,
            "points": points,
            "triangles": triangles,
            "voxel_mm": wanted.voxel_m * 1e3,
        }
