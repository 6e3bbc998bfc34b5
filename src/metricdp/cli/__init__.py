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
from metricdp.cli import terminal, watching
from metricdp.errors import MetricdpError

# Each is imported when it is called, so that a command loads only what it needs.
COMMANDS = {
    "perturb": "perturb:perturb",
    "engines": "perturb:engines",
    "formats": "perturb:formats",
    "choose": "choose:choose",
    "design": "design:design",
    "builders": "design:builders",
    "metrics": "design:metrics",
    "audit": "audit:audit",
    "compare": "compare:compare",
    "trajectories": "trajectories:trajectories",
    "stream": "streaming:stream",
    "text": "texts:text",
    "estimate": "estimate:estimate",
    "shuffle": "shuffle:shuffle",
    "tree": "tree:tree",
    "prune": "tree:prune",
    "inspect": "files:inspect",
    "export": "files:export",
    "keys": "files:keys",
    "demo": "studies:demo",
    "reproduce": "studies:reproduce",
    "studio": "serve:studio",
    "serve": "serve:serving",
    "budget": "budget:budget",
}

app = App(
    name="metricdp",
    help="Metric differential privacy: design mechanisms, protect tables, prove what was promised.\n\n"
    "`--plugin NAME` with any command imports a module, a .py file or an entry point of the group `metricdp` first: "
    "metrics, builders, engines and studies of your own.",
    version=metricdp.__version__,
    help_format="markdown",
    suppress_keyboard_interrupt=False,  # `main` answers it
)


for _name, _place in COMMANDS.items():
    app.command(f"{__name__}.{_place}", name=_name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; every error of ours is one line, without a traceback."""
    watching.IS_COMMAND = arguments is None
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note  # put back at the end
            words = _with_study_help(_with_plugins(sys.argv[1:] if arguments is None else list(arguments)))
            if not words or words[0] in app.help_flags:  # what every command is for
                for name in COMMANDS:
                    app[name]
            code = app(
                words,
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


def _with_study_help(words: list[str]) -> list[str]:
    """Print what a study is where its help is asked for; the help of the command, with the options, comes after."""
    if words[:1] != ["reproduce"] or not {"--help", "-h"} & set(words) or len(words) < 2 or words[1].startswith("-"):
        return words
    from metricdp.cli.studies import study_help

    terminal.say(*study_help(words[1]).split("\n"), "")
    return ["reproduce", "--help"]


def _complain(message: str) -> int:
    terminal.say(f"error: {' '.join(message.split())}", stream=sys.stderr)
    return 2
