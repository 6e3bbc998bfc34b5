"""Temporal cloaking: the times of a trace are released with noise as the places are, each on its own scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metricdp.arrays import Floats, as_positive
from metricdp.design.product import product
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.mechanisms import Guarantee, Mechanism
from metricdp.metrics import points_are
from metricdp.mobility.traces import Traces
from metricdp.randomness import Randomness
from metricdp.spaces import FiniteSpace


@dataclass(frozen=True, eq=False)
class CloakedTraces:
    """Fixes whose places and times are reports, sorted by the reported times.

    `place` and `time` are the guarantees of one fix about its place and about its time, `both` the joint one: a fix
    that moves by d and is later by t is told apart by at most epsilon_place d + epsilon_time t. A trip of n fixes adds
    up n of them. Since the order of rows is that of the reported times, two trips may be matched fix by fix in whatever
    way makes that sum least: that one place came before another is protected as well. Not protected: how many fixes a
    trip has (a trip that `resample` cut at a gap is as many trips as it has parts, and which came first shows), and
    with a `period` (the hour of the day) on which day each was.
    """

    traces: Traces
    place: Guarantee
    time: Guarantee
    both: Guarantee


def cloak_traces(
    traces: Traces,
    *,
    place: Mechanism,
    time: Mechanism,
    seconds_per_unit: float = 1.0,
    snap: tuple[float, float] = (0.0, 0.0),
    rng: Randomness = None,
) -> CloakedTraces:
    """Release places and times of fixes by two mechanisms, independently.

    `place` takes latitude and longitude, `time` one column of times: `mdp.laplace(mdp.Lp(1, unit="min"), epsilon,
    dimension=1)` with `seconds_per_unit=60`, or any builder over times under `mdp.Temporal()`. Under a `Temporal` with
    a period (`mdp.Temporal(24.0, "h")`, `seconds_per_unit=3600`) the time of the day is the secret and the day stays.
    On finite places and times a fix is put on the nearest one up to the declared distances `snap` (of place and time),
    and the guarantees have the slack that this costs; beyond them is an error.
    """
    unit = as_positive(seconds_per_unit, "seconds_per_unit")
    clock = traces.seconds / unit
    metric: Any = time.inputs.metric
    period = metric.period if points_are(metric, "times") else None
    day = np.zeros(len(traces)) if period is None else np.floor(clock / period) * period
    secrets, place_guarantee = _encode(place, traces.coordinates, snap[0])
    times, time_guarantee = _encode(time, (clock - day)[:, None], snap[1])
    joint = product(place, time)
    where, when = joint.sample((secrets, times), rng=rng)
    at = np.asarray(place.outputs.decode(where), dtype=np.float64)
    reported = (np.asarray(time.outputs.decode(when), dtype=np.float64).reshape(len(traces)) + day) * unit
    # Rows in their old order would tell which fix came first, of one reported time too: only reports order them.
    order = np.lexsort((*at.T[::-1], reported, traces.trip))
    moved = replace(traces, coordinates=at, seconds=reported).select(order)
    slack = place_guarantee.slack + time_guarantee.slack
    return CloakedTraces(moved, place_guarantee, time_guarantee, replace(joint.guarantee, slack=slack))


def _encode(mechanism: Mechanism, values: Floats, snap: float) -> tuple[Any, Guarantee]:
    """Return the secrets of a mechanism for some values, and its guarantee about the values themselves."""
    own_guarantee = mechanism.guarantee
    if not isinstance(own_guarantee, Guarantee):
        raise InvalidInput(
            f"the guarantees of place and time must be pure, so that they add up; one is {own_guarantee}."
        )
    space: FiniteSpace | None = getattr(mechanism.inputs, "finite", None)
    if space is None:
        return mechanism.inputs.encode(values), own_guarantee
    codes, away = space.nearest(values)
    if (far := np.flatnonzero(away > snap + 1e-9)).size:
        raise OutOfDomain(
            f"{far.size:,} fixes lie farther than {snap:g} from every place or time of a mechanism, the first in row "
            f"{far[0]}: declare how far they may be moved with `snap`, for place and time.",
            rows=tuple(far[:1000].tolist()),
        )
    return codes, own_guarantee.with_slack(own_guarantee.epsilon * space.charge(snap))
