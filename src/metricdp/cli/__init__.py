"""The command: parse, call, print."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from cyclopts import App, CycloptsError, MissingArgumentError, Parameter

import metricdp
from metricdp import plugins
from metricdp.cli import help_screen, terminal, watching
from metricdp.cli.help_screen import COMMANDS, HelpScreen
from metricdp.errors import MetricdpError

# commands and options of 0.1 under their new names; they work for one version, with a warning
OLD_COMMANDS = {
    "tree": ("design",),
    "prune": ("export", "--prune"),
    "shuffle": ("audit",),
    "builders": ("list", "builders"),
    "metrics": ("list", "metrics"),
    "engines": ("list", "engines"),
    "formats": ("list", "formats"),
}
OLD_EXAMPLES = {"tree": " --levels ...", "shuffle": " --people N --distance 200m"}
OLD_OPTIONS = {"--spread": "--allocation", "--at-most": "--max-rows", "--yes-really": "--force"}

app = App(
    name="metricdp",
    help="Metric differential privacy: design mechanisms, protect tables, verify guarantees.",
    version=metricdp.__version__,
    help_format="markdown",
    help_formatter=HelpScreen(),
    default_parameter=Parameter(negative=()),
    suppress_keyboard_interrupt=False,  # `main` answers it
)


for _command in COMMANDS:  # each is imported when it is called, so that a command loads only what it needs
    _place = f"{__name__}.{_command.place}"
    if _command.first:
        app.command(_place, name=_command.name, help_formatter=HelpScreen(_command.first))
    else:
        app.command(_place, name=_command.name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; every error of ours is one line, without a traceback."""
    watching.IS_COMMAND = arguments is None
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note  # put back at the end
            warnings.filterwarnings("always", category=DeprecationWarning, module=r"metricdp\.cli")
            words = use_new_names(_load_plugins(sys.argv[1:] if arguments is None else list(arguments)))
            if not words or words[0] in (*app.help_flags, help_screen.ALL):
                terminal.say(*help_screen.command_lines())
                return 0
            code = app(
                _print_study_help(parse_all(words)),
                exit_on_error=False,
                print_error=False,
                result_action="return_value",
            )
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except (MetricdpError, CycloptsError) as error:
        terminal.note(*getattr(error, "__notes__", ()))
        return _complain(_missing_words(error) or _option_words(str(error)))
    except KeyboardInterrupt as error:
        if watching.IS_COMMAND:
            watching.leave()
        terminal.say(str(error) or "interrupted: nothing was written", stream=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output has gone; keep the interpreter from complaining when it flushes at exit.
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
    """Print a warning as a sentence, without the line of code that gave it."""
    terminal.note(str(message))


def _load_plugins(words: Sequence[str]) -> list[str]:
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


def use_new_names(words: list[str]) -> list[str]:
    """Return the words of a command with the new names, and warn of every old one."""
    if words and (new := OLD_COMMANDS.get(words[0])) is not None:
        example = OLD_EXAMPLES.get(words[0], "")
        _warn_renamed(f"`metricdp {words[0]}` is called `metricdp {' '.join(new)}{example}` now.")
        arguments = words[1:]
        words = [new[0], *arguments, *new[1:]] if new[0] == "export" else [*new, *arguments]
    found: list[str] = []
    for at, word in enumerate(words):
        if word == "--":
            return [*found, *words[at:]]
        name, equals, value = word.partition("=")
        if name in OLD_OPTIONS:
            _warn_renamed(f"`{name}` is called `{OLD_OPTIONS[name]}` now.")
        found.append(OLD_OPTIONS.get(name, name) + equals + value)
    return found


def _warn_renamed(sentence: str) -> None:
    warnings.warn(sentence, DeprecationWarning, stacklevel=1)


def parse_all(words: list[str]) -> list[str]:
    """Return the words with `--help` for `--help-all`, and remember which of the two it was."""
    end = words.index("--") if "--" in words else len(words)
    help_screen.in_full = help_screen.ALL in words[:end]
    return [("--help" if word == help_screen.ALL else word) for word in words[:end]] + words[end:]


def _print_study_help(words: list[str]) -> list[str]:
    """Print what a study is where its help is asked for; the help of the command, with the options, comes after."""
    if words[:1] != ["reproduce"] or not {"--help", "-h"} & set(words) or len(words) < 2 or words[1].startswith("-"):
        return words
    from metricdp.cli.learn import study_help

    terminal.say(*study_help(words[1]).split("\n"), "")
    return ["reproduce", "--help"]


MISSING = {
    "--output": "say where the result goes, as -o out.csv.",
    "SOURCE": "say which file to read: it comes first, as `metricdp {command} FILE`.",
    "--policy": "say what everybody may spend, as --policy '40/km per day'.",
}
OUTPUTS = {
    "perturb": "say where the protected table goes: --output out.csv.",
    "design": "say where the mechanism file goes: -o cells.mdp.",
}


def _missing_words(error: Exception) -> str:
    """Return what to add to a command where something is missing; an empty text for other errors and options."""
    if not isinstance(error, MissingArgumentError) or error.argument is None:
        return ""
    command, name = " ".join(error.command_chain or ()), error.argument.name
    if name == "--output" and command in OUTPUTS:
        return OUTPUTS[command]
    return MISSING.get(name, "").format(command=command)


# what errors of the library say for Python, and how a command says it
PYTHON_WORDS = (
    ("overwrite=True (--overwrite)", "--overwrite"),
    ('Rules(unknown="drop"), "mask" or "spelling" (--unknown on the command line)', "--unknown drop, mask or spelling"),
    ('with on_error="drop" or "null" (--on-error on the command line)', "with --on-error drop or null"),
    ("on_error='drop'", "--on-error drop"),
)


def _option_words(message: str) -> str:
    """Return an error with the options of a command instead of the arguments of a function."""
    for python, option in PYTHON_WORDS:
        message = message.replace(python, option)
    return message


def _complain(message: str) -> int:
    terminal.say(f"error: {' '.join(message.split())}", stream=sys.stderr)
    return 2
