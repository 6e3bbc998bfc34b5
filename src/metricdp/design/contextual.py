"""Mechanisms that look at the context: augmented secrets, classes of them, and one program over the classes.

A secret s = (x, v) is the current place with its history. A mechanism that uses only part of the history is constant
on classes of secrets. It is epsilon-private for the augmented metric exactly if the rows of any two classes C, C' obey

    |ln q_C(y) - ln q_C'(y)| <= epsilon * Q(C, C'),      Q = shortest-path closure of min_{s in C, s' in C'} d(s, s'),

so one program over the classes gives the best such mechanism, whatever the classes depend on. Solving one program per
group of secrets instead, where the group is read off the secret, constrains no pair across groups and breaks the
guarantee.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from metricdp import deadlines
from metricdp.arrays import Floats, Integers, as_choice
from metricdp.design._certify import certify
from metricdp.design.time_limits import build_in_time
from metricdp.errors import InvalidInput, SolverFailure
from metricdp.mechanisms import MatrixMechanism
from metricdp.problems import Problem
from metricdp.solvers import Solver, solve_ratio
from metricdp.solvers.bounds import block_bound
from metricdp.solvers.repair.quotient import quotient
from metricdp.solvers.repair.recombine import safe_log_ratios

REFINE_MARGIN = 1e-4  # the reduced start of a refined program keeps this much of epsilon free
REFINE_ENTRIES = 60_000  # variables up to which the refined program is stated with all its pairs


@dataclass(frozen=True)
class Quotient:
    """A problem over classes: the labels of the secrets, log ratios between classes, added costs."""

    labels: Integers
    log_ratios: Floats
    cost: Floats

    def __len__(self) -> int:
        return len(self.cost)


SEARCHES = 0.8  # of the time, in which programs are solved


def contextual(
    problem: Problem,
    *,
    classes: ArrayLike | None = None,
    program: Literal["auto", "full", "reduced", "refined"] = "auto",
    gap: float = 1e-3,
    seconds: float | None = None,
    solver: Solver | None = None,
) -> MatrixMechanism:
    """Build the best mechanism that is constant on classes of augmented secrets.

    `problem.inputs` is the space of augmented secrets (`Augmented.space`). `classes` gives one label per secret: what
    the mechanism may look at, for example the blanket that a predictor chose from the secret itself. Without classes
    every secret has its own row (the full program). "refined" starts from the reduced solution q* and then lets the
    members of a class differ as long as their prior-weighted average stays q*; it is for small problems.

    Guarantee: epsilon * d(s, s') for ALL pairs of augmented secrets, those of different classes included, audited
    exactly. With `problem.radius` (the paper's eta) only for pairs that close, on purpose: farther ones are bound by
    chains of near pairs, and not at all where there is no chain; `near_stretch` says by how much. The loss of a reduced
    or refined mechanism is an upper bound on the full program's; it equals it where the context that was dropped is
    independent of all the rest. The certificate's lower bound holds for the full program: proven there by its
    multipliers, and the sum of the row minima elsewhere. `context_bound` gives better ones for less than the full
    program costs.
    """
    started = time.perf_counter()
    as_choice(program, "program", ("auto", "full", "reduced", "refined"))
    chosen = program if program != "auto" else ("full" if classes is None else "reduced")
    if chosen == "refined" and problem.radius is not None:
        raise InvalidInput("the refined program protects all pairs; leave `radius` out of the problem.")
    if (classes is None) != (chosen == "full"):
        raise InvalidInput(f"the {chosen} program {'takes no' if chosen == 'full' else 'needs'} `classes`.")
    limit = None if seconds is None else SEARCHES * seconds  # the rest is for the audit
    solve = partial(_solve_components, gap=gap, seconds=seconds, solver=solver)
    if chosen == "full":

        def build() -> MatrixMechanism:
            matrix, bound, how, note = solve(problem.cost, near_closure(problem))
            method = f"contextual, full program, {how}"
            return certify(problem, matrix, method=method, started=started, lower_bound=bound, note=note)

        if problem.radius is None:
            return build_in_time(problem, seconds, build)
        with deadlines.time_limit(limit):
            return build()
    reduced = quotient_of(problem, classes)
    shrink = 1.0 - REFINE_MARGIN if chosen == "refined" else 1.0
    with deadlines.time_limit(limit):
        rows, bound, how, note = solve(reduced.cost, reduced.log_ratios * shrink)
    matrix, method = rows[reduced.labels], f"contextual, {len(reduced)} classes, {how}"
    if chosen == "refined":
        matrix = refine_matrix(problem, reduced, matrix)
        method = f"contextual, refined from {len(reduced)} classes"
    note = f"upper bound of the full program; constant on classes at least {bound:.6g}. {note}".strip()
    return certify(problem, matrix, method=method, started=started, note=note)


def quotient_of(problem: Problem, classes: ArrayLike | None) -> Quotient:
    """Return the problem over classes: least log ratios between members closed by shortest paths, costs added up."""
    labels = _labels_of(problem, classes, "classes")
    return Quotient(labels, *quotient(problem.log_ratios, problem.cost, labels))


def _labels_of(problem: Problem, names: ArrayLike | None, argument: str) -> Integers:
    """Return the class of every secret by number."""
    given = np.asarray(names)
    if names is None or given.shape[:1] != (len(problem.inputs),) or given.ndim > 2:
        raise InvalidInput(
            f"`{argument}` must be one label per secret, {len(problem.inputs)}, got shape {given.shape}."
        )
    return np.unique(given, axis=0, return_inverse=True)[1].astype(np.int64).ravel()


def near_closure(problem: Problem) -> Floats:
    """Return what binds every pair of secrets: epsilon times the shortest chain of pairs within `problem.radius`.

    Infinite where no chain joins two secrets. Without a radius it is epsilon times the distance.
    """
    if problem.radius is None:
        return problem.log_ratios
    return quotient(problem.log_ratios, problem.cost, np.arange(len(problem.inputs)))[0]


def near_stretch(problem: Problem) -> float:
    """Return by which factor pairs beyond `problem.radius` may exceed epsilon * d; infinite where nothing binds them.

    Dividing epsilon by it gives a mechanism that protects all pairs.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = near_closure(problem) / (problem.epsilon * problem.inputs.distances)
    np.fill_diagonal(factors, 1.0)
    return float(factors.max())


def _solve_components(cost: Floats, log_ratios: Floats, **options: Any) -> tuple[Floats, float, str, str]:
    """Return matrix, bound, method and note; parts that only infinite log ratios join are solved on their own."""
    from scipy.sparse.csgraph import connected_components

    parts, labels = connected_components(np.isfinite(log_ratios), directed=False)
    matrix, answers = np.empty(cost.shape), []
    for part in range(parts):
        rows = np.flatnonzero(labels == part)
        answers.append(solve_ratio(cost[rows], log_ratios[np.ix_(rows, rows)], **options))
        matrix[rows] = answers[-1].matrix
    method = answers[0].method + ("" if parts == 1 else f", {parts} parts")
    note = " ".join(sorted({answer.note for answer in answers} - {""}))
    return matrix, float(sum(answer.lower_bound for answer in answers)), method, note


def context_bound(problem: Problem, blocks: ArrayLike, *, gap: float = 1e-2) -> float:
    """Return a lower bound on the full program: the sum of the bounds of disjoint blocks of secrets.

    Leaving out the pairs between blocks only relaxes. With one block per history it is the loss of mechanisms that
    may publish the history; larger blocks give better bounds.
    """
    labels = _labels_of(problem, blocks, "blocks")

    def bound(members: Integers) -> float:
        inside = problem.inputs.distances[np.ix_(members, members)] * problem.epsilon
        return solve_ratio(problem.cost[members], inside, gap=gap).lower_bound

    return block_bound((np.flatnonzero(labels == block) for block in range(int(labels.max()) + 1)), bound)


def refine_matrix(problem: Problem, reduced: Quotient, start: Floats) -> Floats:
    """Return the best matrix whose class averages, weighted by the prior, equal those of `start`.

    minimise <cost, Z>  subject to all ratios and  sum_{s in C} p_s z_sk = p_C q*_Ck. `start` is a strictly feasible
    member of that set, so the solver's rounding is mixed away with it: (1 - t) Z + t start.
    """
    import scipy.sparse as sparse

    from metricdp.solvers.backends.highs import Highs
    from metricdp.solvers.edges import all_pairs
    from metricdp.solvers.program import LinearProgram, RatioProgram

    n, m = problem.cost.shape
    if n * m > REFINE_ENTRIES or n * (n - 1) * m > 4_000_000:
        raise InvalidInput(f"the refined program is for small problems, got {n} secrets and {m} reports.")
    pairs = all_pairs(n)
    log_ratios = safe_log_ratios(problem.log_ratios)
    base = RatioProgram(problem.cost, pairs, log_ratios[pairs[:, 0], pairs[:, 1]]).to_linear()
    # Shares within a class instead of priors: a class that hardly ever occurs is stated as exactly as any other.
    weight = np.maximum(problem.prior, np.finfo(float).tiny)
    share = weight / np.bincount(reduced.labels, weights=weight)[reduced.labels]
    members = sparse.csr_array((share, (reduced.labels, np.arange(n))), shape=(len(reduced), n))
    averages = sparse.kron(members, sparse.eye_array(m), format="csr")
    goal = averages @ start.ravel()
    # In units of `start` and of the largest coefficient, a solver's tolerance is small beside the room of every row,
    # however small the entries are.
    unit = start.ravel()
    rows = sparse.vstack([base.rows, averages], format="csr") @ sparse.diags_array(unit)
    largest = np.asarray(abs(rows).max(axis=1).todense(), dtype=np.float64).ravel()
    largest[largest == 0.0] = 1.0
    linear = LinearProgram(
        base.cost * unit,
        (sparse.diags_array(1.0 / largest) @ rows).tocsr(),
        np.concatenate([base.row_lower, goal]) / largest,
        np.concatenate([base.row_upper, goal]) / largest,
        np.zeros(n * m),
        np.full(n * m, np.inf),
    )
    units = Highs(tolerance=1e-9).solve_linear(linear).raise_for_status().primal
    found = (np.maximum(units, 0.0) * unit).reshape(n, m)
    found /= found.sum(axis=1, keepdims=True)
    mixed = _mixing_share(found, start, log_ratios)
    if mixed > 0.5:
        raise SolverFailure("the refined program was not solved well enough to be repaired; use the reduced one.")
    return np.asarray((1.0 - mixed) * found + mixed * start)


def _mixing_share(found: Floats, start: Floats, log_ratios: Floats) -> float:
    """Return the least t for which (1 - t) found + t start keeps all ratios, a little raised against rounding."""
    share = 0.0
    for i in range(len(found)):
        factor = np.exp(np.minimum(log_ratios[i], 700.0))[:, None]
        broken = np.maximum(found[i] - factor * found, 0.0)
        room = factor * start - start[i]
        broken[i], room[i] = 0.0, 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = np.where(broken > 0, broken / (broken + np.maximum(room, 0.0)), 0.0)
        share = max(share, float(needed.max()))
    return min(1.0, 2.0 * share)
