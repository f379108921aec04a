"""The running app over a data folder full of recordings from strangers: its own work, and its desk pages."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from mutations import Place, make

STARTS_S, LOOKS_S, MOST_KIB = 60, 8, 1 << 20
PAGES = (
    "desk",
    "desk/room",
    "desk/review",
    "desk/audit",
    "desk/consents",
    "desk/people",
    "desk/coverage",
    "desk/plan",
)
PASSWORD = "a password of the bench"


def run(numbers: range, given: argparse.Namespace, base: Path, listener: Any) -> Iterator[str]:
    """Serve them, open pages as an admin, and yield what was wrong."""
    with tempfile.TemporaryDirectory(prefix="hostile-app-", dir=given.place) as folder:
        root, connected = Path(folder), listener.connections
        (root / "data").mkdir()
        homes = [_laid_out(root, number, given.seed, base, listener.address) for number in numbers]
        before = _state(homes)
        log = root / "log.txt"
        with log.open("wb") as output, _served(root / "data", output) as process:
            try:
                yield from _looked_at(process, log)
            finally:
                process.terminate()
                process.wait(30)
        if _state(homes) != before:
            yield "changed a file outside"
        if listener.connections != connected:
            yield "connected"
        if "Traceback" in log.read_text(errors="replace"):
            yield f"traceback: {log.read_text(errors='replace').strip().splitlines()[-1]:.150}"


def _laid_out(root: Path, number: int, seed: int, base: Path, address: str) -> Path:
    """Make a case, and bring its recording into the data folder of the app; return somebody's own files beside it."""
    place = Place(root / "places" / str(number), base, address)
    make(place, seed, number)
    place.gift.rename(root / "data" / f"gift-{number}")
    return place.home


def _state(homes: list[Path]) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for home in homes for path in home.rglob("*") if path.is_file()}


def _served(data: Path, output: Any) -> subprocess.Popen[bytes]:
    where = ["--data", str(data), "--host", "127.0.0.1", "--port", "0"]
    command = [sys.executable, "-P", "-m", "kitchensync", "app", *where]
    return subprocess.Popen(command, stdout=output, stderr=output)


def _looked_at(process: subprocess.Popen[bytes], log: Path) -> Iterator[str]:
    url, invite = "", ""
    deadline = time.monotonic() + STARTS_S
    while not url:
        if process.poll() is not None or time.monotonic() > deadline:
            yield f"did not start: {log.read_text(errors='replace')[-300:]}"
            return
        time.sleep(0.1)
        lines = log.read_text(errors="replace").splitlines()
        url = next((line.partition("app=")[2] for line in lines if line.startswith("ready app=")), "")
        invite = next((line.partition("#")[2] for line in lines if line.startswith("invite=")), "")
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        client.post("api/v1/invite", json={"code": invite, "password": PASSWORD})
        said = client.post(
            "api/v1/desk/sign-in", json={"pseudonym": "admin", "password": PASSWORD, "program": True}
        ).json()
        client.headers["Authorization"] = f"Bearer {said['token']}"
        for page in PAGES:
            status = client.get(page).status_code
            if status >= 500 or status == 401:
                yield f"{page} answers {status}"
    time.sleep(LOOKS_S)
    peak = next(
        line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if "VmHWM" in line
    )
    if int(peak.split()[1]) > MOST_KIB:
        yield f"the app took {peak.split()[1]} kB"
