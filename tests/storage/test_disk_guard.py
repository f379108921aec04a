"""The disk guard against disks whose future is known."""

from __future__ import annotations

import math

import pytest

from kitchensync.storage.disk.space_guard import DiskGuard, bytes_per_minute, outlook

MINUTE = 60 * 10**9


def disk(free: int, per_minute: int, minutes: int = 4) -> list[tuple[int, int]]:
    """Looks once a minute at a disk that is used up evenly and has `free` left at the end."""
    return [(n * MINUTE, free + (minutes - n) * per_minute) for n in range(minutes + 1)]


@pytest.mark.parametrize(
    ("free", "level", "minutes"),
    [(10_000, "ok", 90), (2_000, "warn", 10), (1_040, "stop", 0.4), (1_000, "stop", 0), (10, "stop", 0)],
)
def test_minutes_left_and_level(free, level, minutes):
    seen = outlook(disk(free, 100), reserve_bytes=1_000)
    assert (seen.level, seen.minutes_left) == (level, pytest.approx(minutes))


def test_a_disk_that_nobody_uses_lasts_for_ever():
    assert outlook(disk(5_000, 0), reserve_bytes=1_000).minutes_left == math.inf
    assert outlook(disk(5_000, -50), reserve_bytes=1_000).level == "ok"


def test_a_rate_that_rose_lately_is_believed():
    samples = disk(10_000, 10, 8)
    samples += [(samples[-1][0] + n * MINUTE, 10_000 - n * 1_000) for n in (1, 2, 3, 4)]
    assert bytes_per_minute(samples) == pytest.approx(1_000)


def sealed_in_bursts(free: int, seconds: int, burst: int, every_s: int) -> list[tuple[int, int]]:
    """Looks once a second at a disk that gets a chunk now and then."""
    return [(n * 10**9, free - n // every_s * burst) for n in range(seconds + 1)]


@pytest.mark.parametrize("seconds", [121, 125, 179, 239])
def test_bursts_of_chunks_are_seen_as_the_rate_that_they_are(seconds):
    samples = sealed_in_bursts(200 * 10**9, seconds, 510 * 10**6, 10)
    seen = outlook(samples, reserve_bytes=0)
    true_minutes = samples[-1][1] / (51 * 10**6 * 60)
    assert 0.8 * true_minutes < seen.minutes_left < 1.1 * true_minutes
    assert seen.level == "ok"


def test_a_disk_that_something_fills_at_once_stops_in_seconds():
    samples = sealed_in_bursts(20 * 10**9, 200, 33 * 10**6, 10)
    last_ns, last_free = samples[-1]
    samples += [(last_ns + n * 10**9, last_free - n * 4 * 10**9) for n in (1, 2)]
    assert outlook(samples, reserve_bytes=0).level == "stop"


@pytest.mark.parametrize("seconds", [0, 1, 3, 200])
def test_a_leap_between_two_looks_is_no_rate(seconds):
    """Half an hour of recording ended early with 44 GB free, on a computer whose other jobs wrote a lot."""
    samples = sealed_in_bursts(44 * 10**9, seconds, 33 * 10**6, 10)
    last_ns, last_free = samples[-1]
    samples.append((last_ns + 10**8, last_free - 500 * 10**6))
    assert outlook(samples, reserve_bytes=200 << 20).level == "ok"


@pytest.mark.parametrize("ms_before", [5, 100, 1_000, 3_000])
@pytest.mark.parametrize("seconds", [1, 5, 60])
def test_a_large_file_that_is_copied_to_a_roomy_disk_does_not_end_a_recording(seconds, ms_before):
    """Four gigabytes, seen at once by a guard that looked a moment before."""
    samples = sealed_in_bursts(40 * 10**9, seconds, 33 * 10**6, 10)
    last_ns, last_free = samples[-1]
    samples.append((last_ns + ms_before * 10**6, last_free - 4 * 10**9))
    assert outlook(samples, reserve_bytes=0).level != "stop"


@pytest.mark.parametrize("seconds", [0.02, 0.5, 2, 9, 12])
def test_the_first_seconds_of_a_recording_are_no_rate(seconds):
    """What is set aside at the start, and the first chunks, on a disk that holds ten times as much."""
    samples = [(0, 300 * 10**6), (round(seconds * 1e9), (300 - 30) * 10**6)]
    assert outlook(samples, reserve_bytes=10**6).level != "stop"


def test_the_guard_looks_at_the_real_disk(tmp_path):
    guard = DiskGuard(tmp_path, reserve_bytes=0)
    assert guard.look(0).free_bytes > 0
    assert DiskGuard(tmp_path, reserve_bytes=1 << 60).look(0).level == "stop"
    assert "GB free" in guard.look(MINUTE).text
