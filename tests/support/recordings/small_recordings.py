"""A small recording as on disk: a headset written here, a camera file of the virtual kitchen, the truth known."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from camera_films import FilmPlan, synthesize

from kitchensync.sensors.hololens.streams import inertial_samples as imu
from kitchensync.sensors.hololens.streams import spatial_input
from kitchensync.shell import host_clock
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.manifest import write_json
from kitchensync.storage.reading.device_constants import ConstantTable, write_calibration
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world.clocks import media_map
from kitchensync.virtual_kitchen.world.motion import simulated_motion

SEED, OTHER_SEED = 5, 6
SECONDS, FRAMES, START_WORLD_S = 26.0, 660, 2.5
HOST0_NS = 7_000_000_000_000
UTC0_NS = 1_750_000_000_000_000_000
BATCH = 315
GYRO_HZ = 6550.0


def write_camera(folder: Path, seed: int, frames: int) -> Kitchen:
    folder.mkdir(parents=True)
    kitchen = Kitchen(seed, simulated_motion(seed), Truth(folder, seed))
    local_s = UTC0_NS / 1e9 + START_WORLD_S
    film = FilmPlan(frames, 320, 180, seed=seed, local_s=local_s, zone_minutes=0, start_world_s=START_WORLD_S)
    synthesize(folder, film, kitchen.motion)
    return kitchen


def seal_stream(recording: Path, name: str, rows, pose_bytes=0, poses=None, connection=None, sequence=None):
    """Seal (ticks, payload) rows in two chunks; `poses`, `connection` and `sequence` give one a row."""
    folder = recording / name
    folder.mkdir(parents=True)
    packets = [
        Packet(
            sequence[k] if sequence is not None else k,
            1,
            int(ticks),
            HOST0_NS + k,
            connection[k] if connection is not None else 1,
            payload,
            poses[k] if poses is not None else b"\0" * pose_bytes,
        )
        for k, (ticks, payload) in enumerate(rows)
    ]
    seal(folder, 1, packets[: len(packets) // 2], {})
    seal(folder, 2, packets[len(packets) // 2 :], {})


def gyroscope_packets(kitchen: Kitchen, rng: np.random.Generator):
    world_s = np.arange(0.0, SECONDS, 1 / GYRO_HZ)
    world_s = world_s[: len(world_s) // BATCH * BATCH]
    samples = np.zeros(len(world_s), imu.SAMPLE)
    true = kitchen.headset_clock.ticks_of(world_s)
    samples["xyz"] = np.rad2deg(kitchen.motion.angular_velocity(world_s))
    samples["vinyl_ns"] = 10**11 + np.rint(world_s * 1e9 * 0.991).astype(np.int64)
    late = np.rint(rng.exponential(2500, len(world_s) // BATCH)).astype(np.int64)
    samples["soc_ticks"] = np.repeat(true[::BATCH] + late, BATCH)
    return [(b["soc_ticks"][0], imu.encode_samples(b)) for b in np.split(samples, len(samples) // BATCH)]


def spatial_packets(kitchen: Kitchen):
    for world_s in np.arange(0.0, SECONDS, 1 / 30):
        record = np.zeros((), spatial_input.DTYPE)
        record["valid"] = spatial_input.HEAD
        record["head_position"] = kitchen.motion.position(np.array([world_s]))[0]
        w, x, y, z = kitchen.motion.orientation(np.array([world_s]))[0]
        record["head_up"] = (2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x))
        record["head_forward"] = (-2 * (x * z + w * y), -2 * (y * z - w * x), -(1 - 2 * (x * x + y * y)))
        yield kitchen.headset_clock.ticks_at(world_s), spatial_input.encode(record)


def probe_packets(kitchen: Kitchen):
    for world_s in np.arange(0.0, SECONDS, 1.0):
        host = HOST0_NS + round(world_s * 1e9)
        ticks = kitchen.headset_clock.ticks_at(world_s)
        yield ticks, host_clock.encode(host - 900_000, host + 1_100_000, ticks)


def write_headset(
    recording: Path, kitchen: Kitchen, device: str = "hololens", *, with_pv: bool = True
) -> dict[str, dict]:
    """Write what a headset recorded of a kitchen and return its streams' part of the manifest."""
    rng = np.random.default_rng(0)
    clock = kitchen.headset_clock
    depth_s = np.arange(0.002, SECONDS, 1 / 5)
    seal_stream(recording, f"{device}/gyroscope", gyroscope_packets(kitchen, rng))
    if with_pv:
        seal_stream(recording, f"{device}/pv", [(clock.ticks_at(t), b"picture") for t in pv_times_s()])
    seal_stream(recording, f"{device}/depth_ahat", [(clock.ticks_at(t), b"depth") for t in depth_s])
    seal_stream(recording, f"{device}/spatial_input", spatial_packets(kitchen))
    seal_stream(recording, f"clock/{device}", probe_packets(kitchen))
    names = ("gyroscope", "pv", "depth_ahat", "spatial_input", "magnetometer")
    return {f"{device}/{name}": {} for name in names}


def pv_times_s() -> np.ndarray:
    """World seconds of the front camera's pictures: three are missing."""
    return np.delete(np.arange(0.01, SECONDS, 1 / 29.97), [100, 101, 300])


