"""What the operator is told of that does not come: streams, and processes that do not answer. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from capture.produce.stream_watch import RATE_LOW, SLOW_BY_ITSELF, STREAMING
from storage.ledger import LOST

QUIET_NS = 5_000_000_000
"""So long nothing may come before it is said."""

COMING = (STREAMING, RATE_LOW, SLOW_BY_ITSELF, "starting")


def mute_processes(states: Mapping[str, Mapping[str, Any]], now_ns: int) -> dict[str, str]:
    """Return what to say of each process that has not told how it is for a while, by its name."""
    mute = {
        name: now_ns - state["host_ns"]
        for name, state in states.items()
        if now_ns - state["host_ns"] > QUIET_NS and not state.get("done")
    }
    return {name: f"{name} has not answered for {quiet_ns / 1e9:.0f} s" for name, quiet_ns in mute.items()}


def quiet_streams(
    streams: Mapping[str, Mapping[str, Any]], now_ns: int, mute: Mapping[str, str]
) -> list[str]:
    """Return what to say of streams that came once and do not come; of a mute process nobody knows."""
    quiet = {
        name: now_ns - facts.get("last_host_ns", now_ns)
        for name, facts in streams.items()
        if facts.get("state", "starting") not in COMING and facts.get("first_host_ns")
        if not facts.get("ended") and f"producer {name.partition('/')[0]}" not in mute
    }
    quiet = {name: quiet_ns for name, quiet_ns in quiet.items() if quiet_ns > QUIET_NS}
    return _said(streams, quiet, "nothing for {} s from {} ({}); it is tried again and again")


def lost_streams(streams: Mapping[str, Mapping[str, Any]], stopped_ns: int) -> list[str]:
    """Return what to say of a recording's streams that did not come back before its end."""
    lost = {
        name: (facts["closed_host_ns"] or stopped_ns) - facts["last_host_ns"]
        for name, facts in streams.items()
        if facts.get("ended") == LOST and facts["last_host_ns"]
    }
    return _said(streams, lost, "nothing came in the last {} s from {} ({})")


def _said(streams: Mapping[str, Mapping[str, Any]], quiet: Mapping[str, int], words: str) -> list[str]:
    """Say it once for all streams of a device that are quiet for the same reason."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in quiet:
        facts = streams[name]
        groups[name.partition("/")[0], facts.get("fault") or str(facts["state"])].append(name)
    return [
        f"{device}: "
        + words.format(
            f"{max(quiet[name] for name in names) / 1e9:.0f}",
            ", ".join(name.partition("/")[2] for name in names),
            why,
        )
        for (device, why), names in groups.items()
    ]
