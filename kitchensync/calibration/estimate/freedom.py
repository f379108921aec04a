"""How well a doubt itself is known: degrees of freedom of a jackknife over few views, and Student's quantile for it.

A variance that comes from leaving out one of 25 views is itself an estimate. Two of its standard deviations hold the
truth less often than the 95.45 % that a reader expects; what is stated here is widened until they do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, stdtrit

from kitchensync.shell.array_types import Floats

SIGMAS = 2.0
"What a reader takes times a stated standard deviation to have 95.45 %."


@dataclass(frozen=True)
class ViewInformation:
    """What each view tells about parameters that all share."""

    information: Floats
    "(v, q, q) normal matrices of the q steps that were fitted, the views' own poses eliminated."
    basis: Floats
    "(p, q) parameters = basis @ steps."

    def freedom(self, contrasts: Floats) -> Floats:
        """Return the degrees of freedom (c,) of the jackknife variance of contrasts (c, p) of the parameters.

        Satterthwaite's approximation for a variance between groups (Bell and McCaffrey 2002, Survey Methodology 28;
        for the jackknife Hansen 2025, Review of Economic Studies): where all corners err alike and independently,
        leaving out view i changes the contrast l by `l' (H - H_i)^-1 g_i`, and the scores g have the covariance
        `d_ij H_i - H_i H^-1 H_j`. With K the covariance of these changes about their mean, the variance is a sum of
        squares with tr(K)^2 / tr(K K) degrees of freedom.
        """
        of, views = self.information, len(self.information)
        whole = of.sum(0)
        right = np.broadcast_to((contrasts @ self.basis).T, (views, of.shape[1], len(contrasts)))
        without = _inverse(whole - of) @ right
        seen = of @ without
        changes = -np.einsum("ipc,pq,jqc->cij", seen, _inverse(whole), seen)
        each = np.arange(views)
        changes[:, each, each] += np.einsum("ipc,ipc->ci", without, seen)
        centred = changes - changes.mean(1, keepdims=True)
        centred -= centred.mean(2, keepdims=True)
        trace, square = np.trace(centred, axis1=1, axis2=2), np.sum(centred**2, axis=(1, 2))
        return np.divide(trace**2, square, out=np.full(len(contrasts), np.inf), where=square > 0)


def _inverse(matrices: Floats) -> Floats:
    return np.asarray(np.linalg.pinv(matrices, rcond=1e-14, hermitian=True), np.float64)


@dataclass(frozen=True)
class UncertaintyPart:
    """One reason for doubt: a covariance, and how well that is known."""

    covariance: Floats
    "(p, p)"
    freedom: Floats | float
    "(c,) degrees of freedom along each contrast; infinite where the covariance is no estimate from few."


def stated(contrasts: Floats, parts: list[UncertaintyPart]) -> Floats:
    """Return standard deviations (c,) of contrasts (c, p) of which two hold 95.45 %.

    Variances of independent parts add, their freedom by Welch 1947 and Satterthwaite 1946 (GUM, JCGM 100:2008,
    G.4.1); the estimated deviation is then multiplied by Student's quantile / 2 (GUM G.3.2).
    """
    each = np.stack([np.einsum("cp,pq,cq->c", contrasts, of.covariance, contrasts) for of in parts])
    each = np.maximum(each, 0.0)
    whole = each.sum(0)
    unsure = np.sum([one**2 / of.freedom for one, of in zip(each, parts, strict=True)], axis=0)
    freedom = np.divide(whole**2, unsure, out=np.full(len(contrasts), np.inf), where=unsure > 0)
    result: Floats = np.sqrt(whole) * widening(freedom)
    return result


def widening(freedom: Floats) -> Floats:
    """Return by what a standard deviation of this freedom (c,) is widened: Student's 97.72 % quantile over 2."""
    few = np.isfinite(freedom)
    result: Floats = np.where(few, stdtrit(np.where(few, freedom, 1.0), ndtr(SIGMAS)) / SIGMAS, 1.0)
    return result
