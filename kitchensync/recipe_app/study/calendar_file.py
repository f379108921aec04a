"""A plan as a calendar file (RFC 5545), and as a page to print with a table for each week."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader, StrictUndefined

from kitchensync.recipe_app.study.plan_file import PlanEntry

_ESCAPED = str.maketrans({"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n"})
LONGEST = 75
"""Bytes of a line, by RFC 5545."""


def calendar(entries: Sequence[PlanEntry]) -> str:
    """Return the sessions of a plan as an iCalendar file; the UID of a session is stable."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//KitchenSync//study plan//EN"]
    for entry in entries:
        what = f"{entry.person}: {entry.recipe}, {entry.strategy}"
        name = f"{entry.recipe} {entry.strategy} {entry.display} {entry.person} {entry.kitchen} {_utc(entry.start)}"
        lines += [
            "BEGIN:VEVENT",
            f"UID:{hashlib.sha256(name.encode()).hexdigest()[:32]}@kitchensync",
            f"DTSTAMP:{_utc(entry.start)}",
            f"DTSTART:{_utc(entry.start)}",
            f"DTEND:{_utc(entry.start + timedelta(minutes=entry.minutes))}",
            f"SUMMARY:{what.translate(_ESCAPED)}",
            f"LOCATION:{entry.kitchen.translate(_ESCAPED)}",
            f"DESCRIPTION:{entry.why.translate(_ESCAPED)}",
            "END:VEVENT",
        ]
    return "".join(f"{part}\r\n" for line in [*lines, "END:VCALENDAR"] for part in _folded(line))


def _utc(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def _folded(line: str) -> Iterator[str]:
    """Fold a long line between characters; continuations begin with a space."""
    part = ""
    for letter in line:
        if len((part + letter).encode()) > LONGEST:
            yield part
            part = " "
        part += letter
    yield part


def weeks_page(entries: Sequence[PlanEntry], zone: ZoneInfo, title: str) -> str:
    """Return a page to print with a table for each week: a column per day, sessions in order of time."""
    weeks: dict[date, dict[date, list[dict[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for session in sorted(entries, key=lambda entry: entry.start):
        local = session.start.astimezone(zone)
        monday = local.date() - timedelta(days=local.weekday())
        cell = {"time": f"{local:%H:%M}", "person": session.person, "kitchen": session.kitchen}
        cell |= {
            "what": f"{session.recipe.replace('_', ' ')} · {session.strategy}",
            "more": session.category or session.display,
        }
        weeks[monday][local.date()].append(cell)
    tables = [
        (monday, [(day, days.get(day, [])) for day in (monday + timedelta(days=n) for n in range(7))])
        for monday, days in weeks.items()
    ]
    environment = Environment(
        loader=PackageLoader("kitchensync.recipe_app.study"), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("weeks.html").render(title=title, weeks=tables)
