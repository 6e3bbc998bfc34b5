"""What a guarantee about finitely many places means for positions that are first put on the nearest place."""

from __future__ import annotations

import math
from dataclasses import replace

from metricdp.errors import InvalidInput
from metricdp.mechanisms import AnyGuarantee, Guarantee, require_pure
from metricdp.metrics import exponent_of
from metricdp.spaces import FiniteSpace


def position_guarantee(guarantee: AnyGuarantee, space: FiniteSpace, *, snap: float) -> Guarantee:
    """Return the guarantee that holds between positions that are put on the nearest place, up to `snap` away.

    Two positions r apart are put on places at most r + 2 snap apart, by the triangle inequality. So the slack grows by
    2 snap epsilon, and a radius shrinks by 2 snap. This needs positions to be measured as the guarantee measures: where
    they are not (roads below latitude and longitude), `position_factor` says what holds.
    """
    guarantee = _pure_guarantee_on(guarantee, space)
    if not space.same_ground:
        raise InvalidInput(
            "positions here are not measured in the distances of the guarantee, so that no slack describes what "
            "snapping does: ask position_factor(guarantee, space, apart, snap=...) for the factor at a distance."
        )
    moved = space.charge(_distance(snap, "snap"))
    wider = guarantee.with_slack(guarantee.epsilon * moved)
    return wider if guarantee.radius is None else replace(wider, radius=max(0.0, guarantee.radius - moved))


def position_factor(guarantee: AnyGuarantee, space: FiniteSpace, apart: float, *, snap: float) -> float:
    """Return the factor by which reports of two positions `apart` may differ, each put on the nearest place first.

    `apart` and `snap` are in the unit of `space.ground`, which measures positions; no position is put on a place
    farther away than `snap`. Proof: the places s and s' of two positions satisfy ground(s, s') <= apart + 2 snap, so
    their distance under the guarantee is at most D = max d(s, s') over such pairs of places, and reports differ by at
    most exp(epsilon D + slack). Where some D is beyond the reach of the guarantee, reports may reveal everything.
    """
    guarantee = _pure_guarantee_on(guarantee, space)
    reached = space.span(_distance(apart, "apart"), snap=_distance(snap, "snap"))
    if guarantee.radius is not None and reached > guarantee.radius:
        return math.inf
    exponent = guarantee.bound(reached)
    return math.exp(exponent) if exponent < 700 else math.inf


def mean_in_cell(space: FiniteSpace) -> float | None:
    """Return how far a position lies from the middle of its cell on average, at most, if all of it is as likely.

    Over a rectangle with half sides a and b, E |x|_p <= (E |x|_p^p)^(1/p) = ((a^p + b^p) / (p + 1))^(1/p) by Jensen's
    inequality, and (a^p + b^p)^(1/p) is `space.cell_radius`; under linf at most 2/3 of it, as in a square.
    """
    radius = space.cell_radius
    if radius is None:
        return None
    p = exponent_of(space.ground) or 2.0
    return radius * (2.0 / 3.0 if math.isinf(p) else (p + 1.0) ** (-1.0 / p))


def _pure_guarantee_on(guarantee: AnyGuarantee, space: FiniteSpace) -> Guarantee:
    """Return a pure guarantee in the distances of a space; any other says nothing about its places."""
    found = require_pure(guarantee, "a factor between positions")
    if found.metric is not space.metric and found.metric != space.metric:
        raise InvalidInput(
            "the guarantee is in other distances than those of `space`: give the space that it is about."
        )
    return found


def _distance(value: float, name: str) -> float:
    if not 0.0 <= value < math.inf:
        raise InvalidInput(f"`{name}` must be a distance, zero or more, got {value!r}.")
    return float(value)
