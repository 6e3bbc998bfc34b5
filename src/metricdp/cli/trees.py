"""The command for location trees: a mechanism for every level of a tree of areas."""

from __future__ import annotations

import csv
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter

import metricdp
from metricdp import wording
from metricdp.arrays import Floats
from metricdp.auditing import between_positions
from metricdp.cli import building, choices, guarantees, tables, terminal, watching
from metricdp.cli.choices import Epsilon, Output, Places
from metricdp.cli.options import NOTHING_ASKED, Options
from metricdp.cli.policies import IDS, Ground, area_names
from metricdp.cli.stakes import Cost
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism, pure
from metricdp.mechanisms.matrix import as_table
from metricdp.stages import doing
from metricdp.tables import there_are

if TYPE_CHECKING:
    from metricdp.artifacts import TreeFile
    from metricdp.places import LocationTree

Secrets = Literal["places", "areas"]


def tree(
    *,
    where: Annotated[choices.Where, Parameter(name="*")] = choices.NOWHERE,
    levels: str,
    epsilon: Epsilon | None = None,
    protect: str | None = None,
    output: Output,
    secrets: Secrets = "places",
    builder: str | None = None,
    prunable: int | None = None,
    options: Annotated[Options, Parameter(name="*")] = NOTHING_ASKED,
    key: str | None = None,
    json: bool = False,
    overwrite: tables.Overwrite = False,
) -> int:
    """Design a mechanism for every level of a tree of areas: places, districts, cities. People choose how precise.

    An example: `metricdp tree --points shops.csv --levels district,city --epsilon 10/km -o porto`

    Writes a folder: places.mdp, one file for every level above, and tree.json, which says what lies in what. All of
    them keep the same promise for the places. `metricdp prune` leaves out areas that somebody never wants to be
    reported at, and a browser or an app does both on the device.

    Args:
        where: Points of a file, roads, or cells of a map.
        levels: The columns of the points that name areas, finest first, such as district,city; or a number of levels,
            made by halving the map. An area lies whole in one of the next level. They must be public.
        epsilon: How much may leak per distance: 10/km on lat and lon and on roads, a bare number elsewhere.
        protect: The same as a wish: 2x@200m makes points 200 m apart at most a factor of two apart.
        output: The folder to write.
        secrets: places (the default) hides places, and a level has other reports only: the best ones by optimal, with
            other builders those of the places, told as areas. areas hides areas from each other, by the distance of
            their nearest places, so that all places of an area have one law; that costs more.
        builder: The name of a builder, optimal unless given; `metricdp builders` lists them.
        prunable: Make places.mdp so that any so many places may be left out of its reports and the rest renormalised
            (`metricdp prune --rule renormalise`); pruning by a map, the default, needs no such reserve and costs less.
        options: What only some builders take.
        key: A private key file from `metricdp keys`, to sign with.
        json: Print the same as JSON.
        overwrite: Replace a tree that is there.
    """
    from metricdp.artifacts import save_tree
    from metricdp.artifacts.trees import check_folder

    check_folder(output, overwrite=overwrite)
    if prunable is not None and (builder is not None or secrets == "areas"):
        raise InvalidInput(
            "--prunable is a law of its own, with places as secrets: leave --builder and --secrets away."
        )
    builder, columns = builder or "optimal", _columns(levels)
    where = where if isinstance(columns, int) else _without(where, columns)
    with watching.watch("Designing") as watch:
        with doing("reading"):
            order, level = building.ordered(builder, where, options, epsilon=epsilon, protect=protect)
            if order.places is None:
                raise InvalidInput(f"{builder} is not built on places, which a tree needs; use optimal or exponential.")
            made_of, named = _tree(columns, order.places)
        watch.begin(f"Designing {builder} {order.words}", order.gap, order.cost.unit)
        if prunable is None:
            finest = table_of(building.made(order, progress=watch.progress))
        else:
            finest = made_of.prunable(order.epsilon, prunable, prior=order.prior, loss=order.cost.loss)
        laws = [finest, *(_at_level(made_of, level, finest, order, secrets) for level in range(1, made_of.height + 1))]
        if any(law.certificate.interrupted for law in laws):
            raise KeyboardInterrupt  # a tree is written whole or not at all
        promise = pure(finest.guarantee, "a tree of places")
        wider = between_positions(promise, order.places.space, snap=order.snap) if order.snap else promise
        kept = [] if level is None else level.kept(wider)
        with doing(watching.WRITING):
            names = None if isinstance(columns, int) else columns
            written = save_tree(made_of, laws, output, names=names, areas=named, key=key)
    if json:
        terminal.say_json(_values(written, laws), sort_keys=True)
        return 0
    made_by = builder if prunable is None else f"prunable by any {prunable} reports"
    terminal.say(f"{output}: {made_by} {order.words}, {made_of!r}.")
    terminal.say(f"Promise of every file: {finest.guarantee}.")
    rows = [
        {
            "level": one.name,
            "areas": f"{len(one.middles):,}",
            "file": one.file,
            "loss": in_words(law.certificate.loss, order.cost),
            "none with these reports below": in_words(law.certificate.lower_bound, order.cost, "down")
            if law.certificate.lower_bound > 0
            else "",
        }
        for one, law in zip(written.levels, laws, strict=True)
    ]
    terminal.say(*terminal.table_lines(list(rows[0]), rows))
    terminal.say(f"The loss is {order.cost.about}, to the place that stands for the area.")
    terminal.say(*guarantees.factor_lines(finest, promise, order.snap), *kept)
    first = next((one for one in written.levels[1:] if one.areas), written.levels[0])
    area = (first.areas or ("0",))[0]
    area = f'"{area}"' if "," in area else area
    chosen = f"--tree {shlex.quote(output)} --level {shlex.quote(first.name)} --areas {shlex.quote(area)}"
    terminal.say(
        "Go on:",
        f"  metricdp prune {shlex.quote(output)}/places.mdp {chosen} -o mine.mdp   never reports a place there",
    )
    return 0


