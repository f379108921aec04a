"""The time zone of the place of recording, for the manifest."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def local_zone(utc_ns: int) -> dict[str, Any]:
    """Return {"iana": name or None, "utc_offset_s": seconds east of UTC at that moment}."""
    moment = datetime.datetime.fromtimestamp(utc_ns // 1_000_000_000, tz=datetime.UTC)
    name = _iana_name()
    zone = ZoneInfo(name) if name else None
    offset = moment.astimezone(zone).utcoffset()
    return {"iana": name, "utc_offset_s": int(offset.total_seconds()) if offset else 0}


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
