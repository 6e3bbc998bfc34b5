"""How a table gets to its place: whole or not at all, as a file, a table of a database, or on standard output."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from metricdp.declarations import loaded
from metricdp.errors import InvalidInput, OutputProblem
from metricdp.files import check_target, holding, in_its_folder, is_ledger, refuse_ledger, replacing
from metricdp.tables.formats import INPUT_FILE, OPEN_FILES, STANDARD, Location
from metricdp.tables.formats.databases import chosen_table, same_table


@contextmanager
def received(source: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the name of a table that is there; what comes on standard input is first put into a file.

    Formats are read from several places of a file, so it has to be one. Where the system allows it the file has no
    name, so that it is gone when we are; elsewhere only its owner can read it.
    """
    if os.fspath(source) != STANDARD:
        yield os.fspath(source)
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise InvalidInput(
            "- stands for standard input, and nothing is handed over there: name a file, or pipe one in."
        )
    listed = Path(OPEN_FILES).is_dir()
    with tempfile.TemporaryFile() if listed else tempfile.NamedTemporaryFile(prefix=INPUT_FILE) as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        yield f"{OPEN_FILES}{file.fileno()}" if listed else str(file.name)


@contextmanager
def delivered(goal: Location, source: Location | None = None, *, overwrite: bool) -> Iterator[Path]:
    """Yield the path of a new file that becomes the table when the block ends well."""
    if goal.text == STANDARD:
        yield from _on_standard_output()
        return
    read = None if source is None else source.path
    if read is not None and is_ledger(read):
        raise InvalidInput(f"{str(read)!r} is a ledger, not a table to protect: name another source.")
    if goal.format.tables and goal.path.is_file():
        refuse_ledger(goal.path)
        if source is not None and _is_read(source, goal):
            raise OutputProblem(
                f"cannot write {goal.text!r}: it is the table that is read. Choose another name for it."
            )
        with holding(goal.path):
            yield from _into_database(goal, overwrite=overwrite)
        return
    check_target(goal.path, source=read, overwrite=overwrite)
    with holding(goal.path), replacing(goal.path, source=read, overwrite=overwrite) as partial:
        yield partial


def _is_read(source: Location, goal: Location) -> bool:
    """Tell whether a table of a database is the source, or one that the source, a view, is read from."""
    made = source.format
    if not goal.table or not made.tables or not source.path.samefile(goal.path):
        return False
    name = chosen_table(loaded(made.listing)(source.path), source)
    return any(same_table(one, goal.table) for one in {name, *loaded(made.behind)(source.path, name)})


def _on_standard_output() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="metricdp-") as folder:
        made = Path(folder) / "reports"
        made.touch(0o600)
        yield made
        with made.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.flush()


def _into_database(goal: Location, *, overwrite: bool) -> Iterator[Path]:
    """Make the table in a file of its own, then put it into the database in one transaction."""
    place = in_its_folder(goal.path)
    if not os.access(place, os.W_OK):
        raise OutputProblem(f"cannot write {goal.text!r}: you have no permission to change that file.")
    if not goal.table:
        raise InvalidInput(f"{goal.text!r} is a database: name the table to make, such as {goal.text}::protected.")
    if not overwrite and any(same_table(goal.table, one) for one in loaded(goal.format.listing)(place)):
        raise OutputProblem(
            f"cannot write {goal.text!r}: there is such a table. Choose another name, or replace it with "
            "overwrite=True (--overwrite)."
        )
    with tempfile.TemporaryDirectory(prefix=".metricdp-", dir=place.parent) as folder:
        made = Path(folder) / "table"
        made.touch(0o600)
        yield made
        loaded(goal.format.insert)(made, place, goal.table)
