"""Where a moment is in a film: pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FilmPlace:
    """When something was in the film: seconds, how far they may be off; `outside` where the film does not show it."""

    film_s: float
    bound_s: float
    outside: str = ""
