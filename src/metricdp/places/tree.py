"""Location trees: places in areas in larger areas; everybody chooses how precise reports are and what they avoid."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, Integers, as_codes, as_floats, frozen
from metricdp.design import certify
from metricdp.design.post_processing import Rule, coarsen_reports, prunable, prune_reports
from metricdp.errors import InvalidInput
from metricdp.mechanisms import FiniteMechanism, MatrixMechanism
from metricdp.metrics import Precomputed
from metricdp.places.policy import policy
from metricdp.places.policy_graphs import areas as within_areas
from metricdp.problems import Problem
from metricdp.solvers.repair.quotient import quotient
from metricdp.spaces import FiniteSpace

MOST_LEVELS = 30


def location_tree(space: FiniteSpace, levels: int | Sequence[ArrayLike]) -> LocationTree:
    """Return places in areas in larger areas: level 0 are the places, the last level the largest areas.

    `levels` is a number of levels above the places, made by halving the box around their coordinates in every
    direction: the last level is one area, the one below it has up to 4 in the plane, and so on. Or it is a list of the
    areas themselves, finest first: for every level the name of every place's area (a block, a district, a city). Areas
    of one level lie whole in areas of the next; what does not is refused.

    The tree must be public: no area may be drawn by looking at the secrets.

    References: Pappachan, Qiu, Squicciarini and Manjunath (2023).
    """
    if isinstance(levels, int | np.integer):
        if not 1 <= levels <= MOST_LEVELS:
            raise InvalidInput(f"`levels` must be from 1 to {MOST_LEVELS}, got {levels}.")
        names: list[Any] = _halve_cells(space, int(levels))
    else:
        names = list(levels) if isinstance(levels, Sequence | np.ndarray) else []
        if not names:
            raise InvalidInput("`levels` must be a number, or the areas of at least one level.")
    labels = [np.arange(len(space))]
    for level, given in enumerate(names, start=1):
        found = np.asarray(given)
        if found.ndim == 0 or len(found) != len(space):
            raise InvalidInput(f"level {level} must name the area of each of the {len(space)} places.")
        found = np.unique(found, axis=0, return_inverse=True)[1].reshape(-1)
        _refuse_torn(labels[-1], found, level)
        labels.append(found)
    return LocationTree(space, tuple(frozen(level) for level in labels))


@dataclass(frozen=True, eq=False)
class LocationTree:
    """Places in areas in larger areas: `labels[level][code]` is the area of a place.

    `mdp.places.location_tree` makes one.
    """

    space: FiniteSpace
    labels: tuple[Integers, ...]

    def __repr__(self) -> str:
        counts = " in ".join(f"{int(level.max()) + 1:,}" for level in self.labels)
        return f"LocationTree({counts} areas)"

    @property
    def height(self) -> int:
        """The number of levels above the places."""
        return len(self.labels) - 1

    def members(self, level: int, area: int) -> Integers:
        """Return the codes of the places of an area."""
        labels = self._level(level)
        return np.flatnonzero(labels == int(as_codes([area], int(labels.max()) + 1, "area")[0]))

    def at_level(self, level: int) -> FiniteSpace:
        """Return the areas of a level as secrets, so that a mechanism on them keeps its guarantee for the places.

            d(A, B) = the shortest path of steps  min over places x in A, x' in B of d(x, x')

        The distance of areas is never above that of two of their places: two neighbours on either side of a border are
        not told apart as if they were a whole area apart, as they are with distances between the middles. An area is
        reported as its middle place. `for_places` gives the mechanism to the places.
        """
        labels = self._level(level)
        if level == 0:
            return self.space
        steps, _ = quotient(self.space.distances, np.zeros((len(labels), 1)), labels)
        metric = Precomputed(np.minimum(steps, steps.T), self.space.unit)
        return replace(self.space.part(self.middles(level)), points=np.arange(len(steps)), metric=metric)

    def for_places(self, mechanism: FiniteMechanism, level: int, *, loss: ArrayLike | None = None) -> MatrixMechanism:
        """Return a mechanism on areas as one on the places, audited: each place has the distribution of its area."""
        started = time.perf_counter()
        labels, guarantee = self._level(level), mechanism.guarantee
        if len(mechanism.inputs) != int(labels.max()) + 1 or len(mechanism.outputs) != int(labels.max()) + 1:
            raise InvalidInput(
                f"`mechanism` must be one on the {int(labels.max()) + 1} areas of level {level}, "
                f"got {len(mechanism.inputs)} secrets and {len(mechanism.outputs)} reports."
            )
        goals = self.space.part(self.middles(level))
        problem = Problem(self.space, guarantee.epsilon, outputs=goals, loss=loss)
        method = f"{mechanism.certificate.method}, on {len(goals)} areas"
        return certify(problem, mechanism.matrix[labels], method=method, started=started)

    def averages(self, level: int, *, prior: Floats | None = None, loss: Floats | None = None) -> tuple[Floats, Floats]:
        """Return how likely the areas of a level are, and what their reports cost on average over their places.

        `loss` is that of every place and the place that stands for every area, the distance unless given.
        """
        labels, middles = self._level(level), self.middles(level)
        away = self.space.distances[:, middles] if loss is None else loss
        weights = np.full(len(self.space), 1 / len(self.space)) if prior is None else prior
        mass = np.bincount(labels, weights)
        shares = np.where(mass[labels] > 0, weights / np.maximum(mass[labels], 1e-300), 1 / np.bincount(labels)[labels])
        spent = np.zeros((len(middles), len(middles)))
        np.add.at(spent, labels, shares[:, None] * away)
        return mass / mass.sum(), spent

    def coarsen(self, mechanism: FiniteMechanism, level: int, *, loss: ArrayLike | None = None) -> MatrixMechanism:
        """Return a mechanism on the places that reports areas of a level: post-processing, the guarantee stays."""
        self._refuse_other(mechanism)
        return coarsen_reports(mechanism, self._level(level), self.middles(level), loss=loss)

    def prune(
        self,
        mechanism: FiniteMechanism,
        areas: ArrayLike,
        *,
        level: int = 0,
        rule: Rule = "cheapest",
        prior: ArrayLike | None = None,
        loss: ArrayLike | None = None,
    ) -> MatrixMechanism:
        """Return a mechanism that never reports a place of some areas, with its guarantee kept exactly.

        "cheapest" and "nearest" put a pruned report on one that is kept, always the same: post-processing, for any
        mechanism and any areas. "renormalise" leaves it out, as published, and is refused unless the distribution that
        comes out keeps the guarantee: `prunable` makes mechanisms for which it does. All secrets stay protected, those
        of pruned areas too. The areas must be chosen without looking at where somebody is: reports show what never
        comes.
        """
        self._refuse_other(mechanism)
        labels = self._level(level)
        if callable(areas) or isinstance(areas, dict) or np.ndim(areas) != 1:
            return prune_reports(mechanism, areas, rule=rule)  # which says that one list serves all secrets
        chosen = as_codes(areas, int(labels.max()) + 1, "areas")
        places = np.flatnonzero(np.isin(labels, chosen))
        return prune_reports(mechanism, places, rule=rule, prior=prior, loss=loss)

    def prunable(
        self, epsilon: float, count: int, *, prior: ArrayLike | None = None, loss: ArrayLike | None = None
    ) -> MatrixMechanism:
        """Return a mechanism on the places that keeps epsilon after any `count` of them are left out of its reports."""
        return prunable(Problem(self.space, epsilon, loss=loss, prior=prior), count)

    def disclosing(self, level: int) -> FiniteSpace:
        """Return the places with areas of a level that may be told: hidden inside their area, by the metric of all.

        A policy of several parts, see `mdp.policy`: the guarantee covers places of one area, and reports may reveal
        which. On the device, a mechanism for one's own area is then a fraction of the file.
        """
        return policy(
            self.space, within_areas(self._level(level)), lengths="distance", isolated="disclose", parts="disclose"
        )

    @cached_property
    def _medoids(self) -> dict[int, Integers]:
        return {}

    def middles(self, level: int) -> Integers:
        """Return for every area the place with the least distance to all of its places."""
        if level not in self._medoids:
            labels, middles = self._level(level), []
            for area in range(int(labels.max()) + 1):
                places = np.flatnonzero(labels == area)
                apart = self.space.distances[np.ix_(places, places)]
                middles.append(int(places[int(apart.sum(axis=1).argmin())]))
            self._medoids[level] = np.array(middles)
        return self._medoids[level]

    def _level(self, level: int) -> Integers:
        if not isinstance(level, int | np.integer) or not 0 <= level <= self.height:
            raise InvalidInput(f"`level` must be from 0 (the places) to {self.height}, got {level!r}.")
        return self.labels[int(level)]

    def _refuse_other(self, mechanism: FiniteMechanism) -> None:
        if len(mechanism.outputs) != len(self.space):
            raise InvalidInput(
                f"`mechanism` must report the {len(self.space)} places of the tree, got {len(mechanism.outputs)}."
            )


def _halve_cells(space: FiniteSpace, levels: int) -> list[Floats]:
    """Return the cell of every place in grids of 2^(levels - l) cells along each axis, finest first."""
    if space.is_text:
        raise InvalidInput("words have no box to halve: give the areas of every level.")
    places = as_floats(space.coordinates, "coordinates")
    low, span = places.min(axis=0), np.ptp(places, axis=0)
    share = (places - low) / np.where(span > 0, span, 1.0)
    finest = np.minimum(np.floor(share * 2.0 ** (levels - 1)), 2.0 ** (levels - 1) - 1)
    return [np.floor(finest / 2.0**up) for up in range(levels)]


def _refuse_torn(finer: Integers, coarser: Integers, level: int) -> None:
    """Refuse an area that lies in several areas of the next level."""
    pairs = np.unique(np.column_stack([finer, coarser]), axis=0)
    torn = pairs[1:, 0][pairs[1:, 0] == pairs[:-1, 0]]
    if len(torn):
        place = int(np.flatnonzero(finer == torn[0])[0])
        raise InvalidInput(
            f"the area of place {place} at level {level - 1} lies in several areas of level {level}: areas must lie "
            "whole in those of the next level."
        )
