"""Progress of long work, shown in a notebook, on a terminal, or nowhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from metricdp import messages
from metricdp.rendering import escape, printable

OFTEN = 0.1  # seconds between two updates


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
    shown = _in_notebook(title) or _on_terminal(title)
    last = 0.0

    def report_progress(*values: Any) -> None:
        nonlocal last
        now = time.monotonic()
        if shown is not None and (now - last >= OFTEN or (values and values[0] == 1.0)):
            last = now
            shown.update(*share_and_words(values))

    try:
        yield report_progress
    finally:
        if shown is not None:
            shown.close()


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


class _Notebook:
    def __init__(self, title: str, display: Any, html: Any) -> None:
        self._title, self._html = title, html
        self._handle = display(html(bar_html(title, 0.0, "")), display_id=True)

    def update(self, share: float | None, words: str) -> None:
        self._handle.update(self._html(bar_html(self._title, share, words)))

    def close(self) -> None:
        self._handle.update(self._html(f"<div>{escape(self._title)}: done</div>"))


class _Terminal:
    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        words = [TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[words]}")]
        columns = (words[0], BarColumn(bar_width=24), TimeElapsedColumn(), words[1])
        self._bars = Progress(*columns, console=Console(stderr=True), transient=True)
        self._bars.start()
        self._task = self._bars.add_task(printable(title), total=1.0, words="")

    def update(self, share: float | None, words: str) -> None:
        self._bars.update(self._task, completed=share, words=printable(words))

    def close(self) -> None:
        self._bars.stop()


def _in_notebook(title: str) -> _Notebook | None:
    """Return a bar if a kernel runs: without an imported IPython there is no notebook."""
    shell = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    if running is None or type(running).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import HTML, display

    return _Notebook(title, display, HTML)


def _on_terminal(title: str) -> _Terminal | None:
    return _Terminal(title) if sys.stderr.isatty() else None
