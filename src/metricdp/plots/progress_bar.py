"""Progress of long work, shown in a notebook, on a terminal, or nowhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from typing import Any, Protocol

from metricdp import messages
from metricdp.rendering import escape, printable

OFTEN = 0.1  # seconds between two updates
Show = Callable[[float | None, str], None]


class ProgressCallback(Protocol):
    """What is called with (share), (share, what), or the (lower, upper, seconds, steps) of a search."""

    def __call__(self, *values: Any) -> None: ...


@contextmanager
def progress(title: str) -> Iterator[ProgressCallback]:
    """Show the progress of long work; what is yielded goes to `progress=` of builders, `mdp.compare` and tables.

    In a notebook it is a bar of plain HTML that needs no widgets, on a terminal a bar of text, elsewhere nothing.

        with mdp.plots.progress("Designing") as tell:
            mechanism = mdp.optimal(problem, progress=tell)
    """
    with _bar(title) as show:
        last = 0.0

        def report_progress(*values: Any) -> None:
            nonlocal last
            now = time.monotonic()
            if show is not None and (now - last >= OFTEN or (values and values[0] == 1.0)):
                last = now
                show(*share_and_words(values))

        yield report_progress


def share_and_words(values: tuple[Any, ...]) -> tuple[float | None, str]:
    """Return the finished share (None if unknown) and the words beside it."""
    if len(values) == 4:
        lower, upper, seconds, _ = (float(value) for value in values)
        gap = (upper - lower) / upper if 0 < upper < float("inf") else 1.0
        return None, f"{seconds:.0f} s, gap {messages.gap(max(0.0, gap))}"
    share = min(1.0, max(0.0, float(values[0]))) if values else None
    return share, str(values[1]) if len(values) > 1 else ""


def bar_html(title: str, share: float | None, words: str) -> str:
    """Return a bar in plain HTML, in whatever colours the notebook has."""
    value = "" if share is None else f' value="{share:.3f}"'
    return f'<div>{escape(title)} <progress max="1"{value}></progress> {escape(words)}</div>'


def _bar(title: str) -> AbstractContextManager[Show | None]:
    """Return a bar for a notebook or a terminal; without an imported IPython there is no notebook."""
    shell = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    if running is not None and type(running).__name__ == "ZMQInteractiveShell":
        return _notebook_bar(title)
    return _terminal_bar(title) if sys.stderr.isatty() else nullcontext()


@contextmanager
def _notebook_bar(title: str) -> Iterator[Show]:
    screen: Any = import_module("IPython.display")
    shown = screen.display(screen.HTML(bar_html(title, 0.0, "")), display_id=True)
    try:
        yield lambda share, words: shown.update(screen.HTML(bar_html(title, share, words)))
    finally:
        shown.update(screen.HTML(f"<div>{escape(title)}: done</div>"))


@contextmanager
def _terminal_bar(title: str) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    words = [TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[words]}")]
    columns = (words[0], BarColumn(bar_width=24), TimeElapsedColumn(), words[1])
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(printable(title), total=1.0, words="")
        yield lambda share, words: bars.update(task, completed=share, words=printable(words))
