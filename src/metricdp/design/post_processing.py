"""Mechanisms whose reports are replaced or left out: by the best guess, by areas, or pruned from a distribution."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import shortest_path

from metricdp.arrays import Booleans, Floats, Integers, as_codes
from metricdp.auditing.leakage import refuse_endless
from metricdp.design._certify import certify
from metricdp.errors import InvalidInput
from metricdp.mechanisms import FiniteMechanism, MatrixMechanism
from metricdp.problems import Problem
from metricdp.solvers import solve_ratio
from metricdp.spaces import FiniteSpace
from metricdp.spreads import spreads

Rule = Literal["cheapest", "nearest", "renormalise"]
RULES = ("cheapest", "nearest", "renormalise")
ROUNDS = 60  # of a search that needs about five
MIXING = 10  # halvings of how much of a distribution fits
SAFE = 1e-9  # the share of epsilon that is left for the rounding of what pruning costs


def remapped(
    mechanism: FiniteMechanism,
    *,
    prior: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    targets: FiniteSpace | None = None,
) -> MatrixMechanism:
    """Replace every report by the one that is best on average after seeing it (Bayesian remap).

    k becomes argmin_t sum_x prior(x) z_xk loss(x, t). This is post-processing: the guarantee stays as it is and the
    expected loss never rises. The prior must be public.

    References: Chatzikokolakis, ElSalamouny and Palamidessi (2017).
    """
    started = time.perf_counter()
    refuse_endless(mechanism, "the best guess after a report")
    problem = _problem_of(mechanism, targets, loss=loss, prior=prior)
    joint = problem.prior[:, None] * mechanism.matrix
    best = (joint.T @ problem.loss).argmin(axis=1)
    if problem.outputs is mechanism.outputs:  # a report of zero mass stays where it is
        best = np.where(joint.sum(axis=0) > 0, best, np.arange(len(best)))
    method = f"remapped {mechanism.certificate.method}"
    return certify(problem, _merge_reports(problem, mechanism, best), method=method, started=started)


def _problem_of(mechanism: FiniteMechanism, outputs: FiniteSpace | None = None, **counted: Any) -> Problem:
    """Return the problem of a mechanism's guarantee, with the loss and the prior that its reports are counted by."""
    guarantee, reports = mechanism.guarantee, mechanism.outputs if outputs is None else outputs
    return Problem(mechanism.inputs, guarantee.epsilon, outputs=reports, radius=guarantee.radius, **counted)


def _merge_reports(problem: Problem, mechanism: FiniteMechanism, targets: Integers) -> Floats:
    """Return the distribution of what stands for every report of a mechanism among those of a problem."""
    merged = np.zeros((len(problem.inputs), len(problem.outputs)))
    np.add.at(merged.T, targets, mechanism.matrix.T)
    return merged


def prune_reports(
    mechanism: FiniteMechanism,
    reports: ArrayLike,
    *,
    rule: Rule = "cheapest",
    prior: ArrayLike | None = None,
    loss: ArrayLike | None = None,
) -> MatrixMechanism:
    """Return a mechanism that never gives some reports, with the guarantee of the one it was made from.

    "cheapest" and "nearest" replace a pruned report by one that is kept, always the same: k becomes
    argmin_t sum_x prior(x) z_xk loss(x, t), or the nearest one. That is post-processing: the guarantee stays as it is,
    whatever is pruned. "renormalise" divides every row by what is left of it, as CORGI does, and that is no
    post-processing: a distribution that keeps epsilon may leak up to 2 epsilon afterwards. It is audited, and refused
    where the guarantee is broken; a mechanism of `mdp.places.LocationTree.prunable` is made so that it is not.

    All secrets stay: a person at a pruned place is protected as before. The reports must be chosen without looking
    at the secret, since reports show which ones never come. One set is taken for all secrets, never one for each.

    References: Pappachan, Qiu, Squicciarini and Manjunath (2023).
    """
    started = time.perf_counter()
    if rule not in RULES:
        raise InvalidInput(f"`rule` must be one of {', '.join(RULES)}, got {rule!r}.")
    outputs = mechanism.outputs
    gone = pruned_mask(reports, len(outputs))
    problem = _problem_of(mechanism, loss=loss, prior=prior)
    kept, left = np.flatnonzero(~gone), np.flatnonzero(gone)
    if rule == "renormalise":
        matrix = np.where(gone, 0.0, mechanism.matrix)
        sums = matrix.sum(axis=1, keepdims=True)
        if not np.all(sums > 0):
            raise InvalidInput(
                f"nothing is left of the distribution of secret {int(sums.argmin())}: prune fewer reports."
            )
        matrix = matrix / sums
    else:
        targets = np.arange(len(outputs))
        if rule == "nearest":
            away = outputs.ground if not outputs.is_text else outputs.metric
            places = outputs.coordinates if not outputs.is_text else outputs.points
            targets[left] = [kept[int(away(places[k], places[kept]).argmin())] for k in left]
        else:
            joint = problem.prior[:, None] * mechanism.matrix[:, left]
            targets[left] = kept[(joint.T @ problem.loss[:, kept]).argmin(axis=1)]
        matrix = _merge_reports(problem, mechanism, targets)
    method = f"{mechanism.certificate.method}, {len(left)} of {len(outputs)} reports pruned ({rule})"
    return certify(problem, matrix, method=method, started=started)


