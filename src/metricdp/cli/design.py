"""The command that designs mechanisms, alone or as a tree of areas."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from metricdp.cli import terminal, watching
from metricdp.cli.options import (
    NO_BUILDER_OPTIONS,
    NOWHERE,
    BuilderOptions,
    Epsilon,
    Output,
    PlaceOptions,
    Verbose,
)
from metricdp.cli.tree import NO_TREE, TreeOptions, design_tree
from metricdp.progress import report_task

if TYPE_CHECKING:
    from metricdp.mechanisms import Mechanism
    from metricdp.specs import DesignSpec

INTERRUPTED_TEXT = (
    "INTERRUPTED: the search was ended before it was done. What it had found by then is certified and written."
)
INTERRUPTED = 3  # exit code: written, but the search was ended before it was done


def design(
    *,
    where: Annotated[PlaceOptions, Parameter(name="*")] = NOWHERE,
    epsilon: Epsilon | None = None,
    protect: str | None = None,
    output: Output,
    builder: str | None = None,
    options: Annotated[BuilderOptions, Parameter(name="*")] = NO_BUILDER_OPTIONS,
    tree: Annotated[TreeOptions, Parameter(name="*")] = NO_TREE,
    json: bool = False,
    verbose: Verbose = False,
    overwrite: bool = False,
) -> int:
    """Design a mechanism for points, crossings or cells of a city, or for words, and write it with its certificate.

    An example: `metricdp design --points cells.csv --metric l2 --epsilon 1.0 --builder optimal -o cells.mdp`

    A whole city: `metricdp design --roads rome.graphml --epsilon 10/km --gap 0.05 -o rome.mdp`

    Words: `metricdp design --vectors glove.npz --epsilon 3 --builder exponential -o words.mdp`

    Cells of a map: `metricdp design --grid 41.88,12.45,41.92,12.51 --cell 500m --epsilon 5/km -o cells.mdp`

    Areas of several sizes: `metricdp design --points shops.csv --levels district,city --epsilon 10/km -o porto`

    A long search ends well on Ctrl-C: the best mechanism so far is certified and written, marked as interrupted, with
    exit code 3; where there is none yet, nothing is written, with exit code 130, and a second Ctrl-C always ends so.
    `--builder decomposed --checkpoint run.npz` also keeps its state, and the same command with `--resume` goes on from
    it.

    Args:
        epsilon: How much may leak per distance, such as 10/km. It is per km on lat and lon and on roads, a bare number
            elsewhere.
        protect: Instead of epsilon: 2x@200m, a factor of at most 2 between points 200 m apart.
        output: Where the mechanism file goes; with --levels a folder.
        builder: The name of a builder; `metricdp list builders` lists them. For words exponential, elsewhere optimal.
        json: Print the result as JSON.
        verbose: Print everything that is known about the mechanism.
        overwrite: Replace a mechanism file that is there.
    """
    from metricdp.artifacts import save
    from metricdp.cli import guarantees, summaries
    from metricdp.files import check_target
    from metricdp.specs import read_design

    if tree.levels is not None:
        return design_tree(
            where, epsilon, protect, output, builder, options, tree, json=json, verbose=verbose, overwrite=overwrite
        )
    tree.check()
    check_target(output, source=where.source_name, overwrite=overwrite or options.resume)
    builder = builder or ("exponential" if where.are_words else "optimal")
    with watching.watch("Designing") as watch:
        with report_task("reading"):
            spec = read_design(builder, where.spec(), options, epsilon=epsilon, protect=protect)
            terminal.note(*spec.notes)
        watch.begin(f"Designing {builder} {spec.words}", spec.gap, spec.cost.unit)
        made = spec.build(progress=watch.progress)
        asked = spec.check_level(made.guarantee, short=not verbose)
        with report_task(watching.WRITING):
            save(made, output)
    code = INTERRUPTED if made.certificate.interrupted else 0
    if json:
        terminal.say_json(_values(spec, made, output), sort_keys=True)
        return code
    interrupted = [INTERRUPTED_TEXT] if code == INTERRUPTED else []
    if not verbose:
        lines = summaries.design_lines(f"{output}, {builder} {spec.words}", made, spec.cost, asked, spec.snap)
        terminal.say(*interrupted, *lines, _next(spec, made, output)[-1])
        return code
    terminal.say(*interrupted, f"{output}: {builder} {spec.words}.")
    in_distance = spec.cost.is_distance and made.certificate.pairs > 0 and spec.builder.start != "mechanisms"
    terminal.say(*guarantees.guarantee_lines(made, in_distance=in_distance, snap=spec.snap), *asked)
    if not spec.cost.is_distance:
        terminal.say(f"The loss is {spec.cost.about}{f', in {spec.cost.unit}' if spec.cost.unit else ''}.")
    terminal.say(*_next(spec, made, output))
    return code


def _values(spec: DesignSpec, made: Mechanism, output: str) -> dict[str, Any]:
    """Return what was built as plain values."""
    from metricdp.cli import guarantees

    return {
        "path": output,
        "builder": spec.builder.name,
        "on": spec.words,
        "loss": {"is": spec.cost.about, "unit": spec.cost.unit},
        "positions": guarantees.positions_of(made, spec.snap),
        **guarantees.mechanism_values(made, snap=spec.snap),
    }


def _next(spec: DesignSpec, made: Mechanism, output: str) -> list[str]:
    """Return what one does with the file, one line each."""
    import numpy as np

    from metricdp import spaces
    from metricdp.cli.summaries import snap_text
    from metricdp.mechanisms import MECHANISMS

    name = shlex.quote(output)
    where = None if spec.places is None else spec.places.spec
    kinds = {"metric": "a table", "mechanisms": "a table of the columns of all parts", "box": "a table of places there"}
    snap, what = "", f"protects {kinds.get(spec.builder.start, 'a table of these places')}"
    if where is not None and where.cell is not None and spec.places is not None:
        snap = f" --snap {snap_text(spec.places)}"
        what = "protects a table, every value put on the middle of its cell"
    lines = ["Go on:", f"  metricdp audit {name}   verifies it again, without trust in who made it"]
    if made.inputs.is_text:
        text = f"  metricdp text reviews.csv --column text --mechanism {name} --unknown mask -o protected.csv"
        return [*lines, f"{text}   protects a column of texts"]
    lines.append(f"  metricdp perturb table.csv --mechanism {name}{snap} -o protected.csv   {what}")
    kind = MECHANISMS.kind(made)
    if kind is not None and kind.is_sparse:
        places = spaces.require_space(made.inputs.finite, spaces.FiniteSpace, "the secrets").coordinates
        middle = ",".join(f"{value:.6g}" for value in np.median(places, axis=0))
        around = f"--around {middle} --radius 3{made.inputs.ground.unit}"
        lines.append(f"  metricdp export {name} {around} -o district.mdp   writes a public district for devices")
    return lines
