"""Does `seconds` hold? Asked, wall, processor time and gap for a list of problems at which the limit binds.

    python benchmarks/deadlines.py                    # all, about ten minutes
    python benchmarks/deadlines.py --only worst Porto # those whose name holds one of these words
    python benchmarks/deadlines.py --record

10 % and 2 s more than asked are allowed; what cannot be done in the time is refused at once. A small problem of the
same kind is built first, so that nothing is compiled within a measured time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from record import arguments, recorder

import metricdp as mdp
from metricdp_papers.columns import dantzig_wolfe

Build = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """One build: how it is called, for how long, and how large."""

    name: str
    seconds: float
    build: Build  # (size, seconds)
    size: Any
    small: Any
    searches: int = 1  # that have the seconds each


def town(size: int, reports: int | None = None) -> mdp.Problem:
    """Return places at random in a square."""
    generator = np.random.default_rng(2)
    space = mdp.FiniteSpace(generator.random((size, 2)), mdp.Lp(2))
    outputs = None if reports is None else mdp.FiniteSpace(generator.random((reports, 2)), mdp.Lp(2))
    return mdp.Problem(space, 3.0, outputs=outputs)


def in_town(builder: Build, size: Any, seconds: float | None) -> Any:
    """Build for a town; a size may be (secrets, reports)."""
    return builder(town(*(size if isinstance(size, tuple) else (size,))), seconds=seconds)


def on_roads(size: int, seconds: float | None, **options: Any) -> Any:
    """Build for so many crossings of Porto."""
    return mdp.optimal(mdp.Problem(mdp.road_network("porto", nodes=size), 3.0), seconds=seconds, **options)


def on_cells(side: int, seconds: float | None) -> Any:
    """Build for a square grid, on windows."""
    places = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2)
    problem = mdp.Problem(mdp.FiniteSpace(places.astype(np.float64), mdp.Lp(2)), 2.0)
    return mdp.optimal(problem, window=8.0, gap=1e-4, seconds=seconds)


def of_words(size: int, seconds: float | None) -> Any:
    """Build for places in fifty dimensions, as words are: a kernel from 4,097 on."""
    vectors = np.random.default_rng(3).standard_normal((size, 50))
    space = mdp.FiniteSpace(vectors, mdp.Lp(2))
    return mdp.optimal(mdp.Problem(space, 1.0), seconds=seconds)


def in_a_box(cells: int, seconds: float | None, **options: Any) -> Any:
    """Build for all points of a square."""
    reports = np.random.default_rng(4).random((40, 2))
    outputs = mdp.FiniteSpace(reports, mdp.Lp(2))
    options = {"anchors": (cells, cells), **options}
    return mdp.interpolated(mdp.Box([0, 0], [1, 1], mdp.Lp(2)), outputs, 6.0, seconds=seconds, **options)


def along_streets(size: int, seconds: float | None) -> Any:
    """Build for all places along streets."""
    space = mdp.road_network("porto", nodes=size)
    return mdp.interpolated(space, space, 3.0, anchors=2, seconds=seconds)


def of_classes(size: int, seconds: float | None) -> Any:
    """Build a contextual mechanism with as many rows as secrets."""
    return mdp.contextual(town(size), seconds=seconds)


def in_comparison(size: int, seconds: float | None) -> Any:
    """Compare two searches: each has its own seconds."""
    return mdp.compare(town(size).inputs, 3.0, builders=["optimal", "spanner"], seconds=seconds)


CASES = (
    Case("optimal, 300 places", 8, partial(in_town, mdp.optimal), 300, 30),
    Case("optimal, worst loss, 300 places", 8, partial(in_town, partial(mdp.optimal, objective="worst")), 300, 30),
    Case("optimal, 1,000 places and 20 reports", 15, partial(in_town, mdp.optimal), (1000, 20), (30, 20)),
    Case("optimal, 1,200 crossings of Porto", 20, on_roads, 1200, 40),
    Case("optimal, 1,200 crossings of Porto", 60, on_roads, 1200, 40),
    Case("optimal, 1,200 crossings of Porto", 2, on_roads, 1200, 40),
    Case("spanner, 400 places", 8, partial(in_town, mdp.spanner), 400, 30),
    Case("constopt, 300 places", 8, partial(in_town, mdp.constopt), 300, 30),
    Case("decomposed, 300 places", 8, partial(in_town, mdp.decomposed), 300, 30),
    Case("dantzig_wolfe, 300 places", 8, partial(in_town, dantzig_wolfe), 300, 30),
    Case("windows, 10,000 cells", 10, on_cells, 100, 20),
    Case("windows, 10,000 cells", 2, on_cells, 100, 20),
    Case("kernel, 5,000 words", 10, of_words, 5000, 4200),
    Case("kernel, 5,000 words", 2, of_words, 5000, 4200),
    Case("interpolated, 16 x 16 anchors", 8, in_a_box, 16, 3),
    Case("interpolated, until a gap of 1 %", 8, partial(in_a_box, anchors="refine", gap=0.01), 0, 0),
    Case("streets, 300 crossings", 8, along_streets, 300, 20),
    Case("contextual, 300 rows", 8, of_classes, 300, 30),
    Case("comparison of two searches, 300 places, each", 8, in_comparison, 300, 30, 2),
)


def measured(case: Case) -> tuple[float, float, str]:
    """Return wall and processor seconds of one build, and what came of it."""
    started, used = time.perf_counter(), time.process_time()
    try:
        made = case.build(case.size, case.seconds)
        found = getattr(made, "certificate", None)
        text = "done" if found is None else f"loss {found.loss:.4g}, gap {found.gap:.3g}"
    except mdp.MetricdpError as error:
        text = f"refused: {str(error)[:90]}"
    return time.perf_counter() - started, time.process_time() - used, text


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", nargs="+", default=[""], help="words of which a name must hold one")
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    warmed: set[Any] = set()
    for case in CASES:
        if not any(word in case.name for word in chosen.only):
            continue
        if case.name not in warmed:
            with suppress(mdp.MetricdpError):  # a busy machine may refuse this one too
                case.build(case.small, 5.0)
            warmed.add(case.name)
        wall, used, text = measured(case)
        told = f"{wall:.1f} s ({wall / case.seconds:.2f} of it), processor {used:.1f} s, {text}"
        allowed = case.searches * (1.1 * case.seconds + 2.0)
        late = wall > allowed
        print(
            f"{'LATE ' if late else ''}{case.name}: asked {case.seconds:g} s, took {told}, "
            f"load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        keep(
            "deadlines",
            f"{case.name}, {case.seconds:g} s",
            measured=told,
            asked=f"{allowed:g} s",
            wall=wall,
            processor=used,
            late=late,
        )


if __name__ == "__main__":
    main()
