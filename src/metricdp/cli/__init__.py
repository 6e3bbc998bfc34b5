"""The command: parse, call, print."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cyclopts import App, CycloptsError

import metricdp
from metricdp import plugins
from metricdp.auditing import AuditReport
from metricdp.cli import choices, files, terminal
from metricdp.cli.choices import Epsilon
from metricdp.cli.comparing import compare
from metricdp.cli.designing import builders, design
from metricdp.cli.protecting import engines, perturb
from metricdp.cli.studies import demo, reproduce
from metricdp.cli.trajectories import trajectories
from metricdp.errors import InvalidInput, MetricdpError
from metricdp.units import parse_epsilon

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
def audit(
    source: str,
    /,
    *,
    points: str | None = None,
    metric: str | None = None,
    epsilon: Epsilon | None = None,
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
    else:
        report, unit = _audit_file(source, epsilon, key)
    if json:
        print(terminal.report_json(report, unit))
    elif report.claimed is None:
        print(f"the smallest epsilon is {report.epsilon:.12g}; name the promise with --epsilon to have it judged.")
    else:
        print(report)
    return {"holds": 0, "violated": 1}.get(report.verdict, 2)


for _command in (
    perturb, engines, design, builders, compare, trajectories, files.inspect, files.export, files.keys, demo, reproduce,
):  # fmt: skip
    app.command(_command)


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


def _audit_file(source: str, epsilon: str | None, key: str | None) -> tuple[AuditReport, str]:
    from metricdp.artifacts import inspect as open_file

    mechanism = open_file(source, judged=False, trusted=key).mechanism
    promise = mechanism.guarantee
    claimed = None if epsilon is None else parse_epsilon(epsilon, promise.unit)
    return metricdp.audit(mechanism, epsilon=claimed), promise.unit


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
