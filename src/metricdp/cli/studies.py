"""The commands that show something: the first journey, and the studies of papers."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from metricdp.cli import terminal


def demo(folder: str = "demo", /, *, city: str | None = None, nodes: int | None = None) -> int:
    """Run the whole journey on bundled data: design, protect, audit, report.

    An example: `metricdp demo demo`

    Args:
        folder: Where the results go.
        city: A larger map instead of central Porto, solved on windows: a city of the data folder such as rome, a folder
            with nodes and edges, a GraphML file; 5,000 crossings around its centre.
        nodes: How many crossings instead.
    """
    from metricdp.demo import show

    show(folder, city=city, nodes=nodes)
    return 0


def reproduce(name: str | None = None, /, *arguments: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> int:
    """Run a study of a paper by name; without a name, list the studies there are.

    An example: `metricdp reproduce aipo results`

    Args:
        name: The study.
        arguments: What the study itself takes.
    """
    from metricdp.experiments import STUDIES

    if name is None:
        print(terminal.text_table(["name", "about"], [{"name": one.name, "about": one.about} for one in STUDIES]))
        return 0
    STUDIES.named(name).run(*arguments)
    return 0
