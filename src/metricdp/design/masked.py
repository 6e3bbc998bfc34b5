"""Geographic masks that keep a guarantee: a disk or a ring around the secret, with tails that never end."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import as_floats
from metricdp.design._certify import certify
from metricdp.design.exponential import Budget, normalised_rows
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace


def masked(
    space: FiniteSpace,
    epsilon: float,
    *,
    outer: float | None = None,
    inner: float = 0.0,
    weights: ArrayLike | None = None,
    prior: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    budget: Budget = "certified",
) -> MatrixMechanism:
    """Build a geographic mask with a guarantee: reports `inner` to `outer` away are the likeliest, none is excluded.

        z_ik proportional to w_k exp(-a s(d_ik)),    s(d) = max(inner - d, d - outer, 0).

    `inner=0` is a disk, `inner > 0` the ring of donut masking, `outer` 1 / epsilon unless given; `weights` are public,
    such as inhabitants, for masks by population. s changes by at most d(x, x') between secrets, so a = epsilon / 2
    keeps the guarantee (`budget="half"`), and the largest a that is found to keep it is taken otherwise. A ring
    guarantees epsilon and nothing more: that reports lie `inner` away in most draws hides nobody who is known to use
    the ring.

    The masks as published are a -> infinity: uniform on the disk or ring. A report that one secret excludes and its
    neighbour does not tells them apart with certainty, so that they guarantee no epsilon at all.

    References: Kwan, Casas and Schmitz (2004) for disks and rings; Hampton et al. (2010) for donut masking.
    """
    started = time.perf_counter()
    problem = Problem(space, epsilon, prior=prior, loss=loss)
    reach = 1.0 / problem.epsilon if outer is None else float(outer)
    if not 0.0 <= inner <= reach < np.inf:
        raise InvalidInput(f"`inner` and `outer` must be 0 <= inner <= outer, got {inner:g} and {reach:g}.")
    scale = np.ones(len(space)) if weights is None else as_floats(weights, "weights")
    if scale.shape != (len(space),) or np.any(scale <= 0):
        raise InvalidInput(f"`weights` must be {len(space)} positive numbers, got shape {scale.shape}.")
    apart = space.distances
    score = np.maximum(np.maximum(inner - apart, apart - reach), 0.0)
    matrix, found = normalised_rows(score, np.log(scale), apart, problem, budget)
    shape = f"disk of {reach:g}" if inner == 0 else f"ring from {inner:g} to {reach:g}"
    method = f"mask, {shape}, inner budget {found / problem.epsilon:.4f} epsilon"
    return certify(problem, matrix, method=method, started=started)
