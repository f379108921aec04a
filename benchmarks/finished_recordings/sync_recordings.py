"""Whole recordings as on disk, and how long `kitchensync sync` takes for a long one of the encoded rig and a camera.

python -P benchmarks/finished_recordings/sync_recordings.py [--seconds S]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "support" / "media"))
from camera_films import FilmPlan, synthesize

from kitchensync.sensors.hololens.streams import inertial_samples as imu
from kitchensync.sensors.hololens.streams import spatial_input
from kitchensync.shell import host_clock
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.manifest import write_json
from kitchensync.virtual_kitchen.gopro.files.chapters import ChapterRule
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world.clocks import media_map
from kitchensync.virtual_kitchen.world.motion import simulated_motion

HOST0_NS = 7_000_000_000_000
UTC0_NS = 1_750_000_000_000_000_000
START_WORLD_S = 2.5
CHUNK_S = 10.0
BATCH = 315
GYRO_HZ, ACCELEROMETER_HZ, ACCELEROMETER_BATCH = 6550.0, 1100.0, 93
Row = tuple[float, int, bytes]  # world seconds, device ticks, payload


def write_clip(
    folder: Path,
    seed: int,
    seconds: float,
    *,
    pv_bytes: int = 2000,
    chapter_frames: int | None = None,
    camera_s: float | None = None,
) -> Kitchen:
    """Write one recording whose camera starts `START_WORLD_S` late; return its world, which is the truth.

    The camera begins a new chapter after each `chapter_frames` (whole payloads of 30), and runs for `camera_s`; the
    default ends it as long before the headset as it started after it.
    """
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        kitchen = Kitchen(seed, simulated_motion(seed), Truth(Path(scratch), seed))
    (folder / "gopro").mkdir()
    local_s = UTC0_NS / 1e9 + START_WORLD_S
    frames = int((camera_s or seconds - 2 * START_WORLD_S) * 30000 / 1001)
    film = FilmPlan(
        frames, 320, 180, b"avc1", seed=seed, rule=ChapterRule(frames=chapter_frames), local_s=local_s,
        zone_minutes=0, start_world_s=START_WORLD_S,
    )  # fmt: skip
    synthesize(folder / "gopro", film, kitchen.motion)
    rng = np.random.default_rng(seed)
    streams = {
        "hololens/gyroscope": (inertial(kitchen, rng, seconds, GYRO_HZ, BATCH, is_gyro=True), 0),
        "hololens/accelerometer": (
            inertial(kitchen, rng, seconds, ACCELEROMETER_HZ, ACCELEROMETER_BATCH, is_gyro=False),
            0,
        ),
        "hololens/pv": (pictures(kitchen, seconds, 30000 / 1001, rng.bytes(pv_bytes)), 64),
        "hololens/depth_ahat": (pictures(kitchen, seconds, 45.0, rng.bytes(pv_bytes)), 64),
        "hololens/microphone": (pictures(kitchen, seconds, 46.875, rng.bytes(300)), 0),
        "hololens/spatial_input": (spatial(kitchen, seconds), 0),
        "clock/hololens": (probes(kitchen, seconds, rng), 0),
    }
    for name, (rows, pose_bytes) in streams.items():
        seal_stream(folder, name, rows, pose_bytes)
    write_manifest(folder, [name for name in streams if name.startswith("hololens/")])
    return kitchen


def write_manifest(folder: Path, streams: Iterable[str]) -> None:
    """The manifest, and what the camera's shutter said."""
    devices = {"hololens": {"kind": "hololens"}, "gopro": {"kind": "gopro"}}
    body = {
        "schema": "recording/1",
        "recording": folder.name,
        "state": "complete",
        "files": {},
        "streams": {name: {} for name in streams},
        "devices": devices,
        "started": {"host_ns": HOST0_NS, "utc_ns": UTC0_NS},
        "zone": {"iana": "UTC", "utc_offset_s": 0},
    }
    write_json(folder / "recording.json", body)
    pressed = HOST0_NS + round(START_WORLD_S * 1e9) - 150_000_000
    times = {
        "before_host_ns": pressed,
        "after_host_ns": pressed + 10**7,
        "observed_host_ns": pressed + 4 * 10**8,
    }
    write_json(folder / "gopro" / "media.json", {"schema": "media/1", "shutter_on": times})


