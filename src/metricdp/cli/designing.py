"""The commands that make mechanisms: design one, list builders and metrics."""

from __future__ import annotations

import shlex
from typing import Annotated

import numpy as np
from cyclopts import Parameter

from metricdp.cli import building, choices, tables, terminal
from metricdp.cli.choices import Epsilon, Output
from metricdp.design.builders import BUILDERS
from metricdp.mechanisms import LocalMechanism, Mechanism
from metricdp.metrics import METRICS


def design(
    *,
    where: Annotated[choices.Where, Parameter(name="*")] = choices.NOWHERE,
    epsilon: Epsilon | None = None,
    protect: str | None = None,
    output: Output,
    builder: str = "optimal",
    options: Annotated[building.Options, Parameter(name="*")] = building.NOTHING_ASKED,
    overwrite: tables.Overwrite = False,
) -> int:
    """Design a mechanism for the points of a file or the crossings of a city and write it with its certificate.

    An example: `metricdp design --points cells.csv --metric l2 --epsilon 1.0 --builder optimal -o cells.mdp`

    A whole city: `metricdp design --roads rome.graphml --epsilon 10/km --gap 0.05 -o rome.mdp`

    A long search ends well on Ctrl-C: the best mechanism so far is certified and written. `--builder decomposed
    --checkpoint run.npz` also keeps its state, and the same command with `--resume` goes on from it.

    Args:
        where: Points of a file, or roads.
        epsilon: How much may leak per distance: 10/km on lat and lon and on roads, a bare number elsewhere.
        protect: The same as a wish: 2x@200m makes points 200 m apart at most a factor of two apart.
        output: Where the mechanism file goes.
        builder: The name of a builder; `metricdp builders` lists them.
        options: What only some builders take.
        overwrite: Replace a mechanism file that is there.
    """
    from metricdp.artifacts import save
    from metricdp.files import check_target

    check_target(output, source=where.points or where.roads, overwrite=overwrite or options.resume)
    gap = building.gap_for(building.builder_named(builder), space := where.space(), options)
    level = choices.level_from(epsilon, protect, space.unit)
    with terminal.search_bar(f"Designing {builder} on {where.words(space)}", gap, space.unit) as progress:
        made = building.built(builder, space, level.epsilon(), options=options, progress=progress)
    kept = level.kept(made.guarantee)
    save(made, output)
    print(f"{output}: {builder} on {where.words(space)}.")
    print("\n".join([*terminal.promise_lines(made, in_distance=made.certificate.pairs > 0), *kept]))
    print(_next(output, made))
    return 0


def _next(output: str, made: Mechanism) -> str:
    """Return what one does with the file."""
    name = shlex.quote(output)
    lines = [
        "Go on:",
        f"  metricdp audit {name}   judges it again, without trust in who made it",
        f"  metricdp perturb table.csv --mechanism {name} -o protected.csv   protects a table of these places",
    ]
    if isinstance(made, LocalMechanism) and not made.inputs.is_text:
        middle = ",".join(f"{value:.6g}" for value in np.median(made.inputs.coordinates, axis=0))
        around = f"--around {middle} --radius 3{made.inputs.ground.unit}"
        lines.append(f"  metricdp export {name} {around} -o district.mdp   writes a public district for devices")
    return "\n".join(lines)


def metrics() -> int:
    """List the metrics that can be named, with what each one measures.

    An example: `metricdp metrics`
    """
    rows = [{"metric": ", ".join(one.words), "about": one.about.replace("`", "")} for one in METRICS if one.words]
    print(terminal.text_table(["metric", "about"], rows))
    return 0


def builders() -> int:
    """List the builders there are, with what each one takes.

    An example: `metricdp builders`
    """
    rows = [
        {
            "builder": one.name,
            "options": " ".join([*(f"--{name}" for name in one.options), *(f"--set {name}=" for name in one.own)]),
            "about": one.about,
        }
        for one in BUILDERS
        if one.at_command
    ]
    print(terminal.text_table(["builder", "about", "options"], rows))
    return 0
