"""Times of recipe steps by the tablet's events: from the start, or the end of the step before, to Done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kitchensync.storage.errors import BadEventLog
from kitchensync.storage.events import LogEvent, event_logs, read_lines, taken_back
from kitchensync.storage.verify.coverage import Span
from kitchensync.storage.verify.session_span import SessionTimes


@dataclass(frozen=True)
class StepTime:
    """One finished step: its place in the shown order, and its time on the session's axis."""

    position: int
    start_s: float
    end_s: float


def read_steps(recording: Path, session: SessionTimes) -> list[StepTime]:
    """Return the finished steps by time; of a damaged log those before the damage."""
    events_read: list[LogEvent] = []
    for path in event_logs(recording):
        try:
            for event, _ in read_lines(path):
                if isinstance(event.get("body"), dict) and isinstance(event.get("host_ns"), int):
                    events_read.append(event)
        except (BadEventLog, OSError):
            continue  # reported by the check of the logs
    events = sorted(events_read, key=lambda event: int(event["host_ns"]))
    undone = taken_back(events)
    starts_s: dict[int, float] = {}
    done: dict[int, StepTime] = {}
    before_s = session.start_s
    for event in events:
        position = event["body"].get("position")
        if (
            not isinstance(position, int)
            or event.get("op_id") in undone
            or event["kind"] not in ("start", "done")
        ):
            continue
        at_s = session.seconds(int(event["host_ns"]))
        if event["kind"] == "start":
            starts_s.setdefault(position, at_s)
        elif position not in done:
            done[position] = StepTime(position, min(starts_s.get(position, before_s), at_s), at_s)
            before_s = at_s
    return sorted(done.values(), key=lambda step: step.end_s)


def touched(steps: Sequence[StepTime], holes: Sequence[Span]) -> list[int]:
    """Return the positions of the steps that overlap one of the holes."""
    return sorted({s.position for s in steps for a, b in holes if s.start_s < b and a < s.end_s})


def in_words(positions: Sequence[int]) -> str:
    """Write positions such as `step 3`, `steps 3 and 5`, `steps 3 to 12`; at least one."""
    runs: list[list[int]] = []
    for position in positions:
        if runs and runs[-1][-1] == position - 1:
            runs[-1].append(position)
        else:
            runs.append([position])
    parts = [p for run in runs for p in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    words = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"step{'s' if len(positions) > 1 else ''} {words}"
