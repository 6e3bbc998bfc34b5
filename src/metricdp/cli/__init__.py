"""The command: parse, call, print."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from cyclopts import App, CycloptsError

import metricdp
from metricdp import plugins
from metricdp.cli import files, terminal, watching
from metricdp.cli.budgeting import budget
from metricdp.cli.choosing import choose
from metricdp.cli.comparing import compare
from metricdp.cli.designing import builders, design, metrics
from metricdp.cli.estimating import estimate
from metricdp.cli.judging import audit
from metricdp.cli.opening import studio
from metricdp.cli.protecting import engines, perturb
from metricdp.cli.pruning import prune
from metricdp.cli.serving import serving
from metricdp.cli.shuffling import shuffle
from metricdp.cli.streaming import stream
from metricdp.cli.studies import demo, reproduce, with_study_help
from metricdp.cli.tables import formats
from metricdp.cli.texts import text
from metricdp.cli.trajectories import trajectories
from metricdp.cli.trees import tree
from metricdp.errors import MetricdpError

app = App(
    name="metricdp",
    help="Metric differential privacy: design mechanisms, protect tables, prove what was promised.\n\n"
    "`--plugin NAME` with any command imports a module, a .py file or an entry point of the group `metricdp` first: "
    "metrics, builders, engines and studies of your own.",
    version=metricdp.__version__,
    help_format="markdown",
    suppress_keyboard_interrupt=False,  # `main` answers it
)


for _command in (
    *(perturb, engines, formats, choose, design, builders, metrics, audit, compare, trajectories, stream, text),
    *(estimate, shuffle, tree, prune, files.inspect, files.export, files.keys, demo, reproduce, studio),
):  # fmt: skip
    app.command(_command)
app.command(serving)
app.command(budget)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; every error of ours is one line, without a traceback."""
    watching.IS_COMMAND = arguments is None
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note  # put back at the end
            code = app(
                with_study_help(_with_plugins(sys.argv[1:] if arguments is None else list(arguments))),
                exit_on_error=False,
                print_error=False,
                result_action="return_value",
            )
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except (MetricdpError, CycloptsError) as error:
        return _complain(str(error))
    except KeyboardInterrupt as error:
        if watching.IS_COMMAND:
            watching.leave()
        terminal.say(str(error) or "interrupted: nothing was written", stream=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone; keep the interpreter from complaining when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        return _complain("this needs more memory than there is; use fewer points or a smaller file.")
    except OSError as error:
        return _complain(f"{error.filename or 'a file'}: {error.strerror or error}")


def _note(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Say a warning as a sentence, without the line of code that gave it."""
    terminal.say(f"note: {message}", stream=sys.stderr)


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
    terminal.say(f"error: {' '.join(message.split())}", stream=sys.stderr)
    return 2
