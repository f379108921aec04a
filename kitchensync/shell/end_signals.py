"""Signals that ask a process to end, heard beside whatever they interrupt."""

from __future__ import annotations

import contextlib
import signal
import threading
from _thread import start_new_thread
from collections.abc import Callable, Iterator


def ask_at_signals(numbers: tuple[signal.Signals, ...], ask: Callable[[], object]) -> None:
    """Call `ask` in a thread of its own at each of these signals; only the main thread may say so.

    Python runs a handler in the main thread between any two of its steps, also while that thread holds the lock of
    the very event that a handler sets: the process would hang, and so would every other thread that asks its end.
    """
    for number in numbers:
        signal.signal(number, lambda *_: start_new_thread(ask, ()))


@contextlib.contextmanager
def ending_at_signals(end: Callable[[], object]) -> Iterator[None]:
    """Call `end` at Ctrl-C and SIGTERM while the block runs; a thread that is not the main one hears no signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.signal(number, lambda *_: end()) for number in asked}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
