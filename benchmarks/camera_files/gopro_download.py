"""Measure our download, hashing included, beside curl, from the same server to the same disk.

python benchmarks/camera_files/gopro_download.py [--gigabytes 2] [--cuts 20] [--rounds 5] [--work FOLDER]

The virtual camera serves one file; in turn it is fetched whole by curl, by us, and by us with the connection reset
again and again. The server shares the two cores with the client, for all three alike.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import statistics
import subprocess
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path


def serve(path: Path, pipe: Connection) -> None:
    """Serve one file from the card of a virtual camera; `cut N` on the pipe arms N resets."""
    from kitchensync.virtual_kitchen.gopro.card import CardFile
    from kitchensync.virtual_kitchen.gopro.faults import CameraFault, CameraFaults
    from kitchensync.virtual_kitchen.gopro.server import VirtualGoPro
    from kitchensync.virtual_kitchen.kitchen import Kitchen
    from kitchensync.virtual_kitchen.truth import Truth
    from kitchensync.virtual_kitchen.world.motion import simulated_motion

    size = path.stat().st_size
    faults = CameraFaults([])
    kitchen = Kitchen(1, simulated_motion(1), Truth(path.parent / "sim", 1))
    gopro = VirtualGoPro(kitchen, "127.0.0.1", 0, "hero12", None, faults=faults)
    gopro.camera.card.add(CardFile(path.name, path, size, 0))
    pipe.send(gopro.start())
    while (cuts := pipe.recv()) is not None:
        faults.faults[:] = (
            [CameraFault("gopro_cut", after_bytes=size // (cuts + 1), times=cuts)] if cuts else []
        )
        pipe.send(True)
    gopro.stop()


def ours(url: str, source: Path, folder: Path) -> tuple[float, str]:
    """Fetch with our own code; return seconds and hash."""
    from kitchensync.sensors.gopro.control.camera import MediaFile
    from kitchensync.sensors.gopro.control.download import download

    file = MediaFile("100GOPRO", source.name, source.stat().st_size, None)
    begin = time.perf_counter()
    got = download(url, file, folder / "ours.MP4", back_off_s=0.0)
    return time.perf_counter() - begin, got.sha256


def curl(url: str, source: Path, folder: Path) -> float:
    """Fetch with curl, which leaves the file to the page cache; ours is hashed and synced in its time."""
    target = folder / "curl.MP4"
    begin = time.perf_counter()
    command = ["curl", "-sS", "-o", str(target), f"{url}/videos/DCIM/100GOPRO/{source.name}"]
    subprocess.run(command, check=True)
    return time.perf_counter() - begin


def make(path: Path, gigabytes: float) -> str:
    """Write a file that ends as an MP4 does, and return its hash."""
    block = os.urandom(16 << 20)
    count = max(1, round(gigabytes * 1e9 / len(block)))
    with path.open("wb") as file:
        file.write((20).to_bytes(4, "big") + b"ftypmp41" + bytes(4) + b"mp41")
        file.write((1).to_bytes(4, "big") + b"mdat" + (16 + count * len(block)).to_bytes(8, "big"))
        for number in range(count):
            file.write(number.to_bytes(8, "big") + block[8:])
        file.write((8).to_bytes(4, "big") + b"moov")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        source = Path(work) / "GX010001.MP4"
        truth = make(source, options.gigabytes)
        here, there = multiprocessing.Pipe()
        server = multiprocessing.get_context("spawn").Process(target=serve, args=(source, there))
        server.start()
        url = f"http://127.0.0.1:{here.recv()}"
        size, results = source.stat().st_size, {"curl": [], "ours": [], "ours, cut": []}
        try:
            for _ in range(options.rounds):
                for name in results:
                    here.send(options.cuts if name == "ours, cut" else 0)
                    here.recv()
                    if name == "curl":
                        seconds = curl(url, source, Path(work))
                    else:
                        seconds, digest = ours(url, source, Path(work))
                        assert digest == truth, "the bytes are not those of the source"
                    results[name].append(size / seconds / 1e6)
                    for made in ("ours.MP4", "curl.MP4"):
                        (Path(work) / made).unlink(missing_ok=True)
        finally:
            here.send(None)
            server.join()
    base = statistics.median(results["curl"])
    for name, rates in results.items():
        middle = statistics.median(rates)
        print(f"{name:10} {middle:7.0f} MB/s  {middle / base:.2f} of curl  {[round(rate) for rate in rates]}")


if __name__ == "__main__":
    main()
