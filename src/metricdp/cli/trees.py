"""The commands for location trees: a mechanism for every level of a tree of areas, and a user's pruning of one."""

from __future__ import annotations

import csv
import json as jsons
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter

import metricdp
from metricdp import wording
from metricdp.arrays import Floats, Integers
from metricdp.cli import building, choices, tables, terminal, watching
from metricdp.cli.choices import Epsilon, Output, Places
from metricdp.cli.options import NOTHING_ASKED, Options
from metricdp.cli.policies import IDS, Ground, area_names
from metricdp.cli.stakes import Cost, loss_from, prior_from
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.mechanisms import MatrixMechanism
from metricdp.stages import doing
from metricdp.tables.task import there_are

if TYPE_CHECKING:
    from metricdp.artifacts import TreeFile
    from metricdp.places import LocationTree

Secrets = Literal["places", "areas"]
STANDING = (
    "What is pruned shows in what is never reported: it must be a standing wish, chosen without looking at where "
    "somebody is. A hole around a home shows the home: leave out whole areas instead."
)


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
            finest = _table(building.made(order, progress=watch.progress))
        else:
            finest = made_of.prunable(order.epsilon, prunable, prior=order.prior, loss=order.cost.loss)
        laws = [finest, *(_at_level(made_of, level, finest, order, secrets) for level in range(1, made_of.height + 1))]
        if any(law.certificate.interrupted for law in laws):
            raise KeyboardInterrupt  # a tree is written whole or not at all
        kept = [] if level is None else level.kept(finest.guarantee)
        with doing(watching.WRITING):
            names = None if isinstance(columns, int) else columns
            written = save_tree(made_of, laws, output, names=names, areas=named, key=key)
    if json:
        print(jsons.dumps(_values(written, laws), indent=2, sort_keys=True, allow_nan=False))
        return 0
    made_by = builder if prunable is None else f"prunable by any {prunable} reports"
    print(f"{output}: {made_by} {order.words}, {made_of!r}.")
    print(f"Promise of every file: {finest.guarantee}.")
    rows = [
        {
            "level": one.name,
            "areas": f"{len(one.middles):,}",
            "file": one.file,
            "loss": _in_words(law.certificate.loss, order.cost),
            "no mechanism below": _in_words(law.certificate.lower_bound, order.cost, "down")
            if law.certificate.lower_bound > 0
            else "",
        }
        for one, law in zip(written.levels, laws, strict=True)
    ]
    print(terminal.text_table(list(rows[0]), rows))
    print(f"The loss is {order.cost.about}, to the place that stands for the area.")
    print("\n".join(kept))
    first = next((one for one in written.levels[1:] if one.areas), written.levels[0])
    area = (first.areas or ("0",))[0]
    area = f'"{area}"' if "," in area else area
    chosen = f"--tree {shlex.quote(output)} --level {shlex.quote(first.name)} --areas {shlex.quote(area)}"
    print(
        f"Go on:\n  metricdp prune {shlex.quote(output)}/places.mdp {chosen} -o mine.mdp   never reports a place there"
    )
    return 0


