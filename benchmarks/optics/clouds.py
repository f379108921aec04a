"""Depth to points and to another camera's picture, ours beside Open3D's own functions; a recording to mesh and cloud.

    python -P benchmarks/optics/clouds.py [--minutes 15]

Open3D's clouds want a pinhole, so its input is the undistorted depth along z; ours works on the radial depth as sent.
A recording of `--minutes` of far depth (five pictures a second) goes through `kitchensync mesh` and `cloud`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), *map(str, (ROOT / "tests" / "support").iterdir())]

from small_recordings import write_manifest  # noqa: E402
from tables import look_up_table  # noqa: E402

from kitchensync.calibration.space.mesh import PinholeDepth, open3d_or_refuse  # noqa: E402
from kitchensync.sensors.hololens import calibration  # noqa: E402
from kitchensync.sensors.hololens.streams import depth_longthrow  # noqa: E402
from kitchensync.storage.chunks.chunk_writer import Packet, seal  # noqa: E402
from kitchensync.storage.geometry.camera_models import Pinhole  # noqa: E402
from kitchensync.storage.geometry.clouds import DepthCamera, moved  # noqa: E402
from kitchensync.storage.geometry.look_up_table import LookUpTable  # noqa: E402
from kitchensync.storage.geometry.reference_frames import inverse, rig_from_sensor  # noqa: E402
from kitchensync.storage.geometry.registration import drawn, registered  # noqa: E402
from kitchensync.storage.reading.device_constants import ConstantTable, write_calibration  # noqa: E402
from kitchensync.virtual_kitchen.headset.cameras import AHAT, LONGTHROW, constants  # noqa: E402
from kitchensync.virtual_kitchen.world.room import distance_m, off_surface_m  # noqa: E402

ROUNDS = 15
PICTURES = 40
CHUNK_PICTURES = 600
"Different pictures of the room that the fusion sees again and again, each from its own place."


def room_depth(camera: LookUpTable, pose: np.ndarray) -> np.ndarray:
    """Return radial millimetres (height, width) uint16 of the room from a pose (4, 4)."""
    plane = camera.plane.reshape(-1, 2).astype(float)
    rays = np.column_stack((plane, np.ones(len(plane))))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    away = distance_m(pose[:3, 3], rays @ pose[:3, :3].T)
    return np.rint(1000 * away).astype(np.uint16).reshape(camera.height, camera.width)


def pose_of(step: int) -> np.ndarray:
    """Return world from camera, somewhere in the room."""
    pose = np.eye(4)
    turn = Rotation.from_euler("YX", [step * 20.0, -15 + 10 * np.sin(step)], degrees=True).as_matrix()
    pose[:3, :3] = turn @ np.diag([1.0, -1, -1])
    pose[:3, 3] = [0.3 * np.sin(step), 0.1 * np.cos(step), 0.3 + 0.2 * np.sin(2 * step)]
    return pose


def milliseconds(*works: Callable[[], object]) -> list[float]:
    """Return the median time of each, taken in turn."""
    times: list[list[float]] = [[] for _ in works]
    for work in works:
        work()
    for _ in range(ROUNDS):
        for work, taken in zip(works, times, strict=True):
            start = time.perf_counter()
            work()
            taken.append(1e3 * (time.perf_counter() - start))
    return [median(taken) for taken in times]


def compare(name: str, camera: LookUpTable) -> None:
    """Print points and registration of one camera."""
    o3d = open3d_or_refuse()
    depth_mm = room_depth(camera, pose_of(3))
    ours, flat = DepthCamera(camera), PinholeDepth(camera)
    z = flat.z_m(depth_mm)
    image = o3d.t.geometry.Image(o3d.core.Tensor(z[..., None]))
    fx, fy, cx, cy = camera.pinhole
    matrix = o3d.core.Tensor(np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1.0]]))
    legacy_image = o3d.geometry.Image(z)
    legacy = o3d.camera.PinholeCameraIntrinsic(camera.width, camera.height, fx, fy, cx, cy)
    make, create = (
        o3d.geometry.PointCloud.create_from_depth_image,
        o3d.t.geometry.PointCloud.create_from_depth_image,
    )

    def tensor_points() -> np.ndarray:
        return np.asarray(create(image, matrix, depth_scale=1.0, depth_max=5.0).point.positions.numpy())

    mine, tensor, old = milliseconds(
        partial(ours.points, depth_mm),
        tensor_points,
        lambda: np.asarray(make(legacy_image, legacy, depth_scale=1.0, depth_trunc=5.0).points),
    )
    print(
        f"{name:16} points         ours {mine:7.2f} ms   Open3D tensor {tensor:7.2f} ms   legacy {old:7.2f} ms"
    )
    target, shift = Pinhole(640, 360, 505, 505, 319.5, 179.5), np.eye(4)
    shift[:3, 3] = [0.05, 0.02, 0.0]
    cloud = create(image, matrix, depth_scale=1.0, depth_max=5.0)
    into = o3d.core.Tensor(np.array([[505.0, 0, 319.5], [0, 505.0, 179.5], [0, 0, 1.0]]))
    view = o3d.core.Tensor(shift)
    points = moved(shift, ours.points(depth_mm)[0])

    def project(of: Any) -> np.ndarray:
        picture = of.project_to_depth_image(640, 360, into, view, depth_scale=1.0, depth_max=5.0)
        return np.asarray(picture.as_tensor().numpy())

    filled, mine, theirs, whole = milliseconds(
        partial(registered, ours, depth_mm, target, shift),
        lambda: drawn(target, points, target.project(points)),
        lambda: project(cloud),
        lambda: project(create(image, matrix, depth_scale=1.0, depth_max=5.0)),
    )
    closed, sparse = np.mean(registered(ours, depth_mm, target, shift) > 0), np.mean(project(cloud) > 0)
    print(
        f"{name:16} points drawn   ours {mine:7.2f} ms   Open3D {theirs:7.2f} ms, {sparse:.0%} of the picture"
    )
    print(
        f"{name:16} registration   ours {filled:7.2f} ms, gaps closed: {closed:.0%} of the picture   "
        f"Open3D {whole:7.2f} ms (cloud and points drawn)"
    )


def recording_of(folder: Path, minutes: float) -> Path:
    """Write a recording of far depth alone, five pictures a second of the room, and return it."""
    camera, recording = look_up_table(LONGTHROW), folder / "fifteen"
    views = []
    for step in range(PICTURES):
        world_from_rig = pose_of(step) @ inverse(rig_from_sensor(LONGTHROW.extrinsics()))
        depth = room_depth(camera, pose_of(step))
        payload = depth_longthrow.encode(depth_longthrow.pack(depth, np.full_like(depth, 900)), 0)
        views.append((payload, world_from_rig.T.astype("<f4").tobytes()))
    count, name = round(minutes * 60 * 5), "hololens/depth_longthrow"
    (recording / name).mkdir(parents=True)
    for number, start in enumerate(range(0, count, CHUNK_PICTURES), start=1):
        packets = [
            Packet(k, 1, k * 2_000_000, k * 200_000_000, 1, *views[k % PICTURES])
            for k in range(start, min(start + CHUNK_PICTURES, count))
        ]
        seal(recording / name, number, packets, {})
    write_manifest(recording, {name: {}}, {"hololens": "hololens"})
    tables = [
        ConstantTable(c.name, c.values, c.unit, c.frame, c.meaning)
        for c in calibration.parse(depth_longthrow.STREAM, constants(LONGTHROW))
    ]
    write_calibration(recording / "hololens" / "calibration" / "depth_longthrow.h5", tables, {})
    return recording


def watched(*words: object) -> tuple[float, float]:
    """Run a command; return its seconds and its peak memory, MiB."""
    start = time.perf_counter()
    child = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{words}: exit {child.returncode}")
    return time.perf_counter() - start, used.ru_maxrss / 1024


def fuse(minutes: float) -> None:
    """Bring far depth of some minutes from a recording to a mesh and to a cloud; print time, memory and error."""
    o3d, command = open3d_or_refuse(), Path(sys.executable).with_name("kitchensync")
    with tempfile.TemporaryDirectory() as folder:
        recording = recording_of(Path(folder), minutes)
        for name in ("mesh", "cloud"):
            out = Path(folder) / f"{name}.ply"
            seconds, peak_mib = watched(command, name, recording, "--out", out)
            points = np.asarray(o3d.io.read_point_cloud(str(out)).points)
            off_mm = 1e3 * off_surface_m(points)
            print(
                f"{name} of {minutes:g} minutes ({round(minutes * 300)} pictures): {seconds:.0f} s, "
                f"peak memory {peak_mib:.0f} MiB; {len(points)} points, off the room's surfaces by "
                f"{np.sqrt(np.mean(off_mm**2)):.1f} mm RMS, {np.percentile(off_mm, 95):.1f} mm at 95 %",
                flush=True,
            )


def main() -> None:
    """Print every comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0, help="0: compare only")
    wanted = parser.parse_args()
    compare("depth_longthrow", look_up_table(LONGTHROW))
    compare("depth_ahat", look_up_table(AHAT))
    if wanted.minutes:
        fuse(wanted.minutes)


if __name__ == "__main__":
    main()
