"""One city, metric, budget and repetition: every method of Tables 1 to 3, as published and corrected, in flat rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from metricdp import interpolated, universal_lower_bound
from metricdp.arrays import Floats
from metricdp.auditing import representative_lower_bound
from metricdp.errors import MetricdpError
from metricdp.mechanisms import ROUNDING_RULES, InterpolatedMechanism, Rule, corner_weights
from metricdp_papers.aipo.cities import RoadSetting, city, setting
from metricdp_papers.aipo.measures import BEYOND, MEASURES, PAIRS, TRIPLES, leaks
from metricdp_papers.aipo.published import SAVED, SURROGATE_GAP, printed
from metricdp_papers.aipo.relaxed import aipo_r
from metricdp_papers.aipo.rivals import (
    Rival,
    constopt_on_cells,
    em,
    laplace_remapped,
    lp_on_cells,
    planar_laplace,
    remapped,
    tem,
)
from metricdp_papers.common import Row, row


def claims(rows: Sequence[Row], measure: str) -> list[Row]:
    """Return the rows of a case for the averages that the paper states in its text.

    They are computed from its rows of Table 2 (with this measure) and of the gap. Rows that differ in `repetition`
    alone are averaged, so a repetition here is a whole case: city, budget and draw.
    """
    losses = [one for one in rows if one["table"] == "2" and one["measure"] == measure]
    plain = {one["method"]: one["as_published"] for one in losses if one.get("as_published") is not None}
    better = {one["method"]: one["corrected"] for one in losses if one.get("corrected") is not None}
    first = losses[0]
    case = f"{first['city']}, {first['epsilon']:g}, {first['repetition']}"
    l2 = first["norm"] == "l2"
    found: list[Row] = []

    def add(method: str, about: str, **values: float | None) -> None:
        start: Row = {"table": "claims", "norm": first["norm"], "method": method, "repetition": case}
        found.append(row(start, about, **values))

    if "AIPO" in plain and "AIPO" in better:
        aipo, exact = plain["AIPO"], better["AIPO"]
        for method in ("EM", "Laplace", "TEM", "RMP", "COPT", "LP", "AIPO-R"):
            if method in plain:
                stated = SAVED.get(method) if l2 else None
                below = {"as_published": _below(aipo, plain[method]), "corrected": _below(exact, plain[method])}
                add(method, "AIPO below it (%)", published=stated, **below)
                won = {"as_published": 100.0 * (aipo < plain[method]), "corrected": 100.0 * (exact < plain[method])}
                add(method, "cases with AIPO below it (%)", **won)
        add("AIPO", "AIPO below it (%)", corrected=_below(exact, aipo))
        add("AIPO", "cases with AIPO below it (%)", corrected=100.0 * (exact < aipo))
        if "LB" in plain:
            add("LB", "AIPO over the bound (times)", as_published=aipo / plain["LB"], corrected=exact / better["LB"])
    for one in rows:
        if one["table"] == "gap":
            values = {name: one.get(name) for name in ("as_published", "corrected")}
            add("AIPO", "surrogate gap", published=SURROGATE_GAP if l2 else None, **values)
    return found


def _below(ours: float, theirs: float) -> float:
    return 100.0 * (1.0 - ours / theirs)


SLOW_METHODS = ("Laplace", "RMP")  # distributions by quadrature: fewer pairs of them
TIMED = ("COPT", "LP", "AIPO", "AIPO even split", "AIPO-R", "direction")
Budget = Literal["half", "certified"]
Build = Callable[[], Rival]
LOSS = "loss (km)"
ON_AXES = "AIPO-R on axes"


@dataclass(frozen=True)
class Size:
    """How large a case is: reports, destinations of Eq. (43), cells of the grid, places all of whose pairs count."""

    reports: int = 20
    destinations: int = 40
    grid: tuple[int, int] = (15, 20)
    places: int = 1000
    gap: float = 1e-3
    representatives: int = 196


@dataclass(frozen=True)
class Case:
    """A setting with its budget and grid, ready for every method."""

    setting: RoadSetting
    epsilon: float
    size: Size
    repetition: int

    @property
    def axes(self) -> tuple[Floats, ...]:
        """The grid's lines along each axis."""
        box, cells = self.setting.box, self.size.grid
        return tuple(np.linspace(box.lower[at], box.upper[at], count + 1) for at, count in enumerate(cells))

    @property
    def sample(self) -> Floats:
        """The places whose pairs are all compared, drawn anew in every repetition."""
        rng = np.random.default_rng(1000 + self.repetition)
        count = min(self.size.places, len(self.setting.points))
        return self.setting.points[rng.choice(len(self.setting.points), count, replace=False)]

    @property
    def about(self) -> Row:
        """What the rows are about."""
        return {
            "city": self.setting.city.name,
            "norm": f"l{self.setting.p:g}",
            "epsilon": self.epsilon,
        }

    def lower_bound(self) -> float:
        """Return what any private mechanism must lose."""
        here = self.setting
        count = self.size.representatives
        return representative_lower_bound(
            here.points, here.losses, here.box.metric, self.epsilon, representatives=count, gap=3e-3
        )


