"""What a mechanism costs, and what any mechanism with the same reports must cost."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_matrix, as_positive, as_probabilities
from metricdp.auditing.exact import limit_radius
from metricdp.auditing.kernels import blocks_of, expected_distances, sums_of
from metricdp.auditing.leakage import refuse_endless
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MECHANISMS, FiniteMechanism, KernelMechanism, MatrixMechanism, Mechanism
from metricdp.mechanisms.kind import LossFigures, Spend
from metricdp.metrics import measurable_rows, measuring_effort, protected_distance, width_of
from metricdp.metrics.rounding import ROUNDED_DOWN
from metricdp.spaces import FiniteSpace

SOON = 4_096  # secrets of a kernel whose losses are measured in passing
SAME_LOSS = 1e-6  # relative: two ways to add up one loss


def row_losses(mechanism: FiniteMechanism, loss: ArrayLike | None = None) -> Floats:
    """Return the expected loss of every secret, in the mechanism's own loss where none is given."""
    refuse_endless(mechanism, "the loss of every secret")
    if loss is None:
        return _own_losses(mechanism)
    shape = len(mechanism.inputs), len(mechanism.outputs)
    return _row_losses(mechanism, as_matrix(loss, "loss", shape))


def expected_loss(
    mechanism: FiniteMechanism, *, prior: ArrayLike | None = None, loss: ArrayLike | None = None
) -> float:
    """Return sum_i prior_i sum_k z_ik loss_ik, by default in the loss and under the prior the mechanism was made for.

    A mechanism made without either counts the distance under a uniform prior. A mechanism file does not say how the
    loss is counted; what was loaded counts the distance where that is what its certificate states (or where `prior` is
    given), and asks for `loss` and `prior` otherwise.
    """
    refuse_endless(mechanism, "the expected loss")
    loss_basis = mechanism.loss_basis
    weights = loss_basis.prior if prior is None else as_probabilities(prior, len(mechanism.inputs))
    if loss is not None:
        losses = row_losses(mechanism, loss)
    elif loss_basis.known or prior is None:
        losses = row_losses(mechanism)
    else:
        losses = distance_losses(mechanism)
    return float(losses.mean() if weights is None else weights @ losses)


def _row_losses(mechanism: FiniteMechanism, costs: Floats) -> Floats:
    rows = MECHANISMS.facet("rows", mechanism)  # a whole table may be too large, and is never needed
    parts = blocks_of(len(mechanism.inputs))
    return np.concatenate([(rows(mechanism, codes) * costs[codes]).sum(axis=1) for codes in parts])


def distance_losses(mechanism: FiniteMechanism) -> Floats:
    """Return the expected distance of a report from every secret."""
    own = MECHANISMS.find_facet("mean_distances", mechanism)
    if own is not None:
        return np.asarray(own(mechanism))
    return _row_losses(mechanism, mechanism.inputs.distances_to(mechanism.outputs))


def _own_losses(mechanism: FiniteMechanism) -> Floats:
    """Return the losses that were counted; if unknown, the distance, where it gives the stated loss."""
    loss_basis, stated = mechanism.loss_basis, mechanism.certificate
    if loss_basis.loss is not None:
        return _row_losses(mechanism, loss_basis.loss)
    losses = distance_losses(mechanism)
    if not loss_basis.known:
        found = float(losses.max() if stated.objective == "worst" else losses.mean())
        if abs(found - stated.loss) > SAME_LOSS * abs(stated.loss):
            raise InvalidInput(
                f"this mechanism was loaded: its certificate states a loss of {stated.loss:.6g} and the distance alone "
                f"gives {found:.6g}, so it was made for another loss or prior, which files do not hold. Give `loss` "
                "and `prior`."
            )
    return losses


def counts_distance(mechanism: Mechanism) -> bool:
    """Return whether the loss of a certificate is the distance between truth and report, by measuring that again.

    A file does not say which loss and prior its certificate counts. Noise counts the distance by its theorem; a table
    whose distances, all secrets equally likely (or the worst of them), give the very number counts it too. What a
    large vocabulary costs takes as long as its audit: there only who made it says so.
    """
    found = figures_of(mechanism, lambda effort, what: None)
    if found is None:
        return False
    return found.formula or math.isclose(found.loss, mechanism.certificate.loss, rel_tol=1e-9, abs_tol=1e-300)


