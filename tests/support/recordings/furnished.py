"""A small take of a furnished room, every picture and depth traced by the judge.

Frames as in `virtual_kitchen`: the world has y up and the room's viewing point at eye height; cameras as OpenCV's.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import cv2
import numpy as np
from camera_films import FilmPlan, write_clip
from scipy.spatial.transform import Rotation
from small_recordings import SEED, START_WORLD_S, seal_stream, true_alignment, truth_ticks, write_manifest

from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.hololens import calibration as constants_parser
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.sensors.hololens.streams import depth_longthrow, pv
from kitchensync.storage.manifest import write_json
from kitchensync.storage.reading.calibration_results import save
from kitchensync.storage.reading.device_constants import ConstantTable, write_calibration
from kitchensync.virtual_kitchen.gopro.files.encoders import VideoEncoder
from kitchensync.virtual_kitchen.headset.cameras import LONGTHROW, constants
from kitchensync.virtual_kitchen.headset.client_configuration import VideoFormat
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.streams.pv_stream import constants as pv_constants
from kitchensync.virtual_kitchen.headset.streams.spatial_stream import EyeFeed, SpatialFeed
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world import rotations
from kitchensync.virtual_kitchen.world.motion import simulated_motion
from kitchensync.virtual_kitchen.world.optics import Optics
from kitchensync.virtual_kitchen.world.room import COUNTER, COUNTER_EDGE_Z, distance_m

VIEWING_POINT = np.array([0.0, 1.62, 0.0])
THINGS = tuple(
    (np.array(low), np.array(high))
    for low, high in (
        ((-0.42, COUNTER, COUNTER_EDGE_Z - 0.45), (-0.18, COUNTER + 0.26, COUNTER_EDGE_Z - 0.25)),
        ((0.12, COUNTER, COUNTER_EDGE_Z - 0.4), (0.3, COUNTER + 0.14, COUNTER_EDGE_Z - 0.12)),
        ((0.42, COUNTER, COUNTER_EDGE_Z - 0.55), (0.62, COUNTER + 0.34, COUNTER_EDGE_Z - 0.35)),
    )
)
"Boxes on the counter at the front wall."
SECONDS, PV_HZ, FRAMES = 1.2, 8.0, 30
PV_FOCAL = 640 / 2 / np.tan(np.radians(64.7) / 2)
PV = Optics("pinhole", 640, 360, PV_FOCAL, PV_FOCAL, 319.5, 179.5, (0.0,) * 5)
GOPRO = Optics("fisheye", 1920, 1080, 880, 878, 955, 545, (0.03, -0.01, 0.004, -0.001))
NOISE_MM = 3.0
BOX_COLOUR = (250.0, 240.0, 60.0)
FLIP = np.diag([1.0, -1.0, -1.0, 1.0])
PV_PLACE = np.array([0.0, 0.02, -0.06])


def kitchen_of(folder: Path) -> Kitchen:
    """The kitchen that is recorded."""
    return Kitchen(SEED, simulated_motion(SEED), Truth(folder, SEED))


def rig_pose(kitchen: Kitchen, world_s: float) -> np.ndarray:
    """World from rig, column-vector (4, 4)."""
    at, pose = np.array([world_s]), np.eye(4)
    pose[:3, :3] = rotations.matrices(kitchen.motion.orientation(at))[0]
    pose[:3, 3] = kitchen.motion.position(at)[0]
    return pose


def pv_pose(kitchen: Kitchen, world_s: float) -> np.ndarray:
    """World from front camera, OpenCV's axes."""
    shift = np.eye(4)
    shift[:3, 3] = PV_PLACE
    return rig_pose(kitchen, world_s) @ shift @ FLIP


def depth_pose(kitchen: Kitchen, world_s: float) -> np.ndarray:
    """World from far depth camera."""
    place = np.eye(4)
    place[:3, :3], place[:3, 3] = LONGTHROW.from_rig.T, LONGTHROW.place_m
    return rig_pose(kitchen, world_s) @ place


def gopro_from_pv() -> np.ndarray:
    """The true mount."""
    mount = np.eye(4)
    mount[:3, :3] = Rotation.from_rotvec([0.10, -0.04, 0.02]).as_matrix()
    mount[:3, 3] = [0.02, 0.06, 0.03]
    return mount


def gopro_pose(kitchen: Kitchen, world_s: float) -> np.ndarray:
    """World from GoPro."""
    return pv_pose(kitchen, world_s) @ np.linalg.inv(gopro_from_pv())