def open_case(name: str, p: float, epsilon: float, repetition: int, size: Size) -> Case:
    """Return a case; the reports, destinations and places follow from the repetition."""
    here = setting(city(name), p=p, reports=size.reports, destinations=size.destinations, seed=repetition)
    return Case(here, epsilon, size, repetition)


def compared(name: str, p: float, epsilon: float, repetition: int, size: Size) -> list[Row]:
    """Return the rows of Tables 1 to 3, of the claims and of the surrogate's gap, without the direction rule."""
    case = open_case(name, p, epsilon, repetition, size)
    bound = case.lower_bound()
    closed = {rule: partial(rule, case.setting, epsilon, repetition)
              for rule in (em, planar_laplace, tem, remapped, laplace_remapped)}  # fmt: skip
    built: dict[str, tuple[Build, Build | None]] = {
        "EM": (closed[em], None),
        "Laplace": (closed[planar_laplace], None),
        "TEM": (closed[tem], None),
        "RMP": (closed[remapped], closed[laplace_remapped]),
        "COPT": (partial(constopt_on_cells, case.setting, epsilon, size.grid), None),
        "LP": (partial(lp_on_cells, case.setting, epsilon, size.grid), None),
        "AIPO-R": (partial(_relaxed_rival, case), None),
        "AIPO even split": (
            partial(interpolation, case, "log", "even"),
            partial(interpolation, case, "exact", "even"),
        ),
        "AIPO": (partial(interpolation, case, "log", "grid"), partial(interpolation, case, "exact", None)),
    }
    rows = _lower_bounds(case, bound)
    for method, (published, corrected) in built.items():
        rows += _method(case, method, bound, published, corrected)
    return rows + claims(rows, LOSS)


def directed(name: str, p: float, epsilon: float, repetition: int, size: Size) -> list[Row]:
    """Return the rows of the direction rule, which splits no budget and takes longest."""
    case = open_case(name, p, epsilon, repetition, size)
    bound = case.lower_bound()
    return _method(case, "direction", bound, None, partial(interpolation, case, "direction", None))


def relaxed_axes(name: str, p: float, epsilon: float, repetition: int, size: Size) -> list[Row]:
    """Return the rows of AIPO-R as its authors ran it: neighbours along the axes alone are bound, at epsilon each."""
    case = open_case(name, p, epsilon, repetition, size)
    return _method(case, ON_AXES, case.lower_bound(), partial(_relaxed_rival, case, "axes"))


@dataclass(frozen=True)
class Interpolated(Rival):
    """An interpolated mechanism beside the others, with the value of the program that was solved for it."""

    surrogate: float = float("nan")
    proven: float = float("nan")

    @property
    def surrogate_gap(self) -> float:
        """How far the program's value lies below the true loss, as a share of it."""
        return (self.loss - self.surrogate) / self.loss


def interpolation(
    case: Case, rule: Rule, split: Any, *, budget: Budget | None = None, grid: tuple[int, int] | None = None
) -> Interpolated:
    """Design by a rule on the grid and return what is compared."""
    here, size = case.setting, case.size
    options: dict[str, Any] = {"rule": rule, "split": split, "budget": budget, "gap": size.gap, "bound": False}
    started = time.perf_counter()
    made: Any = interpolated(
        here.box, here.outputs, case.epsilon, loss=(here.points, here.losses), anchors=grid or size.grid, **options
    )
    return _measure_rival(case, made, time.perf_counter() - started)


