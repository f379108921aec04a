"""Apply the live rules to the state of a running recording. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

from kitchensync.capture.monitor.rules import (
    ALARM,
    MIN_SILENT_S,
    NO_NEWS_S,
    ON_THIS_COMPUTER,
    PERIODS,
    RULES,
    TOO_BUSY,
    Facts,
    LiveRule,
)
from kitchensync.capture.process.cpu_pressure import BUSY_PERCENT

RUNNING, PROBLEM, UNKNOWN = "recording", "problem", "unknown"


@dataclass(frozen=True)
class LiveFinding:
    """One rule that holds for one subject, with its messages for cook and operator, and what to do."""

    rule: str
    severity: str
    subject: str
    cook: str
    operator: str
    do: str


def findings_in(state: dict[str, Any]) -> list[LiveFinding]:
    """Return the findings for the state of a recording, alarms first.

    Streams of a silent producer are not judged, only the process.
    """
    findings = [finding for kind, facts in _subjects(state) if (finding := _first(kind, facts)) is not None]
    return sorted(findings, key=lambda finding: finding.severity != ALARM)


def health_of(state: dict[str, Any] | None, now_ns: int, findings: list[LiveFinding]) -> str:
    """Return the health of a recording: its phase, or `problem`, or `unknown` if its state is older than 3 s."""
    if state is None or now_ns - int(state["host_ns"]) > NO_NEWS_S * 1e9:
        return UNKNOWN
    if state["phase"] != RUNNING:
        return str(state["phase"])
    return PROBLEM if any(finding.severity == ALARM for finding in findings) else RUNNING


def _first(kind: str, facts: Facts) -> LiveFinding | None:
    rule: LiveRule | None = next((rule for rule in RULES if rule.of == kind and rule.holds(facts)), None)
    if rule is None:
        return None
    message, do = rule.operator.format_map(facts), rule.do
    if rule.is_of_network and facts["waits_percent"] > BUSY_PERCENT:
        do = TOO_BUSY.format_map(facts) + ("" if facts["is_here"] else f"; if that is not it, {rule.do}")
    elif rule.is_of_network and facts["is_here"]:
        do = ON_THIS_COMPUTER
    return LiveFinding(rule.name, rule.severity, facts["name"], rule.cook, message, do)


def _subjects(state: dict[str, Any]) -> Iterator[tuple[str, Facts]]:
    """Yield kind and facts of every subject, with times as durations in seconds."""
    now_ns, name = int(state["host_ns"]), str(state["recording"])
    for problem in state["befallen"]:
        yield "recording", {"name": name, "problem": problem}
    for by_ns in state["clock_set_by_ns"][-1:]:
        yield "computer", {"name": "computer", "by_s": by_ns / 1e9}
    yield "disk", state["disk"] | {"name": "disk", "free_gb": state["disk"].get("free_bytes", 0) / 1e9}
    queue = {
        key: state[key] for key in ("queue_refuses", "queue_silent_s", "queue_evicts", "queue_vanished_ns")
    }
    vanished_s = (now_ns - state["queue_vanished_ns"]) / 1e9
    yield "queue", queue | {"name": "queue server", "vanished_s": vanished_s}
    if state["queue_silent_s"] or state["queue_refuses"]:
        return  # a stalled queue server stalls everything else
    silent = set()
    here = {"waits_percent": state.get("waits_percent", 0.0)}
    for process, heard in state["heard"].items():
        facts = heard | {"name": process, "silent_s": (now_ns - heard["host_ns"]) / 1e9}
        silent |= {process} if facts["silent_s"] > NO_NEWS_S else set()
        yield "process", facts
        if heard.get("answered_host_ns") and not heard["done"] and process not in silent:
            silent_s = (heard["host_ns"] - heard["answered_host_ns"]) / 1e9
            device = process.removeprefix("producer ")
            is_here = device in state.get("here", ())
            yield "clock", here | {"name": device, "silent_s": silent_s, "is_here": is_here}
    for store in state["stores"]:
        yield "store", {"name": store["target"], "problem": store["problem"]}
    for restart in state["restarts"]:
        yield "restart", {"name": restart["process"], "ago_s": (now_ns - restart["host_ns"]) / 1e9}
    for stream, facts in state["streams"].items():
        device = stream.partition("/")[0]
        producer = f"producer {device}"
        if facts.get("state") and producer in state["heard"] and producer not in silent:
            judged = stream_facts(stream, facts, state["heard"][producer]["host_ns"])
            yield "stream", judged | here | {"is_here": device in state.get("here", ())}
    for camera, facts in state["cameras"].items():
        yield "camera", facts | {"name": camera}


def stream_facts(name: str, facts: Facts, reported_ns: int) -> Facts:
    """Add durations to a stream's facts, up to the time `reported_ns` of its producer's report."""
    hz, last_ns = float(facts.get("nominal_hz") or 0), int(facts.get("last_host_ns") or reported_ns)
    waiting = max(int(facts.get("received", 0)) - int(facts.get("stored", 0)), 0)
    # `lost` and `still` are judged from packets, so they last no longer than to the newest packet.
    until_ns = {"left": reported_ns, "flagged": reported_ns, "lost": last_ns, "still": last_ns}
    seconds = {
        f"{condition}_s": max((end_ns - int(facts.get(f"{condition}_host_ns") or end_ns)) / 1e9, 0.0)
        for condition, end_ns in until_ns.items()
    }
    defaults = {"first_host_ns": 0, "rate_hz": 0.0, "problem": "", "fault": ""}
    return {
        **(defaults | facts | seconds),
        "name": name,
        "silent_s": max((reported_ns - last_ns) / 1e9, 0.0),
        "silent_limit_s": max(MIN_SILENT_S, PERIODS / hz) if hz else inf,
        "waiting": waiting,
        "behind_s": waiting / hz if hz else 0.0,
    }
