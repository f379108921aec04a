"""From the light of the columns to the count of refreshes at which a picture was taken.

A column is white for one refresh. What a picture shows of it is the share of the exposure that fell into that
refresh, at the moment at which the panel wrote that place. With `u` the middle of the exposure, counted in refreshes,
`e` the exposure and `s` the time to write the whole panel, the column of refresh k at the place `x` (along the way of
writing, -0.5 to 0.5) has the share of [u - s x - e/2, u - s x + e/2] that lies in [k, k + 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from sensors.array_types import Floats, Mask
from sync.screen.find import COLUMNS, ROWS, STRIDES, SeenScreen

DOWN, UP, RIGHT, LEFT = "down", "up", "right", "left"
EXPOSURES = np.concatenate((np.arange(0.1, 1.0, 0.1), np.arange(1.0, 2.6, 0.2)))
WRITINGS = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9)
"Share of a refresh in which the columns' part of the panel is written."
LAGS = np.arange(-1.2, 1.25, 0.05)
PICTURES_TO_JUDGE = 30
REFRESH = np.repeat([np.arange(COLUMNS) * stride % COLUMNS for stride in STRIDES], ROWS // 2, axis=0)
"Count of refreshes, modulo twelve, at which a column is white, (ROWS, COLUMNS)."
LEAST_PICTURES = 8
LEAST_SPAN_S = 0.25
LEAST_HZ = 20.0
"A picture of a screen, or what only looks like one, does not count on."
OUTLIER_SIGMAS = 4.0
LEAST_SIGMA = 0.01  # refreshes


@dataclass(frozen=True, slots=True)
class PanelFit:
    """How a camera and the panel go together, in refreshes: found with the phases, of no meaning alone."""

    exposure: float
    writing: float
    way: str


@dataclass(frozen=True, slots=True)
class Showing:
    """A camera's line through one showing of the clock: refresh `n` was seen at `at_s(n)` on the camera's time.

    `sigma_s` is the line's own error in its middle; `row` where in the picture the screen stood, -0.5 to 0.5.
    """

    number: int
    first_n: float
    last_n: float
    middle_n: float
    middle_s: float
    refresh_hz: float
    sigma_s: float
    pictures: int
    left_out: int
    row: float

    def at_s(self, n: float) -> float:
        """Return the camera's time of a count of refreshes, seconds."""
        return self.middle_s + (n - self.middle_n) / self.refresh_hz


def phases(seen: Sequence[SeenScreen], exposure: float | None = None) -> tuple[Floats, PanelFit]:
    """Return the count of refreshes modulo twelve of each picture (n,), and the shutter that explains them best.

    It is that of the middle of the columns. `exposure` in refreshes is fitted where nothing tells it.
    """
    light = np.stack([one.light for one in seen])
    turns = np.exp(2j * np.pi * (REFRESH + 0.5) / COLUMNS)
    rough = np.angle((light * turns).sum(axis=(1, 2))) * COLUMNS / (2 * np.pi)
    judged = np.unique(np.linspace(0, len(seen) - 1, min(len(seen), PICTURES_TO_JUDGE)).astype(int))
    ways = [
        (writing, way) for writing in WRITINGS for way in (DOWN, UP, RIGHT, LEFT) if writing or way == DOWN
    ]
    shutters = [
        PanelFit(float(e), writing, way)
        for e in (EXPOSURES if exposure is None else [exposure])
        for writing, way in ways
    ]
    costs = [_costs(light[judged], rough[judged], one).min(axis=1).sum() for one in shutters]
    best = shutters[int(np.argmin(costs))]
    best = _finer(light[judged], rough[judged], best, fits_exposure=exposure is None)
    cost = _costs(light, rough, best)
    at = np.clip(cost.argmin(axis=1), 1, len(LAGS) - 2)
    each = np.arange(len(seen))
    before, here, after = cost[each, at - 1], cost[each, at], cost[each, at + 1]
    bend = np.maximum(before - 2 * here + after, 1e-12)
    finer = np.clip(0.5 * (before - after) / bend, -1, 1) * (LAGS[1] - LAGS[0])
    return (rough + LAGS[at] + finer) % COLUMNS, best


def _finer(light: Floats, rough: Floats, shutter: PanelFit, *, fits_exposure: bool) -> PanelFit:
    """Move the writing, and an exposure that nothing tells, off the grid to where they explain the pictures best."""

    def at(values: Floats) -> PanelFit:
        exposure = float(max(values[1], 0.02)) if fits_exposure else shutter.exposure
        return replace(shutter, exposure=exposure, writing=float(abs(values[0])))

    start = np.array([shutter.writing, shutter.exposure][: 1 + fits_exposure])
    first = np.vstack((start, start + 0.07 * np.eye(len(start))))
    found = minimize(
        lambda values: float(_costs(light, rough, at(values)).min(axis=1).sum()),
        start,
        method="Nelder-Mead",
        options={"xatol": 0.01, "fatol": 1e-4, "initial_simplex": first},
    )
    return at(found.x)