def write_manifest(recording: Path, streams: dict[str, dict], devices: dict[str, str]) -> None:
    """Write recording.json; `devices` are kinds by name."""
    write_json(
        recording / "recording.json",
        {
            "schema": "recording/1",
            "recording": recording.name,
            "state": "complete",
            "files": {},
            "streams": streams,
            "devices": {name: {"kind": kind} for name, kind in devices.items()},
            "started": {"host_ns": HOST0_NS, "utc_ns": UTC0_NS},
            "stopped": {"host_ns": HOST0_NS + round(SECONDS * 1e9), "utc_ns": UTC0_NS + round(SECONDS * 1e9)},
            "zone": {"iana": "UTC", "utc_offset_s": 0},
        },
    )


def write_constants(recording: Path, stream: str) -> None:
    """Write a sensor's constants: it lies in the rig's axes, its lens is straight."""
    frame = "row-vector 4x4, p_sensor = p_rig x M, metres"
    tables = [ConstantTable("extrinsics", np.eye(4, dtype=np.float32), "m", frame, "rig to sensor")]
    for name, count in (("radial_distortion", 3), ("tangential_distortion", 2)):
        tables.append(
            ConstantTable(name, np.zeros(count, np.float32), "1", "picture of this format", "distortion")
        )
    write_calibration(recording / "hololens" / "calibration" / f"{stream}.h5", tables, {})


def write_shutter(camera: Path) -> None:
    """Write when the shutter was pressed."""
    pressed = HOST0_NS + round(START_WORLD_S * 1e9) - 150_000_000
    shutter = {
        "before_host_ns": pressed,
        "after_host_ns": pressed + 10**7,
        "observed_host_ns": pressed + 4 * 10**8,
    }
    write_json(camera / "media.json", {"schema": "media/1", "shutter_on": shutter})


def write_film(folder: Path, seed: int, frames: int) -> Kitchen:
    """Write a camera's file alone."""
    kitchen = write_camera(folder, seed, frames)
    for left in folder.iterdir():
        if left.suffix != ".MP4":
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    return kitchen


def write_recordings(root: Path) -> Kitchen:
    """Write `take1`, with everything, and the camera file of another kitchen in `other`; return the first kitchen."""
    recording = root / "take1"
    kitchen = write_film(recording / "gopro", SEED, FRAMES)
    write_camera(root / "other", OTHER_SEED, 400)
    streams = write_headset(recording, kitchen)
    write_manifest(recording, streams, {"hololens": "hololens", "gopro": "gopro"})
    write_shutter(recording / "gopro")
    return kitchen


def write_two_heads(root: Path) -> dict[str, Kitchen]:
    """Write `pair`: two people, each with a headset and a camera (`-a`, `-b`); return whose motion is whose."""
    recording = root / "pair"
    kitchens, streams, devices = {}, {}, {}
    for letter, seed in (("a", SEED), ("b", OTHER_SEED)):
        kitchens[letter] = write_film(recording / f"gopro-{letter}", seed, FRAMES)
        streams |= write_headset(recording, kitchens[letter], f"hololens-{letter}")
        devices |= {f"hololens-{letter}": "hololens", f"gopro-{letter}": "gopro"}
        write_shutter(recording / f"gopro-{letter}")
    write_manifest(recording, streams, devices)
    return kitchens


def truth_ticks(kitchen: Kitchen, media_s, start_world_s: float = START_WORLD_S):
    """Headset ticks of media times by the kitchen's own clocks."""
    true = media_map(kitchen.headset_clock, kitchen.camera_clock, start_world_s)
    return true.epoch_ticks + np.rint(1e7 * (media_s + true.tau0_s + true.drift_ppm * 1e-6 * media_s)).astype(
        np.int64
    )


def write_true_alignment(
    recording: Path, kitchen: Kitchen, file: str, seconds: float, **more: object
) -> None:
    """Write the true clock map of a film of so many seconds where `sync` leaves what it found."""
    media_s = np.linspace(0, seconds, 12)
    folder = recording / "sync" / "alignment"
    folder.mkdir(parents=True, exist_ok=True)
    answer = true_alignment(f"gopro/{file}", media_s, truth_ticks(kitchen, media_s))
    write_json(folder / f"{file}.json", answer | more)


def true_alignment(source: str, media_s: np.ndarray, ticks: np.ndarray) -> dict[str, object]:
    """Make the alignment object of a camera whose clock runs evenly, as the virtual camera's does."""
    epoch, middle_s = int(ticks[0]), float(media_s[-1]) / 2
    tau_s = (np.asarray(ticks, np.int64) - epoch) / 1e7 - media_s
    drift, tau0_s = np.polyfit(media_s - middle_s, tau_s, 1)
    return {
        "schema": "alignment/1",
        "source": source,
        "master": "hololens/gyroscope",
        "status": "aligned",
        "samples": [[float(t), int(k)] for t, k in zip(media_s, ticks, strict=True)],
        "epoch_hl2_qpc": epoch,
        "map": {
            "t_mid_s": middle_s,
            "coef": [float(tau0_s), float(drift)],
            "valid_s": [0.0, float(media_s[-1])],
        },
    }
