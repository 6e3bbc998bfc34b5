"""A command as a sampler: one secret a line in, one report a line out."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from metricdp.arrays import Points, as_positive
from metricdp.errors import InvalidInput, SamplerFailure
from metricdp.samplers.process import Process, RestartingSampler
from metricdp.samplers.reports import line_of, line_reports, printable

AT_ONCE = 20_000  # secrets written before answers are waited for
LISTEN = 0.05  # seconds after the first answer of a start in which a second one would be one too many
SHELL = ("|", "||", "&&", "&", ";", ">", ">>", "<", "2>", "2>&1")


class CommandSampler(RestartingSampler):
    """Draw reports from a command that is kept running.

    The command reads one secret a line (`0.5,-1.25`, or a word) and prints one report a line at once, in the same
    order, until its input ends. It is started without a shell, in a process group of its own which is killed at the end
    with all that it started. Lines nobody asked for, silence longer than `patience` seconds, an early end: each is a
    `SamplerFailure` with a sentence. Python commands get PYTHONUNBUFFERED=1, so that their lines come at once.
    """

    def __init__(self, command: str | Sequence[str], *, patience: float = 60.0) -> None:
        self.words = _words(command)
        self.patience = as_positive(patience, "patience")

    def each(self, secrets: Sequence[Any]) -> Points:
        """Return one report for every secret, in their order, one a row."""
        if len(secrets) == 0:
            return np.empty((0, 1))
        lines = [line_of(secret) for secret in secrets]
        hide = "\n".join(dict.fromkeys(lines))
        answers: list[str] = []
        if self._process is None:
            self._process = self._start()
            answers = self._process.ask(lines[0] + "\n", 1, hide=hide)
            self._check_no_output_left(hide, LISTEN, first=answers[0])
        else:
            self._check_no_output_left(hide)  # what came late belongs to no secret
        while len(answers) < len(lines):
            some = lines[len(answers) : len(answers) + AT_ONCE]
            answers += self._process.ask("\n".join(some) + "\n", len(some), hide=hide)
        self._check_no_output_left(hide)
        return line_reports(answers, "the command", hide=hide)

    def _start(self) -> Process:
        environment = {"PYTHONUNBUFFERED": "1", **os.environ}
        process = Process(self.words, patience=self.patience, who="the command", environment=environment)
        if (line := process.stray_line(LISTEN)) is not None:
            process.close()
            raise SamplerFailure(
                f"the command printed {printable(line)!r} before it was given a secret: it must print one report for "
                f"each "
                "line it reads and nothing else. Greetings and logs belong on its error stream."
            )
        return process

    def _check_no_output_left(self, line: str, seconds: float = 0.0, *, first: str = "") -> None:
        assert self._process is not None
        extra = self._process.stray_line(seconds)
        if extra is not None:
            self.close()
            said = f"{printable(extra, line)!r}"
            said = f"{printable(first, line)!r} and {said} for one secret" if first else f"{said} unasked"
            raise SamplerFailure(
                f"the command printed {said}: which report belongs to which secret is then unknown. It must print one "
                "line for each line it reads and nothing else; greetings and logs belong on its error stream."
            )


def _words(command: str | Sequence[str]) -> list[str]:
    """Return the program and its arguments; what only a shell understands is refused."""
    if not isinstance(command, str):
        words = [str(word) for word in command]
    else:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise InvalidInput(f"the command has a quotation mark without its partner: {command!r}.") from error
        for word in words:
            if word in SHELL or word.startswith(("$", "~", "`")):
                raise InvalidInput(
                    f"the command is started without a shell, which {word!r} would need: put it into a script and name "
                    "that, or write it as sh -c '...'."
                )
    if not words:
        raise InvalidInput("the command is empty: name a program, such as 'python their_sampler.py'.")
    if words[0] in ("python", "python3") and shutil.which(words[0]) is None:
        words[0] = sys.executable
    return words
