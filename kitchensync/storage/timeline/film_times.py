"""When every picture of a camera's film was taken, on the capture clock, and where a moment is in the film: pure.

`capture_times.py` makes it from a recording. Seconds of the film are the number of a picture divided by the
film's rate: the same in every small film of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Int64

UNKNOWN = np.iinfo(np.int64).min
"""The time of a picture that nobody can place."""
HOLE_NS = 500_000_000
"""Pictures this far apart have a hole between them: what happened there is not in the film."""


@dataclass(frozen=True, slots=True)
class FilmPlace:
    """When something was in the film: seconds, how far they may be off; `outside` where the film does not show it."""

    film_s: float
    bound_s: float
    outside: str = ""


@dataclass(frozen=True)
class FilmTimes:
    """All pictures of a clip: `capture_ns` (n,) int64 or UNKNOWN, `bound_ns` (n,); `why` some are not known."""

    fps: Fraction
    capture_ns: Int64
    bound_ns: Int64
    why: str = ""

    def __len__(self) -> int:
        """Count the pictures."""
        return len(self.capture_ns)

    @property
    def is_placed(self) -> bool:
        """Return whether it is known of any picture when it was taken."""
        return len(self.known) > 0

    def knots(self, every: int) -> list[list[list[int]]]:
        """Return the pieces of the film without a hole, each as [number, capture ns] of its first, some and last.

        Every so many pictures is one; when the others were taken lies on the straight line between.
        """
        known, at_ns = self.known, self._known_ns
        if not len(known):
            return []
        holes = np.flatnonzero((np.diff(at_ns) > HOLE_NS) | ~self._is_next[known[1:]]) + 1
        pairs = np.split(np.column_stack([known, at_ns]), holes)
        return [piece[sorted({*range(0, len(piece), every), len(piece) - 1})].tolist() for piece in pairs]

    def place(self, host_ns: int, uncertainty_ns: int = 0) -> FilmPlace:
        """Return where a moment is in the film; the nearest place, and why, where the film does not show it."""
        if not len(self.known):
            return FilmPlace(0.0, 0.0, self.why or "nothing tells when its pictures were taken")
        after = int(np.searchsorted(self._known_ns, host_ns, side="right"))
        before = max(after - 1, 0)
        bound_s = (int(self.bound_ns[self.known[before]]) + uncertainty_ns) / 1e9
        if after == 0:
            first = int(self.known[0])
            return FilmPlace(
                self._seconds(first), bound_s, "before the first picture" if not first else self.why
            )
        number, since_ns = int(self.known[before]), host_ns - int(self._known_ns[before])
        if after == len(self.known):
            into, last = since_ns * self.fps / 10**9, int(np.flatnonzero(self.capture_ns != UNKNOWN)[-1])
            if into <= 1 + last - number:
                return FilmPlace(self._seconds(number + into), bound_s)
            is_end = last == len(self) - 1
            return FilmPlace(
                self._seconds(last + 1), bound_s, "after the last picture" if is_end else self.why
            )
        step_ns = int(self._known_ns[after]) - int(self._known_ns[before])
        step, is_next = int(self.known[after]) - number, bool(self._is_next[self.known[after]])
        if is_next and step_ns > HOLE_NS:
            return FilmPlace(self._seconds(number + 1), bound_s, "no picture near it")
        outside = "" if is_next else self.why
        return FilmPlace(self._seconds(number + Fraction(step * since_ns, max(step_ns, 1))), bound_s, outside)

    def _seconds(self, number: Fraction | int) -> float:
        return round(float(number / self.fps), 3)

    def shown(self, numbers: Int64) -> FilmTimes:
        """Return the times of a film that shows these pictures at its constant rate, (m,)."""
        return replace(self, capture_ns=self.capture_ns[numbers], bound_ns=self.bound_ns[numbers])

    @cached_property
    def known(self) -> Int64:
        """Numbers of the pictures with a time; of one that is repeated the first."""
        is_new = np.concatenate([[True], self.capture_ns[1:] != self.capture_ns[:-1]])[: len(self)]
        return np.flatnonzero((self.capture_ns != UNKNOWN) & is_new)

    @cached_property
    def _is_next(self) -> npt.NDArray[np.bool_]:
        """Whether the number before a picture has a time, (n,)."""
        return np.concatenate([[False], self.capture_ns[:-1] != UNKNOWN])[: len(self)]

    @cached_property
    def _known_ns(self) -> Int64:
        return np.maximum.accumulate(self.capture_ns[self.known])
