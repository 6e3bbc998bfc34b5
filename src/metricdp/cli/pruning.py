"""The command that prunes a mechanism: reports that somebody never wants are never given, and the promise stays."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.cli import choices, guarantees, tables, terminal
from metricdp.cli.choices import Output, Places
from metricdp.cli.stakes import Cost, loss_from, prior_from
from metricdp.cli.trees import in_words, listed, table_of
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.mechanisms import MatrixMechanism

if TYPE_CHECKING:
    from metricdp.artifacts import TreeFile

STANDING = (
    "What is pruned shows in what is never reported: it must be a standing wish, chosen without looking at where "
    "somebody is. A hole around a home shows the home: leave out whole areas instead."
)


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
    before = table_of(opened.mechanism)
    found = None if tree is None else load_tree(tree)
    reported = None if found is None else _reported(found, opened.sha256, source)
    if around is not None and radius is not None:
        codes = _around(before, around, radius)
    else:
        codes = _named(listed(str(areas), "areas", "Bonfim,Foz"), found, reported, level, before)
    places = Places(before.inputs)
    likely = None if prior is None else prior_from(prior, places)
    costs = _costs(loss, places, found, reported)
    try:
        after = pruned(before, codes, rule=rule, prior=likely, loss=costs.loss)
    except NotPrivate as error:
        raise NotPrivate(
            f"{error} Take --rule cheapest, which keeps every promise, or a file from `metricdp tree --prunable`."
        ) from error
    save(after, output, licence=opened.licence or None, key=key)
    if json:
        terminal.say_json({"path": output, "pruned": codes.tolist(), **guarantees.mechanism_values(after)})
        return 0
    same = pruned_loss(before, likely, costs)
    terminal.say(f"{output}: {len(codes):,} of {len(before.outputs):,} reports are never given ({rule}).")
    terminal.say(f"Promise: {after.guarantee}, as before; audited epsilon {after.certificate.epsilon:.9g}.")
    terminal.say(
        f"Loss: {in_words(after.certificate.loss, costs)}, before {in_words(same, costs)} "
        f"({'all places equally likely' if likely is None else 'under the prior'})."
    )
    terminal.say(STANDING)
    if opened.signed_by and key is None:
        terminal.say("The file read was signed; the new one is not: name your own key with --key to sign it.")
    return 0


def pruned_loss(mechanism: MatrixMechanism, prior: Floats | None, costs: Cost) -> float:
    """Return what the reports of a mechanism cost on average."""
    loss = mechanism.inputs.distances_to(mechanism.outputs) if costs.loss is None else costs.loss
    rows = (mechanism.matrix * loss).sum(axis=1) / mechanism.matrix.sum(axis=1)
    return float(rows.mean() if prior is None else prior @ rows)


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