def _measure_rival(case: Case, made: InterpolatedMechanism, spent: float) -> Interpolated:
    here = case.setting
    shares = corner_weights(made.axes, made.ratios if made.rule in ROUNDING_RULES else None, here.points)
    value = float(np.sum((shares.T @ here.losses) * made.matrix)) / len(here.points)
    proven = made.certificate.epsilon / case.epsilon
    return Interpolated(made.certificate.loss, made.probabilities, spent, value, proven)


def _relaxed_rival(case: Case, bound_pairs: Literal["all", "axes"] = "all") -> Interpolated:
    here, size = case.setting, case.size
    options: dict[str, Any] = {"anchors": size.grid, "gap": size.gap, "bound_pairs": bound_pairs}
    started = time.perf_counter()
    made = aipo_r(here.box, here.outputs, case.epsilon, loss=(here.points, here.losses), **options)
    return _measure_rival(case, made, time.perf_counter() - started)


def _try_build(build: Build | None) -> tuple[Rival | None, str]:
    if build is None:
        return None, ""
    try:
        return build(), ""
    except MetricdpError as error:
        return None, f"failed: {error}"


def _leaks(case: Case, method: str, rival: Rival) -> dict[str, float]:
    every = case.size.places * (case.size.places - 1) // 2
    count = min(every, 4_000 if method in SLOW_METHODS else 100_000)
    here = case.setting
    return leaks(
        rival.distribution, here.box, case.epsilon, here.points, sample=case.sample, axes=case.axes, count=count
    )


def _method(
    case: Case, method: str, bound: float, published: Build | None, corrected: Build | None = None
) -> list[Row]:
    """Return the rows of a method: as published, and what stands beside it with the guarantee kept."""
    plain, trouble = _try_build(published)
    better, more = _try_build(corrected)
    note = "; ".join(text for text in (trouble, more) if text)
    about = {**case.about, "method": method, "repetition": case.repetition}
    rivals = {"as_published": plain, "corrected": better}
    known = {column: rival for column, rival in rivals.items() if rival is not None}
    found = {column: _leaks(case, method, rival) for column, rival in known.items()}
    l2, name = case.setting.p == 2.0, case.setting.city.name
    rows: list[Row] = []
    for measure in MEASURES:
        counted = measure in (PAIRS, TRIPLES, BEYOND) and l2
        share = printed("1", name, method, case.epsilon)[0] if counted else None
        ours = {column: leak[measure] for column, leak in found.items()}
        rows.append(row(about, measure, table="1", published=share, note=note, **ours))
    spent = next((rival.seconds for rival in known.values()), None)
    ours = {column: rival.loss for column, rival in known.items()}
    rows.append(row(about, LOSS, table="2", bound=bound, seconds=spent, **_paper("2", case, method, note), **ours))
    if method in TIMED:
        ours = {column: rival.seconds for column, rival in known.items()}
        rows.append(row(about, "design (s)", table="3", **_paper("3", case, method, note), **ours))
    if method == "AIPO" and isinstance(plain, Interpolated):
        ours = {column: rival.surrogate_gap for column, rival in known.items() if isinstance(rival, Interpolated)}
        said = {"published": SURROGATE_GAP, "note": "published: one mean over cities and budgets"} if l2 else {}
        rows.append(row(about, "surrogate gap", table="gap", **said, **ours))
    return rows


def _paper(table: str, case: Case, method: str, note: str = "") -> Row:
    """Return the printed mean and, in the note, its 1.96 standard deviations."""
    if case.setting.p != 2.0:
        return {"published": None, "note": note}
    mean, spread = printed(table, case.setting.city.name, method, case.epsilon)
    said = f"published ± {spread:g}" if spread is not None else ""
    return {"published": mean, "note": "; ".join(part for part in (note, said) if part)}


def _lower_bounds(case: Case, bound: float) -> list[Row]:
    """Return the row LB: Proposition 5 as published, and the representative bound."""
    here, about = case.setting, {**case.about, "method": "LB", "repetition": case.repetition}
    universal = universal_lower_bound(
        here.box, case.epsilon, loss=(here.points, here.losses), cells=case.size.grid, gap=1e-2
    )
    return [row(about, LOSS, universal, bound, table="2", bound=bound, **_paper("2", case, "LB"))]
