"""Device ticks to host time from clock exchanges, in int64, with an error bound that holds for any network delays.

`device_ticks` of an exchange was read between `send_ns` and `receive_ns`. So the true curve lies above all sends and
below all receives. The fit is the middle of the widest channel between them, and the error bound is the extent of the
channel. It includes a constant asymmetry of the network, which cannot be measured.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from numpy.polynomial.polynomial import polyder, polyval

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating]

NS_PER_TICK = 100  # hl2ss scales all stamps to 100 ns
MOST_SKEW = 500e-6  # ten times the tolerance of crystals: the bound must hold where drift is not measured
WANDER = 150e-6  # maximum relative rate of two crystals between two exchanges
LEAST_SPAN_NS = 5e9  # in a shorter time drift and network delay cannot be distinguished
MOST_PROBES = 4000  # bounds the linear program: above an hour of probes, only the quickest are used
MOST_DEGREE = 3
NARROW = 0.6  # the clock is curved if the channel of a line is narrower than this part of the usual
BLOCKS = 12
BLOCK_PROBES = 40
CHANNEL_RANK = 6  # three exchanges define the channel; the next ones show how much it depends on them
ALIKE_P = 0.01  # below it both ways differ, and an average is wrong by half the difference
NEWTON_STEPS = 3
STRAIGHT = 2  # coefficients of a line
FAR_NS = 10_000_000_000  # longer than any packet delay; ticks after a restart differ by hours


@dataclass(frozen=True, slots=True)
class HostLine:
    """One continuous stretch: `host_ns = host0_ns + 100 since + ahead(since)`, `since = ticks - ticks0`.

    `coef_ns` is the polynomial `ahead` in `since / unit_ticks`, lowest first; it holds within `bound_ns`. Outside the
    exchanges, where `since / unit_ticks` is below 0 or above 1, it is continued linearly, as a curve would diverge.
    """

    ticks0: int
    host0_ns: int
    unit_ticks: float
    coef_ns: tuple[float, ...]
    bound_ns: int
    probes: int
    first_host_ns: int
    last_host_ns: int

    @property
    def skew(self) -> float:
        """Relative rate error at the start of the stretch."""
        return self.coef_ns[1] / (self.unit_ticks * NS_PER_TICK) if len(self.coef_ns) > 1 else 0.0

    @property
    def last_ticks(self) -> int:
        """Ticks of the last exchange."""
        return self.ticks0 + round(self.unit_ticks)

    def to_host_ns(self, ticks: Int64 | int) -> Int64:
        """Host CLOCK_MONOTONIC ns (int64) at device `ticks`."""
        since = np.asarray(ticks, dtype=np.int64) - self.ticks0
        x = since.astype(np.float64) / self.unit_ticks
        if len(self.coef_ns) <= STRAIGHT:
            ahead = polyval(x, self.coef_ns)
        else:
            inside = np.clip(x, 0.0, 1.0)
            ahead = polyval(inside, self.coef_ns) + (x - inside) * polyval(inside, polyder(self.coef_ns))
        return self.host0_ns + since * NS_PER_TICK + np.rint(ahead).astype(np.int64)

    def to_ticks(self, host_ns: Int64 | int) -> Int64:
        """Device ticks (int64, nearest) at host CLOCK_MONOTONIC `host_ns`."""
        away = np.asarray(host_ns, dtype=np.int64)
        ticks = self.ticks0 + (away - self.host0_ns) // NS_PER_TICK
        for _ in range(NEWTON_STEPS):
            rest = (away - self.to_host_ns(ticks)).astype(np.float64)
            ticks = ticks + np.rint(rest / (NS_PER_TICK * (1.0 + self.skew))).astype(np.int64)
        return ticks


@dataclass(frozen=True, slots=True)
class HostClock:
    """Device ticks and host time in stretches: a step or a restart of the device begins a new one."""

    lines: tuple[HostLine, ...]

    @property
    def bound_ns(self) -> int:
        """Largest error of any stretch, ns."""
        return max(line.bound_ns for line in self.lines)

    @property
    def probes(self) -> int:
        """Number of exchanges."""
        return sum(line.probes for line in self.lines)

    @property
    def restarts(self) -> int:
        """Number of times the ticks fell back because the device restarted."""
        return sum(later.ticks0 < earlier.ticks0 for earlier, later in pairwise(self.lines))

    @property
    def breaks_host_ns(self) -> list[int]:
        """Host times between the stretches."""
        return [(a.last_host_ns + b.first_host_ns) // 2 for a, b in pairwise(self.lines)]

    def to_host_ns(self, ticks: Int64 | int, *, near_host_ns: Int64 | int | None = None) -> Int64:
        """Host ns (int64) at device `ticks`, each in its stretch by `stretches_of`."""
        at = np.asarray(ticks, dtype=np.int64)
        if len(self.lines) == 1:
            return self.lines[0].to_host_ns(at)
        return self._by_line(HostLine.to_host_ns, self.stretches_of(at, near_host_ns=near_host_ns), at)

    def stretches_of(
        self, ticks: Int64 | int, *, near_host_ns: Int64 | int | None = None
    ) -> npt.NDArray[np.intp]:
        """Return the number of the stretch of device `ticks`, which may repeat after a restart.

        It is the stretch at `near_host_ns` (such as the arrival), or the one beside it if only that has a near time,
        as the exact end of a stretch is unknown. Without `near_host_ns` it is the last one that begins at or before
        the tick.
        """
        at = np.asarray(ticks, dtype=np.int64)
        if near_host_ns is None:
            begun = np.stack([at >= line.ticks0 for line in self.lines])
            return np.where(begun.any(axis=0), len(self.lines) - 1 - np.argmax(begun[::-1], axis=0), 0)
        at, near = np.broadcast_arrays(at, np.asarray(near_host_ns, dtype=np.int64))
        chosen: npt.NDArray[np.intp] = np.searchsorted(self.breaks_host_ns, near, side="right")
        off_ns = np.abs(self._by_line(HostLine.to_host_ns, chosen, at) - near)
        if not (off_ns > FAR_NS).any():
            return chosen
        for step in (-1, 1):
            beside = np.clip(chosen + step, 0, len(self.lines) - 1)
            beside_ns = np.abs(self._by_line(HostLine.to_host_ns, beside, at) - near)
            is_nearer = (off_ns > FAR_NS) & (beside_ns < off_ns)
            chosen, off_ns = np.where(is_nearer, beside, chosen), np.where(is_nearer, beside_ns, off_ns)
        return chosen

    def to_ticks(self, host_ns: Int64 | int) -> Int64:
        """Device ticks (int64) at host CLOCK_MONOTONIC `host_ns`."""
        at = np.asarray(host_ns, dtype=np.int64)
        choice = np.searchsorted(self.breaks_host_ns, at, side="right")
        return self._by_line(HostLine.to_ticks, choice, at)

    def _by_line(
        self, convert: Callable[[HostLine, Int64], Int64], choice: npt.NDArray[np.intp], at: Int64
    ) -> Int64:
        """Convert each time by its stretch."""
        result = np.empty(at.shape, dtype=np.int64)
        for k in np.unique(choice).tolist():
            result[choice == k] = convert(self.lines[k], at[choice == k])
        return result


def constant_clock(ticks0: int, host0_ns: int, bound_ns: int, probes: int = 0) -> HostClock:
    """Return a clock with a constant offset."""
    line = HostLine(ticks0, host0_ns, 1.0, (0.0,), bound_ns, probes, host0_ns, host0_ns)
    return HostClock((line,))


def host_clock(send_ns: Int64, receive_ns: Int64, device_ticks: Int64) -> HostClock | None:
    """Fit device ticks to host time from clock exchanges (n,) int64 each; None without any usable one.

    Exchanges may be in any order; one with its answer before its question is ignored.
    """
    usable = np.flatnonzero(receive_ns >= send_ns)
    order = usable[np.argsort(send_ns[usable], kind="stable")]
    send, receive, ticks = send_ns[order], receive_ns[order], device_ticks[order]
    if len(ticks) == 0:
        return None
    edges = _stretches(send, receive, ticks)
    return HostClock(tuple(_fit(send[a:b], receive[a:b], ticks[a:b]) for a, b in pairwise(edges)))


def _stretches(send: Int64, receive: Int64, ticks: Int64) -> list[int]:
    """Return the indices at which a stretch begins, and the count: where drift cannot explain the offset."""
    edges, low, high, last = [0], -math.inf, math.inf, 0
    base = int(send[0]) - int(ticks[0]) * NS_PER_TICK
    for k in range(len(ticks)):
        offset = int(ticks[k]) * NS_PER_TICK + base  # exact: Python integers
        room = WANDER * (int(send[k]) - last)
        low, high = max(low - room, int(send[k]) - offset), min(high + room, int(receive[k]) - offset)
        if k and (low > high or ticks[k] < ticks[k - 1]):
            edges.append(k)
            low, high = int(send[k]) - offset, int(receive[k]) - offset
        last = int(send[k])
    return [*edges, len(ticks)]


def _fit(send: Int64, receive: Int64, ticks: Int64) -> HostLine:
    """Return the middle of the widest channel of one stretch, and its extent."""
    ticks0, host0 = int(ticks[0]), int(send[0] + (receive[0] - send[0]) // 2)
    round_trip = receive - send
    parts = np.array_split(np.arange(len(round_trip)), max(1, min(len(round_trip), MOST_PROBES // 4)))
    kept = [part[np.argsort(round_trip[part], kind="stable")[:4]] for part in parts]
    keep = np.sort(np.concatenate(kept))
    ideal = host0 + (ticks[keep] - ticks0) * NS_PER_TICK
    low, high = (send[keep] - ideal).astype(np.float64), (receive[keep] - ideal).astype(np.float64)
    unit = max(float(ticks[-1] - ticks0), 1.0)
    x = (ticks[keep] - ticks0) / unit
    coef, bound = _channel(x, low, high, unit)
    return HostLine(
        ticks0, host0, unit, tuple(coef), math.ceil(bound), len(ticks), int(send[0]), int(receive[-1])
    )


def _channel(x: Floats, low: Floats, high: Floats, unit_ticks: float) -> tuple[list[float], float]:
    """Return a polynomial in the widest channel (ns), and its bound; a line unless its channel is too narrow."""
    if len(x) < 4 or unit_ticks * NS_PER_TICK < LEAST_SPAN_NS:
        bottom, top = float(low.max()), float(high.min())
        spread = max(high.max() - bottom, top - low.min()) if top < bottom else 0.0
        return [0.5 * (bottom + top)], 0.5 * abs(top - bottom) + float(
            spread
        ) + MOST_SKEW * unit_ticks * 100 / 2
    usual = _local_width(x, low, high)
    best: list[float] = []
    widest = -math.inf
    for degree in range(1, MOST_DEGREE + 1):
        shape, width = _widest(x, low, high, degree)
        if width > widest:
            best, widest = shape, width
        if width >= NARROW * usual:
            break
    likely = _likeliest(x, low, high, best)
    return likely, _reach(x, low, high, likely, len(likely) - 1)


def _likeliest(x: Floats, low: Floats, high: Floats, channel: list[float]) -> list[float]:
    """Return the middle of the channel, or the fit of the middles of all exchanges if that is more precise.

    The channel depends on the few quickest exchanges. If there are none, the average over all exchanges is more
    precise, provided that the delays of both ways are alike, which is tested. The bound does not depend on the
    choice.
    """
    middles = 0.5 * (low + high)
    degree = len(channel) - 1
    powers = np.vander(x, degree + 1, increasing=True)
    average = np.linalg.lstsq(powers, middles, rcond=None)[0]
    rest = middles - powers @ average
    sigma = float(rest.std()) * np.sqrt(2.0 * (degree + 1) / len(x))  # approximately, at the ends
    out, back = powers @ np.array(channel) - low, high - powers @ np.array(channel)
    rank = min(CHANNEL_RANK, len(x) - 1)
    gap = 0.25 * float(np.partition(out, rank)[rank] + np.partition(back, rank)[rank])
    gap -= 0.25 * float(out.min() + back.min())
    if sigma >= gap:
        return channel
    out, back = powers @ average - low, high - powers @ average
    inside = min(float(out.min()), float(back.min())) > 0.0
    return [float(c) for c in average] if inside and _alike(out, back) else channel


def _alike(out: Floats, back: Floats) -> bool:
    """Return whether the delays of both ways are alike (Kolmogorov-Smirnov)."""
    from scipy.stats import ks_2samp

    with warnings.catch_warnings():  # the asymptotic value is used if the exact one is not available
        warnings.filterwarnings("ignore", message="ks_2samp: Exact calculation", category=RuntimeWarning)
        return bool(ks_2samp(out, back).pvalue > ALIKE_P)


def _local_width(x: Floats, low: Floats, high: Floats) -> float:
    """Return the narrowest channel of any twelfth of the time, in which clocks are linear."""
    blocks = min(BLOCKS, len(x) // BLOCK_PROBES)
    if blocks < 2:
        return 0.0
    parts = np.array_split(np.arange(len(x)), blocks)
    return min(_widest(x[part], low[part], high[part], 1)[1] for part in parts)


def _widest(x: Floats, low: Floats, high: Floats, degree: int) -> tuple[list[float], float]:
    """Return the coefficients of the middle and the width of the widest channel by linear programming, in ms."""
    from scipy.optimize import linprog

    powers = np.vander(x, degree + 1, increasing=True)[:, 1:]
    ones, zeros = np.ones((len(x), 1)), np.zeros((len(x), 1))
    upper = np.hstack([powers, ones, zeros])  # powers . c + u <= high
    lower = np.hstack([-powers, zeros, -ones])  # powers . c + l >= low
    cost = np.array([0.0] * degree + [-1.0, 1.0])
    solved = linprog(
        cost,
        A_ub=np.vstack([upper, lower]),
        b_ub=np.concatenate([high, -low]) / 1e6,
        bounds=[(None, None)] * (degree + 2),
        method="highs",
    )
    if solved.x is None:
        middle = 0.5 * (low + high)
        return [float(np.median(middle)), *([0.0] * degree)], float((high - low).min())
    c, u, bottom = solved.x[:degree] * 1e6, solved.x[degree] * 1e6, solved.x[degree + 1] * 1e6
    return [0.5 * (u + bottom), *c.tolist()], float(u - bottom)


def _reach(x: Floats, low: Floats, high: Floats, shape: list[float], degree: int) -> float:
    """Return the maximum distance from the middle to any curve of this degree that fits the exchanges; ns."""
    from scipy.optimize import linprog

    powers = np.vander(x, degree + 1, increasing=True)
    middle = powers @ np.array(shape)
    violated = max(float((low - middle).max()), float((middle - high).max()), 0.0)
    most = 0.0
    for at in (0.0, 0.5, 1.0):
        row = at ** np.arange(degree + 1)
        for sign in (-1.0, 1.0):
            solved = linprog(
                sign * row,
                A_ub=np.vstack([powers, -powers]),
                b_ub=np.concatenate([high - middle, middle - low]) / 1e6 + violated / 1e6 + 1e-6,
                bounds=[(None, None)] * (degree + 1),
                method="highs",
            )
            most = max(most, abs(solved.fun) * 1e6 if solved.fun is not None else violated)
    return max(most, violated) + NS_PER_TICK
