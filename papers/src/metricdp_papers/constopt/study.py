"""ConstOPT against its rivals on words and places: the study of Imola et al. (UAI 2022), on data that may be used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from metricdp.plots import palette
from metricdp_papers.common import Piece, Row, Study, StudyTable, draw_panels, plot_line
from metricdp_papers.constopt import measures
from metricdp_papers.constopt.vocabularies import DOMAINS

COLOURS = {
    "Madlib": palette.MUTED,
    "EXPMECH": palette.REPORTED,
    "Spanner": palette.PLAIN,
    "ConstOPT 5": palette.SERIES[4],
    "ConstOPT 10": palette.TRUE,
    "OPT": palette.BEST,
    "packing bound": palette.BOUND,
}
STYLES = {"as_published": "--", "corrected": "-", "bound": ":"}


def picture(table: StudyTable, rows: Sequence[Row], path: Path) -> None:
    """Draw a figure of the paper, or the times of its tables."""
    across, by, labels = "secrets", ["domain"], {"xlabel": "secrets", "ylabel": measures.LOSS}
    if table.number in ("figure 1", "figure 3"):
        across, by, labels = "tight", ["secrets", "domain"], {**labels, "xlabel": "tight epsilon, delta 0.001"}
    elif table.number in ("figure 2", "figure 4"):
        rows = [row for row in rows if str(row["measure"]).startswith("loss, 95")]
    elif table.number in ("2", "4"):
        rows = [row for row in rows if row["measure"] == "seconds"]
        labels = {**labels, "ylabel": "processor seconds", "yscale": "log"}
    else:
        return
    draw_panels(rows, path, by, partial(_lines, across), settings=labels)


def _lines(across: str, axes: Any, rows: Sequence[Row]) -> None:
    for method, colour in COLOURS.items():
        # Madlib's tight epsilon is not known: the theorem's stands for it
        mine = [{**row, across: row.get(across) or row["epsilon"]} for row in rows if row["method"] == method]
        for value, style in STYLES.items():
            if (value == "bound") == (method == "packing bound"):
                name = method if value == "bound" else f"{method}, {value.replace('_', ' ')}"
                plot_line(axes, mine, across, value, style, marker="o", markersize=4, color=colour, label=name)
    for row in rows:
        if row["method"] == "uniform":
            axes.axhline(row["as_published"], color=palette.LINE, linestyle=":", label="uniform")
    if axes.get_yscale() != "log":
        axes.set_ylim(bottom=0)


@dataclass(frozen=True)
class DomainPlan:
    """What is asked of a domain: its figure, the tight epsilon of Tables 2 to 4, the epsilons of its figure."""

    figure: str
    tight: float
    epsilons: tuple[float, ...]
    scaling: tuple[str, ...] = ()  # the table and the figure of its sizes
    ablation: int = 0  # the size at which Table 3 is made


PLANS = {
    "review words": DomainPlan("figure 1", 2.0, (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0), ("2", "figure 2"), 200),
    "words": DomainPlan("figure 3", 1.0, (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0), ("4", "figure 4")),
    "cells": DomainPlan("figure 3", 0.3, (0.1, 0.3, 0.5, 0.8, 1.2, 1.5, 2.0), ("4", "figure 4")),
    "Foursquare cells": DomainPlan("figure 3", 0.8, (0.3, 0.8, 1.5)),
    "roads": DomainPlan("figure 3", 10.0, (10.0,), ("4", "figure 4"), 20),
}
SMALL = "roads"  # what stands for all where no data is at hand; the full study does without
METHODS = ("EXPMECH", "ConstOPT 10", "Spanner", "OPT", "packing bound", "Madlib")
SIZES = (50, 100, 150, 200, 250, 300, 350, 400)
LARGEST_OPTIMUM = 200  # the paper's did not end at 100
EVERY_OPTIMUM = 50  # up to here the optimum is solved at every epsilon, above at the one of the tables
PENALTIES, NEAREST = (0.1, 1.0, 10.0, 50.0, 250.0), (1, 3, 5, 7, 9)
SAMPLES = 6

FASTTEXT = (
    "FastText is not at hand: the words are those of two sets of film reviews (MR and SST-2) with GloVe vectors, in a "
    "unit in which a uniform answer to 200 words costs the 2.68 of Figure 1."
)
PLACES = "Gowalla's and Foursquare's check-ins in New York instead of Geolife, whose licence forbids passing it on."
NOMINAL = (
    "As published, the nominal epsilon is raised until the tight one at delta 0.001 is the one asked for; corrected, "
    "epsilon itself is, with delta 0."
)
TABLES = (
    StudyTable("figure 1", "loss against tight epsilon, 50 and 200 words of reviews",
               "ConstOPT lies below all others that are not optimal, by 15 to 30 % for epsilon in [1, 3.5]; from 1.5 "
               "on it is virtually optimal at 50 words.", FASTTEXT),
    StudyTable("2", "processor time and non-zeros of the programs, words of reviews at tight epsilon 2",
          "ConstOPT takes at most 40 % of Spanner's time at 150 words and 16 % at 300; Spanner does not end at 400.",
          f"{FASTTEXT} {NOMINAL} Seconds are processor seconds of the build; the search for the nominal epsilon is not "
          "counted."),
    StudyTable("figure 2", "loss against the number of words of reviews at tight epsilon 2",
               "ConstOPT with r = 10 lies about 22 % below Spanner under 200 words and 10 % above.",
               f"{FASTTEXT} {NOMINAL}"),
    StudyTable("3", "free entries and penalty, 200 words of reviews at tight epsilon 2",
               "From penalty 0.1 to 50 the loss falls by 6 %; from r = 1 to 9 by about 25 %.",
               f"{FASTTEXT} {NOMINAL} What the paper calls constraints are the non-zeros of its program at r = 1."),
    StudyTable("figure 3", "loss against tight epsilon, 50 and 200 GloVe words and cells",
               "ConstOPT lies below all others that are not optimal: on words by 5 to 10 % (50) and 20 % (200), on "
               "cells by 15 to 30 %.", PLACES),
    StudyTable("4", "processor time and non-zeros of the programs, GloVe words at tight epsilon 1, cells at 0.3/km",
               "ConstOPT with r = 5 scales to 400 everywhere, with r = 10 on cells; Spanner does not end at 400.",
               f"{PLACES} {NOMINAL} Seconds are processor seconds of the build."),
    StudyTable("figure 4", "loss against the number of GloVe words at tight epsilon 1, of cells at 0.3/km",
               "On words ConstOPT lies 50 to 75 % below Spanner; on cells below it up to 150, about equal from 200 "
               "on.", f"{PLACES} {NOMINAL}"),
    StudyTable("samples", "several vocabularies of 50 GloVe words at epsilon 1", "The paper shows one sample.",
               "An addition: how much depends on the words that were drawn."),
)  # fmt: skip


def pieces(full: bool) -> Iterator[Piece]:
    """List the work, the most telling first; domains whose data is not at hand are left out."""
    domains = [name for name in PLANS if name != SMALL and DOMAINS[name].at_hand]
    yield from _full(domains) if full else _short(domains)


def _short(domains: list[str]) -> Iterator[Piece]:
    yield from _figure(SMALL, 20, PLANS[SMALL].epsilons)
    yield from _scaling(SMALL, 20)
    yield from _ablation(SMALL, (1.0, 50.0), (1, 5))
    for name in domains:
        yield from _figure(name, 50, PLANS[name].epsilons[1:4])
    yield from _sizes(domains, SIZES[:1])


def _full(domains: list[str]) -> Iterator[Piece]:
    for name in domains:
        yield from _figure(name, 50, PLANS[name].epsilons)
    yield from _sizes(domains, SIZES[:3])
    if "review words" in domains:
        yield from _ablation("review words", PENALTIES, NEAREST)
    for name in domains:
        yield from _figure(name, 200, PLANS[name].epsilons)
    if "words" in domains:
        yield from _samples("words", 50)
    yield from _sizes(domains, SIZES[3:])


def _sizes(domains: list[str], sizes: tuple[int, ...]) -> Iterator[Piece]:
    for size in sizes:
        for name in domains:
            if PLANS[name].scaling:
                yield from _scaling(name, size)


def _samples(domain: str, size: int) -> Iterator[Piece]:
    for seed in range(SAMPLES):
        for method in ("EXPMECH", "ConstOPT 10"):
            key = f"samples_{_safe(domain)}_{size}_{seed}_{_safe(method)}"
            yield Piece(key, "samples", measures.sample, (domain, size, method, PLANS[domain].tight, seed))


def _figure(domain: str, size: int, epsilons: tuple[float, ...]) -> Iterator[Piece]:
    table = PLANS[domain].figure
    yield _piece("figure", table, measures.figure, (domain, size, "uniform", 0.0))
    for epsilon in epsilons:
        for method in METHODS:
            if method == "Madlib" and not domain.endswith("words"):
                continue
            if method == "OPT" and size > EVERY_OPTIMUM and epsilon != PLANS[domain].tight:
                continue
            yield _piece("figure", table, measures.figure, (domain, size, method, epsilon))


def _scaling(domain: str, size: int) -> Iterator[Piece]:
    epsilon, tables = PLANS[domain].tight, PLANS[domain].scaling
    for method in ("ConstOPT 10", "Spanner", "ConstOPT 5", "EXPMECH", "OPT"):
        if method != "OPT" or size <= LARGEST_OPTIMUM:
            yield _piece("scaling", tables, measures.scaling, (domain, size, method, epsilon))
    for method in ("ConstOPT 10", "EXPMECH"):
        yield _piece("half", tables[1], measures.half_budget, (domain, size, method, epsilon))


def _ablation(domain: str, penalties: tuple[float, ...], nearest: tuple[int, ...]) -> Iterator[Piece]:
    cases = [(5, penalty) for penalty in penalties] + [(count, 50.0) for count in nearest]
    for count, penalty in dict.fromkeys(cases):
        arguments = (domain, PLANS[domain].ablation, count, penalty, PLANS[domain].tight)
        yield Piece(f"ablation_{_safe(domain)}_{count}_{penalty:g}", "3", measures.ablation, arguments)


def _piece(kind: str, table: str | tuple[str, ...], function: measures.Measure, case: measures.Case) -> Piece:
    domain, size, method, epsilon = case
    arguments = case if isinstance(table, str) else (*case, table)
    return Piece(f"{kind}_{_safe(domain)}_{size}_{_safe(method)}_{epsilon:g}", table, function, arguments)


def _safe(name: str) -> str:
    return name.replace(" ", "-")


STUDY = Study(
    "constopt",
    "ConstOPT beside the exponential mechanism, a spanner and the optimum on words and cells",
    TABLES,
    pieces,
    picture,
    notes=(
        "Loss is the 95 % quantile of the secrets' expected losses (Eq. 11). The tight epsilon is that of Eq. 10 at "
        "delta 0.001, computed exactly.",
        "As published: half the budget inside and the best of the penalties 0.001, 0.1 and 1; SpannerMech with the "
        "greedy 3-spanner, the worst loss and the measured stretch (Appendix A). Corrected: a certified budget and the "
        "penalty that pays, for the same guarantee; the constraint (26) in its corrected form in both.",
        "OPT and ConstOPT minimise the worst loss. The quantile is another measure: EXPMECH can have the lower "
        "quantile and still the higher worst loss.",
        "Bounds are those of the worst loss: the packing bound for ConstOPT, a dual bound for OPT.",
        "Madlib's loss comes from draws; its epsilon is the theorem's.",
        "Without the data sets the short version runs on road crossings that come with the package.",
    ),
    needs=("glove_6b_100d", "text_mr", "text_sst2", "checkins_gowalla_nyc", "checkins_foursquare_nyc"),
)
