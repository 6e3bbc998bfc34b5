"""One city, metric, budget and repetition: every method of Tables 1 to 3, as published and corrected, in flat rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from metricdp.arrays import Floats
from metricdp.auditing.bounds import representative_lower_bound, universal_lower_bound
from metricdp.design.interpolation.anchors import Budget, anchor_axes
from metricdp.design.interpolation.box import interpolated
from metricdp.errors import MetricdpError
from metricdp.experiments.aipo.cities import Setting, city, setting
from metricdp.experiments.aipo.measures import Leaks, leaks
from metricdp.experiments.aipo.published import SURROGATE_GAP, printed
from metricdp.experiments.aipo.rivals import (
    Rival,
    constopt_on_cells,
    em,
    laplace_remapped,
    lp_on_cells,
    planar_laplace,
    remapped,
    tem,
)
from metricdp.mechanisms import InterpolatedMechanism
from metricdp.mechanisms.interpolated import ROUNDING_RULES, Rule, corner_weights

Row = dict[str, Any]
SLOW_LAWS = ("Laplace", "RMP")  # laws by quadrature: fewer pairs of them
TIMED = ("COPT", "LP", "AIPO", "AIPO, even split", "AIPO-R", "direction")
MEASURES = {
    "pairs": "violations, % of all pairs of places",
    "triples": "violations, % of (pair, report)",
    "beyond": "violations by more than 0.01, % of (pair, report)",
    "worst": "worst ratio at those pairs, in epsilon",
    "random": "violations, % of (random pair, report)",
    "hard": "worst ratio at adversarial pairs, in epsilon",
}


@dataclass(frozen=True)
class Size:
    """How large a case is: reports, destinations of Eq. (43), cells of the grid, places whose pairs are all compared."""

    reports: int = 20
    destinations: int = 40
    grid: tuple[int, int] = (15, 20)
    places: int = 1000
    gap: float = 1e-3


@dataclass(frozen=True)
class Case:
    """A setting with its budget and grid, ready for every method."""

    setting: Setting
    epsilon: float
    size: Size
    repetition: int

    @property
    def axes(self) -> tuple[Floats, ...]:
        """The grid's lines along each axis."""
        return anchor_axes(self.setting.box, self.size.grid)

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

    def design(
        self, rule: Rule, split: Any, *, budget: Budget | None = None, grid: tuple[int, int] | None = None
    ) -> InterpolatedMechanism:
        """Design an interpolated mechanism on the grid."""
        here = self.setting
        found = interpolated(
            here.box,
            here.outputs,
            self.epsilon,
            loss=(here.points, here.losses),
            anchors=grid or self.size.grid,
            rule=rule,
            split=split,
            budget=budget,
            gap=self.size.gap,
            bound=False,
        )
        assert isinstance(found, InterpolatedMechanism)
        return found

    def lower_bound(self) -> float:
        """Return what any private mechanism must lose."""
        here = self.setting
        return representative_lower_bound(
            here.points, here.losses, here.box.metric, self.epsilon, representatives=196, gap=3e-3, seconds=60
        )


def opened(name: str, p: float, epsilon: float, repetition: int, size: Size) -> Case:
    """Return a case; the reports, destinations and places follow from the repetition."""
    here = setting(city(name), p=p, reports=size.reports, destinations=size.destinations, seed=repetition)
    return Case(here, epsilon, size, repetition)


def compared(name: str, p: float, epsilon: float, repetition: int, size: Size) -> list[Row]:
    """Return the rows of Tables 1 to 3 and of the surrogate's gap, without the direction rule."""
    case = opened(name, p, epsilon, repetition, size)
    bound = case.lower_bound()
    rows = _lower_bounds(case, bound)
    rows += _method(case, "EM", bound, lambda: _closed(em, case))
    rows += _method(case, "Laplace", bound, lambda: _closed(planar_laplace, case))
    rows += _method(case, "TEM", bound, lambda: _closed(tem, case))
    rows += _method(case, "RMP", bound, lambda: _closed(remapped, case), lambda: _closed(laplace_remapped, case))
    rows += _method(case, "COPT", bound, lambda: constopt_on_cells(case.setting, epsilon, size.grid))
    rows += _method(case, "LP", bound, lambda: lp_on_cells(case.setting, epsilon, size.grid))
    rows += _method(case, "AIPO-R", bound, lambda: interpolation(case, "relaxed", "even"))
    rows += _method(
        case,
        "AIPO, even split",
        bound,
        lambda: interpolation(case, "log", "even"),
        lambda: interpolation(case, "exact", "even"),
    )
    rows += _method(
        case, "AIPO", bound, lambda: interpolation(case, "log", "grid"), lambda: interpolation(case, "exact", None)
    )
    return rows


def directed(name: str, p: float, epsilon: float, repetition: int, size: Size) -> list[Row]:
    """Return the rows of the direction rule, which splits no budget and takes longest."""
    case = opened(name, p, epsilon, repetition, size)
    bound = case.lower_bound()
    return _method(case, "direction", bound, None, lambda: interpolation(case, "direction", None))