def _costs(light: Floats, rough: Floats, shutter: PanelFit) -> Floats:
    """Return how badly each picture fits at each lag from its rough phase, (n, lags)."""
    along = {
        DOWN: np.broadcast_to((np.arange(ROWS)[:, None] + 0.5) / ROWS - 0.5, (ROWS, COLUMNS)),
        RIGHT: np.broadcast_to((np.arange(COLUMNS) + 0.5) / COLUMNS - 0.5, (ROWS, COLUMNS)),
    }
    sign = 1 if shutter.way in along else -1
    place = along[{UP: DOWN, LEFT: RIGHT}.get(shutter.way, shutter.way)] * sign * shutter.writing
    u = (rough[:, None] + LAGS)[:, :, None, None] - place - REFRESH
    u = (u - 0.5 + COLUMNS / 2) % COLUMNS - COLUMNS / 2 + 0.5  # of the column that is nearest
    half = shutter.exposure / 2
    share = np.clip(np.minimum(u + half, 1.0) - np.maximum(u - half, 0.0), 0.0, None) / shutter.exposure
    found: Floats = ((share - light[:, None]) ** 2).sum(axis=(2, 3))
    return found


def showings(
    t_s: Floats, seen: Sequence[SeenScreen], read_out_s: float, exposure: float | None = None
) -> tuple[list[Showing], PanelFit | None]:
    """Put a camera's pictures of all showings on lines.

    `t_s` (n,) are their stamps; `read_out_s` is the time from the first to the last row of a picture, whose stamp is
    that of its middle; `exposure` in refreshes is fitted where nothing tells it. A showing with fewer than eight
    pictures that agree is left out.
    """
    if len(seen) < LEAST_PICTURES:
        return [], None
    rows = np.array([one.row.mean() for one in seen])
    sweeps = np.array([one.sweep for one in seen])
    numbers = np.array([one.number for one in seen])
    count, shutter = phases(seen, exposure)
    times = t_s + rows * read_out_s
    lines = []
    for number in dict.fromkeys(numbers.tolist()):
        here = np.flatnonzero(numbers == number)
        line = _counted(times[here], count[here], sweeps[here])
        if line is not None:
            n, kept = line
            lines.append((number, times[here][kept], n[kept], rows[here][kept], len(here)))
    if not lines:
        return [], shutter
    hz = _common_rate([(t, n) for _, t, n, _, _ in lines])
    return [_showing(number, hz, t, n, row, tried) for number, t, n, row, tried in lines], shutter


def _counted(t_s: Floats, count: Floats, sweeps: Floats) -> tuple[Floats, Mask] | None:
    """Return the refreshes counted on from sweep to sweep, and which pictures lie on one line; None for too few.

    A picture whose sweep changed meanwhile may be one sweep off.
    """
    n = sweeps * float(COLUMNS) + count
    first, second = np.triu_indices(len(n), 1)
    apart = t_s[second] - t_s[first]
    slopes = (n[second] - n[first])[apart > LEAST_SPAN_S] / apart[apart > LEAST_SPAN_S]
    if not len(slopes) or (hz := float(np.median(slopes))) < LEAST_HZ:
        return None
    for _ in range(3):
        level = float(np.median(n - hz * t_s))
        n = n + COLUMNS * np.rint((level + hz * t_s - n) / COLUMNS)
        off = n - level - hz * t_s
        away = np.abs(off - np.median(off))
        kept = away <= max(OUTLIER_SIGMAS * 1.4826 * float(np.median(away)), 0.15)
        if kept.sum() < LEAST_PICTURES or np.ptp(t_s[kept]) < LEAST_SPAN_S:
            return None
        hz = float(np.polyfit(t_s[kept] - t_s[kept].mean(), n[kept], 1)[0])
    return n, kept


def _common_rate(lines: Sequence[tuple[Floats, Floats]]) -> float:
    """Return the one refresh rate of all showings: a panel's crystal does not change between them."""
    tops = sum(float(((t - t.mean()) * (n - n.mean())).sum()) for t, n in lines)
    return tops / sum(float(((t - t.mean()) ** 2).sum()) for t, _ in lines)


def _showing(number: int, hz: float, t_s: Floats, n: Floats, rows: Floats, tried: int) -> Showing:
    """Put one showing's pictures on a line of a known rate."""
    middle_s, middle_n = float(t_s.mean()), float(n.mean())
    left = n - middle_n - hz * (t_s - middle_s)
    spread = max(float(np.sqrt((left**2).sum() / (len(n) - 1))), LEAST_SIGMA)
    return Showing(
        number, float(n.min()), float(n.max()), middle_n, middle_s, hz,
        spread / hz / np.sqrt(float(len(n))), len(n), tried - len(n), float(rows.mean()),
    )  # fmt: skip
