"""A plan for calendars (RFC 5545) and for the wall: one page with a table for each week."""

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
"""Bytes of a line, as RFC 5545 has it."""


def calendar(entries: Sequence[PlanEntry]) -> str:
    """Return the sessions of a plan as an iCalendar file; the same session has the same UID again."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//KitchenSync//study plan//EN"]
    for one in entries:
        what = f"{one.person}: {one.recipe}, {one.strategy}"
        name = f"{one.recipe} {one.strategy} {one.display} {one.person} {one.kitchen} {_utc(one.start)}"
        lines += [
            "BEGIN:VEVENT",
            f"UID:{hashlib.sha256(name.encode()).hexdigest()[:32]}@kitchensync",
            f"DTSTAMP:{_utc(one.start)}",
            f"DTSTART:{_utc(one.start)}",
            f"DTEND:{_utc(one.start + timedelta(minutes=one.minutes))}",
            f"SUMMARY:{what.translate(_ESCAPED)}",
            f"LOCATION:{one.kitchen.translate(_ESCAPED)}",
            f"DESCRIPTION:{one.why.translate(_ESCAPED)}",
            "END:VEVENT",
        ]
    return "".join(f"{part}\r\n" for line in [*lines, "END:VCALENDAR"] for part in _folded(line))


def _utc(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def _folded(line: str) -> Iterator[str]:
    """Cut a line that is too long between letters; what goes on begins with a space."""
    part = ""
    for letter in line:
        if len((part + letter).encode()) > LONGEST:
            yield part
            part = " "
        part += letter
    yield part


def weeks_page(entries: Sequence[PlanEntry], zone: ZoneInfo, title: str) -> str:
    """Return a page to print: for each week a table, days across, sessions in order of time."""
    weeks: dict[date, dict[date, list[dict[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(entries, key=lambda entry: entry.start):
        local = one.start.astimezone(zone)
        monday = local.date() - timedelta(days=local.weekday())
        said = {"time": f"{local:%H:%M}", "person": one.person, "kitchen": one.kitchen}
        said |= {
            "what": f"{one.recipe.replace('_', ' ')} · {one.strategy}",
            "more": one.category or one.display,
        }
        weeks[monday][local.date()].append(said)
    made = [
        (monday, [(day, days.get(day, [])) for day in (monday + timedelta(days=n) for n in range(7))])
        for monday, days in weeks.items()
    ]
    environment = Environment(
        loader=PackageLoader("kitchensync.recipe_app.study"), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("weeks.html").render(title=title, weeks=made)