def traced(pose: np.ndarray, rays: np.ndarray) -> np.ndarray:
    """Distances (h, w) metres along rays (h, w, 3) of a camera at a pose."""
    unit = rays.reshape(-1, 3) / np.linalg.norm(rays.reshape(-1, 3), axis=1, keepdims=True)
    away = distance_m(pose[:3, 3] - VIEWING_POINT, unit @ pose[:3, :3].T, THINGS)
    return away.reshape(rays.shape[:2])


def colour_of(points: np.ndarray) -> np.ndarray:
    """Colours (..., 3) of points of the world: smooth over the room, but for the boxes."""
    in_room = points - VIEWING_POINT
    smooth = 110 + 70 * np.sin(2 * np.pi * in_room / [2.3, 1.7, 1.9] + [0.0, 1.0, 2.0])
    for low, high in THINGS:
        inside = np.all((in_room > low - 2e-3) & (in_room < high + 2e-3), axis=-1)
        smooth[inside] = BOX_COLOUR
    return smooth


def photograph(pose: np.ndarray, rays: np.ndarray) -> np.ndarray:
    """Picture (h, w, 3) uint8 RGB of the room along rays of a camera at a pose."""
    away = traced(pose, rays)
    unit = rays / np.linalg.norm(rays, axis=-1, keepdims=True)
    return np.rint(colour_of(away[..., None] * (unit @ pose[:3, :3].T) + pose[:3, 3])).astype(np.uint8)


def coarse_rays(optics: Optics, by: int) -> np.ndarray:
    """Rays of pixels that are `by` times as wide: a picture of them, brought to full size, is cheap and smooth."""
    small = Optics(
        optics.kind, optics.width // by, optics.height // by, optics.fx / by, optics.fy / by,
        (optics.cx + 0.5) / by - 0.5, (optics.cy + 0.5) / by - 0.5, optics.k,
    )  # fmt: skip
    return small.ray_table()


def i420(rgb: np.ndarray) -> np.ndarray:
    return np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2YUV_I420), np.uint8)


def front_rows(kitchen: Kitchen):
    rays = coarse_rays(PV, 2)
    metadata = np.zeros((), pv.METADATA)
    metadata["focal_length"], metadata["principal_point"] = (PV.fx, PV.fy), (PV.cx, PV.cy)
    metadata["width"], metadata["height"] = PV.width, PV.height
    for world_s in START_WORLD_S + np.arange(0.0, SECONDS, 1 / PV_HZ):
        pose = pv_pose(kitchen, world_s)
        planes = i420(cv2.resize(photograph(pose, rays), (PV.width, PV.height)))
        chroma = planes[PV.height :].reshape(2, -1).T.tobytes()
        wire = (pose @ FLIP).T.astype("<f4").tobytes()
        payload = pv.encode(planes[: PV.height].tobytes() + chroma, metadata)
        yield kitchen.headset_clock.ticks_at(world_s), payload, wire


def depth_rows(kitchen: Kitchen):
    rng = np.random.default_rng(7)
    u, v = np.meshgrid(np.arange(LONGTHROW.width), np.arange(LONGTHROW.height))
    (cx, cy), focal = LONGTHROW.centre_px, LONGTHROW.focal_px
    rays = np.stack(((u - cx) / focal, (v - cy) / focal, np.ones(u.shape)), -1)
    for world_s in START_WORLD_S + np.arange(0.03, SECONDS, 0.2):
        away = 1e3 * traced(depth_pose(kitchen, world_s), rays)
        depth = np.rint(away + rng.normal(0, NOISE_MM, away.shape)).astype(np.uint16)
        png = depth_longthrow.pack(depth, np.full_like(depth, 900))
        wire = rig_pose(kitchen, world_s).T.astype("<f4").tobytes()
        yield kitchen.headset_clock.ticks_at(world_s), depth_longthrow.encode(png, 0), wire


def feed_rows(feed: SpatialFeed | EyeFeed):
    first = feed.first_k(START_WORLD_S - 0.2)
    for k in range(first, first + round((SECONDS + 0.4) * 30)):
        packet = feed.packet(k)
        yield packet.ticks, packet.payload, packet.pose


def seal_rows(recording: Path, name: str, rows) -> None:
    ticks, payloads, poses = zip(*rows, strict=True)
    seal_stream(recording, name, list(zip(ticks, payloads, strict=True)), poses=list(poses))


