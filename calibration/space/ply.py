"""Clouds as binary PLY (Turk 1994): what MeshLab, CloudCompare, Blender and Open3D read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibration.geometry.voxels import Cloud
from storage.shell.outputs import written

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
    """Write a cloud whole. Raises CannotWrite."""
    rows = np.empty(len(cloud.points), _VERTEX)
    rows["place"], rows["colour"], rows["seen"] = cloud.points, cloud.colours, cloud.count
    with written(path, force=force) as part, part.open("wb") as file:
        file.write(_HEADER.format(count=len(rows)).encode("ascii"))
        file.write(rows.view(np.uint8).data)
