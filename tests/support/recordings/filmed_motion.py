"""A recording whose headset moved as a seed says, and a film whose pictures show that motion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from kitchensync.sensors.hololens.streams import inertial_samples as imu
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.manifest import write_json
from kitchensync.virtual_kitchen.gopro.files.chapters import WallTimes
from kitchensync.virtual_kitchen.gopro.files.models import MODELS, FileIds
from kitchensync.virtual_kitchen.gopro.files.recorder import ClipFile
from kitchensync.virtual_kitchen.gopro.files.sensors import Instruments, Timeline
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world.motion import simulated_motion

UTC0_S = 1_750_000_000
SECONDS, HZ, BATCH = 20.0, 1000.0, 50


def film_of_motion(folder: Path, seed: int, late_s: float, frames: int) -> Path:
    """A film whose pictures show how the camera moved, each taken `late_s` after its stamp."""
    kitchen = Kitchen(seed, simulated_motion(seed), Truth(folder, seed))
    ids, wall = FileIds(MODELS["hero12"], seed, 1_750_000_000, 0), WallTimes(1_750_000_000, 1_750_000_000.0)
    path = folder / "GX010001.MP4"
    told = Instruments(picture_late_s=late_s)
    take = ClipFile(path, kitchen, Timeline(kitchen.camera_clock, 1.25), ids, wall, instruments=told)
    for _ in range(frames):
        take.add_frame()
    take.finish()
    return path


def serial(seed: int) -> str:
    """Return the serial number of a camera."""
    return MODELS["hero12"].serial(seed)


def recording(
    root: Path, name: str, camera: int, start_s: float, motion: int | None, seconds: float = SECONDS
) -> Path:
    """A recording whose headset moved as `motion` says; without it no headset was there."""
    path = root / name
    (path / "events").mkdir(parents=True)
    streams = {}
    devices: dict[str, Any] = {"gopro": {"kind": "gopro", "serial": serial(camera)}}
    if motion is not None:
        streams["hololens/gyroscope"] = {"device": "hololens", "port": 3806, "nominal_hz": 20, "format": {}}
        write_gyroscope(path / "hololens" / "gyroscope", motion, seconds)
        devices["hololens"] = {"kind": "hololens"}
    manifest = {
        "schema": "recording/1", "recording": name, "uuid": name, "state": "complete", "streams": streams,
        "started": {"host_ns": 10**12, "utc_ns": round((UTC0_S + start_s) * 1e9)},
        "stopped": {"host_ns": 10**12, "utc_ns": round((UTC0_S + start_s + seconds) * 1e9)},
        "zone": {"iana": None, "utc_offset_s": 7200}, "devices": devices, "files": {}, "consent": "none",
    }  # fmt: skip
    write_json(path / "recording.json", manifest)
    return path


def write_gyroscope(folder: Path, seed: int, seconds: float = SECONDS) -> None:
    """Seal a headset's gyroscope that moves as a seed says."""
    folder.mkdir(parents=True)
    world_s = np.arange(int(seconds * HZ)) / HZ
    samples = np.zeros(len(world_s), imu.SAMPLE)
    samples["xyz"] = np.rad2deg(simulated_motion(seed).angular_velocity(world_s))
    samples["vinyl_ns"] = 10**11 + np.rint(world_s * 1e9).astype(np.int64)
    ticks = 10**10 + np.rint(world_s * 1e7).astype(np.int64)
    samples["soc_ticks"] = np.repeat(ticks[::BATCH], BATCH)
    packets = [
        Packet(k, 1, int(batch["soc_ticks"][0]), 10**12 + k, 1, imu.encode_samples(batch), b"")
        for k, batch in enumerate(np.split(samples, len(samples) // BATCH))
    ]
    seal(folder, 1, packets, {})
