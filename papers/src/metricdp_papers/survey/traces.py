"""Traces released step by step, as distributions over whole releases: exact for a few places and steps.

Every run that a mechanism can give is a report; what it costs is the mean distance of its places from the trace. The
guarantee is epsilon times the largest distance of a step, audited over all pairs of traces and all runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from metricdp import exponential, optimal
from metricdp.arrays import Floats
from metricdp.mobility import (
    Absorption,
    Distribution,
    FixedRate,
    FixedUtility,
    PredictionTuning,
    StepCost,
    TraceRun,
    predictive,
    zones,
)
from metricdp.problems import Problem
from metricdp_papers.survey.asked import Build, ComparisonTask, ReportTable
from metricdp_papers.survey.domains import STEPS, street, walks

SHY = 1.0 - 1e-9  # sums of rounded budgets stay below epsilon


def families(task: ComparisonTask) -> dict[str, Build]:
    """Return the ways to release a trace."""
    each = task.epsilon / STEPS * SHY
    tuning = PredictionTuning(dimension=1)
    fresh = task.epsilon * SHY / (1.0 + (STEPS - 1.0) * (1.0 + tuning.share))  # a run never ends early
    return {
        "steps apart, exponential": lambda: _apart(task, [exponential(street(), each).matrix] * STEPS),
        "steps apart, optimal": lambda: _apart(task, _best(task, each)),
        "steps apart, zone at one end": lambda: _apart(task, _zoned(task, each)),
        "one report, repeated": lambda: _runs(task, lambda run: _once(task, run)),
        "predictive, fixed utility": lambda: _runs(
            task, FixedUtility(tuning.noise_constant / fresh * (1.0 + 1e-9), task.epsilon * SHY, tuning)
        ),
        "predictive, fixed rate": lambda: _runs(
            task, FixedRate(each, task.epsilon * SHY, tuning=PredictionTuning(caution=0.6, dimension=1))
        ),
        "budgets of a stream, distribution": lambda: _runs(task, Distribution(STEPS, task.epsilon * SHY, dimension=1)),
        "budgets of a stream, absorption": lambda: _runs(task, Absorption(STEPS, task.epsilon * SHY, dimension=1)),
    }


def _apart(task: ComparisonTask, tables: list[Floats]) -> ReportTable:
    """Return steps that are released independently: epsilon / steps each adds up to epsilon."""
    tables = [table / table.sum(axis=1, keepdims=True) for table in tables]
    return task.check_table(
        functools.reduce(lambda one, other: np.asarray(np.kron(one, other), dtype=np.float64), tables)
    )


def _marginals(task: ComparisonTask) -> list[Floats]:
    at = walks()
    every = np.arange(len(street()))
    return [np.asarray(task.prior @ (at[:, step, None] == every)) for step in range(STEPS)]


def _best(task: ComparisonTask, each: float) -> list[Floats]:
    return [optimal(Problem(street(), each, prior=prior)).matrix for prior in _marginals(task)]


def _zoned(task: ComparisonTask, each: float) -> list[Floats]:
    places = street()
    home = zones(places, [0], radius=1.0, scale=0.3).space
    return [optimal(Problem(home, each, loss=places.distances, prior=prior)).matrix for prior in _marginals(task)]


def _once(task: ComparisonTask, run: TraceRun) -> StepCost:
    return StepCost(0.0, 0.0) if len(run) else StepCost(0.0, task.epsilon * SHY)


def _runs(task: ComparisonTask, budget: Callable[[TraceRun], StepCost | None]) -> ReportTable:
    """Return the distribution of all runs of a predictive mechanism; after the budget ends, the last report repeats."""
    mechanism = predictive(street(), budget=budget)
    at, apart = walks(), street().distances
    columns: list[Floats] = []
    costs: list[Floats] = []

    def walk(run: TraceRun, probability: Floats) -> None:
        step = mechanism.budget(run) if len(run) < STEPS else None
        if step is None:
            reports = [*run.reports, *([run.reports[-1]] * (STEPS - len(run)))]
            columns.append(probability)
            costs.append(np.mean([apart[at[:, t], reports[t]] for t in range(STEPS)], axis=0))
            return
        place = at[:, len(run)]
        prediction = mechanism.predict(run, step)
        near, far = mechanism.finite.outcome_probabilities(prediction, step)
        for report, fresh, table in [(prediction, False, near), *((k, True, far[:, k]) for k in range(len(apart)))]:
            if table.any():
                longer = run.copy()
                longer.add(report, step, fresh=fresh)
                walk(longer, probability * table[place])

    walk(TraceRun(), np.ones(len(at)))
    return task.check_table(np.stack(columns, axis=1), np.stack(costs, axis=1), note=f"{len(columns)} runs")
