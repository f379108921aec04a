"""Fuse the depth of a recording into a mesh of the kitchen: `kitchensync mesh`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from kitchensync.calibration.space.depth_walk import DepthWalk, Progress
from kitchensync.reader.cameras.depth_views import DepthSource, depth_stream
from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.shell.array_types import Floats32, UInt16
from kitchensync.storage.geometry.errors import Refused
from kitchensync.storage.geometry.look_up_table import LookUpTable
from kitchensync.storage.geometry.reference_frames import Transform, inverse
from kitchensync.storage.options.outputs import OutputRefused, written

VOXEL_M = 0.02
TRUNCATION_VOXELS = 3.0
MAX_DEPTH_M = 4.0
BLOCK_VOXELS, FIRST_BLOCKS = 16, 4000  # Open3D's usual block; it makes room for more by itself
MIN_WEIGHT = 2.0  # a surface in a single frame may be noise
_MM_PER_M = 1000.0


@dataclass(frozen=True)
class Mesh:
    """Triangles in world coordinates."""

    points: npt.NDArray[np.float64]
    "(n, 3) metres."
    triangles: npt.NDArray[np.int32]
    "(m, 3) rows of `points`."


class PinholeDepth:
    """Converts radial depth of a look-up-table camera into depth along z of the undistorted image."""

    def __init__(self, camera: LookUpTable) -> None:
        self._camera = camera

    @cached_property
    def _maps(self) -> tuple[Floats32, Floats32]:
        source = self._camera.source
        return np.ascontiguousarray(source[..., 0]), np.ascontiguousarray(source[..., 1])

    @cached_property
    def _along_z(self) -> Floats32:
        """Depth along z of one metre along the ray of each undistorted pixel."""
        fx, fy, cx, cy = self._camera.pinhole
        u, v = np.meshgrid(np.arange(self._camera.width), np.arange(self._camera.height))
        return (1 / np.sqrt(1 + ((u - cx) / fx) ** 2 + ((v - cy) / fy) ** 2)).astype(np.float32)

    def z_m(self, depth_mm: UInt16) -> Floats32:
        """Return metres along z (height, width) float32, 0 = unknown."""
        # The nearest pixel, because interpolation would invent depth at edges.
        straight = cv2.remap(depth_mm, *self._maps, cv2.INTER_NEAREST, borderValue=0.0)
        return np.asarray(straight, np.float32) * self._along_z / np.float32(_MM_PER_M)


class Fusion:
    """A volume that integrates depth frames."""

    def __init__(self, camera: LookUpTable, voxel_m: float = VOXEL_M) -> None:
        """Create an empty volume. Raises Refused without Open3D."""
        self._open3d = open3d_or_refuse()
        self._pinhole = PinholeDepth(camera)
        core = self._open3d.core
        fx, fy, cx, cy = camera.pinhole
        self._optics = core.Tensor(np.array([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]]))
        # Not ScalableTSDFVolume, which stays empty in Open3D 0.20.
        self._volume = self._open3d.t.geometry.VoxelBlockGrid(
            attr_names=("tsdf", "weight"),
            attr_dtypes=(core.float32, core.float32),
            attr_channels=((1), (1)),
            voxel_size=voxel_m,
            block_resolution=BLOCK_VOXELS,
            block_count=FIRST_BLOCKS,
            device=core.Device("CPU:0"),
        )
        self.pictures = 0

    def add(self, depth_mm: UInt16, world_from_camera: Transform) -> None:
        """Integrate a depth frame (height, width) uint16, radial mm, 0 = invalid."""
        self.pictures += 1
        core, z_m = self._open3d.core, self._pinhole.z_m(depth_mm)
        if not np.any((z_m > 0) & (z_m < MAX_DEPTH_M)):
            return  # Open3D refuses a frame without depth in range
        depth = self._open3d.t.geometry.Image(core.Tensor(z_m[..., None]))
        view = core.Tensor(inverse(world_from_camera))
        limits = (1.0, MAX_DEPTH_M, TRUNCATION_VOXELS)
        blocks = self._volume.compute_unique_block_coordinates(depth, self._optics, view, *limits)
        self._volume.integrate(blocks, depth, self._optics, view, *limits)

    def _surface(self) -> Any:
        return self._volume.extract_triangle_mesh(weight_threshold=MIN_WEIGHT)

    def mesh(self) -> Mesh:
        """Return the surface so far, where at least two frames agree."""
        surface = self._surface()
        points = surface.vertex.positions.numpy().astype(np.float64)
        return Mesh(points, surface.triangle.indices.numpy().astype(np.int32))

    def write(self, path: Path, *, force: bool = False) -> tuple[int, int]:
        """Write the surface so far as PLY; return its numbers of points and triangles.

        Raises Refused if there is none, OutputRefused.
        """
        surface = self._surface() if self._volume.hashmap().size() else None
        if surface is None or not len(surface.triangle.indices):
            raise Refused(f"no surface within {MAX_DEPTH_M:g} m was seen by two of {self.pictures} pictures")
        with written(path, force=force, ending=".ply") as part:
            if not self._open3d.t.io.write_triangle_mesh(str(part), surface):
                raise OutputRefused(path, "was not written", "make room or choose another place")
        return len(surface.vertex.positions), len(surface.triangle.indices)

    def save(self, path: Path) -> None:
        """Save the volume (`.npz`) as a checkpoint."""
        self._volume.save(str(path))

    def load(self, path: Path, pictures: int) -> None:
        """Load a volume that `save` wrote after this number of frames."""
        self._volume = self._open3d.t.geometry.VoxelBlockGrid.load(str(path))
        self.pictures = pictures


def open3d_or_refuse() -> Any:
    """Import Open3D. Raises Refused with the packages to install."""
    try:
        import open3d
    except (ImportError, OSError) as error:
        reason = " ".join(str(error).split())
        raise Refused(
            f"fusing depth needs Open3D ({reason}): pip install 'kitchensync[calib]', and its system libraries"
        ) from error
    return open3d


SCHEMA = "mesh/1"


@dataclass(frozen=True)
class MeshRequest:
    """Options of `make_mesh`."""

    voxel_m: float = VOXEL_M
    start_s: float = 0.0
    end_s: float = np.inf


def make_mesh(
    path: Path, out: Path, request: MeshRequest, progress: Progress | None = None, *, force: bool = False
) -> dict[str, Any]:
    """Write the mesh of a recording's depth as PLY and return its facts; an interrupted run is resumed.

    `force` allows to replace `out`. Raises Refused (also without Open3D), StorageError.
    """
    with OpenedRecording(path) as recording:
        source = DepthSource(recording, depth_stream(recording))
        inputs = [SCHEMA, recording.id, recording.stored.pauses, request.voxel_m]
        fusion = Fusion(source.table, request.voxel_m)
        walk = DepthWalk(source, request.start_s, request.end_s, out, inputs, force=force)
        if walk.saved is not None:
            fusion.load(walk.saved, walk.pictures)
        for view in walk.views(fusion.save, ".npz", progress):
            fusion.add(view.depth_mm, view.world_from_depth)
        points, triangles = fusion.write(out, force=force)
        facts = {"points": points, "triangles": triangles, "voxel_mm": request.voxel_m * 1e3}
        return walk.done(SCHEMA, recording.id) | facts
