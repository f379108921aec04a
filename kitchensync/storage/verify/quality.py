"""Judge what a whole balance does not show: how much of the session each stream covers, its rate, its lateness.

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
"""Causes of gaps that somebody asked for: no part of the session."""


@dataclass(frozen=True)
class StreamQuality:
    """What is said of one stream beside its balance."""

    facts: dict[str, Any]
    "Goes into `verify/1`."
    holes: list[Span]
    "Worth naming in what the recording is good for."


def judge(
    contents: Mapping[str, Contents],
    descriptions: Mapping[str, StreamForm],
    balances: Mapping[str, Mapping[str, Any]],
    session: SessionTimes | None,
    findings: Findings,
) -> dict[str, StreamQuality]:
    """Judge every stream of a recording; note what is wrong."""
    if session is None:
        return {name: StreamQuality({"coverage": 0.0}, []) for name in contents}
    by_device: dict[str, dict[str, npt.NDArray[np.void]]] = defaultdict(dict)
    for name, found in contents.items():
        by_device[name.rpartition("/")[0]][name] = found.index
    placed = {
        name: at for group in by_device.values() for name, at in place(group, session.zero_host_ns).items()
    }
    lost = _lost(contents, placed, findings)
    judged = {
        name: _judge(
            name, found, descriptions[name], balances[name]["gaps"], placed.get(name), session, findings
        )
        for name, found in contents.items()
    }
    for name, found in contents.items():
        if f"{name.rpartition('/')[0]}/{LOST_WORDS[HEAD]}" not in lost:
            for part in ("head", "pose"):
                if (share := found.tracked.get(part, 1.0)) < limits.HEAD_TRACKED_WARN:
                    findings.add(
                        WARN, f"{name}: the headset knew its {part} in {_percent(share)} of the packets"
                    )
    for name, spans in lost.items():
        known = judged.get(name, StreamQuality({}, []))
        judged[name] = StreamQuality(known.facts | {"lost": spans}, united([*known.holes, *spans]))
    return judged


LOST_WORDS = {HEAD: "head position", GAZE: "gaze"}


def _lost(
    contents: Mapping[str, Contents], placed: Mapping[str, PlacedPackets], findings: Findings
) -> dict[str, list[Span]]:
    """Name where head, gaze or a sensor was lost or repeated one value; return the spans by what is lost."""
    spans: dict[str, list[Span]] = defaultdict(list)
    for name, found in contents.items():
        if found.tracking is None or name not in placed:
            continue
        device = name.rpartition("/")[0]
        for kind, rows in found.tracking.rows().items():
            what = f"{device}/{LOST_WORDS[kind]}" if kind in LOST_WORDS else name
            least_s = found.tracking.least_still_s if kind == STILL else limits.LOST_S
            spans[what] += spans_of(rows, placed[name].at_s, least_s)
    lost = {what: united(some) for what, some in spans.items() if some}
    for what, some in lost.items():
        said = "was not known" if what.endswith(LOST_WORDS[HEAD]) else "repeats one value"
        findings.add(WARN, f"{what} {said} {spans_in_words(some)}")
    return lost


def _judge(
    name: str,
    found: Contents,
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
    shares = {part: round(share, 4) for part, share in found.tracked.items()}
    for part in ("gaze", "left_hand", "right_hand"):
        if shares.get(part) == 0:
            findings.note(f"{name}: {part.replace('_', ' ')} was never tracked")
    facts: dict[str, Any] = {"tracked": shares} if shares else {}
    facts |= _rate(name, placed.at_s, nominal_hz, findings, adaptive=adaptive)
    pauses = _pauses(found.index, placed, gaps)
    irregular = is_irregular(name, description, found.index)
    step_s = longest_step_s(nominal_hz, adaptive=irregular) if nominal_hz else math.inf
    is_intact = ~np.isin(found.index["seq"], found.damaged)
    if not is_intact.any():
        return StreamQuality({"coverage": 0.0}, [(session.start_s, session.stop_s)])
    seen = cover(placed.only(is_intact), session, step_s, pauses)
    facts |= {
        "longest_silence_s": round(seen.longest_silence_s, 3),
        "latest_arrival_s": round(seen.latest_s, 3),
    }
    _lateness(name, seen, findings)
    at_s, last = placed.at_s.tolist(), len(placed.at_s) - 1
    damaged = [(at_s[max(first - 1, 0)], at_s[min(end, last)]) for first, end in marked_runs(~is_intact)]
    if not nominal_hz:  # nobody said how often its packets come: no share can be told
        return StreamQuality({"coverage": None, **facts}, damaged)
    _coverage(name, seen, session, findings)
    share = math.floor(seen.share * 1e4) / 1e4  # never rounded up to a limit
    least_s = 0.0 if seen.share < limits.COVERAGE_WARN else limits.HOLE_NAMED_S
    named = [(first_s, last_s) for first_s, last_s in seen.holes if last_s - first_s >= least_s]
    return StreamQuality({"coverage": share, **facts}, united([*named, *damaged]))


def _coverage(name: str, seen: Cover, session: SessionTimes, findings: Findings) -> None:
    if seen.share >= limits.COVERAGE_WARN:
        return
    status = FAIL if seen.share < limits.COVERAGE_FAIL else WARN
    last = seen.holes[-1] if seen.holes else (0.0, 0.0)
    ends = f", nothing after {clock(last[0])}" if last[1] >= session.stop_s - limits.TAIL_LATE_S else ""
    findings.add(status, f"{name}: covers {_percent(seen.share)} of the session{ends}")


def _percent(share: float) -> str:
    return f"{math.floor(100 * share)} %"


def _lateness(name: str, seen: Cover, findings: Findings) -> None:
    late_s, silent_s = seen.latest_s, seen.longest_silence_s
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
        said = f"{name}: {rate_hz:.1f} packets/s, nominal are {nominal_hz:g}"
        if adaptive:
            findings.note(f"{said}; it slows down by itself")
        else:
            findings.add(WARN, said)
    return {"rate_hz": round(rate_hz, 2), "nominal_hz": nominal_hz or None}


def _pauses(index: npt.NDArray[np.void], placed: PlacedPackets, gaps: list[Gap]) -> list[Span]:
    wanted = [gap for gap in gaps if gap["cause"] in WANTED]
    if not wanted:
        return []
    order = np.argsort(index["device_ticks"], kind="stable")
    ticks, at_s = index["device_ticks"][order].astype(np.int64), placed.at_s[order]

    def at(one: int) -> float:
        inside = min(max(one, int(ticks[0])), int(ticks[-1]))
        return float(np.interp(inside, ticks, at_s)) + (one - inside) / 1e7

    return [(at(gap["start_ticks"]), at(gap["end_ticks"])) for gap in wanted]
