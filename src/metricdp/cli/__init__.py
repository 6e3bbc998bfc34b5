"""The command: parse, call, print."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter

import metricdp
from metricdp import plugins, wording
from metricdp.auditing import AuditReport
from metricdp.cli import building, choices, files, terminal
from metricdp.cli.trajectories import trajectories
from metricdp.errors import InvalidInput, MetricdpError
from metricdp.mechanisms import Mechanism
from metricdp.units import parse_distance, parse_epsilon
from metricdp.wording import Objective

Output = Annotated[str, Parameter(name=["--output", "-o"])]
Level = Annotated[str, Parameter(name="--epsilon", allow_leading_hyphen=True)]  # so that -1 gets our own answer

app = App(
    name="metricdp",
    help="Metric differential privacy: design mechanisms, protect tables, prove what was promised.\n\n"
    "`--plugin NAME` with any command imports a module, a .py file or an entry point of the group `metricdp` first: "
    "metrics, builders, engines and studies of your own.",
    version=metricdp.__version__,
    help_format="markdown",
    suppress_keyboard_interrupt=False,  # `main` answers it
)


@app.command
def perturb(
    source: str,
    /,
    *,
    output: Output,
    epsilon: Level | None = None,
    protect: str | None = None,
    mechanism: str | None = None,
    key: str | None = None,
    columns: str | None = None,
    metric: str = "haversine",
    snap: str | None = None,
    on_error: Literal["fail", "drop", "null"] = "fail",
    show_values: bool = False,
    person: Annotated[str | None, Parameter(name="--id")] = None,
    engine: Literal["local", "spark", "ray"] | None = None,
    resume: bool = False,
    discard: bool = False,
    seed: int | None = None,
) -> int:
    """Protect the points of a CSV or Parquet file of any length, or of many files.

    An example: `metricdp perturb points.csv --epsilon 10/km -o out.csv`

    Many files: `metricdp perturb 'days/*.parquet' --epsilon 10/km -o protected --engine local`

    Args:
        source: The file to protect, CSV with a header or Parquet; or a folder, or a pattern such as 'days/*.parquet'.
        output: Where the protected file goes; it appears when everything went well. A new folder for many files.
        epsilon: How much may leak per distance, such as 10/km: Laplace noise on the columns lat and lon.
        protect: The same as a wish: 2x@200m makes points 200 m apart at most a factor of two apart.
        mechanism: A mechanism file from `metricdp design`, instead of Laplace noise.
        key: A public key file: the mechanism file is refused unless this key signed it.
        columns: The columns of the secret with commas between, such as lat,lon.
        metric: The metric of the Laplace noise: haversine, l1, l2 or linf.
        snap: Put values on the nearest secret up to this distance, such as 200m; its slack is stated.
        on_error: What becomes of rows without a legal secret: fail, drop or null.
        show_values: Let the error show what the first bad row holds; otherwise errors name rows and columns only.
        person: The column that says whose row it is; the total per person is stated.
        engine: For many files: local uses all cores, spark and ray run the parts as their tasks.
        resume: Continue a job over many files that was killed or failed; nothing is released twice.
        discard: Give up such a job, its key and all it has done, and begin anew with new noise.
        seed: SIMULATION ONLY: draw from a seed, so that a run can be repeated. Never release the result.
    """
    from metricdp.tables import perturb_file, perturb_files

    names = None if columns is None else [name.strip() for name in columns.split(",")]
    wished, chosen = _protection(epsilon, protect, mechanism, key, metric=metric, columns=names)
    many = engine is not None or resume or discard or (not Path(source).is_file() and choices.names_many(source))
    if many and show_values:
        raise InvalidInput("--show-values is for one file: the workers of a job over many would write values to logs.")
    snapping = 0.0 if snap is None else parse_distance(snap, terminal.ground_unit(chosen))
    with terminal.progress_bar(f"Protecting {Path(source).name}") as progress:
        if many:
            summary = choices.resumable(perturb_files)(
                source, output, chosen, columns=names, snap=snapping, on_error=on_error, id_column=person,
                engine=engine or "local", resume=resume, discard=discard, rng=choices.seeded(seed), progress=progress,
            )  # fmt: skip
        else:
            summary = perturb_file(
                source, output, chosen, columns=names, snap=snapping, on_error=on_error, show_values=show_values,
                id_column=person, rng=choices.seeded(seed), progress=progress,
            )  # fmt: skip
    print("\n".join([*summary.lines(), *([] if wished is None else wished.kept(summary.guarantee))]))
    print("\n".join(terminal.meaning_lines(chosen, summary.guarantee)))
    return 0


@app.command
def design(
    *,
    points: str,
    epsilon: Level | None = None,
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
        metric: l1, l2, linf, haversine, angular, hyperbolic, hamming or levenshtein; lat and lon mean haversine.
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
    print("\n".join([*terminal.promise_lines(made), *kept]))
    return 0


@app.command
def audit(
    source: str,
    /,
    *,
    points: str | None = None,
    metric: str | None = None,
    epsilon: Level | None = None,
    key: str | None = None,
    json: bool = False,
) -> int:
    """Say what a mechanism really leaks: exit code 0 if its promise holds, 1 if it is violated, 2 if nobody can tell.

    An example: `metricdp audit matrix.csv --points points.csv --metric l2 --epsilon 1.0 --json`

    Args:
        source: A mechanism file, or a CSV file with anyone's matrix: a header, then one row per secret.
        points: For a matrix: the secrets, one a row.
        metric: For a matrix: l1, l2, linf, haversine, angular, hyperbolic, hamming or levenshtein.
        epsilon: The promise to judge; a mechanism file brings its own.
        key: A public key file: a mechanism file is refused unless this key signed it.
        json: Print the report as JSON.
    """
    if Path(source).suffix.lower() in (".csv", ".tsv", ".txt"):
        if key is not None:
            raise InvalidInput("a matrix in a CSV file bears no signature: leave --key away.")
        report, unit = _audit_matrix(source, points, metric, epsilon)
        basis = "certificate"
    else:
        report, unit, basis = _audit_file(source, epsilon, key)
    if json:
        print(terminal.report_json(report, unit, basis))
    elif report.claimed is None:
        print(f"the smallest epsilon is {report.epsilon:.12g}; name the promise with --epsilon to have it judged.")
    else:
        print(report)
    if report.verdict == "violated":
        return 1
    return 0 if report.verdict == "holds" and report.claimed is not None else 2


@app.command
def compare(
    *,
    points: str,
    epsilon: Level,
    output: Output,
    metric: str | None = None,
    builders: str = "exponential,optimal",
    objective: Objective = "expected",
    prior: str | None = None,
    gap: float = 1e-3,
) -> int:
    """Draw loss against epsilon for several mechanisms with the lower bound, and write the numbers beside it.

    An example:
    `metricdp compare --points cells.csv --metric l2 --epsilon 0.5,1,2 --builders exponential,optimal -o compare.png`

    Args:
        points: A CSV file with a header, one point a row and one coordinate a column (or lat, lon).
        epsilon: The values to compare, with commas between: 0.5,1,2 or 1/km,5/km.
        output: Where the picture goes; a CSV file of the same name is put beside it.
        metric: l1, l2, linf, haversine, angular, hyperbolic, hamming or levenshtein; lat and lon mean haversine.
        builders: Names with commas between; `metricdp builders` lists them. madlib has no matrix to compare.
        objective: Which loss is compared and bounded: expected (on average over the points) or worst (of any point).
        prior: A CSV file with a header and one number a point: how likely each is.
        gap: How far the loss of optimal may be from the proven optimum, as a share.
    """
    from metricdp.cli.comparing import Question, compared
    from metricdp.files import check_target
    from metricdp.pictures import loss_plot, write_picture
    from metricdp.pictures.loss import loss_rows, loss_table

    table = str(Path(output).with_suffix(".csv"))
    if Path(output).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidInput(f"the picture {output!r} must be named .png, .svg or .pdf.")
    for target in (output, table):
        check_target(target, source=points)
    space = choices.space_from(points, metric)
    levels = [parse_epsilon(part, space.unit) for part in epsilon.split(",") if part.strip()]
    names = [name.strip() for name in builders.split(",") if name.strip()]
    with terminal.progress_bar("Comparing") as progress:
        found, missing = compared(Question(space, objective, prior, gap), levels, names, progress=progress)
    write_picture(loss_plot(found), output)
    loss_table(found, table)
    print(terminal.text_table(["builder", "epsilon", "loss", "lower_bound", "gap", "seconds"], loss_rows(found)))
    print(f"Loss and lower bound: the {wording.objective(objective)}.")
    for line in missing:
        print(f"Left out: {line}", file=sys.stderr)
    print(f"Picture: {output}; numbers: {table}.")
    return 0


for _command in (trajectories, files.inspect, files.export, files.keys):
    app.command(_command)


@app.command
def demo(folder: str = "demo", /) -> int:
    """Run the whole journey on bundled data: design, protect, audit, report.

    An example: `metricdp demo demo`

    Args:
        folder: Where the results go.
    """
    from metricdp.demo import show

    show(folder)
    return 0


@app.command
def reproduce(name: str | None = None, /, *arguments: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> int:
    """Run a study of a paper by name; without a name, list the studies there are.

    An example: `metricdp reproduce aipo results`

    Args:
        name: The study.
        arguments: What the study itself takes.
    """
    from metricdp.experiments import STUDIES

    if name is None:
        print(terminal.text_table(["name", "about"], [{"name": one.name, "about": one.about} for one in STUDIES]))
        return 0
    STUDIES.named(name).run(*arguments)
    return 0


@app.command
def builders() -> int:
    """List the builders there are, with what each one takes.

    An example: `metricdp builders`
    """
    from metricdp.design.builders import BUILDERS

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


def _protection(
    epsilon: str | None,
    protect: str | None,
    mechanism: str | None,
    key: str | None,
    *,
    metric: str,
    columns: Sequence[str] | None,
) -> tuple[choices.Level | None, Mechanism]:
    """Return what was asked for and the mechanism: that of a file, or Laplace noise."""
    if mechanism is not None:
        if epsilon is not None or protect is not None:
            raise InvalidInput("a mechanism file brings its own epsilon: leave --epsilon and --protect away.")
        return None, choices.mechanism_in(mechanism, trusted=key)
    if key is not None:
        raise InvalidInput("--key is for a mechanism file that was signed: name it with --mechanism.")
    chosen = choices.metric_named(metric)
    level = choices.level_from(epsilon, protect, chosen.unit)
    noise = choices.noise_for(level, chosen, columns)
    level.kept(noise.guarantee)  # raises before anything is read
    return level, noise


def _audit_matrix(source: str, points: str | None, metric: str | None, epsilon: str | None) -> tuple[AuditReport, str]:
    from metricdp.cli.reading import read_matrix

    if points is None:
        raise InvalidInput("a matrix is judged with its secrets: --points points.csv --metric l2 --epsilon 1.0.")
    space = choices.space_from(points, metric)
    matrix = read_matrix(source, rows=len(space))
    if len(matrix) != len(space):
        raise InvalidInput(
            f"{source!r} has {len(matrix)} rows and {points!r} has {len(space)} points: one row belongs to one secret."
        )
    claimed = None if epsilon is None else parse_epsilon(epsilon, space.unit)
    with terminal.progress_bar("Auditing") as progress:
        report = metricdp.audit(matrix, metric=space.metric, points=space.points, epsilon=claimed, progress=progress)
    return report, space.unit


def _audit_file(source: str, epsilon: str | None, key: str | None) -> tuple[AuditReport, str, str]:
    from metricdp.artifacts import inspect as open_file
    from metricdp.artifacts import judge

    mechanism = open_file(source, judged=False, trusted=key).mechanism
    promise = mechanism.guarantee
    report = judge(mechanism)
    if epsilon is not None:
        report = replace(report, claimed=parse_epsilon(epsilon, promise.unit))
    return report, promise.unit, promise.basis


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; every error of ours is one line, without a traceback."""
    try:
        code = app(
            _with_plugins(sys.argv[1:] if arguments is None else list(arguments)),
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except (MetricdpError, CycloptsError) as error:
        return _complain(str(error))
    except KeyboardInterrupt as error:
        print(str(error) or "interrupted: nothing was written", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone; keep the interpreter from complaining when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        return _complain("this needs more memory than there is; use fewer points or a smaller file.")
    except OSError as error:
        return _complain(f"{error.filename or 'a file'}: {error.strerror or error}")


def _with_plugins(words: Sequence[str]) -> list[str]:
    """Import every `--plugin NAME`, before the names it declares are needed, and return the other words."""
    left: list[str] = []
    waiting = iter(words)
    for word in waiting:
        if word == "--":
            return [*left, word, *waiting]
        if word != "--plugin" and not word.startswith("--plugin="):
            left.append(word)
            continue
        name = next(waiting, "") if word == "--plugin" else word.partition("=")[2]
        plugins.load(name)
    return left


def _complain(message: str) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return 2
