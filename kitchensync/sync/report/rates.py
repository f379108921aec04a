"""The rates of a report: one row a stream, measured against nominal, with the spread of its intervals."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from kitchensync.storage.verify.by_life import StreamBalance
from kitchensync.storage.verify.coverage import is_adaptive
from kitchensync.storage.verify.gaps import usual_step
from kitchensync.storage.verify.thresholds import COVERAGE_WARN, RATE_WARN, SILENCE_WARN_S
from kitchensync.sync.report.plots import tick_text
from kitchensync.sync.report.render import length
from kitchensync.sync.report.streams import ReadStream, TicksToHost

TICKS_PER_MS = 10_000.0
BINS = 30
SPAN_STEPS = 3.0  # the histogram ends at this many usual intervals; what is longer stands in one last bar
BAR_WIDTH, BAR_HEIGHT = 6, 30
"""Pixels: a usual interval is 60 wide, the whole 192, with one bar left out before the last."""
BAR = Markup('<rect x="{}" y="{:.2f}" width="{}" height="{:.2f}" class="{}"/>')
HISTOGRAM = Markup(
    '<svg viewBox="0 0 192 42" class="spread" role="img" aria-label="{words}"><title>{words}</title>'
    '<line x1="0" x2="192" y1="30" y2="30" class="grid"/>{bars}'
    '<text x="0" y="40" text-anchor="start">{labels[0]}</text>'
    '<text x="60" y="40" text-anchor="middle">{labels[1]}</text>'
    '<text x="120" y="40" text-anchor="middle">{labels[2]}</text>'
    '<text x="192" y="40" text-anchor="end">ms | more</text></svg>'
)


def rate_of(stream: ReadStream, facts: StreamBalance, clock: TicksToHost | None) -> dict[str, object]:
    """Measure one stream for its row; `facts` is its entry in the answer of verify, `clock` that of its device."""
    steps = stream.ticks[1:] - stream.ticks[:-1]
    measured_hz = len(steps) / (float(steps.sum()) / 1e7) if steps.sum() > 0 else None
    coverage, silence_s = facts.get("coverage"), float(facts.get("longest_silence_s") or 0)
    covers = "not known" if coverage is None else f"{math.floor(1000 * coverage + 1e-6) / 10:g} %"
    form = stream.format
    size = f"{form['width']}x{form['height']}" if form.get("width") and form.get("height") else ""
    arrival = ""
    if clock is not None and clock.from_probes and len(stream.index):  # what a stalled network shows
        late_ms = (stream.index["host_ns"].astype(np.int64) - clock.to_host.to_host_ns(stream.ticks)) / 1e6
        usual, most = (round(float(value)) for value in (np.median(late_ms), late_ms.max()))  # no "-0"
        arrival = f"arrived {usual} ms late, at most {most} ms"
    return {
        "stream": stream.name,
        "keeps": " ".join(str(part) for part in (form.get("codec", ""), size) if part),
        "packets": len(stream.index),
        "received": int(facts.get("received", len(stream.index))),
        "duplicates": int(facts.get("duplicates", 0)),
        "covers": f"{covers}, silent for {length(silence_s)}" if silence_s > SILENCE_WARN_S else covers,
        "is_covered": coverage is None or float(coverage) >= COVERAGE_WARN,
        "tracked": _tracked_words(facts),
        "measured_hz": measured_hz,
        "nominal_hz": stream.nominal_hz,
        "judged": _judged(stream, measured_hz),
        "bytes": int(facts.get("bytes", int(stream.index["size"].astype(np.int64).sum()))),
        "missing": sum(last - first + 1 for first, last in facts.get("missing", [])),
        "gaps": len(facts.get("gaps", [])),
        "interval": interval_words(steps),
        "arrival": arrival,
        "histogram": histogram(stream.name, steps),
    }


def _judged(stream: ReadStream, measured_hz: float | None) -> str:
    """Write how the measured rate stands to the nominal one."""
    if measured_hz is None or not stream.nominal_hz:
        return "not known"
    share = measured_hz / stream.nominal_hz
    if share >= RATE_WARN:
        return f"{share:.0%}"
    return (
        f"{share:.0%}, slows by itself"
        if is_adaptive(stream.name, stream.description)
        else f"{share:.0%}, low"
    )


def _tracked_words(facts: StreamBalance) -> str:
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


def histogram(name: str, steps: npt.NDArray[np.int64]) -> Markup:
    """Draw how often which interval was; heights are logarithmic, so that a single long one is seen."""
    usual = usual_step(steps)
    if not np.isfinite(usual) or usual <= 0:
        return Markup("")
    shares = steps / usual
    inside, _ = np.histogram(np.maximum(shares[shares < SPAN_STEPS], 0.0), BINS, (0.0, SPAN_STEPS))
    beyond = len(steps) - int(inside.sum())
    heights = np.log1p([*inside, beyond]) / np.log1p(max(int(inside.max()), beyond, 1))
    bars = []
    for number, height in enumerate(heights):
        if height > 0:  # the last, of all that is longer, stands a little away
            tall = max(height * (BAR_HEIGHT - 2), 1.5)
            at, class_ = (number + 1, "over") if number == BINS else (number, "count")
            bars.append(BAR.format(at * BAR_WIDTH, BAR_HEIGHT - tall, BAR_WIDTH - 1, tall, class_))
    ticks = [0.0, usual / TICKS_PER_MS, 2 * usual / TICKS_PER_MS]
    return HISTOGRAM.format(
        words=f"{name}: spread of the intervals between packets, {interval_words(steps)}; {beyond} beyond",
        bars=Markup("").join(bars),
        labels=[tick_text(tick, ticks) for tick in ticks],
    )
