"""Plots of a report as inline SVG: axes with units, lines, dots and error bars.

Colours come from the page's style sheet by class, so that one drawing serves light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup

from kitchensync.shell.array_types import Floats

WIDTH = 400  # units across a plot: about the pixels of a phone, so that text keeps its size there
LEFT, RIGHT, TOP, BOTTOM = 54, WIDTH - 10, 12, 36
"""Left, right and upper edge of the frame, and the room below it."""
COLUMNS = 320  # a line with more points is drawn by the lowest and highest of each column

PLOT = Markup(
    '<svg viewBox="0 0 {width} {height}" class="plot" role="img" aria-label="{title}">'
    "<title>{title}</title>{inside}</svg>"
)
UPRIGHT = Markup('<line x1="{x:.2f}" x2="{x:.2f}" y1="{top:.2f}" y2="{low:.2f}" class="{class_}"/>')
LEVEL = Markup('<line x1="{left}" x2="{right}" y1="{y:.2f}" y2="{y:.2f}" class="grid"/>')
TEXT = Markup('<text x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}">{words}</text>')
PEAK = Markup('<text x="{x:.2f}" y="{y}" class="mark" text-anchor="{anchor}">{words}</text>')
LABELS = Markup(
    '<text x="{middle}" y="{low}" text-anchor="middle" class="axis">{across}</text>'
    '<text x="11" y="{centre}" text-anchor="middle" class="axis" transform="rotate(-90 11 {centre})">{up}</text>'
)
DOT = Markup('<circle cx="{x:.2f}" cy="{y:.2f}" r="3" class="dot"/>')
CROSS = Markup('<path d="M{left:.1f} {top:.1f}l6 6m-6 0l6 -6" class="cross"/>')


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Choose round values in [low, high], steps of 1, 2 or 5."""
    if not math.isfinite(low) or not math.isfinite(high) or high <= low:
        return []
    rough = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * f for f in (1, 2, 5, 10) if power * f >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def tick_text(value: float, ticks: list[float]) -> str:
    """Write a tick with as many decimals as its neighbours need."""
    step = abs(ticks[1] - ticks[0]) if len(ticks) > 1 else abs(value) or 1.0
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value if abs(value) > step / 1e3 else 0.0:.{min(decimals, 6)}f}"


@dataclass(frozen=True, slots=True)
class Axis:
    """Range of an axis and its label with the unit."""

    low: float
    high: float
    label: str

    def share(self, value: float) -> float:
        """Return the place of a value between the ends, 0 to 1."""
        return (value - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Round values and how they are written."""
        ticks = nice_ticks(self.low, self.high)
        return [(tick, tick_text(tick, ticks)) for tick in ticks]


def axis_around(label: str, *values: Floats, margin: float = 0.06) -> Axis:
    """Make an axis that holds all finite values with a little room."""
    whole = np.concatenate([np.ravel(one) for one in values])
    finite = whole[np.isfinite(whole)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    room = margin * (high - low) or abs(high) * margin or 1.0
    return Axis(low - room, high + room, label)


@dataclass(frozen=True)
class Figure:
    """One drawing with its caption."""

    drawing: Markup
    caption: str


@dataclass
class Plot:
    """One pair of axes; things are drawn in the order in which they are added."""

    x: Axis
    y: Axis
    title: str
    height: int = 190
    shapes: list[Markup] = field(default_factory=list)

    def px(self, x: float) -> float:
        """Return the horizontal place of a value."""
        return LEFT + self.x.share(x) * (RIGHT - LEFT)

    def py(self, y: float) -> float:
        """Return the vertical place of a value."""
        return self.bottom - self.y.share(y) * (self.bottom - TOP)

    @property
    def bottom(self) -> int:
        """Lower edge of the frame."""
        return self.height - BOTTOM

    def line(self, x: Floats, y: Floats, class_: str) -> None:
        """Add a line; it is broken where a value is not finite."""
        x, y = thinned(np.asarray(x, np.float64), np.asarray(y, np.float64))
        for run in np.ma.clump_unmasked(np.ma.masked_invalid(x + y)):
            points = " ".join(
                f"{self.px(a):.1f},{self.py(b):.1f}" for a, b in zip(x[run], y[run], strict=True)
            )
            self.shapes.append(Markup('<polyline points="{}" class="{}"/>').format(points, class_))

    def level(self, y: float, class_: str) -> None:
        """Add a line across at one height."""
        self.line(np.array([self.x.low, self.x.high]), np.array([y, y]), class_)

    def dots(self, x: Floats, y: Floats, form: Markup = DOT) -> None:
        """Add a dot for each value inside the frame, or a `CROSS` for those who do not see another colour."""
        places = [(self.px(a), self.py(b)) for a, b in _finite(x, y) if self.y.low <= b <= self.y.high]
        self.shapes += [form.format(x=at, y=up, left=at - 3, top=up - 3) for at, up in places]

    def error_bars(self, x: Floats, y: Floats, half: Floats) -> None:
        """Add a vertical bar of `half` up and down at every value, cut at the frame."""
        for a, b, h in _finite(x, y, half):
            top, low = self.py(min(b + h, self.y.high)), self.py(max(b - h, self.y.low))
            self.shapes.append(UPRIGHT.format(x=self.px(a), top=top, low=low, class_="bar"))

    def peak(self, x: float, words: str) -> None:
        """Add an upright line with words at its top."""
        at = self.px(x)
        away, anchor = (4, "start") if at < 0.6 * WIDTH else (-4, "end")
        self.shapes.append(UPRIGHT.format(x=at, top=TOP, low=self.bottom, class_="peak"))
        self.shapes.append(PEAK.format(x=at + away, y=TOP + 9, anchor=anchor, words=words))

    def figure(self, caption: str) -> Figure:
        """Return the drawing with a caption."""
        frame = []
        for tick, words in self.x.ticks:
            x = self.px(tick)
            frame.append(UPRIGHT.format(x=x, top=TOP, low=self.bottom, class_="grid"))
            frame.append(TEXT.format(x=x, y=self.bottom + 13, anchor="middle", words=words))
        for tick, words in self.y.ticks:
            y = self.py(tick)
            frame.append(LEVEL.format(left=LEFT, right=RIGHT, y=y))
            frame.append(TEXT.format(x=LEFT - 4, y=y + 4, anchor="end", words=words))
        middle, centre = (LEFT + RIGHT) / 2, (TOP + self.bottom) / 2
        labels = LABELS.format(
            middle=middle, low=self.height - 6, centre=centre, across=self.x.label, up=self.y.label
        )
        inside = Markup("").join([*frame, labels, *self.shapes])
        return Figure(PLOT.format(width=WIDTH, height=self.height, title=self.title, inside=inside), caption)


def thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Keep lowest and highest of every column of a long line, so that no peak is lost."""
    if len(x) <= 3 * COLUMNS:
        return x, y
    rows: list[int] = []
    for part in np.array_split(np.arange(len(x)), COLUMNS):
        known = part[np.isfinite(y[part])]
        ends = {known[np.argmin(y[known])], known[np.argmax(y[known])]} if len(known) else {part[0]}
        rows += sorted(ends)
    return x[rows], y[rows]


def _finite(*columns: Floats) -> Iterator[tuple[float, ...]]:
    """Yield the rows in which every value is finite."""
    return (row for row in zip(*columns, strict=True) if all(map(math.isfinite, row)))
