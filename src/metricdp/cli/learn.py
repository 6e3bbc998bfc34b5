"""The commands for learning: the first journey, the studies of papers, and lists of what there is."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any, Literal

from metricdp.cli import terminal
from metricdp.errors import MissingExtra

PAPERS = "metricdp_papers"  # the only package that this one imports by its name alone


def demo(folder: str = "demo", /, *, city: str | None = None, nodes: int | None = None) -> int:
    """Run the whole journey on bundled data: design, protect, audit, report.

    An example: `metricdp demo demo`

    Args:
        folder: Where the results go.
        city: A larger map than central Porto: a city such as rome, a folder or a GraphML file. 5,000 crossings around
            its centre are solved on windows. Cities lie in the data folder; a folder has nodes and edges.
        nodes: How many crossings instead.
    """
    from metricdp.demo import show

    show(folder, city=city, nodes=nodes)
    return 0


def reproduce(
    name: str | None = None,
    /,
    *,
    table: list[str] | None = None,
    full: bool = False,
    folder: str | None = None,
    jobs: int = 1,
    minutes: float | None = None,
) -> int:
    """Run a study of a paper by name; without a name, list the studies there are.

    An example: `metricdp reproduce aipo --table 2 --full --jobs 4`

    What ran is kept in the folder piece by piece: a run that was stopped, or that lacks pieces another machine made,
    continues when the same command is given again. `metricdp reproduce NAME --help` shows the tables of a study.
    Studies come with the distribution metricdp-papers.

    Args:
        name: The study.
        table: The number of a table or figure, as in the paper; may be repeated. All of them where it is left out.
        full: Run the published size and data instead of a short version. The published numbers stand beside ours.
        folder: Where pieces, tables, figures and the page index.html go; the name of the study where it is left out.
        jobs: How many pieces run at a time, each in a process of its own.
        minutes: Begin no piece after that many minutes; 0 makes the tables and the page of what is there.
    """
    papers = _papers()
    if name is None:
        rows = [{"name": one.name, "about": one.about} for one in papers.STUDIES]
        terminal.say(*terminal.table_lines(["name", "about"], rows))
        return 0
    study = papers.STUDIES.named(name)
    request = papers.StudyRequest(tuple(table or ()), full, folder or study.name, jobs, minutes)
    outcome = papers.reproduce(study.whole(), request)
    return 0 if any(outcome.rows.values()) else 1


def study_help(name: str) -> str:
    """Return what a study is: its tables, what the paper reports there, what differs here, the data it needs."""
    entry = _papers().STUDIES.named(name)
    lines = [f"Usage: metricdp reproduce {entry.name} [OPTIONS]", "", f"{entry.about[:1].upper()}{entry.about[1:]}."]
    study = entry.whole()
    short, full = (len(study.work(size, study.tables)) for size in (False, True))
    lines += ["", f"Tables ({short} pieces in the short version, {full} with --full):"]
    for table in study.tables:
        lines.append(f"  --table {table.number!r}" if " " in table.number else f"  --table {table.number}")
        said = (table.title, *(f"{who}: {what}" for who, what in _sides(table.reports, table.differs) if what))
        lines += [f"      {line}" for line in said]
        lines += [f"      Its pieces take {table.takes}."] if table.takes else []
    lines += ["", "Data for --full: " + (", ".join(study.needs) or "none beyond what comes with the package") + "."]
    lines += ["", *study.notes] if study.notes else []
    return "\n".join(lines)


def list_names(what: Literal["builders", "metrics", "engines", "formats"] | None = None, /) -> int:
    """List builders, metrics, engines or formats, with what each one is.

    An example: `metricdp list builders`

    Args:
        what: builders, metrics, engines or formats: what --builder, --metric, --engine and --from take.
    """
    if what is None:
        rows = [{"list": f"metricdp list {name}", "about": about} for name, (about, _) in LISTS.items()]
        terminal.say(*terminal.table_lines(["list", "about"], rows))
        return 0
    rows = LISTS[what][1]()
    terminal.say(*terminal.table_lines(list(rows[0]), rows))
    return 0


def _builders() -> list[dict[str, str]]:
    from metricdp.design import BUILDERS

    return [
        {
            "builder": one.name,
            "about": one.about,
            "options": " ".join([*(f"--{name}" for name in one.options), *(f"--set {name}=" for name in one.own)])
            or (one.elsewhere and f"made by {one.elsewhere}"),
        }
        for one in BUILDERS
        if one.at_command or one.elsewhere
    ]


def _metrics() -> list[dict[str, str]]:
    from metricdp.metrics import METRICS, SHAPES

    rows = [{"metric": ", ".join(one.words), "about": one.about.replace("`", "")} for one in METRICS if one.words]
    return rows + [{"metric": word, "about": about} for word, about in SHAPES.items()]


def _engines() -> list[dict[str, str]]:
    from metricdp.tables.engines import engines_for_files

    return [
        {"engine": one.name, "about": one.about, "needs": one.extra and f"metricdp[{one.extra}]"}
        for one in engines_for_files()
    ]


def _formats() -> list[dict[str, str]]:
    from metricdp.tables.formats import FORMATS

    return [
        {
            "format": one.name,
            "files": " ".join(one.suffixes) + (" (.gz .zst)" if one.packed else "") + ("::table" if one.tables else ""),
            "about": one.about,
            "needs": one.extra and f"metricdp[{one.extra}]",
        }
        for one in FORMATS
    ]


LISTS = {
    "builders": ("what makes a mechanism", _builders),
    "metrics": ("how far secrets are apart", _metrics),
    "engines": ("what protects many files", _engines),
    "formats": ("tables that can be read and written", _formats),
}


def _papers() -> Any:
    """Import the studies of papers, a distribution of their own."""
    if find_spec(PAPERS) is None:
        raise MissingExtra(
            "the studies of papers are a distribution of their own: install it with `pip install metricdp-papers`, or "
            "from a checkout with `pip install ./papers`."
        )
    return importlib.import_module(PAPERS)


def _sides(reports: str, differs: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("The paper", reports), ("Here", differs)
