"""Traces released step by step, as laws over whole releases: exact for a few places and steps.

Every run that a mechanism can give is a report; what it costs is the mean distance of its places from the trace. The
promise is epsilon times the largest distance of a step, audited over all pairs of traces and all runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from metricdp import exponential, optimal
from metricdp.arrays import Floats
from metricdp.mobility import (
    Absorption,
    Care,
    Distribution,
    FixedRate,
    FixedUtility,
    Run,
    Step,
    predictive,
    zones,
)
from metricdp.problems import Problem
from metricdp_papers.survey.asked import Asked, Build, Law
from metricdp_papers.survey.domains import STEPS, street, walks

SHY = 1.0 - 1e-9  # sums of rounded budgets stay below epsilon


def families(asked: Asked) -> dict[str, Build]:
    """Return the ways to release a trace."""
    each = asked.epsilon / STEPS * SHY
    care = Care(dimension=1)
    fresh = asked.epsilon * SHY / (1.0 + (STEPS - 1.0) * (1.0 + care.share))  # a run never ends early
    return {
        "steps apart, exponential": lambda: _apart(asked, [exponential(street(), each).matrix] * STEPS),
        "steps apart, optimal": lambda: _apart(asked, _best(asked, each)),
        "steps apart, zone at one end": lambda: _apart(asked, _zoned(asked, each)),
        "one report, repeated": lambda: _runs(asked, lambda run: _once(asked, run)),
        "predictive, fixed utility": lambda: _runs(
            asked, FixedUtility(care.noise_constant / fresh * (1.0 + 1e-9), asked.epsilon * SHY, care)
        ),
        "predictive, fixed rate": lambda: _runs(
            asked, FixedRate(each, asked.epsilon * SHY, care=Care(caution=0.6, dimension=1))
        ),
        "budgets of a stream, distribution": lambda: _runs(
            asked, Distribution(STEPS, asked.epsilon * SHY, dimension=1)
        ),
        "budgets of a stream, absorption": lambda: _runs(asked, Absorption(STEPS, asked.epsilon * SHY, dimension=1)),
    }


def _apart(asked: Asked, laws: list[Floats]) -> Law:
    """Return steps that are released independently: epsilon / steps each adds up to epsilon."""
    laws = [law / law.sum(axis=1, keepdims=True) for law in laws]
    return asked.kept(functools.reduce(lambda one, other: np.asarray(np.kron(one, other), dtype=np.float64), laws))


def _marginals(asked: Asked) -> list[Floats]:
    at = walks()
    every = np.arange(len(street()))
    return [np.asarray(asked.prior @ (at[:, step, None] == every)) for step in range(STEPS)]


def _best(asked: Asked, each: float) -> list[Floats]:
    return [optimal(Problem(street(), each, prior=prior)).matrix for prior in _marginals(asked)]


def _zoned(asked: Asked, each: float) -> list[Floats]:
    places = street()
    home = zones(places, [0], radius=1.0, scale=0.3).space
    return [optimal(Problem(home, each, loss=places.distances, prior=prior)).matrix for prior in _marginals(asked)]


def _once(asked: Asked, run: Run) -> Step:
    return Step(0.0, 0.0) if len(run) else Step(0.0, asked.epsilon * SHY)


def _runs(asked: Asked, budget: Callable[[Run], Step | None]) -> Law:
    """Return the law of all runs of a predictive mechanism; where its budget ends, its last report is repeated."""
    mechanism = predictive(street(), budget=budget)
    at, apart = walks(), street().distances
    columns: list[Floats] = []
    costs: list[Floats] = []

    def walk(run: Run, chance: Floats) -> None:
        step = mechanism.budget(run) if len(run) < STEPS else None
        if step is None:
            reports = [*run.reports, *([run.reports[-1]] * (STEPS - len(run)))]
            columns.append(chance)
            costs.append(np.mean([apart[at[:, t], reports[t]] for t in range(STEPS)], axis=0))
            return
        place = at[:, len(run)]
        prediction = mechanism.predict(run, step)
        near, far = mechanism.finite.chances(prediction, step)
        for report, fresh, law in [(prediction, False, near), *((k, True, far[:, k]) for k in range(len(apart)))]:
            if law.any():
                longer = run.copy()
                longer.add(report, step, fresh=fresh)
                walk(longer, chance * law[place])

    walk(Run(), np.ones(len(at)))
    return asked.kept(np.stack(columns, axis=1), np.stack(costs, axis=1), note=f"{len(columns)} runs")