@dataclass(frozen=True)
class Interpolated(Rival):
    """An interpolated mechanism beside the others, with the value of the program that was solved for it."""

    surrogate: float = float("nan")
    proven: float = float("nan")


def interpolation(
    case: Case, rule: Rule, split: Any, *, budget: Budget | None = None, grid: tuple[int, int] | None = None
) -> Interpolated:
    """Design by a rule and return what is compared."""
    started = time.perf_counter()
    made = case.design(rule, split, budget=budget, grid=grid)
    spent = time.perf_counter() - started
    here = case.setting
    shares = corner_weights(made.axes, made.ratios if rule in ROUNDING_RULES else None, here.points)
    value = float(np.sum((shares.T @ here.losses) * made.matrix)) / len(here.points)
    proven = made.certificate.epsilon / case.epsilon
    return Interpolated(made.certificate.loss, made.probabilities, spent, value, proven)


def _closed(method: Callable[[Setting, float, int], Rival], case: Case) -> Rival:
    return method(case.setting, case.epsilon, case.repetition)


def _tried(build: Callable[[], Rival] | None) -> tuple[Rival | None, str]:
    if build is None:
        return None, ""
    try:
        return build(), ""
    except MetricdpError as error:
        return None, f"failed: {error}"


def _leaks(case: Case, method: str, rival: Rival) -> Leaks:
    points = case.setting.points
    count = 4_000 if method in SLOW_LAWS else 100_000
    return leaks(
        rival.law, case.setting.box, case.epsilon, points, sample=case.sample, axes=case.axes, count=count
    )


def _method(
    case: Case,
    method: str,
    bound: float,
    published: Callable[[], Rival] | None,
    corrected: Callable[[], Rival] | None = None,
) -> list[Row]:
    """Return the rows of a method: as published, and what stands beside it with the promise kept."""
    plain, trouble = _tried(published)
    better, more = _tried(corrected)
    note = "; ".join(text for text in (trouble, more) if text)
    start = {**case.about, "method": method, "repetition": case.repetition}
    values: dict[Literal["as_published", "corrected"], Rival | None] = {"as_published": plain, "corrected": better}
    found = {name: _leaks(case, method, rival) for name, rival in values.items() if rival is not None}
    l2 = case.setting.p == 2.0
    rows = []
    for field, measure in MEASURES.items():
        paper = field in ("pairs", "triples", "beyond") and l2
        row = {"table": "1", **start, "measure": measure, "note": note}
        row["published"] = printed("1", case.setting.city.name, method, case.epsilon)[0] if paper else None
        rows.append({**row, **{name: getattr(leak, field) for name, leak in found.items()}})
    mean, spread = printed("2", case.setting.city.name, method, case.epsilon) if l2 else (None, None)
    text = "; ".join(part for part in (note, f"published ± {spread:g}" if spread is not None else "") if part)
    row = {"table": "2", **start, "measure": "loss, km", "published": mean, "bound": bound, "note": text}
    row["seconds"] = next((rival.seconds for rival in (plain, better) if rival is not None), None)
    rows.append({**row, **{name: rival.loss for name, rival in values.items() if rival is not None}})
    if method in TIMED:
        mean, spread = printed("3", case.setting.city.name, method, case.epsilon) if l2 else (None, None)
        text = "; ".join(part for part in (note, f"published ± {spread:g}" if spread is not None else "") if part)
        row = {"table": "3", **start, "measure": "seconds of design", "published": mean, "note": text}
        rows.append({**row, **{name: rival.seconds for name, rival in values.items() if rival is not None}})
    if method == "AIPO" and isinstance(plain, Interpolated):
        gap = {"as_published": (plain.loss - plain.surrogate) / plain.loss}
        if isinstance(better, Interpolated):
            gap["corrected"] = (better.loss - better.surrogate) / better.loss
        paper = {"published": SURROGATE_GAP, "note": "published: one mean over cities and budgets"} if l2 else {}
        rows.append({"table": "gap", **start, "measure": "(true loss - surrogate) / true loss", **paper, **gap})
    return rows


def _lower_bounds(case: Case, bound: float) -> list[Row]:
    """Return the row LB: Proposition 5 as published, and the representative bound."""
    here = case.setting
    universal = universal_lower_bound(
        here.box, case.epsilon, loss=(here.points, here.losses), cells=case.size.grid, gap=1e-2
    )
    mean, spread = printed("2", here.city.name, "LB", case.epsilon) if here.p == 2.0 else (None, None)
    return [
        {
            "table": "2",
            **case.about,
            "method": "LB",
            "repetition": case.repetition,
            "measure": "loss, km",
            "published": mean,
            "as_published": universal,
            "corrected": bound,
            "bound": bound,
            "note": f"published ± {spread:g}" if spread is not None else "",
        }
    ]