def seal_stream(recording: Path, name: str, rows: Iterable[Row], pose_bytes: int) -> None:
    """Seal a stream in chunks of ten seconds."""
    folder = recording / name
    folder.mkdir(parents=True)
    held: list[Packet] = []
    number = 1
    pose = np.eye(4, dtype=np.float32).tobytes() if pose_bytes else b""
    for seq, (world_s, ticks, payload) in enumerate(rows):
        if held and world_s >= number * CHUNK_S:
            seal(folder, number, held, {})
            held, number = [], number + 1
        held.append(Packet(seq, 1, int(ticks), HOST0_NS + round(world_s * 1e9), 1, payload, pose))
    seal(folder, number, held, {})


def inertial(
    kitchen: Kitchen, rng: np.random.Generator, seconds: float, hz: float, batch: int, *, is_gyro: bool
) -> Iterator[Row]:
    """Batches whose samples all carry the late stamp of the first."""
    for first in range(0, int(seconds * hz) // batch * batch, batch):
        world_s = (first + np.arange(batch)) / hz
        samples = np.zeros(batch, imu.SAMPLE)
        motion = kitchen.motion
        samples["xyz"] = (
            np.rad2deg(motion.angular_velocity(world_s)) if is_gyro else motion.specific_force(world_s)
        )
        samples["vinyl_ns"] = 10**11 + np.rint(world_s * 1e9 * 0.991).astype(np.int64)
        stamp = kitchen.headset_clock.ticks_at(world_s[0]) + round(rng.exponential(2500))
        samples["soc_ticks"] = stamp
        yield float(world_s[0]), stamp, imu.encode_samples(samples)


def pictures(kitchen: Kitchen, seconds: float, hz: float, payload: bytes) -> Iterator[Row]:
    """Packets of which only the stamps matter here."""
    for world_s in np.arange(0.01, seconds, 1 / hz):
        yield float(world_s), kitchen.headset_clock.ticks_at(world_s), payload


def spatial(kitchen: Kitchen, seconds: float) -> Iterator[Row]:
    """Head poses at 30 Hz."""
    times = np.arange(0.0, seconds, 1 / 30)
    positions, turns = kitchen.motion.position(times), kitchen.motion.orientation(times)
    for world_s, position, (w, x, y, z) in zip(times, positions, turns, strict=True):
        record = np.zeros((), spatial_input.DTYPE)
        record["valid"] = spatial_input.HEAD
        record["head_position"] = position
        record["head_up"] = (2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x))
        record["head_forward"] = (-2 * (x * z + w * y), -2 * (y * z - w * x), -(1 - 2 * (x * x + y * y)))
        yield float(world_s), kitchen.headset_clock.ticks_at(world_s), spatial_input.encode(record)


def probes(kitchen: Kitchen, seconds: float, rng: np.random.Generator) -> Iterator[Row]:
    """A clock exchange a second over a network that delays."""
    for world_s in np.arange(0.0, seconds, 1.0):
        host, ticks = HOST0_NS + round(world_s * 1e9), kitchen.headset_clock.ticks_at(world_s)
        out, back = (round(1e6 * (1.0 + rng.exponential(2.0))) for _ in range(2))
        yield float(world_s), ticks, host_clock.encode(host - out, host + back, ticks)


def largest_error_ms(kitchen: Kitchen, alignment: dict) -> float:
    """Largest distance of the samples from the truth."""
    true = media_map(kitchen.headset_clock, kitchen.camera_clock, START_WORLD_S)
    times = np.array([row[0] for row in alignment["samples"]])
    since = times + true.tau0_s + true.drift_ppm * 1e-6 * times
    ticks = true.epoch_ticks + np.rint(1e7 * since).astype(np.int64)
    return float(np.abs(np.array([row[1] for row in alignment["samples"]]) - ticks).max()) / 1e4


def main() -> int:
    """Write the recording and time it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=900.0, help="length of the recording  [900]")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as scratch:
        recording = Path(scratch) / "long"
        kitchen = write_clip(recording, 11, seconds)
        threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        command = [Path(sys.executable).with_name("kitchensync"), "sync", recording, "--json"]
        began = time.perf_counter()
        done = subprocess.run(command, env=os.environ | dict.fromkeys(threads, "1"), stdout=-1, check=False)
        took = time.perf_counter() - began
    pair = json.loads(done.stdout)["recordings"][0]["pairs"][0]
    error_ms = largest_error_ms(kitchen, pair)
    print(f"{seconds:.0f} s of recording: {took:.1f} s, {pair['status']}, {error_ms:.3f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