def figures_of(mechanism: Mechanism, spend: Spend) -> LossFigures | None:
    """Return the mean (or worst) distance of reports from secrets and a bound, None where nobody can say it soon."""
    if not MECHANISMS.has("loss", mechanism):
        return None
    found: LossFigures | None = MECHANISMS.facet("loss", mechanism)(mechanism, spend)
    return found


def _table_figures(mechanism: MatrixMechanism, spend: Spend) -> LossFigures | None:
    inputs, outputs = mechanism.inputs, mechanism.outputs
    if inputs.points.shape[1:] != outputs.points.shape[1:] or inputs.points.dtype.kind != outputs.points.dtype.kind:
        return None
    if not measurable_rows(inputs.metric, outputs.points).all():  # histories in codes, reports in degrees
        return None
    spend(measuring_effort(inputs.metric, len(inputs), len(outputs), width_of(inputs.points)), "its loss")
    apart = inputs.distances_to(outputs)
    losses = (mechanism.matrix * apart).sum(axis=1) / mechanism.matrix.sum(axis=1)
    least = apart.min(axis=1)  # what no mechanism with these reports goes below
    if mechanism.certificate.objective == "worst":
        return LossFigures(float(losses.max()), float(least.max()), formula=False)
    return LossFigures(float(losses.mean()), float(least.mean()), formula=False)


def _kernel_figures(mechanism: KernelMechanism, spend: Spend) -> LossFigures | None:
    """What a large vocabulary costs takes as long as its audit: there only who made it says so."""
    space, stated = mechanism.space, mechanism.certificate
    if len(space) > SOON:
        own = mechanism.loss_basis.known and mechanism.loss_basis.loss is None
        return LossFigures(stated.loss, stated.lower_bound, formula=False) if own else None
    spend(measuring_effort(space.metric, len(space), len(space), width_of(space.points)), "its loss")
    losses = distance_losses(mechanism)
    return LossFigures(float(losses.max() if stated.objective == "worst" else losses.mean()), formula=False)


def worst_loss(mechanism: FiniteMechanism, *, loss: ArrayLike | None = None) -> float:
    """Return the largest expected loss of any secret."""
    return float(row_losses(mechanism, loss).max())


def quantile_loss(mechanism: FiniteMechanism, level: float = 0.95, *, loss: ArrayLike | None = None) -> float:
    """Return the nearest-rank quantile of the secrets' expected losses: the ceil(level * n)-th smallest."""
    if not 0 < level <= 1:
        raise InvalidInput(f"`level` must lie in (0, 1], got {level:g}.")
    losses = np.sort(row_losses(mechanism, loss))
    return float(losses[int(np.ceil(level * len(losses))) - 1])


def packing_lower_bound(space: FiniteSpace, epsilon: float, *, radius: float | None = None) -> float:
    """Return a lower bound on the worst loss (in distance) of any epsilon-private mechanism on the space.

    For a set S with disjoint open balls of radius r, the loss is at least r (1 - 1 / N), N = max_w sum_{s in S}
    exp(-epsilon d(w, s)). Sets are found by farthest-first search from every start, r is half the smallest distance.

    The reports are taken anywhere in the space of the secrets. With a `radius` the guarantee is for pairs this close,
    and only they count in N; in a policy graph of several parts only pairs of one part do.
    """
    rate = as_positive(epsilon, "epsilon")
    apart = space.distances
    n = len(space)
    if n < 2:
        return 0.0
    limits = [limit for limit in (radius, protected_distance(space.metric, space.points)) if limit is not None]
    kernel = np.exp(-rate * limit_radius(apart, min(limits, default=None)) * (1 + ROUNDED_DOWN))
    best, rounding = 0.0, 4 * n * 2.0**-53  # of the sums
    for first in range(n):
        nearest = apart[first].copy()
        mass = kernel[first].copy()
        for _ in range(1, n):
            far = int(nearest.argmax())
            half = float(nearest[far]) / 2.0  # farthest-first: this is the smallest distance within the set
            if half <= best:
                break
            mass += kernel[far]
            nearest = np.minimum(nearest, apart[far])
            best = max(best, half * (1.0 - 1.0 / float(mass.max()) - rounding))
    return best


MECHANISMS.register(MatrixMechanism, loss=_table_figures)
MECHANISMS.register(
    KernelMechanism,
    loss=_kernel_figures,
    mean_distances=lambda one: expected_distances(one.distribution, sums_of(one.distribution)),
)