def coarsen_reports(
    mechanism: FiniteMechanism, areas: Integers, places: Integers, *, loss: ArrayLike | None = None
) -> MatrixMechanism:
    """Return a mechanism that reports areas: every report becomes the place that stands for its area.

    Post-processing, so that the guarantee stays: the secrets are as fine as before, only reports are coarser.
    """
    started = time.perf_counter()
    problem = _problem_of(mechanism, mechanism.outputs.part(places), loss=loss)
    matrix = _merge_reports(problem, mechanism, areas)
    method = f"{mechanism.certificate.method}, reported as one of {len(places)} areas"
    return certify(problem, matrix, method=method, started=started)


def prunable(problem: Problem, count: int, *, gap: float = 1e-2, rounds: int = 8) -> MatrixMechanism:
    """Build a mechanism from which any `count` reports may be left out and rows renormalised, with epsilon kept.

    What pruning the reports S costs secrets i and j is ln((1 - s_j) / (1 - s_i)), s_i the mass of S in row i. Its
    maximum over all S of `count` reports, R_ij, is found exactly (`pruning_cost`), and

        ln z_ik - ln z_jk + R_ij <= epsilon d_ij   for all i, j, k.

    The optimum at epsilon / 2 always keeps this, for every set of reports: what is left of a row sum is a sum of
    columns that keep epsilon / 2, so R_ij is at most that again. From there on, in `rounds`, every pair is given what
    the last distribution did not need for pruning, epsilon d_ij - R_ij; a distribution that needs more is mixed with
    the best one that keeps it, as far as it does. What comes back has been checked for all pairs.

    References: Pappachan, Qiu, Squicciarini and Manjunath (2023), who reserve an approximate R_ij and do not check.
    """
    started = time.perf_counter()
    reports, size = len(problem.outputs), len(problem.inputs)
    if not isinstance(count, int | np.integer) or not 1 <= count < reports:
        raise InvalidInput(f"`count` must be a whole number from 1 to {reports - 1}, got {count!r}.")
    if problem.radius is not None:
        raise InvalidInput("`prunable` protects all pairs: leave `radius` out, and take one part of a policy.")
    full, goal = problem.log_ratios, 1.0 - SAFE
    bound = solve_ratio(problem.cost, full, gap=gap).lower_bound

    def fits(matrix: Floats) -> bool:
        return pruned_leakage(matrix, full, int(count)) <= goal

    best = found = solve_ratio(problem.cost, full * (0.5 * goal), gap=gap).matrix
    reserve = np.zeros_like(full)
    for _ in range(rounds):
        needed = pruning_cost(found, np.arange(size), int(count))
        reserve = np.maximum(needed, 0.5 * (reserve + needed))
        ratios = shortest_path(np.maximum(full - reserve, 0.5 * full) * goal, method="FW", directed=False)
        found = solve_ratio(problem.cost, ratios, gap=gap).matrix
        if float((problem.cost * (best - found)).sum()) > 0.0:
            best = _mix_rows(best, found, fits)
    method = f"prunable by any {count} of {reports} reports, {rounds} rounds"
    return certify(problem, best, method=method, started=started, lower_bound=bound)


