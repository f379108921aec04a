"""Spans in which a sensor repeats one value, which a live gyroscope or eye tracker never does for a second."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.mask_runs import marked_runs

STILL_S = 1.0
"""Shortest span that counts as still, seconds."""


def still_spans(
    t_s: npt.NDArray[np.floating], values: npt.NDArray[np.generic], least_s: float = STILL_S
) -> list[tuple[float, float]]:
    """Return (first, last) seconds of each run of bit-identical rows that lasts at least `least_s`.

    `t_s` (n,) in increasing order, `values` (n, fields). A gap in the times does not end a run.
    """
    if len(values) < 2:
        return []
    same = np.all(values[1:] == values[:-1], axis=1)
    runs = [(float(t_s[first]), float(t_s[last])) for first, last in marked_runs(same)]
    return [(first, last) for first, last in runs if last - first >= least_s]
