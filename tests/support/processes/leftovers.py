"""What a test must not leave behind in its process: children, threads, listening sockets, files in the clone."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

LIBRARIES = (
    "AnyIO worker",
    "fsspecIO",
    "asyncio_",
    "ThreadPoolExecutor",
    "pytest_timeout",
    "execnet",
    "Dask-Offload",
    "IO loop",
    "zarr",
)
"""Pools that libraries keep for the next one who asks; they hold nothing of a test."""
KEPT = ("multiprocessing.", "chrom", "playwright", "postgres")
"""Servers that a whole session of tests shares, by what stands in their command."""
WAIT_S = 60.0
"""How long what is just ending may take on a busy computer."""


@dataclass(frozen=True)
class Held:
    """What the process holds at one moment."""

    children: frozenset[int]
    threads: frozenset[threading.Thread]
    listening: frozenset[tuple[str, int]]
    files: frozenset[str]
    folder: str


def held(clone: Path) -> Held:
    """Look."""
    process = psutil.Process()
    sockets = process.net_connections("tcp")
    return Held(
        frozenset(child.pid for child in process.children() if not _is_library(child)),
        frozenset(thread for thread in threading.enumerate() if not thread.name.startswith(LIBRARIES)),
        frozenset((one.laddr.ip, one.laddr.port) for one in sockets if one.status == psutil.CONN_LISTEN),
        frozenset(os.listdir(clone)),
        os.getcwd(),
    )


def _is_library(child: psutil.Process) -> bool:
    """Return whether a child has ended, or helps `multiprocessing` for as long as this process lives."""
    with suppress(psutil.NoSuchProcess):
        words = " ".join(child.cmdline())
        return child.status() == psutil.STATUS_ZOMBIE or any(name in words for name in KEPT)
    return True


def _words(pid: int) -> str:
    with suppress(psutil.NoSuchProcess):
        return " ".join(psutil.Process(pid).cmdline())[:200]
    return "gone"


def left(before: Held, clone: Path) -> list[str]:
    """Return in words what is held beyond what was held before; what is just ending is waited for."""
    end_s = time.monotonic() + WAIT_S
    while (found := _more(before, held(clone))) and time.monotonic() < end_s:
        time.sleep(0.05)
    return found


def _more(before: Held, after: Held) -> list[str]:
    found = [f"process {pid}: {_words(pid)}" for pid in after.children - before.children]
    found += [f"thread {thread.name}" for thread in after.threads - before.threads]
    found += [f"listening socket {ip}:{port}" for ip, port in after.listening - before.listening]
    found += [f"file {name} in the clone" for name in after.files - before.files]
    return found + ([f"another working directory: {after.folder}"] if after.folder != before.folder else [])
