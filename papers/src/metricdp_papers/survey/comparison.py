"""All families at equal guarantee: one data set a domain, every builder that fits, one loss, one adversary, one bound.

Every mechanism of a comparison keeps ln Pr[y|x] - ln Pr[y|x'] <= epsilon d(x, x') for the same secrets, the same metric
and the same epsilon, with no slack, audited where it is a table. Beside its expected loss (the distance, under one
public prior a domain) stand the error of the best adversary who knows the distribution, and the largest lower bound
that any search of the comparison proved for all mechanisms with this guarantee and these reports. What guarantees
something else is marked: no bound stands beside it. What does not fit a domain is named, with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.errors import MetricdpError
from metricdp.plots import palette
from metricdp_papers.common import COLOURS, Row, StudyTable, draw_panels, group_rows, row
from metricdp_papers.survey.asked import DRAWS, ComparisonTask, ReportSampler, ReportTable
from metricdp_papers.survey.domains import DOMAINS
from metricdp_papers.survey.families import families

NUMBER = "comparison"
LOSS, MISSING = "expected loss", "not there"
TABLE = StudyTable(
    NUMBER,
    "All families at equal guarantee",
    "The survey compares families in words; no numbers on common data are published.",
    "One small data set a domain, so that every builder runs. Loss and adversary's error are distances under one "
    "public prior a domain; the bound is proven for all mechanisms with this guarantee and these reports.",
    "a quarter to two minutes each on a quiet core; `--table I --table II --table III --table text` leaves them out",
)


def compared(domain: str, epsilon: float) -> list[Row]:
    """Build every family that fits at one guarantee; return a row for each, by loss, then what is missing."""
    task = ComparisonTask(domain, epsilon)
    listed, unfit = families(task)
    about = {"domain": domain, "data": DOMAINS[domain].about, "epsilon": epsilon}
    missing = unfit if epsilon == DOMAINS[domain].epsilons[-1] else {}  # once a domain: what does not fit fits nowhere
    found: list[Row] = []
    bounds = [0.0]
    for name, build in listed.items():
        started = time.perf_counter()
        try:
            made = build()
            loss, error = _on_draws(made, task) if isinstance(made, ReportSampler) else _exactly(made, task)
        except MetricdpError as problem:
            missing[name] = str(problem)
            continue
        note = made.note
        if isinstance(made, ReportSampler):
            note += f"measured on {DRAWS:,} draws of every secret; then the nearest secret"
        elif made.bound is not None:
            bounds.append(min(made.bound, loss))
        named = {**about, "family": name, "promise": made.own or "the same", "adversary_error": error}
        spent = round(time.perf_counter() - started, 2)
        found.append(row({**named, "above_bound": None}, LOSS, None, loss, bound=None, seconds=spent, note=note))
    for one in found:
        if max(bounds) > 0 and one["promise"] == "the same":
            one |= {"bound": max(bounds), "above_bound": max(one["corrected"] / max(bounds) - 1.0, 0.0)}
    rows = sorted(found, key=lambda one: float(one["corrected"]))
    return rows + [row({**about, "family": name}, MISSING, note=" ".join(why.split()))
                   for name, why in sorted(missing.items())]  # fmt: skip


def _exactly(made: ReportTable, task: ComparisonTask) -> tuple[float, float]:
    """Return loss and adversary's error of a table."""
    loss = float(task.prior @ (made.matrix * made.costs).sum(axis=1))
    return loss, float(((task.prior[:, None] * made.matrix).T @ task.loss).min(axis=1).sum())


def _on_draws(made: ReportSampler, task: ComparisonTask) -> tuple[float, float]:
    """Measure noise: the adversary chooses guesses on one half of the draws and is judged on the other."""
    costs, prior = task.loss, task.prior
    generator, n = np.random.default_rng(2026), len(prior)
    halves: list[Floats] = []
    for _ in range(2):
        seen = np.zeros((n, n))
        for secret in range(n):
            reports = made.draw(np.full(DRAWS // 2, secret), generator)
            seen[secret] = np.bincount(reports, minlength=n) / (DRAWS // 2)
        halves.append(seen)
    loss = float(prior @ ((halves[0] + halves[1]) / 2 * costs).sum(axis=1))
    guesses = ((prior[:, None] * halves[0]).T @ costs).argmin(axis=1)
    return loss, float(prior @ (halves[1] * costs[:, guesses]).sum(axis=1))


def picture(table: StudyTable, rows: Sequence[Row], path: Path) -> None:
    """Draw loss against the adversary's error, one panel a domain at its largest epsilon; own guarantees hollow."""
    if table.number != NUMBER:
        return
    known = [one for one in rows if one.get("corrected") is not None]
    largest = {
        domain: max(one["epsilon"] for one in mine) for (domain,), mine in group_rows(known, ("domain",)).items()
    }
    known = [one for name in DOMAINS for one in known if one["domain"] == name and one["epsilon"] == largest[name]]
    names = [name for (name,) in group_rows(known, ("family",))]
    settings = {"xlabel": "expected loss", "ylabel": "adversary's error"}
    draw_panels(known, path, ("domain", "epsilon"), partial(_points, names), columns=4 if len(largest) > 6 else 3,
                size=(4.2, 3.4), legend="below", settings=settings)  # fmt: skip


def _points(names: Sequence[str], axes: Any, rows: Sequence[Row]) -> None:
    for one in rows:
        at = names.index(one["family"])
        shape = palette.MARKERS[(at + at // len(COLOURS)) % len(palette.MARKERS)]  # no two look alike
        hollow = {} if one["promise"] == "the same" else {"markerfacecolor": "none"}
        style = {"color": COLOURS[at % len(COLOURS)], "markersize": 7, "label": one["family"], **hollow}
        axes.plot(one["corrected"], one["adversary_error"], shape, **style)
    if bound := next((one["bound"] for one in rows if one.get("bound") is not None), None):
        axes.axvline(bound, color=palette.BOUND, linestyle="--", linewidth=1)
