"""Named columns and rows of an integer program, solved by HiGHS."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

Key = tuple[Any, ...]


MORE = 8
"""So many times as long once more where nothing at all was found, on a computer that has much else to do."""


class IntegerProgram:
    """Columns are whole numbers from 0, rows bound sums of them; the sum of the gains becomes as large as it can."""

    def __init__(self) -> None:
        self.column: dict[Key, int] = {}
        self.gain: list[float] = []
        self.most: list[int] = []
        self._cells: list[tuple[int, int, float]] = []
        self._bounds: list[tuple[float, float]] = []

    def add(self, key: Key, *, gain: float = 0.0, most: int = 1) -> None:
        """Add a column."""
        self.column[key] = len(self.gain)
        self.gain.append(gain)
        self.most.append(most)

    def row(
        self, keys: Iterable[Key], at_most: float, minus: Iterable[Key] = (), at_least: float = -np.inf
    ) -> None:
        """Bound the sum of some columns less that of others."""
        number = len(self._bounds)
        cells = [(number, self.column[key], 1.0) for key in keys]
        cells += [(number, self.column[key], -1.0) for key in minus]
        if cells:
            self._cells += cells
            self._bounds.append((at_least, at_most))

    def solve(self, limit_s: float) -> tuple[dict[Key, int], bool]:
        """Return the columns that are not 0, and whether nothing better exists."""
        if not self.column:
            return {}, True
        rows, columns, values = zip(*self._cells, strict=True)
        shape = (len(self._bounds), len(self.gain))
        low, high = (np.array(ends) for ends in zip(*self._bounds, strict=True))
        gap = 0.4 / max(1.0, sum(g * m for g, m in zip(self.gain, self.most, strict=True) if g > 0))
        for limit in (limit_s, MORE * limit_s):
            found = milp(
                -np.array(self.gain),
                constraints=LinearConstraint(csr_array((values, (rows, columns)), shape=shape), low, high),
                integrality=np.ones(len(self.gain)),
                bounds=Bounds(0, np.array(self.most)),
                options={"time_limit": limit, "mip_rel_gap": gap},
            )
            if found.status == 0 or (found.x is not None and np.rint(found.x).any()):
                break
        if found.x is None:
            return {}, False
        whole = np.rint(found.x).astype(int)
        return {key: int(whole[at]) for key, at in self.column.items() if whole[at]}, found.status == 0
