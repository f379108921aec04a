"""Objects that a forked child must not use: decoders whose threads exist only in the parent, shared file offsets.

Closing them would wait for those threads for ever, so they are leaked, and their owners open them again.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, Protocol
from weakref import WeakSet


class HoldsOpen(Protocol):
    """An owner of open objects that it can open again."""

    def leave_to_parent(self) -> Any:
        """Drop the open objects without closing them, and return them."""


_holders: WeakSet[HoldsOpen] = WeakSet()


def reopens_in_child(holder: HoldsOpen) -> None:
    """Let an object drop its open objects in each child forked during its lifetime."""
    _holders.add(holder)


def _leave_all() -> None:
    open_objects = [holder.leave_to_parent() for holder in list(_holders)]
    ctypes.pythonapi.Py_IncRef(
        ctypes.py_object(open_objects)
    )  # never freed, not even when the interpreter ends


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing is forked
    os.register_at_fork(after_in_child=_leave_all)
