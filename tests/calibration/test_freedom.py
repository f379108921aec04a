"""Degrees of freedom and widened uncertainty compared with thousands of simulated measurements."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from kitchensync.calibration.estimate.freedom import UncertaintyPart, ViewInformation, stated_sigma, widening

VIEWS, STEEP = 9, 2.5


def designs() -> list[np.ndarray]:
    """Return nine views of a plane's three parameters (offset, two slopes) with increasing reach."""
    rng = np.random.default_rng(3)
    reach = np.linspace(0.3, STEEP, VIEWS)
    return [
        np.column_stack((np.ones(12), size * rng.normal(0, 1, 12) + size, rng.normal(0, 1, 12)))
        for size in reach
    ]


@pytest.fixture(scope="module")
def repeated() -> tuple[np.ndarray, np.ndarray]:
    """Return errors (n, 3) and jackknife variances (n, 3) of 20,000 noisy fits, refitted without each view."""
    parts, rng = designs(), np.random.default_rng(4)
    whole = np.concatenate(parts)
    noise = rng.normal(0, 0.5, (20_000, len(whole)))
    view_of = np.repeat(np.arange(VIEWS), 12)
    errors = noise @ np.linalg.pinv(whole).T
    without = np.stack([noise[:, view_of != i] @ np.linalg.pinv(whole[view_of != i]).T for i in range(VIEWS)])
    moved = without - without.mean(0)
    return errors, (VIEWS - 1) / VIEWS * np.sum(moved**2, axis=0)


def witnesses(scale: np.ndarray) -> ViewInformation:
    information = np.stack([part.T @ part for part in designs()])
    return ViewInformation(information * np.outer(scale, scale), np.diag(scale))


def test_freedom_is_that_of_a_chi_square_with_the_same_scatter(repeated):
    _, variances = repeated
    scattered = 2 * variances.mean(0) ** 2 / variances.var(0)
    freedom = witnesses(np.array([1.0, 1e-3, 40.0])).freedom(np.eye(3))
    assert freedom == pytest.approx(scattered, rel=0.05)
    assert freedom.max() < VIEWS - 1, (
        "nine views of unequal weight have fewer degrees of freedom than nine equal ones"
    )


def test_two_stated_deviations_hold_the_truth_where_two_estimated_ones_do_not(repeated):
    errors, variances = repeated
    wide = widening(witnesses(np.ones(3)).freedom(np.eye(3)))
    plain = np.mean(np.abs(errors) < 2 * np.sqrt(variances), axis=0)
    widened = np.mean(np.abs(errors) < 2 * np.sqrt(variances) * wide, axis=0)
    assert plain.min() < 0.935
    assert widened.min() > 0.945
    assert widened.max() < 0.975, "not wider than necessary"


def test_an_uncertainty_of_several_parts_is_widened_for_the_least_certain_one():
    along = np.array([[1.0, 0.0], [0.6, 0.8]])
    poor, sure = np.diag([4.0, 1.0]), np.diag([9.0, 9.0])
    assert stated_sigma(along, [UncertaintyPart(sure, np.inf)]) == pytest.approx([3.0, 3.0])
    variance = np.array([4.0, 0.36 * 4 + 0.64])
    two_sided = student.interval(0.954499736, 5.0)[1]
    assert stated_sigma(along, [UncertaintyPart(poor, 5.0)]) == pytest.approx(
        np.sqrt(variance) * two_sided / 2, rel=1e-6
    )
    both = stated_sigma(along, [UncertaintyPart(poor, 5.0), UncertaintyPart(sure, np.inf)])
    freedom = (variance + 9) ** 2 / (variance**2 / 5)
    expected = np.sqrt(variance + 9) * student.interval(0.954499736, freedom)[1] / 2
    assert both == pytest.approx(expected, rel=1e-6)
