"""The command that protects tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

import metricdp
from metricdp import wording
from metricdp.cli import choices, tables, terminal
from metricdp.cli.charging import UNCHARGED, Charged
from metricdp.cli.choices import Epsilon, Input, Output
from metricdp.cli.embeddings import AS_THEY_ARE, Vectors
from metricdp.cli.leaving import ALL_STAY, Leaving
from metricdp.cli.sharing import ONE_BY_ONE, Sharing
from metricdp.cli.telling import NOTHING_TOLD, Telling
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Mechanism, pure
from metricdp.units import parse_distance


def perturb(
    source: Input,
    /,
    *,
    output: Output,
    epsilon: Epsilon | None = None,
    protect: str | None = None,
    mechanism: str | None = None,
    key: str | None = None,
    metric: str = "haversine",
    snap: str | None = None,
    on_error: Literal["fail", "drop", "null"] = "fail",
    show_values: bool = False,
    sharing: Annotated[Sharing, Parameter(name="*")] = ONE_BY_ONE,
    charged: Annotated[Charged, Parameter(name="*")] = UNCHARGED,
    leaving: Annotated[Leaving, Parameter(name="*")] = ALL_STAY,
    vectors: Annotated[Vectors, Parameter(name="*")] = AS_THEY_ARE,
    engine: str | None = None,
    resume: bool = False,
    discard: bool = False,
    seed: int | None = None,
    telling: Annotated[Telling, Parameter(name="*")] = NOTHING_TOLD,
    table: Annotated[tables.Source, Parameter(name="*")] = tables.AS_IT_IS,
    target_format: Annotated[str | None, Parameter(name="--to")] = None,
    overwrite: tables.Overwrite = False,
) -> int:
    """Protect the points of a table of any length in a file, or of many files.

    An example: `metricdp perturb points.csv --epsilon 10/km -o out.csv`

    From one format to another: `metricdp perturb trips.db::fixes --epsilon 10/km -o protected.parquet`

    Many files: `metricdp perturb 'days/*.parquet' --epsilon 10/km -o protected --engine local`

    Args:
        source: The table to protect: a CSV file with a header, Parquet, a table of a database (trips.db::fixes) and
            more (`metricdp formats`); - for standard input; or a folder, or a pattern such as 'days/*.parquet'.
        output: Where the protected table goes, in the format its name says (- for standard output); it appears when
            everything went well. A new folder for many files.
        epsilon: How much may leak per distance, such as 10/km: Laplace noise on the columns lat and lon.
        protect: The same as a wish: 2x@200m makes points 200 m apart at most a factor of two apart.
        mechanism: A mechanism file from `metricdp design`, instead of Laplace noise.
        key: A public key file: the mechanism file is refused unless this key signed it.
        metric: The metric of the Laplace noise: haversine (haversine:mi for miles), l1, l2 or linf; angular for unit
            vectors, on their sphere.
        snap: Put values on the nearest secret up to this distance, such as 200m; its slack is stated.
        on_error: What becomes of rows without a legal secret: fail, drop or null.
        show_values: Let the error show what the first bad row holds; otherwise errors name rows and columns only.
        engine: For many files: local uses all cores, spark and ray run the parts as their tasks; `metricdp engines`.
        resume: Continue a job over many files that was killed or failed; nothing is released twice.
        discard: Give up such a job, its key and all it has done, and begin anew with new noise.
        seed: SIMULATION ONLY: draw from a seed, so that a run can be repeated. Never release the result.
        telling: What to write about the table besides the table.
        table: How the table is read.
        target_format: The format of the output, where its name does not say it.
        overwrite: Replace an output that is there.
    """
    from metricdp.cli import guarantees
    from metricdp.tables import Job, names_many

    names, reading, job = table.names, table.reading(target_format), Job(engine=engine, resume=resume, discard=discard)
    many = names_many(source, job)
    if many and show_values:
        raise InvalidInput("--show-values is for one file: the workers of a job over many would write values to logs.")
    if many and telling.show_secrets:
        raise InvalidInput(
            "--show-secrets is for one file: of many, the page shows the reports that lie in the output."
        )
    telling.check(source, output, overwrite=overwrite)
    sight = telling.sight()
    wished, chosen = _protection(epsilon, protect, mechanism, key, metric=metric, at=(source, table, vectors))
    if telling.report is not None:
        from metricdp.tables.reporting import PAGE

        pure(chosen.guarantee, *PAGE)  # before anything is read or charged
    snapping = 0.0 if snap is None else parse_distance(snap, guarantees.ground_unit(chosen))
    with (
        charged.opened(sharing.budget, chosen) as charging,
        terminal.progress_bar(f"Protecting {Path(source).name}") as progress,
    ):
        summary = (choices.resumable(metricdp.perturb) if many else metricdp.perturb)(
            source, chosen, columns=names, to=output, people=sharing.people(charging), rng=choices.seeded(seed),
            disclosure=leaving.disclosure(force=table.yes_really, accuracy_column=telling.accuracy),
            reading=replace(reading, snap=snapping, on_error=on_error, show_values=show_values),
            job=replace(
                job, overwrite=overwrite and not many, progress=progress,
                watch=sight.released if many and sight is not None else sight,
            ),
        )  # fmt: skip
    spread = summary.spending if summary.spending is not None and summary.spending.is_spread else None
    told = telling.tell(summary, chosen, sight)  # before anything is printed: whoever reads may go away
    with tables.beside_output(output):
        terminal.say(*summary.lines(), *([] if wished is None else wished.kept(summary.guarantee)))
        terminal.say(*guarantees.meaning_lines(chosen, summary.guarantee, spending=spread))
        if snapping and chosen.inputs.same_ground:  # elsewhere the two distances do not add
            terminal.say(wording.snapped_loss(snapping, guarantees.ground_unit(chosen)))
        for line in told:
            terminal.say(line)
    return 0


def engines() -> int:
    """List the engines that protect many files, with the extra that brings what each one needs.

    An example: `metricdp engines`
    """
    from metricdp.tables.engines import for_files

    rows = [
        {"engine": one.name, "about": one.about, "needs": one.extra and f"metricdp[{one.extra}]"} for one in for_files()
    ]
    terminal.say(*terminal.table_lines(["engine", "about", "needs"], rows))
    return 0


def _protection(
    epsilon: str | None,
    protect: str | None,
    mechanism: str | None,
    key: str | None,
    *,
    metric: str,
    at: tuple[str, tables.Source, Vectors],
) -> tuple[choices.Level | None, Mechanism]:
    """Return what was asked for and the mechanism: that of a file, or Laplace noise."""
    if mechanism is not None:
        if epsilon is not None or protect is not None:
            raise InvalidInput("a mechanism file brings its own epsilon: leave --epsilon and --protect away.")
        return None, choices.mechanism_in(mechanism, trusted=key)
    if key is not None:
        raise InvalidInput("--key is for a mechanism file that was signed: name it with --mechanism.")
    chosen = choices.metric_named(metric)
    source, table, vectors = at
    tables.refuse_vectors(source, table, chosen)
    try:
        level = choices.level_from(epsilon, protect, chosen.unit)
    except InvalidInput:
        if epsilon is not None or protect is not None:
            tables.check_places(source, table, chosen)  # km mean nothing to a table without places
        raise
    noise = choices.noise_for(level, chosen, tables.dimension_in(source, table, chosen), vectors)
    level.kept(noise.guarantee)  # raises before anything is read
    return level, noise
