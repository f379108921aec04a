"""How much memory `kitchensync view --save` takes on a long recording: far depth, the front camera and a gyroscope.

    python -P benchmarks/optics/viewing.py [--minutes 5 15]

Memory must not grow with the recording: a computer without a screen writes the file for one with.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), *map(str, (ROOT / "tests" / "support").iterdir()), str(Path(__file__).parent)]

import furnished as room  # noqa: E402
from clouds import pose_of, recording_of, watched  # noqa: E402
from small_recordings import write_manifest  # noqa: E402

from kitchensync.sensors.hololens.streams import inertial_samples as imu  # noqa: E402
from kitchensync.sensors.hololens.streams import pv  # noqa: E402
from kitchensync.storage.chunks.chunk_writer import Packet, seal  # noqa: E402
from kitchensync.virtual_kitchen.headset.client_configuration import AskedEncoding  # noqa: E402
from kitchensync.virtual_kitchen.headset.video_encoder import PictureGroup, RateControl  # noqa: E402

WIDTH, HEIGHT, HZ, GROUP = 1280, 720, 30, 30
GYRO_HZ, BURST = 1000, 100
TICKS_PER_S, NS_PER_TICK = 10_000_000, 100
CHUNK_S = 60
Row = tuple[int, bytes, bytes]
"""Ticks, payload, pose."""


def pictures() -> list[tuple[bytes, bytes]]:
    """Return payload and pose of one second of the front camera turning in the room, H.264 at 4 Mbit/s."""
    rays = room.coarse_rays(room.PV, 4)
    encoder = PictureGroup(AskedEncoding.H264_BASELINE, WIDTH, HEIGHT, HZ, RateControl("bitrate=4000"))
    metadata = np.zeros((), pv.METADATA)
    metadata["focal_length"], metadata["principal_point"] = (1010, 1010), (639.5, 359.5)
    metadata["width"], metadata["height"] = WIDTH, HEIGHT
    made = []
    for step in range(GROUP):
        pose = pose_of(0)
        pose[:3, 3] += room.VIEWING_POINT
        pose[0, 3] += 0.01 * step
        picture = cv2.resize(room.photograph(pose, rays), (WIDTH, HEIGHT))
        unit = encoder.encode(np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2YUV_I420), np.uint8))
        made.append((pv.encode(unit, metadata), (pose @ room.FLIP).T.astype("<f4").tobytes()))
    return made


def front_rows(seconds: float) -> Iterator[Row]:
    """Yield the packets of the front camera: the same second again and again."""
    made = pictures()
    for k in range(round(seconds * HZ)):
        yield k * TICKS_PER_S // HZ, *made[k % GROUP]


def gyroscope_rows(seconds: float) -> Iterator[Row]:
    """Yield the bursts of a gyroscope."""
    rng = np.random.default_rng(1)
    for k in range(round(seconds * GYRO_HZ / BURST)):
        samples = np.zeros(BURST, imu.SAMPLE)
        at = (k * BURST + np.arange(BURST)) * (TICKS_PER_S // GYRO_HZ)
        samples["soc_ticks"], samples["vinyl_ns"] = at, at * NS_PER_TICK
        samples["xyz"] = rng.normal(0, 10, (BURST, 3))
        yield int(at[0]), imu.encode_samples(samples), b""


def seal_all(recording: Path, name: str, rows: Iterator[Row], per_s: float) -> None:
    """Seal packets in chunks of a minute."""
    (recording / name).mkdir(parents=True)
    packets: list[Packet] = []
    number, most = 1, round(CHUNK_S * per_s)
    for k, (ticks, payload, pose) in enumerate(rows):
        packets.append(Packet(k, 1, ticks, ticks * NS_PER_TICK, 1, payload, pose))
        if len(packets) == most:
            seal(recording / name, number, packets, {})
            packets, number = [], number + 1
    if packets:
        seal(recording / name, number, packets, {})


def write_long(folder: Path, minutes: float) -> Path:
    """Write a recording of some minutes and return it."""
    recording = recording_of(folder, minutes)
    seal_all(recording, "hololens/pv", front_rows(60 * minutes), HZ)
    seal_all(recording, "hololens/gyroscope", gyroscope_rows(60 * minutes), GYRO_HZ / BURST)
    streams: dict[str, dict] = {"hololens/depth_longthrow": {}, "hololens/gyroscope": {}}
    streams["hololens/pv"] = {"format": {"codec": "h264", "width": WIDTH, "height": HEIGHT}}
    write_manifest(recording, streams, {"hololens": "hololens"})
    return recording


def main() -> None:
    """Print time, peak memory and size of the file for every length."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, nargs="+", default=[5.0, 15.0])
    command = Path(sys.executable).with_name("kitchensync")
    for minutes in parser.parse_args().minutes:
        with tempfile.TemporaryDirectory() as folder:
            recording, out = write_long(Path(folder), minutes), Path(folder) / "take.rrd"
            seconds, peak_mib = watched(command, "view", recording, "--save", out)
            print(
                f"view --save of {minutes:g} minutes: {seconds:.0f} s, peak memory {peak_mib:.0f} MiB, "
                f"file {out.stat().st_size / 1e6:.0f} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()
