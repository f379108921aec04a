"""Spans in which a sensor repeats one value: a live gyroscope or eye tracker never does for a second."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

STILL_S = 1.0


def still_spans(
    t_s: npt.NDArray[np.floating], values: npt.NDArray[np.generic], least_s: float = STILL_S
) -> list[tuple[float, float]]:
    """Return (first, last) seconds of each run of bit-identical rows that lasts at least `least_s`.

    `t_s` (n,) in increasing order, `values` (n, fields). A hole in the times ends no run.
    """
    if len(values) < 2:
        return []
    same = np.all(values[1:] == values[:-1], axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
    runs = [(float(t_s[first]), float(t_s[last])) for first, last in edges.reshape(-1, 2)]
    return [(first, last) for first, last in runs if last - first >= least_s]


def spans_in_words(spans: list[tuple[float, float]], most: int = 3) -> str:
    """Print spans as `from 0:05 to 0:10, from 0:20 to 0:31`; those beyond `most` are counted."""
    shown = [f"from {_clock(first)} to {_clock(last)}" for first, last in spans[:most]]
    more = [f"{len(spans) - most} more"] if len(spans) > most else []
    return ", ".join([*shown, *more])


def _clock(seconds: float) -> str:
    whole = max(0, round(seconds))
    return f"{whole // 60}:{whole % 60:02d}"
