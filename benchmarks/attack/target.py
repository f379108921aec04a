"""The app under attack as a process of its own, what it takes of the memory, and how long others wait for it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

from kitchensync.virtual_kitchen.tablet import Desk

KITCHENSYNC = str(Path(sys.executable).parent / "kitchensync")
PASSWORD = "a pass phrase for the attack"
EVERY_S = 0.05


@contextlib.contextmanager
def app(data: Path, *options: str) -> Iterator[tuple[str, str, int]]:
    """Serve the app; yield its address, the first invite and its process."""
    command = [KITCHENSYNC, "app", "--data", str(data), "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        invite = line = ""
        for line in process.stdout or ():
            if line.startswith("invite="):
                invite = line.partition("#")[2].strip()
            if line.startswith("ready app="):
                break
        yield line.partition("=")[2].strip(), invite, process.pid
    finally:
        process.terminate()
        process.wait()


def let_in(url: str, invite: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """Set the lab up; return the admin's name, and the headers of a paired, signed-in tablet and of the admin."""
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
        desk = Desk(client)
        admin = desk.ask("/api/v1/invite", {"code": invite, "password": PASSWORD})["pseudonym"]
        signed = {"pseudonym": admin, "password": PASSWORD, "program": True}
        desk.admin = desk.ask("/api/v1/desk/sign-in", signed)["token"]
        keys = desk.welcome("virtual-1")
    tablet = {"authorization": f"Bearer {keys.device}", "x-kitchensync-login": keys.login}
    return admin, tablet, {"x-kitchensync-login": desk.admin}


def memory_of(process: psutil.Process) -> int:
    """Return the resident bytes of a process and its children."""
    total = 0
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            total += one.memory_info().rss
    return total


@dataclass
class Watch:
    """Somebody on a tablet and somebody new, who ask now and then, and the app's memory meanwhile."""

    url: str
    pid: int
    tablet: dict[str, str]
    waits_s: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    most_bytes: int = 0
    end: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch as long as the context lasts."""
        asked = (
            ("/api/v1/recipes", self.tablet, True),
            ("/api/v1/time", {}, False),
            ("/t/welcome", {}, False),
        )
        threads = [threading.Thread(target=self._ask, args=one) for one in asked]
        threads.append(threading.Thread(target=self._measure))
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.end.set()
            for thread in threads:
                thread.join()

    def _ask(self, path: str, headers: dict[str, str], keep: bool) -> None:
        limits = httpx.Limits() if keep else httpx.Limits(max_keepalive_connections=0)
        options = {"base_url": self.url, "headers": headers, "trust_env": False, "timeout": 60.0}
        with httpx.Client(limits=limits, **options) as client:  # type: ignore[arg-type]
            while not self.end.wait(EVERY_S):
                began = time.monotonic()
                try:
                    status = client.get(path).status_code
                except httpx.HTTPError as error:
                    self.failed.append(f"{path}: {type(error).__name__}")
                    continue
                self.waits_s.append(time.monotonic() - began)
                if status != 200:
                    self.failed.append(f"{path}: {status}")

    def _measure(self) -> None:
        process = psutil.Process(self.pid)
        while not self.end.wait(EVERY_S):
            self.most_bytes = max(self.most_bytes, memory_of(process))