def _columns(levels: str) -> int | list[str]:
    if levels.strip().isdecimal():
        return int(levels)
    found = listed(levels, "levels", "district,city, or be a number such as 3")
    if len(set(found)) < len(found):
        raise InvalidInput(f"--levels names a column twice, got {levels!r}.")
    return found


def _without(where: choices.Where, columns: list[str]) -> choices.Where:
    """Return where places are, the columns of areas and of names left out of their coordinates."""
    if where.points is None or where.table.columns is not None:
        return where
    from metricdp.cli.reading import read_flat

    besides = (*IDS, *columns, *where.policy.besides)
    found = read_flat(where.points, None, where.table.reading(), besides=besides)
    if missing := [name for name in columns if name not in found.table.schema.names]:
        raise InvalidInput(f"{where.points!r}: no column {missing[0]!r}. {there_are(found.table.schema.names)}")
    quoted = ",".join(f'"{name}"' for name in found.columns)
    return replace(where, table=replace(where.table, columns=quoted))


def listed(text: str, option: str, example: str) -> list[str]:
    """Return names with commas between; a name with a comma in it stands in double quotes."""
    try:
        found = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error:  # a line break outside of quotes
        found = []
    if not found or not all(found):
        raise InvalidInput(f"--{option} must name areas with commas between, such as {example}; got {text!r}.")
    return found


def _tree(columns: int | list[str], places: Places) -> tuple[LocationTree, list[list[str] | None]]:
    """Return the tree and the names of its areas, level by level."""
    if isinstance(columns, int):
        made = metricdp.location_tree(places.space, columns)
        return made, [None] * (made.height + 1)
    where = places.where
    if where is None or where.points is None:
        raise InvalidInput("--levels names columns of the points: with --grid or --roads give a number, such as 3.")
    ground = Ground(places.space, places.rows, where.points, reading=where.table.reading())
    labels = [area_names(ground, column) for column in columns]
    made = metricdp.location_tree(places.space, labels)
    return made, [_place_names(ground), *(sorted(set(names)) for names in labels)]


def _place_names(ground: Ground) -> list[str] | None:
    """Return the names of places, where a column of the points has one for each."""
    table = ground.table()
    column = next((name for name in IDS if name in table.schema.names), None)
    names = [] if column is None else [str(value) for value in table.column(column).to_pylist()]
    return names if ground.rows is None and len(set(names)) == len(ground.space) else None


def table_of(mechanism: Any) -> MatrixMechanism:
    """Return a mechanism that is a table; any other is refused."""
    table = as_table(mechanism)
    if table is None:
        most = "tables with one row a place, up to 4,096 places"
        raise InvalidInput(f"trees and pruning are for {most}: take fewer, or a district (`metricdp export --around`).")
    return table


def _at_level(
    tree: LocationTree, level: int, finest: MatrixMechanism, order: building.Order, secrets: Secrets
) -> MatrixMechanism:
    """Return the mechanism of a level: the optimum among its reports, those of the finest one, or areas as secrets."""
    labels, middles = tree.labels[level], tree.middles(level)
    costs = None if order.cost.loss is None else _dense(order.cost, finest)[:, middles]
    if secrets == "places" and order.builder.name == "optimal" and len(middles) > 1:
        goals = finest.inputs.part(middles)
        return table_of(building.made(replace(order, cost=replace(order.cost, loss=costs)), outputs=goals))
    if secrets == "places" or len(middles) == 1:
        return tree.coarsen(finest, level, loss=costs)
    away = finest.inputs.distances[:, middles] if costs is None else costs
    weights = np.full(len(finest.inputs), 1 / len(finest.inputs)) if order.prior is None else order.prior
    mass = np.bincount(labels, weights)
    shares = np.where(mass[labels] > 0, weights / np.maximum(mass[labels], 1e-300), 1 / np.bincount(labels)[labels])
    spent = np.zeros((len(middles), len(middles)))
    np.add.at(spent, labels, shares[:, None] * away)  # what a report costs on average over the places of an area
    space = tree.at_level(level)
    areas = replace(
        order,
        places=Places(space),
        prior=None if order.prior is None else mass / mass.sum(),
        cost=Cost(spent, order.cost.about, order.cost.unit),
    )
    return tree.for_places(table_of(building.made(areas)), level, loss=costs)


def _dense(cost: Cost, mechanism: MatrixMechanism) -> Floats:
    if isinstance(cost.loss, np.ndarray):
        return cost.loss
    space = mechanism.inputs
    return np.asarray(cost.loss(space.points[:, None], space.points[None]))


def in_words(loss: float, cost: Cost, rounding: Literal["nearest", "down"] = "nearest") -> str:
    """Return a loss in the unit of what it counts."""
    return wording.distance(loss, cost.unit, rounding)


def _values(written: TreeFile, laws: list[MatrixMechanism]) -> dict[str, Any]:
    return {
        "folder": str(written.folder),
        "places": written.places,
        "levels": [
            {"name": one.name, "file": str(Path(one.file)), "areas": len(one.middles)}
            | guarantees.mechanism_values(law)
            for one, law in zip(written.levels, laws, strict=True)
        ],
    }
