"""Capture times of all pictures of a camera's film, and the place of a time in the film. Pure functions.

`frame_capture_times.py` reads them from a recording. Seconds of the film are the number of a picture divided by the
film's rate, which is the same in every small film of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Int64

UNKNOWN = np.iinfo(np.int64).min
"""The time of a picture with unknown capture time."""
HOLE_NS = 500_000_000
"""Minimum distance of pictures with a gap between them."""


@dataclass(frozen=True, slots=True)
class FilmPlace:
    """A place in the film: seconds and their maximum error; `outside` is the reason if the film does not show it."""

    film_s: float
    bound_s: float
    outside: str = ""


@dataclass(frozen=True)
class FilmTimes:
    """All pictures of a clip: `capture_ns` (n,) int64 or UNKNOWN, `bound_ns` (n,); `why` some are unknown."""

    fps: Fraction
    capture_ns: Int64
    bound_ns: Int64
    why: str = ""

    def __len__(self) -> int:
        """Count the pictures."""
        return len(self.capture_ns)

    @property
    def is_placed(self) -> bool:
        """Return whether the capture time of any picture is known."""
        return len(self.known) > 0

    def knots(self, every: int) -> list[list[list[int]]]:
        """Return the parts of the film without a gap, each as [number, capture ns] of first, some and last picture.

        One of `every` pictures is included; the times of the others are interpolated linearly.
        """
        known, at_ns = self.known, self._known_ns
        if not len(known):
            return []
        holes = np.flatnonzero((np.diff(at_ns) > HOLE_NS) | ~self._is_next[known[1:]]) + 1
        pairs = np.split(np.column_stack([known, at_ns]), holes)
        return [piece[sorted({*range(0, len(piece), every), len(piece) - 1})].tolist() for piece in pairs]

    def place(self, host_ns: int, uncertainty_ns: int = 0) -> FilmPlace:
        """Return the place of a time in the film; the nearest one with a reason if the film does not show it."""
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
            pictures_after, last = (
                since_ns * self.fps / 10**9,
                int(np.flatnonzero(self.capture_ns != UNKNOWN)[-1]),
            )
            if pictures_after <= 1 + last - number:
                return FilmPlace(self._seconds(number + pictures_after), bound_s)
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
        """Return the times of a film with these pictures at its constant rate, (m,)."""
        return replace(self, capture_ns=self.capture_ns[numbers], bound_ns=self.bound_ns[numbers])

    @cached_property
    def known(self) -> Int64:
        """Numbers of the pictures with a time, without repetitions."""
        is_new = np.concatenate([[True], self.capture_ns[1:] != self.capture_ns[:-1]])[: len(self)]
        return np.flatnonzero((self.capture_ns != UNKNOWN) & is_new)

    @cached_property
    def _is_next(self) -> npt.NDArray[np.bool_]:
        """Whether the number before a picture has a time, (n,)."""
        return np.concatenate([[False], self.capture_ns[:-1] != UNKNOWN])[: len(self)]

    @cached_property
    def _known_ns(self) -> Int64:
        return np.maximum.accumulate(self.capture_ns[self.known])
