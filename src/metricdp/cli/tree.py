"""Location trees: a mechanism for every level of a tree of areas (`design --levels`), and `export --prune`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from metricdp import messages
from metricdp.cli import terminal, watching
from metricdp.cli.options import HIDDEN, BuilderOptions, PlaceOptions, option_group, plain_record
from metricdp.errors import InvalidInput
from metricdp.progress import report_task
from metricdp.rendering import plural
from metricdp.specs import PruneSpec, parse_names

if TYPE_CHECKING:
    from metricdp.artifacts import TreeFile
    from metricdp.mechanisms import MatrixMechanism
    from metricdp.problems import LossSpec

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

    @property
    def columns(self) -> int | list[str]:
        """The columns of areas, or how many levels there are."""
        levels = str(self.levels)
        if levels.strip().isdecimal():
            return int(levels)
        found = parse_names(levels, "levels", "areas", "district,city, or be a number such as 3")
        if len(set(found)) < len(found):
            raise InvalidInput(f"--levels names a column twice, got {levels!r}.")
        return found


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
    from metricdp.cli import guarantees, summaries
    from metricdp.mechanisms import require_pure
    from metricdp.specs import read_tree

    check_folder(output, overwrite=overwrite)
    if tree.prunable is not None and (builder is not None or tree.secrets == "areas"):
        raise InvalidInput(
            "--prunable is a mechanism of its own, with places as secrets: remove --builder and --secrets."
        )
    builder = builder or "optimal"
    with watching.watch("Designing") as watch:
        with report_task("reading"):
            asked = read_tree(builder, where.spec(), tree.columns, options, epsilon=epsilon, protect=protect)
            spec = asked.design
            terminal.note(*spec.notes)
        watch.begin(f"Designing {builder} {spec.words}", spec.gap, spec.cost.unit)
        mechanisms = asked.build(secrets=tree.secrets, prunable=tree.prunable, progress=watch.progress)
        finest = mechanisms[0]
        if any(one.certificate.interrupted for one in mechanisms):
            raise KeyboardInterrupt  # a tree is written whole or not at all
        guarantee = require_pure(finest.guarantee, "a tree of places")
        wish = spec.check_level(guarantee, short=not verbose)
        with report_task(watching.WRITING):
            written = save_tree(asked.tree, mechanisms, output, names=asked.names, areas=asked.areas, key=tree.key)
    if json:
        terminal.say_json(_values(written, mechanisms), sort_keys=True)
        return 0
    made_by = builder if tree.prunable is None else f"prunable by any {tree.prunable} reports"
    first = next((one for one in written.levels[1:] if one.areas), written.levels[0])
    area = (first.areas or ("0",))[0]
    area = f'"{area}"' if "," in area else area
    chosen = f"--prune --tree {shlex.quote(output)} --level {shlex.quote(first.name)} --areas {shlex.quote(area)}"
    steps = f"  metricdp export {shlex.quote(output)}/places.mdp {chosen} -o mine.mdp   never reports a place there"
    if not verbose:
        name = f"{output}, a folder with {len(written.levels)} mechanism files: {made_by} {spec.words}"
        terminal.say(*summaries.design_lines(name, finest, spec.cost, wish, snap=spec.snap), steps)
        return 0
    terminal.say(f"{output}: {made_by} {spec.words}, {asked.tree!r}.")
    terminal.say(f"Guarantee of every file: {finest.guarantee}.")
    rows = [
        {
            "level": one.name,
            "areas": f"{len(one.middles):,}",
            "file": one.file,
            "loss": loss_text(made.certificate.loss, spec.cost),
            "none with these reports below": loss_text(made.certificate.lower_bound, spec.cost, "down")
            if made.certificate.lower_bound > 0
            else "",
        }
        for one, made in zip(written.levels, mechanisms, strict=True)
    ]
    terminal.say(*terminal.table_lines(list(rows[0]), rows))
    terminal.say(f"The loss is {spec.cost.about}, to the place that stands for the area.")
    terminal.say(*guarantees.factor_lines(finest, guarantee, spec.snap), *wish)
    terminal.say("Go on:", steps)
    return 0


def loss_text(loss: float, cost: LossSpec, rounding: Literal["nearest", "down"] = "nearest") -> str:
    """Return a loss in the unit of what it counts."""
    return messages.distance(loss, cost.unit, rounding)


def _values(written: TreeFile, mechanisms: list[MatrixMechanism]) -> dict[str, Any]:
    from metricdp.cli import guarantees

    return {
        "folder": str(written.folder),
        "places": written.places,
        "levels": [
            {"name": one.name, "file": str(Path(one.file)), "areas": len(one.middles)}
            | guarantees.mechanism_values(made)
            for one, made in zip(written.levels, mechanisms, strict=True)
        ],
    }


@option_group
class PruneOptions(PruneSpec):
    """Places that are never reported.

    Attributes:
        prune: Remove reports: those in --areas, or --around a place. A removed report becomes another one, always the
            same. This is post-processing, so the guarantee stays, also for people at such a place. What you prune must
            be a standing wish ("never that street"). A choice by where somebody is would show where that is, and a hole
            around a home would show the home.
        areas: With --prune: names of areas, such as Bonfim,Foz. A name with a comma stands in double quotes. Without
            --tree they are numbers of places, from 0.
    """

    prune: bool = False
    areas: str | None = None
    around: Annotated[str | None, HIDDEN] = None
    radius: Annotated[str | None, HIDDEN] = None

    def spec(self, around: str | None, radius: str | None) -> PruneSpec | None:
        """Return the record of the library; None where nothing is pruned."""
        if not self.prune:
            if named := [one.name for one in fields(self) if getattr(self, one.name) != one.default]:
                raise InvalidInput(f"--{named[0]} says which reports are removed: add --prune.")
            return None
        areas = None if self.areas is None else parse_names(self.areas, "areas", "areas", "Bonfim,Foz")
        found = plain_record(PruneSpec, self, areas=areas, around=around, radius=radius)
        found.check()
        return found


NO_PRUNING = PruneOptions()


def prune_file(source: str, output: str, wanted: PruneSpec, key: str | None, *, json: bool, verbose: bool) -> int:
    """Write a mechanism whose reports avoid some places, with the same guarantee."""
    from metricdp.artifacts import save
    from metricdp.cli import guarantees
    from metricdp.specs import prune

    found = prune(source, wanted)
    after, before = found.mechanism, found.before
    terminal.note(*found.notes)
    save(after, output, licence=before.licence or None, key=key)
    if json:
        terminal.say_json({"path": output, "pruned": found.reports.tolist(), **guarantees.mechanism_values(after)})
        return 0
    unsigned = [UNSIGNED] if before.signed_by and key is None else []
    count, reports = len(found.reports), before.mechanism.outputs.size or 0
    are = "is" if count == 1 else "are"
    done = f"{output}: {count:,} of {plural(reports, 'report')} {are} never given ({wanted.rule})."
    if not verbose:
        terminal.say(*terminal.three_lines(done, messages.headline(after.guarantee), [STANDING, *unsigned]))
        return 0
    terminal.say(done)
    terminal.say(f"Guarantee: {after.guarantee}, as before; audited epsilon {after.certificate.epsilon:.9g}.")
    terminal.say(
        f"Loss: {loss_text(after.certificate.loss, found.cost)}, before {loss_text(found.loss_before, found.cost)} "
        f"({'all places equally likely' if found.prior is None else 'under the prior'})."
    )
    terminal.say(STANDING, *unsigned)
    return 0
