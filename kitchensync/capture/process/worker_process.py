"""Run a process of a recording: set it up, end it on SIGTERM or when the supervisor has died."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from setproctitle import setproctitle

from kitchensync.capture.plan import Plan, load_plan
from kitchensync.capture.process.log import RecordingLog, log_event
from kitchensync.shell.end_signals import ask_at_signals
from kitchensync.storage.names import LOGS

END_NOW = "--end"
"""Option of a process that finishes the remaining work and ends."""

GC_THRESHOLDS = (50_000, 20, 50)
"""High thresholds of Python's cycle collector: there are many packets, and they form no cycles."""


class Process(Protocol):
    """A producer or drainer."""

    def end(self) -> None:
        """Let `run` end; may be called from any thread."""

    def run(self) -> None:
        """Work until the end."""


def run_process(
    make: Callable[[Plan, str], Process], role: str, plan_file: str, name: str, options: Sequence[str]
) -> None:
    """Run one process of a recording to its end."""
    setproctitle(f"kitchensync {role} {name} {plan_file}")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the supervisor reacts to Ctrl-C
    plan = load_plan(Path(plan_file))
    log = RecordingLog(Path(plan.path) / LOGS, f"{role} {name}")
    gc.freeze()  # imported modules are never collected
    gc.set_threshold(*GC_THRESHOLDS)
    process = make(plan, name)
    ask_at_signals((signal.SIGTERM,), process.end)
    log_event("begins", pid=os.getpid(), options=options)  # SIGTERM is handled from here on
    end_with_parent()
    watch_supervisor(plan.supervisor_pid, process.end)
    if END_NOW in options:
        process.end()
    process.run()
    log_event("ends")
    log.close()


POLL_S = 0.5
GRACE_S = 5.0
EXIT_CODE = 3

_PR_SET_PDEATHSIG = 1  # from linux/prctl.h
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
"""Loaded at import, because between fork and exec of a process with threads only system calls are safe."""


def end_with_parent(number: int = signal.SIGTERM) -> None:
    """Let the kernel send this process a signal when its parent dies (Linux only)."""
    if LIBC is not None:
        LIBC.prctl(_PR_SET_PDEATHSIG, number)


def watch_supervisor(pid: int, end: Callable[[], None]) -> None:
    """Call `end` when the supervisor has died, and exit if that takes longer than GRACE_S."""

    def watch() -> None:
        waiter = threading.Event()
        while os.getppid() == pid:
            waiter.wait(POLL_S)
        threading.Thread(target=end, name="last request", daemon=True).start()  # `end` may hang
        waiter.wait(GRACE_S)
        os._exit(EXIT_CODE)  # a thread may hang because the queue server has ended as well

    threading.Thread(target=watch, name="supervisor watch", daemon=True).start()


MMAP_FROM_BYTES, TRIM_FROM_BYTES = 32 << 20, 128 << 20  # glibc accepts at most 32 MiB for the first
MEMORY_KEPT = {"MALLOC_MMAP_THRESHOLD_": str(MMAP_FROM_BYTES), "MALLOC_TRIM_THRESHOLD_": str(TRIM_FROM_BYTES)}
"""Settings of glibc that reuse the memory of packets: fresh pages for every raw depth frame cost more than copying
it."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # from glibc's malloc.h


def keep_memory() -> None:
    """Apply MEMORY_KEPT to this process."""
    if LIBC is not None and hasattr(LIBC, "mallopt"):
        LIBC.mallopt(_M_MMAP_THRESHOLD, MMAP_FROM_BYTES)
        LIBC.mallopt(_M_TRIM_THRESHOLD, TRIM_FROM_BYTES)
