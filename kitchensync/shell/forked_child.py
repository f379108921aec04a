"""What a forked child must not use of its parent: decoders whose threads stayed there, files read at a shared place.

Closing them would wait for those threads for ever, so they are kept as they are, and opened again by who needs them.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, Protocol
from weakref import WeakSet


class HoldsOpen(Protocol):
    """Keeps something open between two calls, which it can open again."""

    def leave_to_parent(self) -> Any:
        """Forget what is open, without closing it, and return it."""


_holders: WeakSet[HoldsOpen] = WeakSet()


def reopens_in_child(holder: HoldsOpen) -> None:
    """Have an object let go of what it holds open in each child that is forked while it lives."""
    _holders.add(holder)


def _leave_all() -> None:
    left = [holder.leave_to_parent() for holder in list(_holders)]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(left))  # never freed, not even when the interpreter ends


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing is forked
    os.register_at_fork(after_in_child=_leave_all)