def _mix_rows(kept: Floats, wanted: Floats, fits: Callable[[Floats], bool]) -> Floats:
    """Return as much of a wanted distribution as fits, mixed with one that fits; both have the same columns."""
    if fits(wanted):
        return wanted
    low, high = 0.0, 1.0
    for _ in range(MIXING):
        middle = (low + high) / 2
        low, high = (middle, high) if fits((1.0 - middle) * kept + middle * wanted) else (low, middle)
    return (1.0 - low) * kept + low * wanted


def pruned_leakage(matrix: Floats, distances: Floats, count: int) -> float:
    """Return an epsilon that rows keep after any `count` reports are left out and the rest is renormalised.

    max over i, j of (max_k (ln z_ik - ln z_jk) + R_ij) / d_ij: an upper bound, since the report k itself may be among
    those that make R_ij; never below what is kept without pruning.
    """
    distribution = matrix / matrix.sum(axis=1, keepdims=True)
    used = (distribution > 0).any(axis=0)
    if not np.all(distribution[:, used] > 0):
        return _support_leakage(distribution, distances, count)
    logs, worst = np.log(distribution[:, used]), 0.0
    for start, spread in spreads(logs):  # max_k |ln z_ik - ln z_jk|, which bounds both directions
        rows = np.arange(start, start + len(spread))
        apart = distances[rows, start:].copy()
        apart[np.arange(len(rows)), np.arange(len(rows))] = np.inf
        cost = pruning_cost(distribution, rows, count)[:, start:]
        worst = max(worst, float(((spread + cost) / apart).max(initial=0.0)))
    return worst


def _support_leakage(distribution: Floats, distances: Floats, count: int) -> float:
    """Judge secrets with the same possible reports together; others must not be protected from each other."""
    patterns = np.unique(distribution > 0, axis=0, return_inverse=True)[1].ravel()
    if np.any(np.isfinite(distances) & (patterns[:, None] != patterns[None])):
        return float(np.inf)
    groups = [np.flatnonzero(patterns == name) for name in range(int(patterns.max()) + 1)]
    return max(pruned_leakage(distribution[rows], distances[np.ix_(rows, rows)], count) for rows in groups)


def pruning_cost(distribution: Floats, rows: Integers, count: int) -> Floats:
    """Return R_ij = max over sets S of `count` reports of |ln((1 - s_j) / (1 - s_i))|, for some rows i and all j.

    A ratio of two linear functions of S: Dinkelbach's iteration takes, for the best ratio so far, the `count` reports
    of largest ratio * z_i - z_j above zero, until no set is better. It ends at the maximum after finitely many steps.
    """
    cost = np.empty((len(rows), len(distribution)))
    for at, i in enumerate(rows):
        row = np.broadcast_to(distribution[i], distribution.shape)
        cost[at] = np.maximum(_largest_ratio(distribution, row, count), _largest_ratio(row, distribution, count))
    return cost


def _largest_ratio(above: Floats, below: Floats, count: int) -> Floats:
    """Return max over S of ln((sum of `above` outside S) / (sum of `below` outside S)), row by row."""
    ratio = np.ones(len(above))
    most = min(count, above.shape[1] - 1)
    for _ in range(ROUNDS):
        gain = ratio[:, None] * below - above
        chosen = np.argpartition(-gain, most - 1, axis=1)[:, :most]
        out = np.zeros(above.shape, dtype=bool)
        np.put_along_axis(out, chosen, np.take_along_axis(gain, chosen, axis=1) > 0, axis=1)
        left = np.where(out, 0.0, below).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            better = np.where(left > 0, np.where(out, 0.0, above).sum(axis=1) / left, np.inf)
        if not np.any(better > ratio * (1.0 + 1e-13)):
            break
        ratio = np.maximum(ratio, better)
    return np.asarray(np.log(ratio))


def pruned_mask(reports: ArrayLike, size: int) -> Booleans:
    """Return which reports are pruned; one list for all secrets, some and not all."""
    given: Any = reports
    if callable(given) or isinstance(given, dict) or np.ndim(given) != 1:
        raise InvalidInput(
            "reports are pruned for all secrets alike, as one list of codes: a set that depends on the secret would "
            "give it away, since reports show which ones never come."
        )
    codes = as_codes(given, size, "reports")
    gone = np.zeros(size, dtype=bool)
    gone[codes] = True
    if not gone.any() or gone.all():
        raise InvalidInput(f"at least one report must be pruned and one kept, of {size}; got {int(gone.sum())}.")
    return gone
