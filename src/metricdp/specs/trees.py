"""Trees of areas by names: a mechanism for every level, and mechanisms whose reports avoid some areas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.artifacts import Inspection, TreeFile, inspect, load_tree
from metricdp.auditing import expected_loss
from metricdp.design import prune_reports
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.mechanisms import MatrixMechanism
from metricdp.mechanisms.kinds.matrix import as_table
from metricdp.places import LocationTree, location_tree
from metricdp.problems import LossSpec
from metricdp.specs.designs import DesignSpec, loss_of, read_design
from metricdp.specs.options import NO_OPTIONS, BuilderOptions, PlaceSpec, PruneSpec, Secrets
from metricdp.specs.places import Places, columns_besides
from metricdp.tables import available_columns
from metricdp.tables.points import IDS, read_flat
from metricdp.units import parse_distance, parse_numbers

if TYPE_CHECKING:
    from metricdp.solvers import Progress  # scipy is imported where something is solved


@dataclass(frozen=True, eq=False)
class TreeSpec:
    """What is to be built for every level of a tree of areas.

    Attributes:
        design: The mechanism of the places.
        tree: The tree.
        names: The levels above the places, where they are columns.
        areas: For every level the names of its areas.
    """

    design: DesignSpec
    tree: LocationTree
    names: Sequence[str] | None
    areas: list[list[str] | None]

    def build(
        self, *, secrets: Secrets = "places", prunable: int | None = None, progress: Progress | None = None
    ) -> list[MatrixMechanism]:
        """Return a mechanism for every level, the places first.

        `secrets` are the places, or the areas of every level. With `prunable` the mechanism of the places is one that
        any such number of reports can be removed from.
        """
        spec, tree = self.design, self.tree
        if prunable is None:
            finest = require_table(spec.build(progress=progress))
        else:
            finest = tree.prunable(spec.epsilon, prunable, prior=spec.prior, loss=spec.cost.loss)
        return [finest, *(self._level(level, finest, secrets) for level in range(1, tree.height + 1))]

    def _level(self, level: int, finest: MatrixMechanism, secrets: Secrets) -> MatrixMechanism:
        """Return the mechanism of a level: the optimum of its reports, those of the finest one, or areas as secrets."""
        spec, tree, middles = self.design, self.tree, self.tree.middles(level)
        costs = None if spec.cost.loss is None else spec.cost.matrix(finest.inputs)[:, middles]
        if secrets == "places" and spec.builder.name == "optimal" and len(middles) > 1:
            goals = finest.inputs.part(middles)
            return require_table(replace(spec, cost=replace(spec.cost, loss=costs)).build(outputs=goals))
        if secrets == "places" or len(middles) == 1:
            return tree.coarsen(finest, level, loss=costs)
        prior, loss = tree.averages(level, prior=spec.prior, loss=costs)
        areas = replace(
            spec, places=Places(tree.at_level(level)), prior=None if spec.prior is None else prior,
            cost=replace(spec.cost, loss=loss),
        )  # fmt: skip
        return tree.for_places(require_table(areas.build()), level, loss=costs)


def read_tree(
    builder: str,
    where: PlaceSpec,
    levels: int | Sequence[str],
    options: BuilderOptions = NO_OPTIONS,
    *,
    epsilon: float | str | None = None,
    protect: str | None = None,
) -> TreeSpec:
    """Read what a tree starts from; `levels` are columns of the points that name areas, finest first, or a number.

    A number of levels is made by halving the map.
    """
    columns = None if isinstance(levels, int) else levels
    spec = read_design(
        builder, where if columns is None else _without_columns(where, columns), options, epsilon=epsilon,
        protect=protect,
    )  # fmt: skip
    places = spec.places
    if places is None:
        raise InvalidInput(f"{builder} is not built on places, which a tree needs; use optimal or exponential.")
    if isinstance(levels, int):
        tree = location_tree(places.space, levels)
        return TreeSpec(spec, tree, None, [None] * (tree.height + 1))
    file = places.file
    if file is None:
        raise InvalidInput("--levels names columns of the points: with --grid or --roads give a number, such as 3.")
    labels = [file.labels(column) for column in levels]
    names = file.names if file.rows is None else None
    own = names if names is not None and len(set(names)) == len(places.space) else None
    areas = [own, *(sorted(set(names)) for names in labels)]
    return TreeSpec(spec, location_tree(places.space, labels), levels, areas)


def _without_columns(where: PlaceSpec, columns: Sequence[str]) -> PlaceSpec:
    """Return where places are, the columns of areas and of names left out of their coordinates."""
    if where.points is None or where.columns is not None:
        return where
    besides = (*IDS, *columns, *columns_besides(where))
    found = read_flat(where.points, None, where.reading, besides=besides)
    if missing := [name for name in columns if name not in found.table.schema.names]:
        raise InvalidInput(f"{where.points!r}: no column {missing[0]!r}. {available_columns(found.table.schema.names)}")
    return replace(where, columns=found.columns)


def require_table(mechanism: Any) -> MatrixMechanism:
    """Return a mechanism that is a table; any other is refused."""
    table = as_table(mechanism)
    if table is None:
        most = "tables with one row a place, up to 4,096 places"
        raise InvalidInput(f"trees and pruning are for {most}: take fewer, or a district (`metricdp export --around`).")
    return table


@dataclass(frozen=True, eq=False)
class PrunedMechanism:
    """A mechanism that never gives some reports.

    Attributes:
        mechanism: The mechanism.
        before: The file it was made from.
        reports: The reports that are never given, by number.
        cost: What a report costs.
        prior: How likely every place is.
        notes: What was done without being asked for, a sentence each.
    """

    mechanism: MatrixMechanism
    before: Inspection
    reports: Integers
    cost: LossSpec
    prior: Floats | None
    notes: list[str]

    @property
    def loss_before(self) -> float:
        """The loss of the mechanism that it was made from."""
        before = require_table(self.before.mechanism)
        loss = before.inputs.distances_to(before.outputs) if self.cost.loss is None else self.cost.loss
        return expected_loss(before, prior=self.prior, loss=loss)


def prune(source: str, wanted: PruneSpec) -> PrunedMechanism:
    """Return the mechanism of a file without some reports."""
    wanted.check()
    found = inspect(source)
    before = require_table(found.mechanism)
    tree = None if wanted.tree is None else load_tree(wanted.tree)
    reported = None if tree is None else _reported_level(tree, found.sha256, source)
    if wanted.areas is None:
        codes = _reports_around(before, str(wanted.around), str(wanted.radius))
    else:
        codes = _reports_in_areas(wanted.areas, tree, reported, wanted.level, before)
    places = Places(before.inputs)
    prior = None if wanted.prior is None else places.table().shares(wanted.prior)
    cost = loss_of(wanted.loss, places)
    if cost.loss is not None and reported and tree is not None:
        cost = replace(cost, loss=np.asarray(cost.loss)[:, tree.levels[reported].middles])
    try:
        after = prune_reports(before, codes, rule=wanted.rule, prior=prior, loss=cost.loss)
    except NotPrivate as error:
        raise NotPrivate(
            f"{error} Take --rule cheapest, which keeps every guarantee, or a file from `metricdp design` with "
            "--levels and --prunable."
        ) from error
    return PrunedMechanism(after, found, codes, cost, prior, places.notes)


def _reported_level(found: TreeFile, sha256: str, source: str) -> int:
    level = found.level_of_file(sha256)
    if level is None:
        raise InvalidInput(
            f"{source!r} is none of the files of the tree in {str(found.folder)!r}: their checksums differ."
        )
    return level


def _reports_in_areas(
    names: Sequence[str], found: TreeFile | None, reported: int | None, level: str | None, mechanism: MatrixMechanism
) -> Integers:
    """Return the reports that lie in areas, by name; without a tree by number."""
    if found is None or reported is None:
        if level is not None:
            raise InvalidInput("--level names a level of a tree: give it with --tree.")
        size = len(mechanism.outputs)
        if bad := [name for name in names if not (name.isdecimal() and int(name) < size)]:
            raise InvalidInput(f"--areas without --tree are numbers of reports from 0 to {size - 1}, got {bad[0]!r}.")
        return np.unique([int(name) for name in names])
    chosen = found.level_number(level) if level is not None else found.level_of_areas(names)
    return found.reports(reported, chosen, found.area_codes(chosen, names))


def _reports_around(mechanism: MatrixMechanism, around: str, radius: str) -> Integers:
    outputs = mechanism.outputs
    place = np.array(parse_numbers(around, "around", "numbers such as 41.15,-8.61"))
    if outputs.is_text or len(place) != outputs.coordinates.shape[1]:
        raise InvalidInput(f"--around must be {outputs.coordinates.shape[1]} numbers, as places have, got {around!r}.")
    reach = parse_distance(radius, outputs.ground.unit, option="radius")
    codes = np.flatnonzero(outputs.ground(outputs.coordinates, place) <= reach)
    if not len(codes):
        raise InvalidInput(f"no report lies within {radius} of {around}: there is nothing to remove.")
    return codes
