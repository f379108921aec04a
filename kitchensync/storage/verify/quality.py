"""Judge each stream beyond its balance of packets: coverage of the session, rate, lateness.

The limits are in `kitchensync.storage.verify.thresholds`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.mask_runs import marked_runs
from kitchensync.shell.array_types import Floats
from kitchensync.storage.redact.redactions import CUT, PRIVACY, REDACTED
from kitchensync.storage.verify import thresholds as limits
from kitchensync.storage.verify.coverage import (
    Cover,
    PlacedPackets,
    Span,
    cover,
    is_adaptive,
    is_irregular,
    longest_step_s,
    place,
)
from kitchensync.storage.verify.findings import FAIL, WARN, Findings
from kitchensync.storage.verify.gaps import Gap
from kitchensync.storage.verify.sealed_files import Contents
from kitchensync.storage.verify.session_span import SessionTimes
from kitchensync.storage.verify.suitable_uses import clock, spans_in_words
from kitchensync.storage.verify.tracking import GAZE, HEAD, STILL, spans_of, united

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import StreamForm

WANTED = (PRIVACY, REDACTED, CUT)
"""Causes of intended gaps, which are not part of the session."""


@dataclass(frozen=True)
class StreamQuality:
    """Quality of one stream."""

    facts: dict[str, Any]
    "Keys for `verify/1`."
    holes: list[Span]
    "Gaps for the list of suitable uses."


def judge(
    contents: Mapping[str, Contents],
    descriptions: Mapping[str, StreamForm],
    balances: Mapping[str, Mapping[str, Any]],
    session: SessionTimes | None,
    findings: Findings,
) -> dict[str, StreamQuality]:
    """Judge every stream of a recording; add findings."""
    if session is None:
        return {name: StreamQuality({"coverage": 0.0}, []) for name in contents}
    by_device: dict[str, dict[str, npt.NDArray[np.void]]] = defaultdict(dict)
    for name, stream_contents in contents.items():
        by_device[name.rpartition("/")[0]][name] = stream_contents.index
    placed = {
        name: at for group in by_device.values() for name, at in place(group, session.zero_host_ns).items()
    }
    lost = _lost(contents, placed, findings)
    judged = {
        name: _judge(
            name,
            stream_contents,
            descriptions[name],
            balances[name]["gaps"],
            placed.get(name),
            session,
            findings,
        )
        for name, stream_contents in contents.items()
    }
    for name, stream_contents in contents.items():
        if f"{name.rpartition('/')[0]}/{LOST_WORDS[HEAD]}" not in lost:
            for part in ("head", "pose"):
                if (share := stream_contents.tracked.get(part, 1.0)) < limits.HEAD_TRACKED_WARN:
                    findings.add(
                        WARN, f"{name}: the headset knew its {part} in {_percent(share)} of the packets"
                    )
    for name, spans in lost.items():
        quality = judged.get(name, StreamQuality({}, []))
        judged[name] = StreamQuality(quality.facts | {"lost": spans}, united([*quality.holes, *spans]))
    return judged


LOST_WORDS = {HEAD: "head position", GAZE: "gaze"}


def _lost(
    contents: Mapping[str, Contents], placed: Mapping[str, PlacedPackets], findings: Findings
) -> dict[str, list[Span]]:
    """Report where tracking of head or gaze was lost, or a sensor repeated one value; return the spans."""
    spans: dict[str, list[Span]] = defaultdict(list)
    for name, stream_contents in contents.items():
        if stream_contents.tracking is None or name not in placed:
            continue
        device = name.rpartition("/")[0]
        for kind, rows in stream_contents.tracking.rows().items():
            what = f"{device}/{LOST_WORDS[kind]}" if kind in LOST_WORDS else name
            least_s = stream_contents.tracking.least_still_s if kind == STILL else limits.LOST_S
            spans[what] += spans_of(rows, placed[name].at_s, least_s)
    lost = {what: united(runs) for what, runs in spans.items() if runs}
    for what, runs in lost.items():
        fault = "was not known" if what.endswith(LOST_WORDS[HEAD]) else "repeats one value"
        findings.add(WARN, f"{what} {fault} {spans_in_words(runs)}")
    return lost


def _judge(
    name: str,
    contents: Contents,
    description: StreamForm,
    gaps: list[Gap],
    placed: PlacedPackets | None,
    session: SessionTimes,
    findings: Findings,
) -> StreamQuality:
    nominal_hz = float(description.get("nominal_hz") or 0)
    if placed is None:
        return StreamQuality({"coverage": 0.0}, [(session.start_s, session.stop_s)])
    adaptive = is_adaptive(name, description)
    shares = {part: round(share, 4) for part, share in contents.tracked.items()}
    for part in ("gaze", "left_hand", "right_hand"):
        if shares.get(part) == 0:
            findings.note(f"{name}: {part.replace('_', ' ')} was never tracked")
    facts: dict[str, Any] = {"tracked": shares} if shares else {}
    facts |= _rate(name, placed.at_s, nominal_hz, findings, adaptive=adaptive)
    pauses = _pauses(contents.index, placed, gaps)
    irregular = is_irregular(name, description, contents.index)
    step_s = longest_step_s(nominal_hz, adaptive=irregular) if nominal_hz else math.inf
    is_intact = ~np.isin(contents.index["seq"], contents.damaged)
    if not is_intact.any():
        return StreamQuality({"coverage": 0.0}, [(session.start_s, session.stop_s)])
    coverage = cover(placed.only(is_intact), session, step_s, pauses)
    facts |= {
        "longest_silence_s": round(coverage.longest_silence_s, 3),
        "latest_arrival_s": round(coverage.latest_s, 3),
    }
    _lateness(name, coverage, findings)
    at_s, last = placed.at_s.tolist(), len(placed.at_s) - 1
    damaged = [(at_s[max(first - 1, 0)], at_s[min(end, last)]) for first, end in marked_runs(~is_intact)]
    if not nominal_hz:  # coverage needs a rate
        return StreamQuality({"coverage": None, **facts}, damaged)
    _coverage(name, coverage, session, findings)
    share = math.floor(coverage.share * 1e4) / 1e4  # never rounded up to a limit
    least_s = 0.0 if coverage.share < limits.COVERAGE_WARN else limits.HOLE_NAMED_S
    holes = [(first_s, last_s) for first_s, last_s in coverage.holes if last_s - first_s >= least_s]
    return StreamQuality({"coverage": share, **facts}, united([*holes, *damaged]))


def _coverage(name: str, coverage: Cover, session: SessionTimes, findings: Findings) -> None:
    if coverage.share >= limits.COVERAGE_WARN:
        return
    status = FAIL if coverage.share < limits.COVERAGE_FAIL else WARN
    last = coverage.holes[-1] if coverage.holes else (0.0, 0.0)
    ends = f", nothing after {clock(last[0])}" if last[1] >= session.stop_s - limits.TAIL_LATE_S else ""
    findings.add(status, f"{name}: covers {_percent(coverage.share)} of the session{ends}")


def _percent(share: float) -> str:
    return f"{math.floor(100 * share)} %"


def _lateness(name: str, coverage: Cover, findings: Findings) -> None:
    late_s, silent_s = coverage.latest_s, coverage.longest_silence_s
    if late_s > limits.LATE_WARN_S:
        findings.add(WARN, f"{name}: packets arrived up to {late_s:.1f} s late")
    elif late_s > limits.LATE_NOTE_S:
        findings.note(f"{name}: packets arrived up to {late_s:.1f} s late, which harms nothing")
    if silent_s > limits.SILENCE_WARN_S:
        findings.add(WARN, f"{name}: nothing arrived for {silent_s:.1f} s")


def _rate(
    name: str, at_s: Floats, nominal_hz: float, findings: Findings, *, adaptive: bool
) -> dict[str, Any]:
    seconds = float(at_s[-1] - at_s[0])
    rate_hz = (len(at_s) - 1) / seconds if seconds > 0 else 0.0
    if nominal_hz and len(at_s) >= 10 and rate_hz < limits.RATE_WARN * nominal_hz:
        text = f"{name}: {rate_hz:.1f} packets/s, nominal are {nominal_hz:g}"
        if adaptive:
            findings.note(f"{text}; it slows down by itself")
        else:
            findings.add(WARN, text)
    return {"rate_hz": round(rate_hz, 2), "nominal_hz": nominal_hz or None}


def _pauses(index: npt.NDArray[np.void], placed: PlacedPackets, gaps: list[Gap]) -> list[Span]:
    pauses = [gap for gap in gaps if gap["cause"] in WANTED]
    if not pauses:
        return []
    order = np.argsort(index["device_ticks"], kind="stable")
    ticks, at_s = index["device_ticks"][order].astype(np.int64), placed.at_s[order]

    def at(tick: int) -> float:
        inside = min(max(tick, int(ticks[0])), int(ticks[-1]))
        return float(np.interp(inside, ticks, at_s)) + (tick - inside) / 1e7

    return [(at(gap["start_ticks"]), at(gap["end_ticks"])) for gap in pauses]
