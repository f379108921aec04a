"""Record on a mounted disk image and copy the image now and then: each copy is that disk after a power cut.

    unshare -m python -P cut_power.py IMAGE MOUNTED OUT COMMAND HOST SECONDS,SECONDS,...

Leaves OUT/<n>.json for every copy: what was stored just before it, and what `recover` and `verify` make of it.
Ends with 77 where no image can be mounted.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from processes import children

from kitchensync.capture.session.control import ask, running

MEGABYTES = 900
READY_S = 60.0


def state() -> dict[str, int]:
    """Return how many packets of every stream are sealed and acknowledged now; empty before all stream."""
    for _, endpoint in running():
        answer = ask(endpoint, "state")
        if answer and all(facts.get("first_host_ns") for facts in answer["streams"].values()):
            return {name: int(facts.get("stored", 0)) for name, facts in answer["streams"].items()}
    return {}


def copy_image(recorder: int, image: Path, target: Path) -> None:
    """Copy what has reached the disk so far, while nobody writes."""
    pids = [recorder, *children(recorder)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        subprocess.run(["cp", "--sparse=always", str(image), str(target)], check=True)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def record(image: Path, mounted: Path, out: Path, command: str, host: str, moments: list[float]) -> None:
    """Record, and copy the image at some moments after the first packets."""
    take = [command, "record", "take", "--data", str(mounted / "data"), "--hololens", host]
    recorder = subprocess.Popen(take, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end_s = time.monotonic() + READY_S
    while not state():
        assert recorder.poll() is None, "the recorder ended"
        assert time.monotonic() < end_s, "not every stream came"
        time.sleep(0.1)
    begin_s = time.monotonic()
    for number, moment_s in enumerate(moments):
        time.sleep(max(begin_s + moment_s - time.monotonic(), 0))
        (out / f"{number}.stored").write_text(json.dumps(state()))
        copy_image(recorder.pid, image, out / f"{number}.img")
    recorder.send_signal(signal.SIGTERM)
    recorder.wait()


def live_on(number: int, mounted: Path, out: Path, command: str) -> None:
    """Mount a copy as a computer does that has its power back; recover, verify."""
    subprocess.run(["mount", "-o", "loop", str(out / f"{number}.img"), str(mounted)], check=True)
    data = mounted / "data"
    done = subprocess.run(
        [command, "recover", "--data", str(data)], capture_output=True, text=True, check=False
    )
    checked = subprocess.run(
        [command, "verify", str(data / "take"), "--json"], capture_output=True, text=True, check=False
    )
    answer = {
        "stored": json.loads((out / f"{number}.stored").read_text()),
        "recover": [done.returncode, done.stdout + done.stderr],
        "verify": json.loads(checked.stdout),
        "left": sorted(path.name for path in data.iterdir()),
    }
    (out / f"{number}.json").write_text(json.dumps(answer))
    subprocess.run(["umount", str(mounted)], check=True)


def main() -> int:
    """Record, cut, live on."""
    image, mounted, out = map(Path, sys.argv[1:4])
    command, host, moments = sys.argv[4], sys.argv[5], [float(word) for word in sys.argv[6].split(",")]
    with image.open("wb") as file:
        file.truncate(MEGABYTES << 20)
    made = shutil.which("mkfs.ext4") and subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=False)
    if not made or subprocess.run(["mount", "-o", "loop", str(image), str(mounted)], check=False).returncode:
        return 77
    try:
        record(image, mounted, out, command, host, moments)
    finally:
        subprocess.run(["umount", str(mounted)], check=True)
    for number in range(len(moments)):
        live_on(number, mounted, out, command)
    return 0


if __name__ == "__main__":
    sys.exit(main())
