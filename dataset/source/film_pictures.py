"""How many pictures a film has, and which of them may be shown."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from kitchensync.sensors.array_types import Int64, Mask


@dataclass(frozen=True)
class FilmOf:
    """How many pictures a film has, `fps` a second; which are hidden (n,), and when they were taken, where known."""

    pictures: int
    fps: Fraction
    hidden: Mask | None = None
    capture_ns: Int64 | None = None

    def shown(self, every: int) -> Int64:
        """Return the numbers of each `every`-th picture that is not hidden."""
        numbers = np.arange(0, self.pictures, every, dtype=np.int64)
        return numbers if self.hidden is None else numbers[~self.hidden[numbers]]
