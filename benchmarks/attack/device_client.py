"""Asks hostile cameras or headsets with our clients, eight at a time.

python -P benchmarks/attack/device_client.py gopro|headset
    {NAME: URL or address} as JSON on stdin; how each ended, and the memory of all of them, on stdout
"""

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.control import download as downloading
from kitchensync.sensors.gopro.control.camera import GoProHttp
from kitchensync.sensors.gopro.control.camera_types import MediaFile
from kitchensync.sensors.hololens import calibration, remote
from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.sensors.hololens.constants import MapDirection
from kitchensync.sensors.hololens.profile import Profile

ANSWER_S = 1.0
MOST_S, MOST_BYTES = 60.0, 300 << 20
AT_ONCE = 8
FILE = MediaFile("100GOPRO", "GX010001.MP4", 1_000_000, None)


def _ask_camera(url: str) -> str:
    """Return why a camera gave no state, "" where it gave its state or a file."""

    def state() -> None:
        with GoProHttp(url, timeout_s=ANSWER_S) as camera:
            camera.state()

    def download() -> None:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / FILE.name
            downloading.download(url, FILE, place, read_timeout_s=ANSWER_S, back_off_s=0.0)

    no_state, no_file = _failure_of(state), _failure_of(download)
    return no_state if no_file else ""


def _ask_headset(host: str) -> str:
    """Return the first failure of all requests on port 3809 and for the constants of every sensor."""

    def control() -> None:
        with remote.RemoteControl(host, ANSWER_S) as control:
            control.utc_offset()
            control.clock_exchange(with_utc=True)
            control.map_points(3801, MapDirection.PIXEL_TO_UNIT_PLANE, np.zeros((1000, 2), np.float32))
            control.rig_poses(range(1000))
            remote.require_version(control.version())

    asks = [control, partial(remote.start_pv, host, ANSWER_S)]
    asks += [partial(calibration.download, stream, host, Profile(), ANSWER_S) for stream in STREAMS.values()]
    failures = [_failure_of(ask) for ask in asks]
    return next(filter(None, failures), "answered")


def _failure_of(ask: Callable[[], object]) -> str:
    try:
        ask()
    except SensorError as error:
        return str(error)[:200]
    return ""


def main(ask: Callable[[str], str]) -> None:
    """Ask all devices; print how each ended and the memory that it took."""

    def timed(address: str) -> dict[str, Any]:
        start_s = time.monotonic()
        return {"ended": ask(address), "seconds": time.monotonic() - start_s, "most_s": MOST_S}

    downloading.LEAST_IN_S = ANSWER_S
    addresses = json.loads(sys.stdin.readline())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with ThreadPoolExecutor(AT_ONCE) as pool:
        seen = dict(zip(addresses, pool.map(timed, addresses.values()), strict=True))
    most_bytes = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    memory = {"most_bytes": most_bytes, "limit_bytes": MOST_BYTES}
    print(
        json.dumps(seen | {"all of them": {"ended": "measured", "seconds": 0.0, "most_s": MOST_S, **memory}})
    )


if __name__ == "__main__":
    main({"gopro": _ask_camera, "headset": _ask_headset}[sys.argv[1]])
