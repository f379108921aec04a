"""Degrees of freedom of a jackknife over few views, and the corresponding Student quantile.

A variance from a jackknife over 25 views is itself an estimate: intervals of two of its standard deviations contain
the true value less often than in the 95.45 % of cases that a reader expects. Stated sigmas are widened accordingly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, stdtrit

from kitchensync.shell.array_types import Floats

SIGMAS = 2.0
"Factor of a stated standard deviation that a reader uses for an interval of 95.45 %."


@dataclass(frozen=True)
class ViewInformation:
    """Information of each view about the shared parameters."""

    information: Floats
    "(v, q, q) normal matrices of the q fitted steps, with the poses of the views eliminated."
    basis: Floats
    "(p, q) parameters = basis @ steps."

    def freedom(self, contrasts: Floats) -> Floats:
        """Return the degrees of freedom (c,) of the jackknife variance of contrasts (c, p) of the parameters.

        Satterthwaite's approximation for a variance between groups (Bell and McCaffrey 2002, Survey Methodology 28;
        for the jackknife Hansen 2025, Review of Economic Studies): with independent errors of equal size, leaving out
        view i changes the contrast l by `l' (H - H_i)^-1 g_i`, and the scores g have the covariance
        `d_ij H_i - H_i H^-1 H_j`. With K the covariance of these changes about their mean, the variance is a sum of
        squares with tr(K)^2 / tr(K K) degrees of freedom.
        """
        information, views = self.information, len(self.information)
        whole = information.sum(0)
        right = np.broadcast_to((contrasts @ self.basis).T, (views, information.shape[1], len(contrasts)))
        without = _inverse(whole - information) @ right
        weighted = information @ without
        changes = -np.einsum("ipc,pq,jqc->cij", weighted, _inverse(whole), weighted)
        each = np.arange(views)
        changes[:, each, each] += np.einsum("ipc,ipc->ci", without, weighted)
        centred = changes - changes.mean(1, keepdims=True)
        centred -= centred.mean(2, keepdims=True)
        trace, square = np.trace(centred, axis1=1, axis2=2), np.sum(centred**2, axis=(1, 2))
        return np.divide(trace**2, square, out=np.full(len(contrasts), np.inf), where=square > 0)


def _inverse(matrices: Floats) -> Floats:
    return np.asarray(np.linalg.pinv(matrices, rcond=1e-14, hermitian=True), np.float64)


@dataclass(frozen=True)
class UncertaintyPart:
    """One independent part of an uncertainty: a covariance and its degrees of freedom."""

    covariance: Floats
    "(p, p)"
    freedom: Floats | float
    "(c,) degrees of freedom along each contrast; infinite if the covariance is exact."


def stated_sigma(contrasts: Floats, parts: list[UncertaintyPart]) -> Floats:
    """Return widened standard deviations (c,) of contrasts (c, p): intervals of two of them contain 95.45 %.

    Variances of independent parts add, their freedom by Welch 1947 and Satterthwaite 1946 (GUM, JCGM 100:2008,
    G.4.1); the estimated deviation is then multiplied by Student's quantile / 2 (GUM G.3.2).
    """
    variances = np.stack([np.einsum("cp,pq,cq->c", contrasts, part.covariance, contrasts) for part in parts])
    variances = np.maximum(variances, 0.0)
    total = variances.sum(0)
    terms = [variance**2 / part.freedom for variance, part in zip(variances, parts, strict=True)]
    denominator = np.sum(terms, axis=0)
    freedom = np.divide(total**2, denominator, out=np.full(len(contrasts), np.inf), where=denominator > 0)
    result: Floats = np.sqrt(total) * widening(freedom)
    return result


def widening(freedom: Floats) -> Floats:
    """Return the factor for standard deviations with `freedom` (c,): Student's 97.72 % quantile over 2."""
    few = np.isfinite(freedom)
    result: Floats = np.where(few, stdtrit(np.where(few, freedom, 1.0), ndtr(SIGMAS)) / SIGMAS, 1.0)
    return result
