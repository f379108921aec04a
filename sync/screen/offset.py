"""Two cameras that saw the same showing of the screen clock: when one's picture was taken on the other's time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sync.screen.find import COLUMNS
from sync.screen.phase import Showing

MODEL_S = 0.3e-3
"What the panel's way of writing and a camera's curve of light leave: once in a showing, and once in all of them."


@dataclass(frozen=True, slots=True)
class ReadOut:
    """Time from a camera's first row to its last, and its doubt, seconds."""

    seconds: float
    sigma_s: float


@dataclass(frozen=True, slots=True)
class SlateOffset:
    """One showing: a picture with the source's time `source_s` was taken `late_s` after the map says."""

    number: int
    source_s: float
    late_s: float
    sigma_s: float
    read_out_sigma_s: float
    "What the cameras' unknown read-outs add, the same in all showings at that place of the picture."
    pictures: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ScreenOffset:
    """All showings together; `bound95_s` holds the truth in 95 % of recordings."""

    late_s: float
    sigma_s: float
    bound95_s: float
    slates: tuple[SlateOffset, ...]


def slate_offsets(
    source: Sequence[Showing],
    target: Sequence[Showing],
    placed: Callable[[float], float],
    read_outs: tuple[ReadOut, ReadOut],
) -> list[SlateOffset]:
    """Compare the showings that both cameras saw.

    `placed` is the alignment: the source's time to the target's, seconds; `read_outs` are those of source and target.
    """
    seen = {one.number: one for one in target}
    found = []
    for one in source:
        other = seen.get(one.number)
        if other is None:
            continue
        n = _common(one, other)
        source_s = one.at_s(n)
        late_s, sweep_s = other.at_s(n) - placed(source_s), COLUMNS / one.refresh_hz
        found.append(
            SlateOffset(
                one.number,
                source_s,
                late_s
                - sweep_s * round(late_s / sweep_s),  # a sweep read one off: the map is better than that
                math.hypot(one.sigma_s, other.sigma_s, MODEL_S),
                math.hypot(one.row * read_outs[0].sigma_s, other.row * read_outs[1].sigma_s),
                (one.pictures, other.pictures),
            )
        )
    return found


def _common(one: Showing, other: Showing) -> float:
    """Return a count of refreshes that both saw, in the middle of what they have in common."""
    return 0.5 * (max(one.first_n, other.first_n) + min(one.last_n, other.last_n))


def together(slates: Sequence[SlateOffset]) -> ScreenOffset | None:
    """Sum up: the weighted mean, with the larger of stated and found scatter; None without showings."""
    if not slates:
        return None
    late = np.array([one.late_s for one in slates])
    weight = np.array([one.sigma_s for one in slates]) ** -2.0
    mean = float((late * weight).sum() / weight.sum())
    stated = float(weight.sum()) ** -0.5
    scatter = 0.0
    if len(slates) > 1:
        chi2 = float((weight * (late - mean) ** 2).sum()) / (len(slates) - 1)
        scatter = stated * math.sqrt(chi2)
    read_outs = float((np.array([one.read_out_sigma_s for one in slates]) * weight).sum() / weight.sum())
    sigma = math.hypot(max(stated, scatter), MODEL_S, read_outs)
    return ScreenOffset(mean, sigma, 2.0 * sigma, tuple(slates))
