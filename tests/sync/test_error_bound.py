"""The parts of the bound, each against what chance does: many draws, and the share that was held."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from kitchensync.storage.timeline.stamps import repair_batches
from kitchensync.sync.align.error_parts import _stamps_ms, sigmas_at_both_ends, sigmas_of

DRAWS = 400_000
EPOCH = 133_875_715_436_816_907


@pytest.mark.parametrize("correlation", [-1.0, -0.9, -0.3, 0.0, 0.6, 0.97, 1.0])
def test_both_ends_are_held_at_once(correlation):
    rng = np.random.default_rng(1)
    u, other = rng.normal(size=(2, DRAWS))
    v = correlation * u + np.sqrt(1.0 - correlation**2) * other
    k = sigmas_at_both_ends(correlation)
    assert np.mean(np.maximum(np.abs(u), np.abs(v)) <= k) == pytest.approx(0.95, abs=0.0015)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_several_pieces_are_held_at_once(count):
    z = np.random.default_rng(2).normal(size=(DRAWS // 4, count))
    assert np.mean(np.abs(z).max(axis=1) <= sigmas_of(count)) == pytest.approx(0.95, abs=0.003)


def late(law, rng, count):
    """Delays of host stamps, s, never negative."""
    return {
        "exponential": lambda: rng.exponential(0.25e-3, count),
        "uniform": lambda: rng.uniform(0.0, 0.5e-3, count),
        "half normal": lambda: np.abs(rng.normal(0.0, 0.25e-3, count)),
        "hardly ever none": lambda: rng.gamma(2.0, 0.25e-3, count),
        "many hardly late": lambda: rng.gamma(0.5, 0.5e-3, count),
    }[law]()


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [12.0, 60.0])
@pytest.mark.parametrize(
    "law", ["exponential", "uniform", "half normal", "hardly ever none", "many hardly late"]
)
def test_the_stamp_line_lies_within_its_part_whatever_delays_stamps(law, seconds):
    """Against true stamps, for delays that the part was not made from."""
    rng = np.random.default_rng(3)
    count = int(seconds * 6550 / 315)
    true_s = np.arange(count) * 315 / 6550
    vinyl = 10**12 + np.rint(true_s * 1e9 * 0.991).astype(np.int64)
    held = []
    for _ in range(60):
        soc = EPOCH + np.rint((true_s + late(law, rng, count)) * 1e7).astype(np.int64)
        repair = repair_batches(
            vinyl, soc, np.arange(count) * 315, samples=count * 315, step_ns=1e9 / 6550 * 0.991
        )
        true_ticks = EPOCH + np.rint(true_s * 1e7).astype(np.int64)
        error_ms = np.abs(repair.ticks(vinyl) - true_ticks).max() / 1e4
        held.append(error_ms <= _stamps_ms(repair))
    assert np.mean(held) >= 0.85


def test_no_batches_no_claim():
    assert _stamps_ms(SimpleNamespace(earliest_ms=0.0, batches=0)) == 0.0
