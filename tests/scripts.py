"""Scripts and lines of pages, run in this process: another interpreter would import everything once more."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
from pathlib import Path

import pytest

from metricdp import cli


def script(source: Path | str, folder: Path) -> str:
    """Run a file, or the text of one, as `python file.py` would in a folder, and return what it prints.

    Warnings are errors here, as in all tests. What starts processes of its own needs a process of its own.
    """
    said = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(said), pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", [str(source) if isinstance(source, Path) else "-c"])
        if isinstance(source, Path):
            runpy.run_path(str(source), run_name="__main__")
        else:
            exec(compile(source, "<page>", "exec"), {"__name__": "__main__"})
    return said.getvalue()


def command(words: list[str], folder: Path) -> str:
    """Run `metricdp` with these words in a folder, which must go well, and return what it prints."""
    said, complaints = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(said), contextlib.redirect_stderr(complaints):
        assert cli.main(words) == 0, complaints.getvalue()
    return said.getvalue()


VERBOSE = ("perturb", "text", "trajectories", "estimate", "design", "audit", "inspect", "export", "choose")


def main(words: list[str]) -> int:
    """Run `metricdp` in this process and return its exit code; commands print all they know, which tests read."""
    shortens = words[0] in VERBOSE or words[:2] == ["budget", "show"]
    return cli.main([*words, "--verbose"] if shortens else words)