def prune(
    source: str,
    /,
    *,
    output: Output,
    tree: str | None = None,
    level: str | None = None,
    areas: str | None = None,
    around: choices.Corners | None = None,
    radius: str | None = None,
    rule: Literal["cheapest", "nearest", "renormalise"] = "cheapest",
    prior: str | None = None,
    loss: str | None = None,
    key: str | None = None,
    json: bool = False,
    overwrite: tables.Overwrite = False,
) -> int:
    """Prune a mechanism: places that somebody never wants to be reported at are never reported; the promise stays.

    An example: `metricdp prune porto/places.mdp --tree porto --areas Bonfim,Foz -o mine.mdp`

    Without a tree: `metricdp prune cells.mdp --around 41.15,-8.61 --radius 300m -o mine.mdp`

    A report that is left out becomes another one, always the same: post-processing, which keeps every promise. Whoever
    is at such a place is protected as before. The new file is a mechanism like any other, for devices too. What is
    pruned must be a standing wish ("never that street"): chosen by where somebody is it would tell that, and a hole
    around a home would show the home.

    Args:
        source: A mechanism file on finitely many places; with --tree one of its files.
        output: Where the new file goes.
        tree: A folder from `metricdp tree`, or its tree.json.
        level: The level that --areas names, such as district; found by the names unless given.
        areas: Names of areas, or numbers of places (from 0), with commas between; "," in a name in double quotes.
        around: Leave out all reports around this place, such as 41.15,-8.61.
        radius: How far around it, such as 300m.
        rule: cheapest puts a report on the one of least expected loss, nearest on the nearest; renormalise leaves it
            out, as published, and is refused where that breaks the promise.
        prior: With cheapest: how likely every place is, as for `metricdp design`. It must be public.
        loss: With cheapest: what a report costs, as for `metricdp design`: distance, squared, ground or a file.
        key: A private key file from `metricdp keys`, to sign with.
        json: Print the same as JSON.
        overwrite: Replace a file that is there.
    """
    from metricdp.artifacts import inspect, load_tree, save
    from metricdp.design.pruning import pruned
    from metricdp.files import check_target

    check_target(output, source=source, overwrite=overwrite)
    if (areas is None) == (around is None) or (around is None) != (radius is None):
        raise InvalidInput("say what is never reported: --areas and names, or --around 41.15,-8.61 --radius 300m.")
    if rule != "cheapest" and (prior is not None or loss is not None):
        raise InvalidInput("--prior and --loss say which report is cheapest: they belong to --rule cheapest.")
    opened = inspect(source)
    before = _table(opened.mechanism)
    found = None if tree is None else load_tree(tree)
    reported = None if found is None else _reported(found, opened.sha256, source)
    if around is not None and radius is not None:
        codes = _around(before, around, radius)
    else:
        codes = _named(_listed(str(areas), "areas", "Bonfim,Foz"), found, reported, level, before)
    places = Places(before.inputs)
    likely = None if prior is None else prior_from(prior, places)
    costs = _costs(loss, places, found, reported)
    try:
        after = pruned(before, codes, rule=rule, prior=likely, loss=costs.loss)
    except NotPrivate as error:
        raise NotPrivate(
            f"{error} Take --rule cheapest, which keeps every promise, or a file from `metricdp tree --prunable`."
        ) from error
    save(after, output, licence=opened.licence, key=key)
    if json:
        print(jsons.dumps({"path": output, "pruned": codes.tolist(), **terminal.mechanism_values(after)}, indent=2))
        return 0
    same = pruned_loss(before, likely, costs)
    print(f"{output}: {len(codes):,} of {len(before.outputs):,} reports are never given ({rule}).")
    print(f"Promise: {after.guarantee}, as before; audited epsilon {after.certificate.epsilon:.9g}.")
    print(
        f"Loss: {_in_words(after.certificate.loss, costs)}, before {_in_words(same, costs)} "
        f"({'all places equally likely' if likely is None else 'under the prior'})."
    )
    print(STANDING)
    if opened.signed_by and key is None:
        print("The file read was signed; the new one is not: name your own key with --key to sign it.")
    return 0


def pruned_loss(mechanism: MatrixMechanism, prior: Floats | None, costs: Cost) -> float:
    """Return what the reports of a mechanism cost on average."""
    loss = mechanism.inputs.distances_to(mechanism.outputs) if costs.loss is None else costs.loss
    rows = (mechanism.matrix * loss).sum(axis=1) / mechanism.matrix.sum(axis=1)
    return float(rows.mean() if prior is None else prior @ rows)


def _columns(levels: str) -> int | list[str]:
    if levels.strip().isdecimal():
        return int(levels)
    found = _listed(levels, "levels", "district,city, or be a number such as 3")
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


def _listed(text: str, option: str, example: str) -> list[str]:
    """Return names with commas between; a name with a comma in it stands in double quotes."""
    found = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
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


def _table(mechanism: Any) -> MatrixMechanism:
    if not isinstance(mechanism, MatrixMechanism):
        raise InvalidInput(
            "trees and pruning are for tables with one row a place, up to 4,096 places: take fewer, or a district "
            "(`metricdp export --around`)."
        )
    return mechanism


