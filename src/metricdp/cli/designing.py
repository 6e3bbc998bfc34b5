"""The commands that make mechanisms: design one, list builders and metrics."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from metricdp.cli import building, choices, terminal
from metricdp.cli.choices import Epsilon, Output
from metricdp.design.builders import BUILDERS
from metricdp.metrics import METRICS


def design(
    *,
    points: str,
    epsilon: Epsilon | None = None,
    protect: str | None = None,
    output: Output,
    metric: str | None = None,
    builder: str = "optimal",
    options: Annotated[building.Options, Parameter(name="*")] = building.NOTHING_ASKED,
) -> int:
    """Design a mechanism for the points of a file and write it with its certificate.

    An example: `metricdp design --points cells.csv --metric l2 --epsilon 1.0 --builder optimal -o cells.mdp`

    A long search ends well on Ctrl-C: the best mechanism so far is certified and written. `--builder decomposed
    --checkpoint run.npz` also keeps its state, and the same command with `--resume` goes on from it.

    Args:
        points: A CSV file with a header, one point a row and one coordinate a column (or lat, lon).
        epsilon: How much may leak per distance: 10/km on lat and lon, a bare number elsewhere.
        protect: The same as a wish: 2x@200m makes points 200 m apart at most a factor of two apart.
        output: Where the mechanism file goes.
        metric: Its name (`metricdp metrics` lists them), with a unit where wanted: l2, haversine:mi; lat and lon mean
            haversine.
        builder: The name of a builder; `metricdp builders` lists them.
        options: What only some builders take.
    """
    from metricdp.artifacts import save
    from metricdp.files import check_target

    check_target(output)
    space = choices.space_from(points, metric)
    level = choices.level_from(epsilon, protect, space.unit)
    with terminal.progress_bar(f"Designing {builder} on {len(space)} points") as progress:
        made = building.built(builder, space, level.epsilon(), options=options, progress=progress)
    kept = level.kept(made.guarantee)
    save(made, output)
    print(f"{output}: {builder} on {len(space)} points.")
    print("\n".join([*terminal.promise_lines(made, in_distance=made.certificate.pairs > 0), *kept]))
    return 0


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
