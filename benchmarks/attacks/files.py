"""Forged and damaged files: refused with an error of ours, or what they hold keeps what it promises."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

import metricdp as mdp
from attacks import exact, judges
from attacks.forgery import forged
from metricdp.artifacts import loads
from metricdp.mechanisms import MECHANISMS, ConcentratedGuarantee, LocalMechanism, MatrixMechanism


def attack(number: int) -> tuple[str, str]:
    """Open one forged file and judge whatever comes out of it."""
    what, data = forged(number)
    try:
        made = loads(data)
    except mdp.MetricdpError as error:
        return "refused", type(error).__name__
    wrong = _faults(made, number)
    kind = MECHANISMS.of(made)
    return ("unsound", f"{what}: {wrong}") if wrong else ("held", "none" if kind is None else kind.name)


def _faults(made: Any, number: int) -> str:
    """Say what is untrue about a mechanism that came out of a file."""
    promise, found = made.guarantee, made.certificate
    if isinstance(promise, ConcentratedGuarantee):
        return judges.concentrated(made)
    if promise.basis == "none" and found.epsilon == math.inf:
        return ""  # it guarantees nothing and says that its leak has no bound: no understatement
    numbers = (promise.epsilon, promise.slack, found.epsilon)
    if not all(math.isfinite(value) and value >= 0 for value in numbers) or promise.epsilon <= 0:
        return f"promises {promise}"
    if promise.radius is not None and not (math.isfinite(promise.radius) and promise.radius > 0):
        return f"a radius of {promise.radius!r}"
    if math.isfinite(found.loss) and found.lower_bound > found.loss:
        return "a bound above the loss"
    if isinstance(made, MatrixMechanism | LocalMechanism):
        return _matrix_faults(made)
    if hasattr(made, "parts"):
        wrong = next((wrong for part in made.parts if (wrong := _faults(part, number))), "")
        return wrong or _sum_faults(made)
    return _pair_faults(made, number)


def _matrix_faults(made: Any) -> str:
    space, promise = made.inputs, made.guarantee
    if type(promise.metric) is not type(space.metric) or promise.unit != space.unit:
        return "the promise is in another metric than the secrets"
    apart = _apart(space)
    if promise.radius is not None:
        near = space.distances <= promise.radius
        apart = [[cell if near[i, j] else None for j, cell in enumerate(row)] for i, row in enumerate(apart)]
    truth = exact.leakage(_stored(made), apart, slack=promise.slack)
    if truth is None or not bool(truth <= exact.ball(promise.epsilon)):
        return f"leaks {truth} where {promise.epsilon!r} is promised"
    return ""


def _sum_faults(made: Any) -> str:
    """Compare what a product promises with the sum of what its parts do: epsilons by group of columns, and slacks."""
    promise, first, slack = made.guarantee, 0, Fraction(0)
    for part, (metric, columns, weight) in zip(made.parts, promise.metric.parts, strict=True):
        own, last = part.guarantee, first + part.inputs.dimension
        if isinstance(own, ConcentratedGuarantee) or own.basis == "none":
            return f"holds a part that promises {own}"
        if (
            list(columns) != list(range(first, last))
            or repr(metric) != repr(own.metric)
            or own.radius != promise.radius
        ):
            return (
                f"promises {metric!r} of columns {list(columns)} where a part promises {own} of {first} to {last - 1}"
            )
        if Fraction(promise.epsilon) * Fraction(weight) < Fraction(own.epsilon) * (1 - Fraction(judges.ROOM)):
            return f"promises {promise.epsilon!r} x {weight!r} where a part leaks {own.epsilon!r}"
        first, slack = last, slack + Fraction(own.slack)
    return f"a slack of {promise.slack!r}, not {slack}" if promise.slack < slack * (1 - Fraction(judges.ROOM)) else ""


def _apart(space: Any) -> Any:
    """Return distances by a formula, or those of the library where the judges have none: networks, words, transport."""
    try:
        return [[judges.distance(space.metric, a, b) for b in space.points] for a in space.points]
    except LookupError:
        return exact.given(space.distances)


def _stored(made: Any) -> Any:
    """Return the numbers that a law is made of: probabilities, or the weights of sparse rows over a background."""
    if isinstance(made, MatrixMechanism):
        return made.matrix
    return made.weights(np.arange(len(made.inputs))[:, None], np.arange(len(made.outputs))).astype(float)


def _pair_faults(made: Any, number: int) -> str:
    """Compare probabilities at random pairs of legal secrets: log p(y | x) - log p(y | x') <= epsilon d + slack."""
    rng = np.random.default_rng([4, number])
    secrets = _legal(rng, made.inputs)
    if not np.all(np.isfinite(np.asarray(made.sample(secrets, rng=rng), dtype=np.float64))):
        return "reports that are not finite"
    return judges.judged(made, secrets, secrets[rng.permutation(len(secrets))])


def _legal(rng: np.random.Generator, space: Any) -> Any:
    name = type(space).__name__
    if name == "FiniteSpace":
        return rng.integers(0, len(space), 20)
    if name == "Box":
        return rng.uniform(space.lower, space.upper, (20, len(space.lower)))
    if name == "Streets":
        streets = rng.integers(0, len(space), 20)
        return np.column_stack([streets, rng.uniform(0, 1, 20) * space.network.lengths[streets]])
    if isinstance(space.metric, mdp.Hyperbolic):
        rows = rng.normal(size=(20, space.dimension))
        return rows / np.linalg.norm(rows, axis=1, keepdims=True) * rng.uniform(0, 0.95, (20, 1))
    ground = getattr(space.metric, "ground", space.metric)  # of bags and curves
    if isinstance(ground, mdp.Hyperbolic):
        rows = rng.normal(size=(20, space.dimension // space.metric.dimension, space.metric.dimension))
        inside = rows / np.linalg.norm(rows, axis=2, keepdims=True) * rng.uniform(0, 0.95, (*rows.shape[:2], 1))
        return inside.reshape(20, -1)
    spread = np.array([80.0, 170.0]) if isinstance(space.metric, mdp.Haversine) else np.full(space.dimension, 3.0)
    return rng.uniform(-spread, spread, (20, len(spread)))
