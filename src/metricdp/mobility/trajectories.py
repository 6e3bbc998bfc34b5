"""Trajectories in one call: from a table of fixes to the problem of a context-aware mechanism, and its release.

Every step is a function of its own (`load_traces`, `clean`, `resample`, `snap`, `reachable`, `estimate`, ...) and can
be replaced by passing its result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, Integers, as_floats, as_matrix, as_positive
from metricdp.auditing.composition import TraceAccount as TraceAccount
from metricdp.auditing.composition import account as account
from metricdp.auditing.composition import allocate as allocate
from metricdp.auditing.composition import trajectory_epsilon as trajectory_epsilon
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Guarantee, Mechanism
from metricdp.mobility.models import Mobility, histories_of, reachable_steps
from metricdp.mobility.traces import Traces, Walks, clean, resample, snap
from metricdp.problems import Problem
from metricdp.randomness import Randomness
from metricdp.spaces import Augmented, FiniteSpace

MOST_HISTORIES = 4_000  # one row each in the program over all histories


@dataclass(frozen=True, eq=False)
class Trajectories:
    """A problem over places with their history, and the walks that are to be released with its mechanism.

    `problem` goes to `mdp.contextual`; `release` draws one report for every step of the walks.
    """

    problem: Problem
    augmented: Augmented
    walks: Walks
    model: Mobility
    most_km: float
    fixes: int

    @property
    def lost(self) -> int:
        """How many fixes on the clock lie farther than `most_km` from every place: they get no report."""
        return self.fixes - len(self.walks)

    @property
    def reports_per_trip(self) -> Integers:
        """How many reports each recorded trip gets."""
        return np.unique(self.walks.owner, return_counts=True)[1]

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one report about the fixes themselves: putting each step on its place adds to the slack."""
        reach = 1.0 + float(self.augmented.weights.sum())
        base_guarantee = Guarantee(self.problem.epsilon, self.problem.inputs.metric, basis="certificate")
        return base_guarantee.with_slack(self.problem.epsilon * self.augmented.base.charge(self.most_km) * reach)

    @property
    def epsilon_per_place(self) -> float:
        """What all reports of a trip together leak per kilometre by which ONE of its places moves, at most."""
        return trajectory_epsilon(self.problem.epsilon, self.augmented.weights, padded=True)

    def release(self, mechanism: Mechanism, *, rng: Randomness = None) -> Integers:
        """Return one report (the code of a place) for every step of the walks."""
        if mechanism.inputs is not self.problem.inputs:
            raise InvalidInput("`mechanism` must be made for this problem: mdp.contextual(trajectories.problem).")
        histories = self.augmented.encode(self.walks.histories(self.augmented.lags))
        return np.asarray(mechanism.sample(histories, rng=rng))


def trajectory_problem(
    traces: Any,
    places: FiniteSpace,
    epsilon: float,
    *,
    step_seconds: float = 60.0,
    weights: ArrayLike = (0.5,),
    most_km: float | None = None,
    most_kmh: float = 60.0,
    allowed: ArrayLike | None = None,
    model: Mobility | None = None,
    loss: ArrayLike | None = None,
) -> Trajectories:
    """State the problem of releasing traces over public places, with defaults that look at nothing but the map.

    The secret of a report is the current place with the places before it, one for each of `weights`:
    d = d(x, x') + sum_tau weight_tau d(v_tau, v'_tau). The loss is how far the report lies from where the vehicle is
    next, E[d(next, report) | history]; with `loss`, a matrix of places by reports, it is E[loss(next, report)].

    Args:
        traces: Fixes: `Traces`, or a data frame, Parquet or CSV file for `load_traces` (columns trip, t, lat, lon).
        places: The public places that get reported, measured along the Earth or any metric in kilometres.
        epsilon: Per kilometre of the distance above, for every report.
        step_seconds: The public clock: seconds between two reports.
        weights: How much each step back counts, the latest first.
        most_km: How far a fix may lie from its place; unless given, the largest distance from a place to its nearest.
        most_kmh: The fastest anyone drives: faster fixes are dropped, and it limits the possible steps.
        allowed: Which steps from place to place are possible, where not by `most_kmh`.
        model: How places follow each other, from `estimate`. Unless given, every possible step is equally likely:
            nothing is learnt from the traces, so nothing more is spent on them.
    """
    from metricdp.mobility.fixes import load_traces  # tables are loaded where one is read

    lags = np.atleast_1d(as_floats(weights, "weights"))
    fixes = traces if isinstance(traces, Traces) else load_traces(traces)
    on_clock = resample(clean(fixes, most_kmh=most_kmh), step_seconds=step_seconds)
    near = spacing_km(places) if most_km is None else as_positive(most_km, "most_km")
    steps: Booleans = (
        reachable_steps(places.distances, step_seconds=step_seconds, most_kmh=most_kmh, slack_km=2.0 * near)
        if allowed is None
        else np.asarray(allowed, dtype=bool)
    )
    walks = snap(on_clock, places, most_km=near, allowed=steps)
    known = public_model(steps) if model is None else model
    count = _count_histories(steps, len(lags))
    if count > MOST_HISTORIES:
        raise InvalidInput(
            f"{len(places)} places with {len(lags)} steps back make {count:,} histories, more than the "
            f"{MOST_HISTORIES:,} that one program carries: take fewer places, fewer `weights`, a lower `most_kmh` or a "
            "shorter `step_seconds`."
        )
    augmented = Augmented(places, histories_of(steps, len(lags)), lags)
    costs = places.distances if loss is None else as_matrix(loss, "loss", (len(places), None))
    problem = Problem(
        augmented.space,
        epsilon,
        outputs=places,
        loss=known.next(augmented.histories) @ costs,
        prior=known.history_prior(augmented.histories),
    )
    return Trajectories(problem, augmented, walks, known, near, len(on_clock))


def public_model(allowed: ArrayLike) -> Mobility:
    """Return the model that knows only which steps are possible: each of them equally likely."""
    steps = np.asarray(allowed, dtype=bool)
    return Mobility(np.zeros((len(steps), len(steps))), steps, 1.0)


def spacing_km(places: FiniteSpace) -> float:
    """Return the largest distance from a place to its nearest other one, in kilometres along the ground."""
    if len(places) < 2:
        raise InvalidInput("`places` must be two or more.")
    at = places.coordinates
    apart: Floats = places.ground(at[:, None], at[None])
    return float(np.where(np.eye(len(at), dtype=bool), np.inf, apart).min(axis=1).max())


def _count_histories(allowed: Booleans, lags: int) -> int:
    """Return how many histories of possible steps there are, without making them."""
    ways = np.ones(len(allowed))
    for _ in range(lags):
        ways = allowed.T.astype(np.float64) @ ways
    return int(ways.sum())
