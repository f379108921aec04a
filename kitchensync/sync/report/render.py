"""Fill the templates of the pages, and write numbers in words; light, for the page of many recordings."""

from __future__ import annotations

import datetime
from typing import TypedDict

from kitchensync.shell.page_templates import page_environment


class Zone(TypedDict, total=False):
    """The time zone of a recording in its manifest."""

    iana: str | None
    utc_offset_s: float | None


def render(template: str, **page: object) -> str:
    """Fill a template; everything is escaped but the drawings made here."""
    environment = page_environment("kitchensync.sync.report")
    environment.filters |= {"clock": clock, "length": length, "size": size}
    return environment.get_template(template).render(page)


def size(count: float) -> str:
    """Write bytes with a decimal unit."""
    units = ("kB", "MB", "GB")
    power = next((n for n in range(4) if abs(count) < 1000 ** (n + 1)), 3)
    return f"{count / 1000**power:.1f} {units[power - 1]}" if power else f"{count:.0f} bytes"


def clock(seconds: float) -> str:
    """Write seconds of the recording as m:ss.t (h:mm:ss.t from an hour on)."""
    sign = "-" if seconds < -0.05 else ""
    minutes, rest = divmod(round(abs(seconds) * 10), 600)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}:{minutes:02d}" if hours else f"{minutes}"
    return f"{sign}{head}:{rest / 10:04.1f}"


def whole_clock(seconds: float) -> str:
    """Write whole seconds as m:ss, for axes."""
    return clock(round(seconds)).rpartition(".")[0]


def length(seconds: float) -> str:
    """Write a duration: milliseconds, seconds, minutes or hours."""
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"


def count_of(number: int, noun: str) -> str:
    """Write a count with its noun, which gets an s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}".replace(",", "\u202f")


def local_time(utc_ns: int, zone: Zone) -> str:
    """Write a moment as the clock on the wall showed it, with the zone."""
    offset = datetime.timedelta(seconds=int(zone.get("utc_offset_s") or 0))
    moment = datetime.datetime.fromtimestamp(utc_ns // 1_000_000_000, tz=datetime.timezone(offset))
    name = f"{zone['iana']}, " if zone.get("iana") else ""
    east = moment.strftime("%z")
    return f"{moment:%Y-%m-%d %H:%M:%S} ({name}UTC{east[:3]}:{east[3:5]})"
