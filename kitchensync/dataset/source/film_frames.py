"""The number of frames of a video, and which of them may be shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Int64, Mask


@dataclass(frozen=True)
class FilmFrames:
    """Frame count and rate of a video; if known, the hidden frames (n,) and capture times (n,)."""

    count: int
    fps: Fraction
    hidden: Mask | None = None
    capture_ns: Int64 | None = None

    @classmethod
    def of(cls, table: Mapping[str, npt.NDArray[Any]]) -> FilmFrames:
        """Read the columns `fps`, `capture_ns` and `hidden`. Raises KeyError, ValueError, TypeError."""
        taken, hidden, fps = table["capture_ns"], table["hidden"], [int(part) for part in table["fps"]]
        if taken.ndim != 1 or taken.dtype != np.int64 or hidden.shape != taken.shape or hidden.dtype != bool:
            raise ValueError("`capture_ns` and `hidden` are not columns of int64 and bool")
        if len(fps) != 2 or min(fps) < 1:
            raise ValueError("`fps` is no rate")
        return cls(len(taken), Fraction(*fps), hidden, taken)

    def shown(self, every: int) -> Int64:
        """Return the numbers of every `every`-th frame that is not hidden."""
        numbers = np.arange(0, self.count, every, dtype=np.int64)
        return numbers if self.hidden is None else numbers[~self.hidden[numbers]]
