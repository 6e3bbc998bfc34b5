"""Location trees: a mechanism for every level of a tree of areas (`design --levels`), and `export --prune`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from metricdp import messages
from metricdp.cli import terminal, watching
from metricdp.cli.options import BuilderOptions, distance_in, numbers, quoted_names
from metricdp.cli.places import PlaceOptions, PlaceSet
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.progress import report_task

if TYPE_CHECKING:
    from metricdp.arrays import Integers
    from metricdp.artifacts import TreeFile
    from metricdp.cli.build_spec import BuildSpec
    from metricdp.mechanisms import MatrixMechanism
    from metricdp.places import LocationTree
    from metricdp.problems import LossSpec

Secrets = Literal["places", "areas"]
STANDING = (
    "What is pruned shows in what is never reported. It must be a standing wish, chosen without looking at where "
    "somebody is. A hole around a home shows the home: prune whole areas instead."
)
UNSIGNED = "The file read was signed; the new one is not: name your own key with --key to sign it."


@dataclass(frozen=True)
class TreeOptions:
    """A mechanism for every level of a tree of areas.

    Attributes:
        levels: Design a tree of areas: their columns, finest first, such as district,city. Every level has a mechanism
            of its own. It takes the columns of the points that name areas, or a number of levels, made by halving the
            map. An area lies whole in one of the next level. They must be public. OUTPUT is then a folder with
            places.mdp, one file for every level above, and tree.json, which says what lies in what. All files have the
            same guarantee for the places.
        secrets: With --levels: places (the default) hides places, and only the reports of a level are areas: the best
            ones by optimal, with other builders those of the places, as areas. areas hides areas from each other, by
            the distance of their nearest places, so that all places of an area have one distribution. That costs more.
        prunable: With --levels: make places.mdp so that any such number of places can be removed from its reports and
            the rest renormalised (`metricdp export --prune --rule renormalise`). The default rule needs no such
            reserve and costs less.
        key: With --levels: a private key file from `metricdp keys`, to sign with.
    """

    levels: str | None = None
    secrets: Literal["places", "areas"] = "places"
    prunable: int | None = None
    key: str | None = None

    def check(self) -> None:
        """Refuse what says more about a tree that nobody asked for."""
        if self != NO_TREE:
            raise InvalidInput("--secrets, --prunable and --key belong to a tree of areas: name its --levels.")


NO_TREE = TreeOptions()


def design_tree(
    where: PlaceOptions,
    epsilon: str | None,
    protect: str | None,
    output: str,
    builder: str | None,
    options: BuilderOptions,
    tree: TreeOptions,
    *,
    json: bool,
    verbose: bool,
    overwrite: bool,
) -> int:
    """Design a mechanism for every level of a tree of areas: places, districts, cities."""
    from metricdp.artifacts import save_tree
    from metricdp.artifacts.trees import check_folder
    from metricdp.auditing import position_guarantee
    from metricdp.cli import build_spec, guarantees, summaries
    from metricdp.mechanisms import require_pure

    check_folder(output, overwrite=overwrite)
    secrets, prunable = tree.secrets, tree.prunable
    if prunable is not None and (builder is not None or secrets == "areas"):
        raise InvalidInput(
            "--prunable is a mechanism of its own, with places as secrets: remove --builder and --secrets."
        )
    builder, columns = builder or "optimal", _columns(str(tree.levels))
    where = where if isinstance(columns, int) else _drop_columns(where, columns)
    with watching.watch("Designing") as watch:
        with report_task("reading"):
            spec, level = build_spec.read_spec(builder, where, options, epsilon=epsilon, protect=protect)
            if spec.places is None:
                raise InvalidInput(f"{builder} is not built on places, which a tree needs; use optimal or exponential.")
            made_of, named = _tree(columns, spec.places)
        watch.begin(f"Designing {builder} {spec.words}", spec.gap, spec.cost.unit)
        if prunable is None:
            finest = table_of(build_spec.made(spec, progress=watch.progress))
        else:
            finest = made_of.prunable(spec.epsilon, prunable, prior=spec.prior, loss=spec.cost.loss)
        level_mechanisms = [
            finest,
            *(_mechanism_of_level(made_of, level, finest, spec, secrets) for level in range(1, made_of.height + 1)),
        ]
        if any(distribution.certificate.interrupted for distribution in level_mechanisms):
            raise KeyboardInterrupt  # a tree is written whole or not at all
        guarantee = require_pure(finest.guarantee, "a tree of places")
        wider = position_guarantee(guarantee, spec.places.space, snap=spec.snap) if spec.snap else guarantee
        kept = [] if level is None else level.kept(wider)
        with report_task(watching.WRITING):
            names = None if isinstance(columns, int) else columns
            written = save_tree(made_of, level_mechanisms, output, names=names, areas=named, key=tree.key)
    if json:
        terminal.say_json(_values(written, level_mechanisms), sort_keys=True)
        return 0
    made_by = builder if prunable is None else f"prunable by any {prunable} reports"
    first = next((one for one in written.levels[1:] if one.areas), written.levels[0])
    area = (first.areas or ("0",))[0]
    area = f'"{area}"' if "," in area else area
    chosen = f"--prune --tree {shlex.quote(output)} --level {shlex.quote(first.name)} --areas {shlex.quote(area)}"
    steps = f"  metricdp export {shlex.quote(output)}/places.mdp {chosen} -o mine.mdp   never reports a place there"
    if not verbose:
        name = f"{output}, a folder with {len(written.levels)} mechanism files: {made_by} {spec.words}"
        terminal.say(*summaries.design_lines(name, finest, spec.cost, kept, snap=spec.snap), steps)
        return 0
    terminal.say(f"{output}: {made_by} {spec.words}, {made_of!r}.")
    terminal.say(f"Guarantee of every file: {finest.guarantee}.")
    rows = [
        {
            "level": one.name,
            "areas": f"{len(one.middles):,}",
            "file": one.file,
            "loss": loss_text(distribution.certificate.loss, spec.cost),
            "none with these reports below": loss_text(distribution.certificate.lower_bound, spec.cost, "down")
            if distribution.certificate.lower_bound > 0
            else "",
        }
        for one, distribution in zip(written.levels, level_mechanisms, strict=True)
    ]
    terminal.say(*terminal.table_lines(list(rows[0]), rows))
    terminal.say(f"The loss is {spec.cost.about}, to the place that stands for the area.")
    terminal.say(*guarantees.factor_lines(finest, guarantee, spec.snap), *kept)
    terminal.say("Go on:", steps)
    return 0


def _columns(levels: str) -> int | list[str]:
    if levels.strip().isdecimal():
        return int(levels)
    found = quoted_names(levels, "levels", "areas", "district,city, or be a number such as 3")
    if len(set(found)) < len(found):
        raise InvalidInput(f"--levels names a column twice, got {levels!r}.")
    return found


def _drop_columns(where: PlaceOptions, columns: list[str]) -> PlaceOptions:
    """Return where places are, the columns of areas and of names left out of their coordinates."""
    if where.points is None or where.table.columns is not None:
        return where
    from metricdp.tables import available_columns
    from metricdp.tables.points import IDS, read_flat

    besides = (*IDS, *columns, *where.policy.besides)
    found = read_flat(where.points, None, where.table.reading(), besides=besides)
    if missing := [name for name in columns if name not in found.table.schema.names]:
        raise InvalidInput(f"{where.points!r}: no column {missing[0]!r}. {available_columns(found.table.schema.names)}")
    quoted = ",".join(f'"{name}"' for name in found.columns)
    return replace(where, table=replace(where.table, columns=quoted))


def _tree(columns: int | list[str], places: PlaceSet) -> tuple[LocationTree, list[list[str] | None]]:
    """Return the tree and the names of its areas, level by level."""
    from metricdp.places import location_tree

    if isinstance(columns, int):
        made = location_tree(places.space, columns)
        return made, [None] * (made.height + 1)
    file = places.file
    if file is None:
        raise InvalidInput("--levels names columns of the points: with --grid or --roads give a number, such as 3.")
    labels = [file.labels(column) for column in columns]
    names = file.names if file.rows is None else None
    own = names if names is not None and len(set(names)) == len(places.space) else None
    return location_tree(places.space, labels), [own, *(sorted(set(names)) for names in labels)]


def table_of(mechanism: Any) -> MatrixMechanism:
    """Return a mechanism that is a table; any other is refused."""
    from metricdp.mechanisms.kinds.matrix import as_table

    table = as_table(mechanism)
    if table is None:
        most = "tables with one row a place, up to 4,096 places"
        raise InvalidInput(f"trees and pruning are for {most}: take fewer, or a district (`metricdp export --around`).")
    return table


def _mechanism_of_level(
    tree: LocationTree, level: int, finest: MatrixMechanism, spec: BuildSpec, secrets: Secrets
) -> MatrixMechanism:
    """Return the mechanism of a level: the optimum among its reports, those of the finest one, or areas as secrets."""
    from metricdp.cli.build_spec import made

    middles = tree.middles(level)
    costs = None if spec.cost.loss is None else spec.cost.matrix(finest.inputs)[:, middles]
    if secrets == "places" and spec.builder.name == "optimal" and len(middles) > 1:
        goals = finest.inputs.part(middles)
        return table_of(made(replace(spec, cost=replace(spec.cost, loss=costs)), outputs=goals))
    if secrets == "places" or len(middles) == 1:
        return tree.coarsen(finest, level, loss=costs)
    prior, loss = tree.averages(level, prior=spec.prior, loss=costs)
    areas = replace(
        spec, places=PlaceSet(tree.at_level(level)), prior=None if spec.prior is None else prior,
        cost=replace(spec.cost, loss=loss),
    )  # fmt: skip
    return tree.for_places(table_of(made(areas)), level, loss=costs)


def loss_text(loss: float, cost: LossSpec, rounding: Literal["nearest", "down"] = "nearest") -> str:
    """Return a loss in the unit of what it counts."""
    from metricdp import messages

    return messages.distance(loss, cost.unit, rounding)


def _values(written: TreeFile, level_mechanisms: list[MatrixMechanism]) -> dict[str, Any]:
    from metricdp.cli import guarantees

    return {
        "folder": str(written.folder),
        "places": written.places,
        "levels": [
            {"name": one.name, "file": str(Path(one.file)), "areas": len(one.middles)}
            | guarantees.mechanism_values(distribution)
            for one, distribution in zip(written.levels, level_mechanisms, strict=True)
        ],
    }


@dataclass(frozen=True)
class PruneOptions:
    """Places that are never reported.

    Attributes:
        prune: Remove reports: those in --areas, or --around a place. A
            removed report becomes another one, always the same. This is post-processing, so the guarantee stays, also
            for people at such a place. What you prune must be a standing wish ("never that street"). A choice by where
            somebody is would show where that is, and a hole around a home would show the home.
        areas: With --prune: names of areas, such as Bonfim,Foz. A name with a comma stands in double quotes. Without
            --tree they are numbers of places, from 0.
        tree: With --areas: a folder from `metricdp design --levels`, or its tree.json.
        level: With --tree: the level that --areas names, such as district; found by the names unless given.
        rule: With --prune: cheapest puts a report on the one of least expected loss, nearest on the nearest;
            renormalise removes it, as published, and is refused where that breaks the guarantee.
        prior: With --rule cheapest: how likely every place is, as for `metricdp design`. It must be public.
        loss: With --rule cheapest: what a report costs, as for `metricdp design`: distance, squared, ground or a file.
    """

    prune: bool = False
    areas: str | None = None
    tree: str | None = None
    level: str | None = None
    rule: Literal["cheapest", "nearest", "renormalise"] = "cheapest"
    prior: str | None = None
    loss: str | None = None

    def check(self, around: str | None, radius: str | None) -> None:
        """Refuse what says more about pruning that nobody asked for, and pruning of nothing."""
        if not self.prune:
            if named := [one.name for one in fields(self) if getattr(self, one.name) != one.default]:
                raise InvalidInput(f"--{named[0]} says which reports are removed: add --prune.")
            return
        if (self.areas is None) == (around is None) or (around is None) != (radius is None):
            raise InvalidInput("say what is never reported: --areas and names, or --around 41.15,-8.61 --radius 300m.")
        if self.rule != "cheapest" and (self.prior is not None or self.loss is not None):
            raise InvalidInput("--prior and --loss say which report is cheapest: they belong to --rule cheapest.")


NO_PRUNING = PruneOptions()


def prune_file(
    source: str,
    output: str,
    wanted: PruneOptions,
    around: str | None,
    radius: str | None,
    key: str | None,
    *,
    json: bool,
    verbose: bool,
) -> int:
    """Write a mechanism whose reports avoid some places, with the same guarantee."""
    from metricdp.artifacts import inspect, load_tree, save
    from metricdp.auditing import expected_loss
    from metricdp.cli import guarantees
    from metricdp.cli.build_spec import prior_of
    from metricdp.design.pruning import prune_reports

    rule, prior, loss, level = wanted.rule, wanted.prior, wanted.loss, wanted.level
    opened = inspect(source)
    before = table_of(opened.mechanism)
    found = None if wanted.tree is None else load_tree(wanted.tree)
    reported = None if found is None else _report_level(found, opened.sha256, source)
    if around is not None and radius is not None:
        codes = _reports_around(before, around, radius)
    else:
        codes = _reports_in_areas(
            quoted_names(str(wanted.areas), "areas", "areas", "Bonfim,Foz"), found, reported, level, before
        )
    places = PlaceSet(before.inputs)
    likely = None if prior is None else prior_of(prior, places)
    costs = _costs(loss, places, found, reported)
    try:
        after = prune_reports(before, codes, rule=rule, prior=likely, loss=costs.loss)
    except NotPrivate as error:
        raise NotPrivate(
            f"{error} Take --rule cheapest, which keeps every guarantee, or a file from `metricdp design` with "
            "--levels and --prunable."
        ) from error
    save(after, output, licence=opened.licence or None, key=key)
    if json:
        terminal.say_json({"path": output, "pruned": codes.tolist(), **guarantees.mechanism_values(after)})
        return 0
    distances = before.inputs.distances_to(before.outputs)
    same = expected_loss(before, prior=likely, loss=distances if costs.loss is None else costs.loss)
    unsigned = [UNSIGNED] if opened.signed_by and key is None else []
    done = f"{output}: {len(codes):,} of {len(before.outputs):,} reports are never given ({rule})."
    if not verbose:
        terminal.say(*terminal.three_lines(done, messages.headline(after.guarantee), [STANDING, *unsigned]))
        return 0
    terminal.say(done)
    terminal.say(f"Guarantee: {after.guarantee}, as before; audited epsilon {after.certificate.epsilon:.9g}.")
    terminal.say(
        f"Loss: {loss_text(after.certificate.loss, costs)}, before {loss_text(same, costs)} "
        f"({'all places equally likely' if likely is None else 'under the prior'})."
    )
    terminal.say(STANDING, *unsigned)
    return 0


def _report_level(found: TreeFile, sha256: str, source: str) -> int:
    level = found.level_of_file(sha256)
    if level is None:
        raise InvalidInput(
            f"{source!r} is none of the files of the tree in {str(found.folder)!r}: their checksums differ."
        )
    return level


def _reports_in_areas(
    names: list[str], found: TreeFile | None, reported: int | None, level: str | None, mechanism: MatrixMechanism
) -> Integers:
    """Return the reports that lie in areas, by name; without a tree by number."""
    import numpy as np

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
    import numpy as np

    outputs = mechanism.outputs
    place = np.array(numbers(around, "around", "numbers such as 41.15,-8.61"))
    if outputs.is_text or len(place) != outputs.coordinates.shape[1]:
        raise InvalidInput(f"--around must be {outputs.coordinates.shape[1]} numbers, as places have, got {around!r}.")
    reach = distance_in(radius, outputs.ground.unit, "radius")
    codes = np.flatnonzero(outputs.ground(outputs.coordinates, place) <= reach)
    if not len(codes):
        raise InvalidInput(f"no report lies within {radius} of {around}: there is nothing to remove.")
    return codes


def _costs(wanted: str | None, places: PlaceSet, found: TreeFile | None, reported: int | None) -> LossSpec:
    import numpy as np

    from metricdp.cli.build_spec import loss_of

    cost = loss_of(wanted, places)
    if cost.loss is None or not reported or found is None:
        return cost
    return replace(cost, loss=np.asarray(cost.loss)[:, found.levels[reported].middles])
