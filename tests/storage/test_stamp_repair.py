"""Stamp repair against stamps whose truth is known, one situation a test."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from kitchensync.storage.errors import BadStamps
from kitchensync.storage.timeline.stamps import BatchStamps, repair_stamps

EPOCH = 133_875_715_436_816_907  # a FILETIME: float64 steps by 16 ticks here
BATCH = 315
RATE_HZ = 6550.0


def stamps(seconds, *, seed=0, vinyl_rate=0.9908, jitter_s=0.25e-3):
    """Vinyl, batch stamps and true ticks of an ordinary gyroscope, batch bug included."""
    rng = np.random.default_rng(seed)
    count = int(seconds * RATE_HZ) // BATCH * BATCH
    k = np.arange(count, dtype=np.int64)
    true = EPOCH + k * 10_000_000 // int(RATE_HZ)
    vinyl = 10**12 + np.rint(k * (1e9 / RATE_HZ) * vinyl_rate).astype(np.int64)
    late = np.rint(rng.exponential(jitter_s, count // BATCH) * 1e7).astype(np.int64)
    late[rng.random(len(late)) < 0.01] += rng.integers(10_000, 50_000)
    return vinyl, np.repeat(true[::BATCH] + late, BATCH), true


def worst_ms(ticks, true):
    return np.abs(ticks - true).max() / 1e4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_fifteen_minutes_are_stamped_within_a_tenth_of_a_millisecond(seed):
    vinyl, soc, true = stamps(900, seed=seed)
    repair = repair_stamps(vinyl, soc)
    assert worst_ms(repair.ticks(vinyl), true) < 0.1
    assert repair.rate_hz == pytest.approx(RATE_HZ, rel=1e-4)
    assert repair.rate_ppm == pytest.approx((1 / 0.9908 - 1) * 1e6, abs=2)
    assert repair.jitter_ms == pytest.approx(0.25 * 0.713, rel=0.1)  # robust sigma of an exponential
    assert repair.lost_batches == 0


def test_without_the_repair_the_last_sample_of_a_batch_is_a_batch_off():
    _, soc, true = stamps(60)
    assert worst_ms(soc, true) > 47


def test_short_recordings_keep_the_order_and_a_millisecond():
    for seconds in (0.2, 1.0, 3.0):
        vinyl, soc, true = stamps(seconds, seed=3)
        ticks = repair_stamps(vinyl, soc).ticks(vinyl)
        assert (np.diff(ticks) > 0).all()
        assert worst_ms(ticks, true) < 10 if seconds < 1 else worst_ms(ticks, true) < 2


def test_one_batch_alone_is_spread_at_the_nominal_rate():
    vinyl, soc, true = stamps(0.05, vinyl_rate=1.0)
    ticks = repair_stamps(vinyl, soc).ticks(vinyl)
    assert ticks[0] == soc[0]
    assert ticks[-1] - ticks[0] == pytest.approx(true[-1] - true[0], abs=3)


def test_lost_batches_are_counted_and_do_not_bend_the_line():
    vinyl, soc, true = stamps(120)
    batch = np.arange(len(vinyl)) // BATCH
    keep = ~np.isin(batch, [100, 101, 102, 900])
    repair = repair_stamps(vinyl[keep], soc[keep])
    assert repair.lost_batches == 4
    assert len(repair.lines) == 1
    assert worst_ms(repair.ticks(vinyl[keep]), true[keep]) < 0.1


def test_a_late_stamp_alone_is_no_break():
    vinyl, soc, true = stamps(60)
    soc[200 * BATCH : 201 * BATCH] += 300_000  # 30 ms late
    repair = repair_stamps(vinyl, soc)
    assert len(repair.lines) == 1
    assert worst_ms(repair.ticks(vinyl), true) < 0.1


@pytest.mark.parametrize("jump_ns", [-900_000_000_000, 20_000_000, 5_000_000_000])
def test_sensor_clock_jumps_between_two_batches(jump_ns):
    vinyl, soc, true = stamps(60)
    at = 500 * BATCH
    vinyl[at:] += jump_ns
    repair = repair_stamps(vinyl, soc)
    assert [line.first_sample for line in repair.lines] == [0, at]
    assert worst_ms(repair.ticks(vinyl), true) < 0.3


def test_sensor_clock_restarts_twice():
    vinyl, soc, true = stamps(90)
    first, second = 400 * BATCH, 1100 * BATCH
    vinyl[first:] -= vinyl[first] - 1000
    vinyl[second:] -= vinyl[second] - 5
    repair = repair_stamps(vinyl, soc)
    assert [line.first_sample for line in repair.lines] == [0, first, second]
    assert worst_ms(repair.ticks(vinyl), true) < 0.3


def test_blocks_are_stamped_like_the_whole():
    vinyl, soc, _ = stamps(30)
    vinyl[200 * BATCH :] += 10**10
    repair = repair_stamps(vinyl, soc)
    blocks = [repair.ticks(vinyl[i : i + 1000], first_sample=i) for i in range(0, len(vinyl), 1000)]
    assert np.array_equal(np.concatenate(blocks), repair.ticks(vinyl))


def test_stamps_that_were_never_broken_stay_where_they_are():
    vinyl, _, true = stamps(20, jitter_s=0.0)
    repair = repair_stamps(vinyl, true)
    assert worst_ms(repair.ticks(vinyl), true) < 0.01


def test_precision_does_not_depend_on_the_epoch():
    vinyl, soc, _ = stamps(60)
    near = repair_stamps(vinyl, soc - EPOCH).ticks(vinyl)
    assert np.array_equal(near, repair_stamps(vinyl, soc).ticks(vinyl) - EPOCH)


def test_empty_or_unequal_stamps_are_refused_in_words():
    none = np.empty(0, dtype=np.int64)
    with pytest.raises(BadStamps, match="no samples"):
        repair_stamps(none, none)
    with pytest.raises(BadStamps, match="3 sensor stamps but 2"):
        repair_stamps(np.arange(3), np.arange(2))


def test_batch_by_batch_and_all_at_once_give_one_clock():
    vinyl, soc, _ = stamps(60)
    firsts = np.concatenate([[0], np.flatnonzero(np.diff(soc)) + 1, [len(soc)]])
    gathered = BatchStamps()
    gathered.add(vinyl[:0], soc[:0])
    for start, stop in pairwise(firsts):
        gathered.add(vinyl[start:stop], soc[start:stop])
    by_batch, at_once = gathered.repair(), repair_stamps(vinyl, soc)
    assert by_batch.lines == at_once.lines
    assert (by_batch.samples, by_batch.batches) == (at_once.samples, at_once.batches)
    assert by_batch.rate_hz == pytest.approx(at_once.rate_hz, rel=1e-4)
    assert BatchStamps().repair() is None
