"""Small problems through every builder of a table: law, loss, bound and file against independent references."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

import metricdp as mdp
from attacks import exact
from brute import least_loss
from metricdp.artifacts import dumps, loads
from metricdp_papers.columns import dantzig_wolfe


def attack(number: int) -> tuple[str, str]:
    """Build one mechanism and judge all that it says of itself."""
    rng = np.random.default_rng([2, number])
    name, problem = _problem(rng)
    builder = str(rng.choice(list(BUILDERS)))
    what = f"{builder} on {name}, epsilon {problem.epsilon:.6g}, radius {problem.radius}"
    try:
        made = BUILDERS[builder](problem, rng)
    except mdp.MetricdpError as error:
        return "refused", f"{builder}: {type(error).__name__}"
    wrong = _faults(made, problem, name)
    if wrong:
        return "unsound", f"{what}: {wrong}"
    again = loads(dumps(made))
    if not np.array_equal(again.matrix, made.matrix) or again.guarantee.epsilon != made.guarantee.epsilon:
        return "unsound", f"{what}: another law comes back from the file"
    return "held", builder


def _problem(rng: np.random.Generator) -> tuple[str, Any]:
    count = int(rng.integers(1, 7))
    name = str(rng.choice(["l1", "l2", "linf", "haversine", "precomputed"]))
    scale = 10.0 ** rng.uniform(-2, 2)
    points = rng.uniform(-1, 1, (count, 2)) * scale
    if name == "haversine":
        points = np.clip(points, [-85, -179], [85, 179])
        metric: Any = mdp.Haversine()
    elif name == "precomputed":
        metric = mdp.Precomputed(np.abs(points[:, None] - points[None]).sum(axis=-1))
        points = np.arange(float(count))[:, None]
    else:
        metric = mdp.Lp({"l1": 1, "l2": 2, "linf": np.inf}[name])
    space = mdp.FiniteSpace(points, metric)
    other = rng.random() < 0.3 and name != "precomputed"
    outputs = (
        mdp.FiniteSpace(points[:1] + rng.normal(0, scale / 50, (int(rng.integers(1, 6)), 2)), metric) if other else None
    )
    width = count if outputs is None else len(outputs)
    loss = rng.normal(0, 1, (count, width)) if rng.random() < 0.3 else None
    prior = None
    if rng.random() < 0.5:
        weights = rng.random(count) * (rng.random(count) < 0.7)
        prior = weights / weights.sum() if weights.sum() > 0 else None
    apart = space.distances[np.triu_indices(count, 1)]
    radius = (
        float(rng.choice(apart)) * float(rng.choice([0.9999, 1.0, 1.5])) if apart.size and rng.random() < 0.3 else None
    )
    typical = float(np.median(apart)) if apart.size else 1.0
    epsilon = float(10.0 ** rng.uniform(-3, 1.7)) / typical
    return name, mdp.Problem(space, epsilon, outputs=outputs, loss=loss, prior=prior, radius=radius)


def _least(made: Any, problem: Any, objective: str) -> tuple[float, float]:
    """Return the least loss and how far the solver may be off.

    Losses may be far below what a solver takes for zero. Where none is negative the program is solved in multiples of
    the bound that is judged: an answer below one refutes it. Probabilities are taken as they are, in multiples of the
    mechanism's own, and in multiples of what the best report of somebody else gets. What a solver lets through as
    almost feasible only lowers what it finds, so the largest answer is the best one.
    """
    exponents = np.where(problem.inputs.distances <= (problem.radius or np.inf), problem.inputs.distances, np.inf)
    exponents = problem.epsilon * exponents
    largest, bound = float(np.abs(problem.loss).max()) or 1.0, made.certificate.lower_bound
    if problem.loss.min() < 0:
        return largest * least_loss(problem.loss / largest, problem.prior, exponents, objective), 2e-7 * largest
    if bound <= 0:  # and no loss is negative
        return 0.0, 0.0
    law = made.matrix / made.matrix.sum(axis=1, keepdims=True)
    best = np.eye(law.shape[1])[problem.loss.argmin(axis=1)]
    near = np.exp(-exponents)
    np.fill_diagonal(near, 1.0)
    found = []
    for rows in (None, law, best):
        units = None if rows is None else (near[:, :, None] * rows[None]).max(axis=1)
        if units is not None:
            units[:, units.max(axis=0) == 0] = 1.0
            units[units == 0] = 1.0
        with suppress(AssertionError):  # a form that the solver cannot take
            found.append(least_loss(problem.loss / bound, problem.prior, exponents, objective, units=units))
    return bound * max(found), 1e-6 * bound * max(found)


def _faults(made: Any, problem: Any, name: str) -> str:
    """Say what is untrue about a mechanism; nothing where all is true."""
    promise, found = made.guarantee, made.certificate
    points = problem.inputs.points
    apart = exact.given(problem.inputs.distances) if name == "precomputed" else exact.measured(name, points)
    count = len(points)
    if problem.radius is not None:  # pairs whose rounded distance lies within the radius are protected
        near = problem.inputs.distances <= problem.radius
        apart = [[apart[i][j] if near[i, j] else None for j in range(count)] for i in range(count)]
    if promise.radius != problem.radius or promise.epsilon > problem.epsilon or promise.slack:
        return f"promises {promise} instead"
    truth = exact.leakage(made.matrix, apart)
    if truth is None or not bool(truth <= exact.ball(promise.epsilon)):
        return f"leaks {truth} where {promise.epsilon!r} is promised"
    law = made.matrix / made.matrix.sum(axis=1, keepdims=True)
    rows = (law * problem.loss).sum(axis=1)
    loss = float(rows.max()) if found.objective == "worst" else float(problem.prior @ rows)
    size = float((law * np.abs(problem.loss)).sum(axis=1).max())  # of the terms, which may cancel
    if not abs(loss - found.loss) <= 1e-9 * size:
        return f"says loss {found.loss!r} where {loss!r} is true"
    best, room = _least(made, problem, found.objective)
    if not found.lower_bound <= best + room:
        return f"says that none is below {found.lower_bound!r}, and {best!r} is reached ({found.objective})"
    if not found.lower_bound <= found.loss:
        return "has a bound above its loss"
    report = mdp.audit(made)
    vacuous = all(cell is None for i, row in enumerate(apart) for j, cell in enumerate(row) if i != j)
    if report.verdict != "holds" and not vacuous:
        return f"is not judged to hold: {report}"
    return ""


def _solved(name: str) -> Callable[[Any, np.random.Generator], Any]:
    def build(problem: Any, rng: np.random.Generator) -> Any:
        return getattr(mdp, name)(problem)

    return build


def _closed(name: str, **own: Callable[[Any, np.random.Generator], Any]) -> Callable[[Any, np.random.Generator], Any]:
    def build(problem: Any, rng: np.random.Generator) -> Any:
        if problem.radius is not None:
            raise mdp.MetricdpError("closed forms protect all pairs")
        options = {"loss": problem.loss, "prior": problem.prior} | {
            key: draw(problem, rng) for key, draw in own.items()
        }
        if name not in ("tight_constraints", "masked"):  # their reports are the secrets
            options["outputs"] = problem.outputs
        elif problem.outputs is not problem.inputs:
            raise mdp.MetricdpError(f"{name} reports the secrets themselves")
        return getattr(mdp, name)(problem.inputs, problem.epsilon, **options)

    return build


def _remapped(problem: Any, rng: np.random.Generator) -> Any:
    return mdp.remapped(_closed("exponential")(problem, rng), prior=problem.prior, loss=problem.loss)


BUILDERS: dict[str, Callable[[Any, np.random.Generator], Any]] = {
    "optimal": lambda problem, rng: mdp.optimal(problem, gap=float(10.0 ** rng.uniform(-4, -1))),
    "optimal, worst": lambda problem, rng: mdp.optimal(problem, objective="worst", gap=1e-2),
    "spanner": lambda problem, rng: mdp.spanner(problem, stretch=float(rng.uniform(1.0, 2.0))),
    "constopt": lambda problem, rng: mdp.constopt(problem, nearest=int(rng.integers(1, len(problem.outputs) + 1))),
    "decomposed": lambda problem, rng: mdp.decomposed(problem, blocks=int(rng.integers(1, 4)), gap=1e-2),
    "dictionary": _solved("dictionary"),
    "contextual": _solved("contextual"),
    "quantised": lambda problem, rng: mdp.quantised(mdp.optimal(problem, gap=1e-2), bits=int(rng.integers(12, 53))),
    "dantzig_wolfe": lambda problem, rng: dantzig_wolfe(problem, gap=1e-2),
    "hierarchical": lambda problem, rng: mdp.hierarchical(problem, branching=int(rng.integers(2, 5))),
    "exponential": _closed("exponential"),
    "weighted_exponential": _closed(
        "weighted_exponential", weights=lambda problem, rng: rng.uniform(0.2, 3.0, len(problem.outputs))
    ),
    "masked": _closed(
        "masked",
        inner=lambda problem, rng: float(rng.uniform(0, 1)) / problem.epsilon,
        outer=lambda problem, rng: float(rng.uniform(1, 3)) / problem.epsilon,
    ),
    "remapped": _remapped,
    "truncated_exponential": _closed("truncated_exponential"),
    "tight_constraints": _closed("tight_constraints"),
}
