"""Ask cameras that mean harm, one after the other.

python -P -m capture.rehearsal.camera_client FOLDER      {NAME: URL} as JSON on stdin; on stdout how each ended
"""

from __future__ import annotations

import json
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sensors.errors import CameraError, DownloadFailed
from sensors.gopro import download as downloading
from sensors.gopro.camera import GoProHttp
from sensors.gopro.camera_types import MediaFile

LIMIT_S = 1.0
MOST_S = 60.0
MOST_MORE = 300 << 20
AT_ONCE = 8


def ask(url: str, place: Path) -> dict[str, Any]:
    """Ask one camera for its state and for a file; return how that ended."""
    began_s = time.monotonic()
    try:
        with GoProHttp(url, timeout_s=LIMIT_S) as camera:
            camera.state()
        ended = ""
    except CameraError as error:
        ended = str(error)[:200]
    try:
        file = MediaFile("100GOPRO", "GX010001.MP4", 1_000_000, None)
        downloading.download(url, file, place, read_timeout_s=LIMIT_S, back_off_s=0.0)
        ended = ""
    except (CameraError, DownloadFailed):
        place.with_name(place.name + ".part").unlink(missing_ok=True)
    seconds = time.monotonic() - began_s
    return {"ended": ended, "seconds": seconds, "most_s": MOST_S}


def main(folder: Path) -> None:
    """Ask all that are named, some at a time; print what was seen and the memory that it took."""
    downloading.LEAST_IN_S = LIMIT_S
    urls = json.loads(sys.stdin.readline())
    before = _peak()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        places = [folder / f"hostile-{number}.MP4" for number in range(len(urls))]
        seen = dict(zip(urls, pool.map(ask, urls.values(), places), strict=True))
    seen["all of them"] = {"ended": "measured", "seconds": 0.0, "most_s": MOST_S,
                           "most_bytes": _peak() - before, "limit_bytes": MOST_MORE}  # fmt: skip
    print(json.dumps(seen))


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main(Path(sys.argv[1]))
