"""The time zone of the place of recording, for the manifest."""

from __future__ import annotations

import datetime
import os
from bisect import bisect_left
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

DAY_S = 86_400


def local_zone(utc_ns: int) -> Any:
    """Return {"iana": name or None, "utc_offset_s": seconds east of UTC at that time, "changes": [...]}.

    `changes` lists changes of the offset within the next day as {"utc_ns", "utc_offset_s"}.
    """
    name = _iana_name()
    zone = ZoneInfo(name) if name else None
    utc_s = utc_ns // 1_000_000_000
    now_s, later_s = _offset_s(utc_s, zone), _offset_s(utc_s + DAY_S, zone)
    changes = []
    if later_s != now_s:
        day = range(utc_s, utc_s + DAY_S)
        after = utc_s + bisect_left(day, True, key=lambda at_s: _offset_s(at_s, zone) != now_s)
        changes.append({"utc_ns": after * 1_000_000_000, "utc_offset_s": later_s})
    return {"iana": name, "utc_offset_s": now_s, "changes": changes}


def _offset_s(utc_s: int, zone: ZoneInfo | None) -> int:
    moment = datetime.datetime.fromtimestamp(utc_s, tz=datetime.UTC)
    offset = moment.astimezone(zone).utcoffset()
    return int(offset.total_seconds()) if offset else 0


def _iana_name() -> str | None:
    candidates = [os.environ.get("TZ", "").lstrip(":")]
    link = Path("/etc/localtime")
    if link.is_symlink():
        candidates.append(os.path.realpath(link).partition("zoneinfo/")[2])
    for name in filter(None, candidates):
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError):
            continue
        return name
    return None
