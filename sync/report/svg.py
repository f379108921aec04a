"""Small inline SVG: elements that escape what they are given, axes with units, lines, dots and error bars.

Colours come from the page's style sheet by class, so that one drawing serves light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup, escape

from sensors.array_types import Floats

WIDTH = 400
"""Units across a plot: about the pixels of a phone, so that text keeps its size there."""
LEFT, RIGHT, TOP, BOTTOM = 54, 10, 12, 36
COLUMNS = 320
"""A line with more points is drawn by the lowest and highest of each column."""


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """Make one element. Text and attribute values are escaped; `stroke_width` becomes `stroke-width`."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_number(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(children)
    return Markup(f"<{tag}{written}>{inside}</{tag}>") if inside else Markup(f"<{tag}{written}/>")  # noqa: S704


def _number(value: Any) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, (float, np.floating)) else str(value)


def percent(share: float) -> str:
    """Write a share of the width, so that a drawing stretches while its text does not."""
    return f"{100.0 * share:.3f}%"


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


def axis_around(label: str, *values: Floats, margin: float = 0.06) -> Axis:
    """Make an axis that holds all finite values with a little room."""
    finite = np.concatenate([np.ravel(v)[np.isfinite(np.ravel(v))] for v in values] or [np.zeros(0)])
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    room = margin * (high - low) or abs(high) * margin or 1.0
    return Axis(low - room, high + room, label)


@dataclass
class Plot:
    """One pair of axes; things are drawn in the order in which they are added."""

    x: Axis
    y: Axis
    title: str
    height: int = 220
    shapes: list[Markup] = field(default_factory=list)

    def px(self, x: float) -> float:
        """Horizontal place of a value."""
        return LEFT + (x - self.x.low) / (self.x.high - self.x.low) * (WIDTH - LEFT - RIGHT)

    def py(self, y: float) -> float:
        """Vertical place of a value."""
        return (
            self.height
            - BOTTOM
            - (y - self.y.low) / (self.y.high - self.y.low) * (self.height - TOP - BOTTOM)
        )

    def line(self, x: Floats, y: Floats, class_: str) -> None:
        """Add a line; it is broken where a value is not finite."""
        x, y = thinned(np.asarray(x, np.float64), np.asarray(y, np.float64))
        for run in _finite_runs(x, y):
            points = " ".join(f"{self.px(x[k]):.1f},{self.py(y[k]):.1f}" for k in run)
            self.shapes.append(element("polyline", points=points, class_=class_))

    def dots(self, x: Floats, y: Floats, class_: str, radius: float = 3.0) -> None:
        """Add a dot a value."""
        for a, b in zip(x, y, strict=True):
            if math.isfinite(a) and math.isfinite(b):
                self.shapes.append(
                    element("circle", cx=self.px(a), cy=self.py(b), r=float(radius), class_=class_)
                )

    def crosses(self, x: Floats, y: Floats, class_: str, size: float = 3.0) -> None:
        """Add a cross a value: another shape, for those who do not see another colour."""
        for a, b in zip(x, y, strict=True):
            if math.isfinite(a) and math.isfinite(b):
                u, v = self.px(a), self.py(b)
                path = (
                    f"M{u - size:.1f} {v - size:.1f}L{u + size:.1f} {v + size:.1f}"
                    f"M{u - size:.1f} {v + size:.1f}L{u + size:.1f} {v - size:.1f}"
                )
                self.shapes.append(element("path", d=path, class_=class_))

    def error_bars(self, x: Floats, y: Floats, half: Floats, class_: str) -> None:
        """Add a vertical bar of `half` up and down at every value, cut at the frame."""
        for a, b, h in zip(x, y, half, strict=True):
            if math.isfinite(a) and math.isfinite(b) and math.isfinite(h):
                top, low = min(b + h, self.y.high), max(b - h, self.y.low)
                self.shapes.append(
                    element(
                        "line", x1=self.px(a), x2=self.px(a), y1=self.py(top), y2=self.py(low), class_=class_
                    )
                )

    def upright(self, x: float, text: str, class_: str) -> None:
        """Add an upright line with words at its top."""
        at = self.px(x)
        right = at < 0.6 * WIDTH
        self.shapes += [
            element("line", x1=at, x2=at, y1=TOP, y2=self.height - BOTTOM, class_=class_),
            element(
                "text",
                text,
                x=at + (4 if right else -4),
                y=TOP + 9,
                class_="mark",
                text_anchor="start" if right else "end",
            ),
        ]

    def svg(self) -> Markup:
        """Return the drawing."""
        inside = [element("title", self.title), *self._frame(), *self.shapes]
        return element(
            "svg",
            *inside,
            viewBox=f"0 0 {WIDTH} {self.height}",
            class_="plot",
            role="img",
            aria_label=self.title,
        )

    def _frame(self) -> Iterable[Markup]:
        bottom, right = self.height - BOTTOM, WIDTH - RIGHT
        across, upward = nice_ticks(self.x.low, self.x.high), nice_ticks(self.y.low, self.y.high)
        for tick in across:
            at = self.px(tick)
            yield element("line", x1=at, x2=at, y1=TOP, y2=bottom, class_="grid")
            yield element("text", tick_text(tick, across), x=at, y=bottom + 13, text_anchor="middle")
        for tick in upward:
            at = self.py(tick)
            yield element("line", x1=LEFT, x2=right, y1=at, y2=at, class_="grid")
            yield element("text", tick_text(tick, upward), x=LEFT - 4, y=at + 4, text_anchor="end")
        middle = (LEFT + right) / 2
        yield element("text", self.x.label, x=middle, y=self.height - 6, text_anchor="middle", class_="axis")
        centre = (TOP + bottom) / 2
        turn = f"rotate(-90 11 {centre:.1f})"
        yield element(
            "text", self.y.label, x=11, y=centre, text_anchor="middle", class_="axis", transform=turn
        )


def thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Keep lowest and highest of every column of a long line, so that no peak is lost."""
    if len(x) <= 3 * COLUMNS:
        return x, y
    rows: list[int] = []
    for part in np.array_split(np.arange(len(x)), COLUMNS):
        values = y[part]
        if not np.isfinite(values).any():
            rows.append(int(part[0]))
            continue
        rows += sorted({int(part[np.nanargmin(values)]), int(part[np.nanargmax(values)])})
    return x[rows], y[rows]


def _finite_runs(x: Floats, y: Floats) -> list[npt.NDArray[np.intp]]:
    good = np.isfinite(x) & np.isfinite(y)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], good.astype(np.int8), [0]))))
    return [np.arange(first, last) for first, last in edges.reshape(-1, 2)]


_GLYPHS = {
    "done": ("M-5 0L-1.5 4L5 -4", "M0 -8A8 8 0 1 0 0 8A8 8 0 1 0 0 -8Z"),
    "error": ("M-3 -3L3 3M-3 3L3 -3", "M0 -9L9 0L0 9L-9 0Z"),
    "undo": ("M4 3A4 4 0 1 0 -3 -2M-4 -5L-3.4 -1.2L0 -3", "M-7 -7H7V7H-7Z"),
}
_OTHER = ("M0 -3V3M-3 0H3", "M0 -8L8 6H-8Z")


def glyph(kind: str) -> Markup:
    """Draw the sign of a kind of event: circle with tick, diamond with cross, square with arrow, triangle."""
    sign, frame = _GLYPHS.get(kind, _OTHER)
    kind = kind if kind in _GLYPHS else "other"
    return element("path", d=frame, class_=f"sign {kind}") + element("path", d=sign, class_="ink")
