"""The time zone of the recording and its next offset change."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kitchensync.capture.zone import local_zone


def ns(*moment: int) -> int:
    return int(datetime(*moment, tzinfo=UTC).timestamp()) * 10**9


@pytest.mark.parametrize(
    ("zone", "moment", "offset_s", "changes"),
    [
        ("Europe/Berlin", (2025, 6, 15, 12, 0), 7200, []),
        ("Europe/Berlin", (2025, 3, 29, 20, 0), 3600, [((2025, 3, 30, 1, 0), 7200)]),
        ("Europe/Berlin", (2025, 10, 26, 0, 59), 7200, [((2025, 10, 26, 1, 0), 3600)]),
        ("Europe/Berlin", (2025, 10, 26, 1, 0), 3600, []),
        ("Asia/Kathmandu", (2025, 1, 1, 0, 0), 20700, []),
        ("Australia/Lord_Howe", (2025, 4, 5, 0, 0), 39600, [((2025, 4, 5, 15, 0), 37800)]),
    ],
)
def test_the_offset_and_its_next_change(monkeypatch, zone, moment, offset_s, changes):
    monkeypatch.setenv("TZ", zone)
    expected = [{"utc_ns": ns(*at), "utc_offset_s": to_s} for at, to_s in changes]
    assert local_zone(ns(*moment)) == {"iana": zone, "utc_offset_s": offset_s, "changes": expected}
