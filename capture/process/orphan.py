"""A process whose supervisor was killed ends soon, by itself: what the queue has is safe in its file."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable

LOOK_S = 0.5
GRACE_S = 5.0
EXIT_CODE = 3

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
"""Loaded here: between fork and exec of a process with threads a system call is all that may be done."""


def end_with_parent() -> None:
    """Ask the kernel for SIGTERM at the moment our parent dies; elsewhere than on Linux nothing happens."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


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