def film_room(folder: Path, kitchen: Kitchen) -> None:
    """Write what the GoPro filmed."""
    encoder, rays = VideoEncoder(GOPRO.width, GOPRO.height, 20), coarse_rays(GOPRO, 6)
    ticks = truth_ticks(kitchen, np.arange(FRAMES) * 1001 / 30000)

    def samples():
        for frame, tick in enumerate(ticks):
            pose = gopro_pose(kitchen, kitchen.headset_clock.world_s_at(int(tick)))
            picture = cv2.resize(photograph(pose, rays), (GOPRO.width, GOPRO.height))
            yield from encoder.encode(frame, i420(picture))
        yield from encoder.flush()

    film = FilmPlan(FRAMES, GOPRO.width, GOPRO.height, seed=SEED, number=42, start_world_s=START_WORLD_S)
    write_clip(folder, film, samples(), encoder.configuration, [])


def write_tables(recording: Path, stream: str, answer: bytes) -> None:
    tables = [
        ConstantTable(c.name, c.values, c.unit, c.frame, c.meaning)
        for c in constants_parser.parse(headset_stream(stream), answer)
    ]
    write_calibration(recording / "hololens" / "calibration" / f"{stream}.h5", tables, {})


def keep_calibrations(
    recording: Path, off_px: float = 0.3, off_deg: float = 0.03, off_m: float = 1e-3
) -> None:
    """Write lens and mount beside the recording, as far off the truth as a calibration of a filmed board may be."""
    media = open_media(recording / "gopro" / "GX010042.MP4")
    when, serial, mode = datetime(2025, 1, 1, tzinfo=UTC), media.serial or "", media.mode.lens_name
    numbers = [GOPRO.fx + off_px, GOPRO.fy + off_px, GOPRO.cx - off_px, GOPRO.cy + off_px, *GOPRO.k]
    names = ("fx", "fy", "cx", "cy", "k1", "k2", "k3", "k4")
    lens = {
        "model": "fisheye",
        "width": GOPRO.width,
        "height": GOPRO.height,
        "parameters": dict(zip(names, numbers, strict=True)),
        "covariance": np.eye(8).tolist(),
    }
    save(recording.parent, serial, "lens", mode, when, lens)
    off = np.eye(4)
    off[:3, :3] = Rotation.from_rotvec(np.radians(off_deg) * np.array([0.6, -0.64, 0.48])).as_matrix()
    off[:3, 3] = off_m * np.array([0.6, 0.8, 0.0])
    save(recording.parent, serial, "rig", mode, when, {"camera_from_pv": (off @ gopro_from_pv()).tolist()})


def write_furnished(recording: Path) -> Kitchen:
    """Write the take with lens and mount known, its clocks aligned; return its kitchen."""
    (recording / "gopro").mkdir(parents=True)
    kitchen = kitchen_of(recording)
    film_room(recording / "gopro", kitchen)
    headset = HeadsetState(kitchen)
    seal_rows(recording, "hololens/pv", front_rows(kitchen))
    seal_rows(recording, "hololens/depth_longthrow", depth_rows(kitchen))
    seal_rows(recording, "hololens/spatial_input", feed_rows(SpatialFeed(headset)))
    seal_rows(recording, "hololens/eye_tracking", feed_rows(EyeFeed(headset, 30)))
    streams: dict[str, dict] = {
        f"hololens/{name}": {} for name in ("depth_longthrow", "spatial_input", "eye_tracking")
    }
    streams["hololens/pv"] = {"format": {"codec": "raw", "width": PV.width, "height": PV.height}}
    write_manifest(recording, streams, {"hololens": "hololens", "gopro": "gopro"})
    write_tables(recording, "depth_longthrow", constants(LONGTHROW))
    write_tables(recording, "pv", pv_constants(VideoFormat(PV.width, PV.height, 30)))
    media_s = np.linspace(0, SECONDS, 5)
    ticks = truth_ticks(kitchen, media_s)
    (recording / "sync" / "alignment").mkdir(parents=True)
    answer = true_alignment("gopro/GX010042.MP4", media_s, ticks)
    write_json(recording / "sync" / "alignment" / "GX010042.MP4.json", answer)
    keep_calibrations(recording)
    return kitchen


def read_ply(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read our PLY by its header alone, as others do."""
    head, _, body = path.read_bytes().partition(b"end_header\n")
    count = int(head.split(b"element vertex ")[1].split()[0])
    row = np.dtype([("p", "<f4", 3), ("c", "u1", 3), ("n", "<u4")])
    rows = np.frombuffer(body, row)
    assert len(rows) == count
    return rows["p"].astype(float), rows["c"]
