"""The life that every process of a recording has in common: begin, hear the end, go with the supervisor."""

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
from kitchensync.capture.process.log import RecordingLog, tell
from kitchensync.shell.end_signals import ask_at_signals
from kitchensync.storage.names import LOGS

END_NOW = "--end"
"""A process started with this empties what there is and ends."""

RARELY = (50_000, 20, 50)
"""Thresholds of Python's collector: packets are many and form no cycles, so it need not look at each of them."""


class Process(Protocol):
    """What does the work."""

    def end(self) -> None:
        """Ask the end; from any thread."""

    def run(self) -> None:
        """Work until the end."""


def run_process(
    make: Callable[[Plan, str], Process], role: str, plan_file: str, name: str, options: Sequence[str]
) -> None:
    """Run one process of a recording to its end."""
    setproctitle(f"kitchensync {role} {name} {plan_file}")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the supervisor alone
    plan = load_plan(Path(plan_file))
    log = RecordingLog(Path(plan.path) / LOGS, f"{role} {name}")
    gc.freeze()  # what was imported stays
    gc.set_threshold(*RARELY)
    process = make(plan, name)
    ask_at_signals((signal.SIGTERM,), process.end)
    tell("begins", pid=os.getpid(), options=options)  # from here on it ends in order
    end_with_parent()
    watch_supervisor(plan.supervisor_pid, process.end)
    if END_NOW in options:
        process.end()
    process.run()
    tell("ends")
    log.close()


LOOK_S = 0.5
GRACE_S = 5.0
EXIT_CODE = 3

_PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
"""Loaded here: between fork and exec of a process with threads a system call is all that may be done."""


def end_with_parent(number: int = signal.SIGTERM) -> None:
    """Ask the kernel for a signal at the moment our parent dies; elsewhere than on Linux nothing happens."""
    if LIBC is not None:
        LIBC.prctl(_PR_SET_PDEATHSIG, number)


def watch_supervisor(pid: int, end: Callable[[], None]) -> None:
    """Ask the end when the supervisor is gone, and leave for good when that takes longer than GRACE_S."""

    def watch() -> None:
        waiter = threading.Event()
        while os.getppid() == pid:
            waiter.wait(LOOK_S)
        threading.Thread(target=end, name="last request", daemon=True).start()  # whatever that waits for
        waiter.wait(GRACE_S)
        os._exit(EXIT_CODE)  # a thread may hang on a queue that is gone as well

    threading.Thread(target=watch, name="supervisor watch", daemon=True).start()


MMAP_FROM_BYTES, TRIM_FROM_BYTES = 32 << 20, 128 << 20
MEMORY_KEPT = {"MALLOC_MMAP_THRESHOLD_": str(MMAP_FROM_BYTES), "MALLOC_TRIM_THRESHOLD_": str(TRIM_FROM_BYTES)}
"""For glibc: keep the memory of packets for the next ones. To be given fresh pages for every picture of a raw depth
camera costs more than to copy it."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_memory() -> None:
    """Do to this process what MEMORY_KEPT does to one that is started with it."""
    if LIBC is not None and hasattr(LIBC, "mallopt"):
        LIBC.mallopt(_M_MMAP_THRESHOLD, MMAP_FROM_BYTES)
        LIBC.mallopt(_M_TRIM_THRESHOLD, TRIM_FROM_BYTES)
