"""The events of a recording, read up to the first damaged line."""

from __future__ import annotations

from pathlib import Path

from kitchensync.storage.errors import BadEventLog
from kitchensync.storage.events import LogEvent, event_logs, read_lines


def read_noted(recording: Path) -> tuple[list[LogEvent], list[str]]:
    """Return the events by time, and what is wrong with their logs; a damaged log is read up to its damage.

    Each event has a `body` that is an object, an integer `host_ns` and its `writer`.
    """
    events: list[LogEvent] = []
    problems: list[str] = []
    for path in event_logs(recording):
        try:
            for event, _ in read_lines(path):
                body = event["body"] if isinstance(event.get("body"), dict) else {}
                events.append({**event, "body": body, "writer": path.stem, "host_ns": int(event["host_ns"])})
        except (BadEventLog, OSError, KeyError, TypeError, ValueError) as error:
            problems.append(f"events/{path.name}: {' '.join(str(error).split()).rpartition(': ')[2]}")
    return sorted(events, key=lambda event: int(event["host_ns"])), problems
