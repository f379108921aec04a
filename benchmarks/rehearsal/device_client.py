"""Ask cameras, or headsets, that mean harm; some at a time.

python -P benchmarks/rehearsal/device_client.py camera|headset FOLDER
    {NAME: URL or address} as JSON on stdin; on stdout how each ended
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kitchensync.sensors.errors import CameraError, DownloadFailed, SensorError
from kitchensync.sensors.gopro.control import download as downloading
from kitchensync.sensors.gopro.control.camera import GoProHttp
from kitchensync.sensors.gopro.control.camera_types import MediaFile
from kitchensync.sensors.hololens import calibration, remote
from kitchensync.sensors.hololens import constants as c
from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.sensors.hololens.profile import Profile

LIMIT_S = 1.0
MOST_S = 60.0
MOST_MORE = 300 << 20
AT_ONCE = 8


def _ask_camera(url: str, place: Path) -> str:
    """Ask one camera for its state and for a file; return why it gave no state, "" where it gave a file."""
    ended = ""
    try:
        with GoProHttp(url, timeout_s=LIMIT_S) as camera:
            camera.state()
    except CameraError as error:
        ended = str(error)[:200]
    file = MediaFile("100GOPRO", "GX010001.MP4", 1_000_000, None)
    try:
        downloading.download(url, file, place, read_timeout_s=LIMIT_S, back_off_s=0.0)
    except (CameraError, DownloadFailed):
        place.with_name(place.name + ".part").unlink(missing_ok=True)
        return ended
    return ""


def _ask_headset(host: str, _: Path) -> str:
    """Ask one headset all that is asked on 3809, and for the constants of its sensors; return its first failure."""
    failed = list[str]()
    switch: Callable[[str], object] = partial(remote.start_pv, timeout_s=LIMIT_S)
    for asked in (_control, switch, *map(_constants_of, STREAMS)):
        try:
            asked(host)
        except SensorError as error:
            failed.append(str(error)[:200])
    return failed[0] if failed else "answered"


def _control(host: str) -> None:
    with remote.RemoteControl(host, LIMIT_S) as control:
        control.utc_offset()
        control.clock_exchange(with_utc=True)
        control.map_points(3801, c.MapDirection.PIXEL_TO_UNIT_PLANE, np.zeros((1000, 2), np.float32))
        control.rig_poses(range(1000))
        remote.require_version(control.version())


def _constants_of(name: str) -> Callable[[str], object]:
    return lambda host: calibration.download(STREAMS[name], host, Profile(), LIMIT_S)


def _timed(ask: Callable[[str, Path], str], address: str, place: Path) -> dict[str, Any]:
    began_s = time.monotonic()
    ended = ask(address, place)
    return {"ended": ended, "seconds": time.monotonic() - began_s, "most_s": MOST_S}


def main(device: str, folder: Path) -> None:
    """Ask all that are named, some at a time; print how each ended and the memory that it took."""
    downloading.LEAST_IN_S = LIMIT_S
    ask = {"camera": _ask_camera, "headset": _ask_headset}[device]
    addresses = json.loads(sys.stdin.readline())
    before = _peak()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        places = [folder / f"hostile-{number}.MP4" for number in range(len(addresses))]
        ended = pool.map(partial(_timed, ask), addresses.values(), places)
        seen = dict(zip(addresses, ended, strict=True))
    seen["all of them"] = {"ended": "measured", "seconds": 0.0, "most_s": MOST_S,
                           "most_bytes": _peak() - before, "limit_bytes": MOST_MORE}  # fmt: skip
    print(json.dumps(seen))


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
