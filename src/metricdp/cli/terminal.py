"""What people see: lines, bars, tables."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from metricdp import progress
from metricdp.rendering import json_text, printable

if TYPE_CHECKING:
    from rich.progress import TextColumn


MORE = "--verbose says more."


def say(*lines: object, stream: TextIO | None = None) -> None:
    """Print lines, one of each: whatever a file wrote into them moves no cursor and begins no line of its own."""
    print("\n".join(printable(str(line)) for line in lines), file=stream or sys.stdout, flush=stream is not None)


def three_lines(written: str, guaranteed: str, watch: Iterable[str]) -> list[str]:
    """Return the three lines; the last one says how to read the rest.

    Sentences that begin with "Guarantee of" say it once: the line does.
    """
    guaranteed = re.sub(r"^Guarantee of ", "", guaranteed)
    guaranteed = re.sub(r"(?<=\. )Guarantee of (\w)", lambda found: found[1].upper(), guaranteed)
    to_watch = " ".join(watch) or "nothing."
    return [f"Written: {written}", f"Guaranteed: {guaranteed}", f"To watch: {to_watch} {MORE}"]


def say_json(values: Any, *, sort_keys: bool = False) -> None:
    """Print plain values as JSON."""
    print(json_text(values, sort_keys=sort_keys))


def plain_column(text: str) -> TextColumn:
    """Return a column of a bar that shows text as it is: names of files and columns are no markup."""
    from rich.progress import TextColumn

    return TextColumn(text, markup=False)


def note(*sentences: str) -> None:
    """Say on the error stream what was done without being asked for, a sentence each."""
    for sentence in sentences:
        say(f"note: {sentence}", stream=sys.stderr)


@contextmanager
def show_bar(width: int = 40, *, ends: bool = False) -> Iterator[Any]:
    """Show a bar with words beside it on a terminal's error stream; elsewhere give None.

    With `ends` it says how long the rest takes, without it how long it has taken.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeElapsedColumn, TimeRemainingColumn

    clock = (TaskProgressColumn(), TimeRemainingColumn()) if ends else (TimeElapsedColumn(),)
    columns = plain_column("{task.description}"), BarColumn(width), *clock, plain_column("{task.fields[words]}")
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield bar


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[float], None] | None]:
    """Show a bar on a terminal's error stream, and beside it what is being done; without a terminal, show nothing."""
    with show_bar(ends=True) as bar:
        if bar is None:
            yield None
            return
        task = bar.add_task(printable(title), total=1.0, words="")

        def hear(words: str) -> None:
            bar.update(task, words=printable(words), completed=progress.share())  # None leaves it where it is

        with progress.listen(hear):
            yield lambda share: bar.update(task, completed=share)


@contextmanager
def steps_bar(title: str, words: str = "") -> Iterator[Callable[[float, str], None] | None]:
    """Show a bar with what is being done on a terminal's error stream; where that is no terminal, show nothing."""
    with show_bar(24) as bar:
        task = None if bar is None else bar.add_task(printable(title), total=1.0, words=words)
        yield None if bar is None else lambda share, what: bar.update(task, completed=share, words=printable(what))


def bounds_text(lower: float, upper: float, unit: str) -> str:
    """Return both bounds of a search and the gap between them in words; losses are distances."""
    from metricdp import messages

    proven = f"none with these reports below {messages.distance(lower, unit, 'down')}"
    if not (math.isfinite(upper) and math.isfinite(lower) and upper > 0):
        return proven if math.isfinite(lower) else "no bounds yet"
    loss = messages.distance(upper, unit, "up")
    return f"loss {loss}, {proven}, gap {messages.gap(max(0.0, (upper - lower) / upper))}"


def table_lines(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return rows as aligned text, one line a row below the names."""
    cells = [[f"{row[n]:.6g}" if isinstance(row[n], float) else printable(str(row[n])) for n in names] for row in rows]
    widths = [max(len(line[i]) for line in [list(names), *cells]) for i in range(len(names))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in [list(names), *cells]
    ]