def _at_level(
    tree: LocationTree, level: int, finest: MatrixMechanism, order: building.Order, secrets: Secrets
) -> MatrixMechanism:
    """Return the mechanism of a level: the optimum among its reports, those of the finest one, or areas as secrets."""
    labels, middles = tree.labels[level], tree.middles(level)
    costs = None if order.cost.loss is None else _dense(order.cost, finest)[:, middles]
    if secrets == "places" and order.builder.name == "optimal" and len(middles) > 1:
        goals = finest.inputs.part(middles)
        return _table(building.made(replace(order, cost=replace(order.cost, loss=costs)), outputs=goals))
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
    return tree.for_places(_table(building.made(areas)), level, loss=costs)


def _dense(cost: Cost, mechanism: MatrixMechanism) -> Floats:
    if isinstance(cost.loss, np.ndarray):
        return cost.loss
    space = mechanism.inputs
    return np.asarray(cost.loss(space.points[:, None], space.points[None]))


def _reported(found: TreeFile, sha256: str, source: str) -> int:
    level = found.holding(sha256)
    if level is None:
        raise InvalidInput(
            f"{source!r} is none of the files of the tree in {str(found.folder)!r}: their checksums differ."
        )
    return level


def _named(
    names: list[str], found: TreeFile | None, reported: int | None, level: str | None, mechanism: MatrixMechanism
) -> Integers:
    """Return the reports that lie in areas, by name; without a tree by number."""
    if found is None or reported is None:
        if level is not None:
            raise InvalidInput("--level names a level of a tree: give it with --tree.")
        size = len(mechanism.outputs)
        if bad := [name for name in names if not (name.isdecimal() and int(name) < size)]:
            raise InvalidInput(f"--areas without --tree are numbers of reports from 0 to {size - 1}, got {bad[0]!r}.")
        return np.unique([int(name) for name in names])
    chosen = found.level_named(level) if level is not None else _level_with(names, found)
    return found.reports(reported, chosen, found.area_codes(chosen, names))


def _level_with(names: list[str], found: TreeFile) -> int:
    """Return the one level that knows all of these names."""
    knowing = [number for number, one in enumerate(found.levels) if one.areas and set(names) <= set(one.areas)]
    if len(knowing) == 1:
        return knowing[0]
    if not knowing and all(name.isdecimal() for name in names) and found.levels[0].areas is None:
        return 0
    titles = ", ".join(one.name for one in found.levels)
    which = "several levels have" if knowing else "no level has"
    raise InvalidInput(f"{which} all of these areas: say which level with --level; there are {titles}.")


def _around(mechanism: MatrixMechanism, around: str, radius: str) -> Integers:
    outputs = mechanism.outputs
    try:
        place = np.array([float(part) for part in around.split(",")])
    except ValueError as error:
        raise InvalidInput(f"--around must be numbers such as 41.15,-8.61, got {around!r}.") from error
    if outputs.is_text or len(place) != outputs.coordinates.shape[1]:
        raise InvalidInput(f"--around must be {outputs.coordinates.shape[1]} numbers, as places have, got {around!r}.")
    reach = choices.distance_in(radius, outputs.ground.unit, "radius")
    codes = np.flatnonzero(outputs.ground(outputs.coordinates, place) <= reach)
    if not len(codes):
        raise InvalidInput(f"no report lies within {radius} of {around}: there is nothing to leave out.")
    return codes


def _costs(wanted: str | None, places: Places, found: TreeFile | None, reported: int | None) -> Cost:
    cost = loss_from(wanted, places)
    if cost.loss is None or not reported or found is None:
        return cost
    return replace(cost, loss=np.asarray(cost.loss)[:, found.levels[reported].middles])


def _in_words(loss: float, cost: Cost, rounding: Literal["nearest", "down"] = "nearest") -> str:
    return wording.distance(loss, cost.unit, rounding)


def _values(written: TreeFile, laws: list[MatrixMechanism]) -> dict[str, Any]:
    return {
        "folder": str(written.folder),
        "places": written.places,
        "levels": [
            {"name": one.name, "file": str(Path(one.file)), "areas": len(one.middles), **terminal.mechanism_values(law)}
            for one, law in zip(written.levels, laws, strict=True)
        ],
    }
