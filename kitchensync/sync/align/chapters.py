"""From the alignment of a clip to that of its chapters: the same map with another zero. Pure functions.

Chapter time is `t' = t - start`, so `tau'(t') = tau(t' + start) + start`; device ticks do not change.
"""

from __future__ import annotations

from dataclasses import replace

from kitchensync.storage.timeline.clock_map import ClockMap
from kitchensync.sync.align.error_parts import error_parts
from kitchensync.sync.align.headset_gyro import HeadsetGyro
from kitchensync.sync.align.pair_alignment import PairAlignment
from kitchensync.sync.align.sound import Heard
from kitchensync.sync.align.verdict import THRESHOLDS, Verdict
from kitchensync.sync.fit.line import Lags, Line

JOINT_S = 0.5  # maximum distance of a joint and the fitted jump of a missing chapter


def of_chapter(
    pair: PairAlignment,
    headset: HeadsetGyro,
    start_s: float,
    seconds: float,
    *,
    joints_s: tuple[float, ...] = (),
) -> PairAlignment:
    """Return the alignment of the chapter at [start_s, start_s + seconds) of a clip.

    `joints_s` are clip times with a missing chapter: a jump near one is moved exactly there. The errors are those at
    the chapter's start, middle and end; a chapter outside of the compared time has a warning.
    """
    if pair.fine is None or pair.clock_map is None:
        return _moved(pair, start_s)
    shape = pair.fine.line.shape
    near = [min(joints_s, key=lambda joint: abs(joint - at), default=at) for at in shape.breaks_s]
    placed = [n if abs(n - at) <= JOINT_S else at for n, at in zip(near, shape.breaks_s, strict=True)]
    line = replace(pair.fine.line, shape=replace(shape, breaks_s=tuple(placed)))
    fine = replace(pair.fine, line=line)
    first, last = max(fine.overlap_s[0], start_s), min(fine.overlap_s[1], start_s + seconds)
    verdict = pair.verdict
    if last <= first:
        away = f"placed by the drift, {first - last:.1f} s away from what was compared"
        words = f"nothing to compare it with was recorded then: {away}"
        verdict = replace(verdict, warnings=(*verdict.warnings, words))
    fine = replace(fine, overlap_s=(first, last) if last > first else (start_s, start_s + seconds))
    parts = error_parts(fine, headset, (start_s, start_s + seconds))
    if last <= first and max(parts.stat_ms) > THRESHOLDS["stat_most_ms"]:
        verdict = Verdict(
            "not_aligned", (f"nothing was compared near it: known to {max(parts.stat_ms):.0f} ms",)
        )
    jumps = tuple((at, size) for at, size in fine.line.jumps if at < start_s + seconds)
    chapter_map = replace(pair.clock_map, valid_s=fine.overlap_s, jumps=jumps)
    changed = replace(pair, fine=fine, verdict=verdict, stat_ms=parts.stat_ms, model_ms=parts.model_ms)
    return _moved(
        replace(changed, clock_map=None if verdict.status == "not_aligned" else chapter_map), start_s
    )


def _moved(pair: PairAlignment, by_s: float) -> PairAlignment:
    coarse, fine, overlay, prior = pair.coarse, pair.fine, pair.overlay, pair.prior
    if fine is not None:
        first, last = fine.overlap_s
        fine = replace(
            fine,
            line=line_moved(fine.line, by_s),
            lags=lags_moved(fine.lags, by_s),
            step=replace(fine.step, t_s=fine.step.t_s - by_s),
            overlap_s=(first - by_s, last - by_s),
        )
    return replace(
        pair,
        coarse=replace(
            coarse,
            lags_s=coarse.lags_s + by_s,
            tau_s=coarse.tau_s + by_s,
            second_tau_s=coarse.second_tau_s + by_s,
            magnitude_tau_s=coarse.magnitude_tau_s + by_s,
        ),
        fine=fine,
        clock_map=map_moved(pair.clock_map, by_s) if pair.clock_map is not None else None,
        prior=replace(prior, tau0_s=prior.tau0_s + by_s) if prior is not None else None,
        overlay=replace(overlay, t_s=overlay.t_s - by_s) if overlay is not None else None,
    )


def line_moved(line: Line, by_s: float) -> Line:
    """Return the curve in chapter time."""
    shape = line.shape
    breaks = tuple(at - by_s for at in shape.breaks_s)
    moved = replace(line, shape=replace(shape, t_mid_s=shape.t_mid_s - by_s, breaks_s=breaks))
    return moved.moved(by_s)


def lags_moved(lags: Lags, by_s: float) -> Lags:
    """Return the windows in chapter time; those before the chapter have negative times."""
    return replace(lags, t_s=lags.t_s - by_s, tau_s=lags.tau_s + by_s)


def map_moved(clock_map: ClockMap, by_s: float) -> ClockMap:
    """Return the map in chapter time; jumps before the chapter become part of its offset."""
    first, last = clock_map.valid_s
    moved = [(at - by_s, size) for at, size in clock_map.jumps]
    before = sum(size for at, size in moved if at <= 0.0)
    return replace(
        clock_map,
        t_mid_s=clock_map.t_mid_s - by_s,
        coef=(clock_map.coef[0] + by_s + before, *clock_map.coef[1:]),
        valid_s=(first - by_s, last - by_s),
        jumps=tuple((at, size) for at, size in moved if at > 0.0),
    )


def heard_moved(heard: Heard, by_s: float) -> Heard:
    """Return the result of the sounds in chapter time."""
    first, last = heard.span_s
    return replace(
        heard,
        tau_s=heard.tau_s + by_s,
        line=line_moved(heard.line, by_s) if heard.line is not None else None,
        lags=lags_moved(heard.lags, by_s) if heard.lags is not None else None,
        span_s=(first - by_s, last - by_s),
    )
