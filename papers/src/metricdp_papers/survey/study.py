"""Tables I to III of the survey, and what its text names beyond them: where each is here, or why it is not.

`survey.csv` holds a line for every metric, mechanism, measure, domain and data set. A piece looks up every name that is
said to be here, so that a line which is no longer true fails.

References: Xie, Yu, Huang, Cao, Qiu, "A decade of metric differential privacy: advancements and applications".
"""

from __future__ import annotations

import csv
import importlib
from collections.abc import Iterator
from importlib.resources import files

from metricdp.errors import InvalidInput
from metricdp_papers.common import Piece, Row, Study, StudyTable
from metricdp_papers.survey import comparison
from metricdp_papers.survey.domains import DOMAINS

STATES = ("here", "in part", "not here")
TABLES = (
    StudyTable("I", "Distances", "The metrics of mDP works, with who used them and what for."),
    StudyTable(
        "II",
        "Mechanisms and measures",
        "36 works by family of mechanism, size of the location set and definition of the utility loss.",
        "A work and its measure are lines of their own. One work has no family in the paper, and none here.",
    ),
    StudyTable("III", "Data sets", "19 well-known data sets, with type, use and size."),
    StudyTable(
        "text", "What the text names beyond its tables", "Metrics, mechanisms, measures and application domains."
    ),
    comparison.TABLE,
)


def lines() -> list[dict[str, str]]:
    """Return the lines of the data file."""
    text = files("metricdp_papers.survey").joinpath("survey.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def resolve_name(name: str) -> object:
    """Return what a dotted name stands for: a module, or a name of one."""
    module, _, last = name.rpartition(".")
    try:
        parent = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InvalidInput(f"the survey's table names {name!r}, and there is no module {module!r}.") from error
    if hasattr(parent, last):
        return getattr(parent, last)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InvalidInput(f"the survey's table names {name!r}, which is not there.") from error


def resolve_rows(table: str, sort: str) -> list[Row]:
    """Return the rows of one sort in one table, each with its names looked up."""
    rows: list[Row] = []
    for line in lines():
        if (line["table"], line["sort"]) != (table, sort):
            continue
        for name in line["here"].split():
            resolve_name(name)
        about = {name: text for name, text in line.items() if name not in ("table", "note")}
        rows.append({**about, "measure": "where it is", "note": line["note"]})
    return rows


def pieces(full: bool) -> Iterator[Piece]:
    """One piece for every sort of thing in a table, and one for every domain and epsilon of the comparison.

    The short version has one epsilon a domain.
    """
    for table, sort in dict.fromkeys((line["table"], line["sort"]) for line in lines()):
        yield Piece(f"{table}_{sort}", table, resolve_rows, (table, sort))
    for name, domain in DOMAINS.items():
        for epsilon in domain.epsilons if full else domain.epsilons[-1:]:
            yield Piece(f"{name}_{epsilon:g}", comparison.NUMBER, comparison.compared, (name, epsilon))


STUDY = Study(
    "survey",
    "the survey's metrics, mechanisms, measures and data: where each is here, and all families at equal guarantee",
    TABLES,
    pieces,
    comparison.picture,
)
