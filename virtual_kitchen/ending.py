"""When the virtual kitchen may go after its streams have ended: its clients have all they came for, and have left."""

import threading
import time
from collections.abc import Callable

NS_PER_S = 1_000_000_000
ALONE_S = 10.0
"""So long nobody may have been connected: a busy computer takes its time between two things."""
LATEST_S = 300.0
"""So long a client is waited for that never leaves, or never fetches a file."""
_TICK_S = 0.1


def wait_for_clients(
    seen_ns: Callable[[], int], has_all: Callable[[], bool], asked_to_stop: threading.Event
) -> None:
    """Return when clients have all and have left (last `seen_ns`, host_ns), on request, or when it is too late."""
    begin_ns = time.monotonic_ns()
    while (now_ns := time.monotonic_ns()) - begin_ns < LATEST_S * NS_PER_S:
        alone_ns = now_ns - max(begin_ns, seen_ns())
        if alone_ns >= ALONE_S * NS_PER_S and has_all():
            return
        if asked_to_stop.wait(_TICK_S):
            return
