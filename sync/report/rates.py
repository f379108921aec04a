"""The rates of a report: one row a stream, measured against nominal, with the spread of its intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from storage.verify.coverage import is_adaptive
from storage.verify.gaps import usual_step
from storage.verify.thresholds import COVERAGE_WARN, RATE_WARN, SILENCE_WARN_S
from sync.report.render import length
from sync.report.streams import ReadStream, TicksToHost
from sync.report.svg import element, tick_text

TICKS_PER_MS = 10_000.0
BINS = 30
SPAN_STEPS = 3.0
"""The histogram ends at this many usual intervals; what is longer stands in one last bar."""
BAR_WIDTH, BAR_HEIGHT, BASE = 6, 30, 12


@dataclass(frozen=True, slots=True)
class Rate:
    """One row of the table."""

    stream: str
    packets: int
    received: int
    measured_hz: float | None
    nominal_hz: float | None
    judged: str
    bytes: int
    missing: int
    gaps: int
    duplicates: int
    interval: str
    arrival: str
    histogram: Markup
    keeps: str
    covers: str
    is_covered: bool
    "False where the share is below what may pass."
    tracked: str


def rate_of(stream: ReadStream, facts: dict[str, Any], clock: TicksToHost | None) -> Rate:
    """Measure one stream; `facts` is its entry in the answer of verify, `clock` that of its device."""
    steps = stream.ticks[1:] - stream.ticks[:-1]
    seconds = float(stream.ticks[-1] - stream.ticks[0]) / 1e7 if len(stream.ticks) > 1 else 0.0
    measured = (len(stream.ticks) - 1) / seconds if seconds > 0 else None
    return Rate(
        stream=stream.name,
        packets=len(stream.index),
        received=int(facts.get("received", len(stream.index))),
        measured_hz=measured,
        nominal_hz=stream.nominal_hz,
        judged=judged(stream, measured),
        bytes=int(facts.get("bytes", int(stream.index["size"].astype(np.int64).sum()))),
        missing=sum(last - first + 1 for first, last in facts.get("missing", [])),
        gaps=len(facts.get("gaps", [])),
        duplicates=int(facts.get("duplicates", 0)),
        interval=interval_words(steps),
        arrival=arrival_words(stream, clock),
        histogram=histogram(stream.name, steps),
        keeps=format_words(stream.format),
        covers=covers_words(facts),
        is_covered=float(facts.get("coverage") or 0) >= COVERAGE_WARN or facts.get("coverage") is None,
        tracked=tracked_words(facts),
    )


def judged(stream: ReadStream, measured: float | None) -> str:
    """Say in words how the measured rate stands to the nominal one."""
    if measured is None or not stream.nominal_hz:
        return "not known"
    share = measured / stream.nominal_hz
    adaptive = is_adaptive(stream.name, stream.description)
    if share < RATE_WARN:
        return f"{share:.0%}, slows by itself" if adaptive else f"{share:.0%}, low"
    return f"{share:.0%}"


def covers_words(facts: dict[str, Any]) -> str:
    """Write the share of the session that the stream covers, and its longest silence where that is long."""
    share, silence_s = facts.get("coverage"), float(facts.get("longest_silence_s") or 0)
    words = "not known" if share is None else f"{math.floor(1000 * share + 1e-6) / 10:g} %"
    return f"{words}, silent for {length(silence_s)}" if silence_s > SILENCE_WARN_S else words


def tracked_words(facts: dict[str, Any]) -> str:
    """Write in which share of the packets head, gaze, hands or pose were tracked, and what decodes."""
    shares = (facts.get("tracked") or {}).items()
    words = [f"{part.replace('_', ' ')} {math.floor(100 * share)} %" for part, share in shares]
    if seen := facts.get("decoded"):
        words.append(f"{seen['pictures']} of {seen['asked']} pictures tried decode")
    if (level := facts.get("loudest_dbfs")) is not None:
        words.append(f"sound up to {level:g} dBFS")
    return ", ".join(words)


def interval_words(steps: npt.NDArray[np.int64]) -> str:
    """Write usual, 99th percentile and longest interval."""
    if not len(steps):
        return "too few packets"
    values = (float(v) / TICKS_PER_MS for v in (*np.percentile(steps, [50, 99]), steps.max()))
    usual, rare, longest = (f"{v:.1f}" if v < 100 else f"{v:.0f}" for v in values)
    return f"usual {usual}, 99 % {rare}, most {longest} ms"


def arrival_words(stream: ReadStream, clock: TicksToHost | None) -> str:
    """Write how long after its stamp a packet came, usually and at most: what a stalled network shows."""
    if clock is None or not clock.from_probes or not len(stream.index):
        return ""
    late_ms = (stream.index["host_ns"].astype(np.int64) - clock.to_host.to_host_ns(stream.ticks)) / 1e6
    usual, most = (round(float(value)) for value in (np.median(late_ms), late_ms.max()))  # no "-0"
    return f"arrived {usual} ms late, at most {most} ms"


def format_words(form: dict[str, Any]) -> str:
    """Write how the stream was asked to be sent, such as `h265 640x360`."""
    size = f"{form['width']}x{form['height']}" if form.get("width") and form.get("height") else ""
    return " ".join(str(part) for part in (form.get("codec", ""), size) if part)


def histogram(name: str, steps: npt.NDArray[np.int64]) -> Markup:
    """Draw how often which interval was; heights are logarithmic, so that a single long one is seen."""
    usual = usual_step(steps)
    if not np.isfinite(usual) or usual <= 0:
        return Markup("")
    shares = steps / usual
    counts, _ = np.histogram(np.clip(shares, 0.0, SPAN_STEPS - 1e-9), BINS, (0.0, SPAN_STEPS))
    beyond = int(np.count_nonzero(shares >= SPAN_STEPS))
    counts[-1] -= beyond
    heights = np.log1p([*counts, beyond]) / np.log1p(max(int(counts.max()), beyond, 1))
    width = (BINS + 2) * BAR_WIDTH
    shapes = [
        _bar(BAR_WIDTH * (n if n < BINS else n + 1), height, "over" if n == BINS else "count")
        for n, height in enumerate(heights)
        if height > 0
    ]
    one = BINS / SPAN_STEPS * BAR_WIDTH
    ticks = [0.0, usual / TICKS_PER_MS, 2 * usual / TICKS_PER_MS]
    labels = [
        element("text", tick_text(tick, ticks), x=n * one, y=BAR_HEIGHT + BASE - 2, text_anchor=anchor)
        for n, (tick, anchor) in enumerate(zip(ticks, ("start", "middle", "middle"), strict=True))
    ]
    unit = element("text", "ms | more", x=width, y=BAR_HEIGHT + BASE - 2, text_anchor="end")
    words = f"{name}: spread of the intervals between packets, {interval_words(steps)}; {beyond} beyond"
    return element(
        "svg",
        element("title", words),
        element("line", x1=0, x2=width, y1=BAR_HEIGHT, y2=BAR_HEIGHT, class_="grid"),
        *shapes,
        *labels,
        unit,
        viewBox=f"0 0 {width} {BAR_HEIGHT + BASE}",
        class_="spread",
        role="img",
        aria_label=words,
    )


def _bar(x: float, height: float, class_: str) -> Markup:
    tall = max(height * (BAR_HEIGHT - 2), 1.5)
    return element("rect", x=x, y=BAR_HEIGHT - tall, width=BAR_WIDTH - 1, height=tall, class_=class_)
