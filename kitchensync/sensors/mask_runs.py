"""Runs of true values in a mask."""

from __future__ import annotations

import numpy as np

from kitchensync.shell.array_types import Mask


def marked_runs(marked: Mask) -> list[tuple[int, int]]:
    """Return [first, end) of each run of true values of (n,)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
    return [(first, end) for first, end in edges.reshape(-1, 2).tolist()]
