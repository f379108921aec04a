"""A small take of near depth (AHAT) in the furnished room: every distance known, what is too far wraps as it does."""

from __future__ import annotations

from pathlib import Path

import furnished as room
import numpy as np
from small_recordings import START_WORLD_S, write_manifest

from kitchensync.sensors.hololens.streams import depth_ahat
from kitchensync.virtual_kitchen.headset.cameras import AHAT, constants
from kitchensync.virtual_kitchen.kitchen import Kitchen

ALIAS_MM = 1055
NOISE_MM, NOISE_OF_BRIGHTNESS = 3.0, 0.05
LAMP = 1.5e9
"""Brightness of a white surface that faces the headset, times its distance squared, mm: that of `simulate`."""
TIMES_S = START_WORLD_S + np.arange(0.03, 1.2, 0.3)


def near_pose(kitchen: Kitchen, world_s: float) -> np.ndarray:
    """World from near depth camera."""
    place = np.eye(4)
    place[:3, :3], place[:3, 3] = AHAT.from_rig.T, AHAT.place_m
    return room.rig_pose(kitchen, world_s) @ place


def traced_near(kitchen: Kitchen, world_s: float) -> tuple[np.ndarray, np.ndarray]:
    """True distances (512, 512) mm and the points (512, 512, 3) of the world that they end at."""
    u, v = np.meshgrid(np.arange(AHAT.width), np.arange(AHAT.height))
    (cx, cy), focal = AHAT.centre_px, AHAT.focal_px
    rays = np.stack(((u - cx) / focal, (v - cy) / focal, np.ones(u.shape)), -1)
    pose = near_pose(kitchen, world_s)
    away = room.traced(pose, rays)
    unit = rays / np.linalg.norm(rays, axis=-1, keepdims=True)
    return 1e3 * away, away[..., None] * (unit @ pose[:3, :3].T) + pose[:3, 3]


def sent_near(kitchen: Kitchen, world_s: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Depth and brightness (512, 512) uint16 as the sensor gives them: Lambert's law, the lamp in the camera."""
    away, points = traced_near(kitchen, world_s)
    normal = np.cross(np.gradient(points, axis=1), np.gradient(points, axis=0))
    ray = points - near_pose(kitchen, world_s)[:3, 3]
    cosine = np.abs(np.sum(normal * ray, -1)) / np.linalg.norm(normal, axis=-1) / np.linalg.norm(ray, axis=-1)
    albedo = room.colour_of(points).mean(-1) / 255
    grain = 1 + rng.normal(0, NOISE_OF_BRIGHTNESS, away.shape)
    brightness = np.clip(LAMP * albedo * cosine * grain / away**2, 0, 65535)
    depth = np.rint(away + rng.normal(0, NOISE_MM, away.shape)) % ALIAS_MM
    return depth.astype(np.uint16), np.rint(brightness).astype(np.uint16)


def write_near(recording: Path) -> Kitchen:
    """Write the take, four pictures in a second; return its kitchen."""
    recording.mkdir(parents=True)
    kitchen, rng = room.kitchen_of(recording), np.random.default_rng(5)
    rows = []
    for world_s in TIMES_S:
        depth, brightness = sent_near(kitchen, world_s, rng)
        payload = depth_ahat.encode(depth.tobytes() + brightness.tobytes(), 0)
        wire = room.rig_pose(kitchen, world_s).T.astype("<f4").tobytes()
        rows.append((kitchen.headset_clock.ticks_at(world_s), payload, wire))
    room.seal_rows(recording, "hololens/depth_ahat", rows)
    streams: dict[str, dict] = {"hololens/depth_ahat": {"format": {"codec": "raw"}}}
    write_manifest(recording, streams, {"hololens": "hololens"})
    room.write_tables(recording, "depth_ahat", constants(AHAT))
    return kitchen
