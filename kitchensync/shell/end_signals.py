"""Handlers for signals that ask a process to end."""

from __future__ import annotations

import contextlib
import signal
import threading
from _thread import start_new_thread
from collections.abc import Callable, Iterator


def ask_at_signals(numbers: tuple[signal.Signals, ...], ask: Callable[[], object]) -> None:
    """Call `ask` in a separate thread at each of these signals; only the main thread may call this.

    Python runs a handler in the main thread between any two of its steps, even while that thread holds the lock of
    the event that the handler sets: setting it in the handler itself would deadlock.
    """
    for number in numbers:
        signal.signal(number, lambda *_: start_new_thread(ask, ()))


@contextlib.contextmanager
def ending_at_signals(end: Callable[[], object]) -> Iterator[None]:
    """Call `end` at Ctrl-C and SIGTERM while the block runs; without effect in a thread other than the main one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.signal(number, lambda *_: end()) for number in signals}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
