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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.errors import MetricdpError
from metricdp.files import replace_file
from metricdp.plots import palette
from metricdp_papers.common import Row, StudyTable
from metricdp_papers.survey.asked import DRAWS, ComparisonTask, FamilyResult, ReportSampler
from metricdp_papers.survey.domains import DOMAINS
from metricdp_papers.survey.families import families

NUMBER = "comparison"
COLOURS = [*palette.SERIES, "#5aa9a3", "#c05a8a", "#7f9c3b", "#444c56", "#a05f2c", "#2f6f9f"]
LOSS, MISSING = "expected loss", "not there"
TABLE = StudyTable(
    NUMBER,
    "All families at equal promise",
    "The survey compares families in words; no numbers on common data are published.",
    "One small data set a domain, so that every builder runs. Loss and adversary's error are distances under one "
    "public prior a domain; the bound is proven for all mechanisms with this promise and these reports.",
    "a quarter to two minutes each on a quiet core; `--table I --table II --table III --table text` leaves them out",
)


def compared(domain: str, epsilon: float) -> list[Row]:
    """Build every family that fits at one guarantee; return a row for each, by loss, then what is missing."""
    task = ComparisonTask(domain, epsilon)
    listed, unfit = families(task)
    missing = unfit if epsilon == DOMAINS[domain].epsilons[-1] else {}  # once a domain: what does not fit fits nowhere
    found: list[_Cost] = []
    for name, build in listed.items():
        started = time.perf_counter()
        try:
            found.append(_measure(name, build(), task, started))
        except MetricdpError as error:
            missing[name] = str(error)
    bound = max((one.bound for one in found if one.bound is not None), default=0.0)
    found.sort(key=lambda one: one.loss)
    rows = [_row(task, one, bound) for one in found]
    return rows + [
        {"domain": domain, "data": DOMAINS[domain].about, "epsilon": epsilon, "family": name, "measure": MISSING,
         "note": " ".join(why.split())}
        for name, why in sorted(missing.items())
    ]  # fmt: skip


@dataclass(frozen=True)
class _Cost:
    family: str
    loss: float
    adversary: float
    bound: float | None
    own: str
    seconds: float
    note: str = ""


def _measure(name: str, made: FamilyResult, task: ComparisonTask, started: float) -> _Cost:
    """Return loss and adversary's error: computed for a table, on draws for noise."""
    if isinstance(made, ReportSampler):
        return _on_draws(name, made, task, started)
    loss = float(task.prior @ (made.matrix * made.costs).sum(axis=1))
    error = float(((task.prior[:, None] * made.matrix).T @ task.loss).min(axis=1).sum())
    bound = None if made.bound is None else min(made.bound, loss)
    return _Cost(name, loss, error, bound, made.own, time.perf_counter() - started, made.note)


def _on_draws(name: str, made: ReportSampler, task: ComparisonTask, started: float) -> _Cost:
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
    error = float(prior @ (halves[1] * costs[:, guesses]).sum(axis=1))
    note = f"{made.note}measured on {DRAWS:,} draws of every secret; then the nearest secret"
    return _Cost(name, loss, error, None, made.own, time.perf_counter() - started, note)


def _row(task: ComparisonTask, one: _Cost, bound: float) -> Row:
    known = bound > 0 and not one.own
    return {
        "domain": task.domain,
        "data": DOMAINS[task.domain].about,
        "epsilon": task.epsilon,
        "family": one.family,
        "promise": one.own or "the same",
        "adversary_error": one.adversary,
        "above_bound": max(one.loss / bound - 1.0, 0.0) if known else None,
        "measure": LOSS,
        "corrected": one.loss,
        "bound": bound if known else None,
        "seconds": round(one.seconds, 2),
        "note": one.note,
    }


def picture(table: StudyTable, rows: Sequence[Row], path: Path) -> None:
    """Draw loss against the adversary's error, one panel a domain at its largest epsilon; own guarantees hollow."""
    if table.number != NUMBER:
        return
    rows = [row for row in rows if row.get("corrected") is not None]
    names = [name for name in DOMAINS if any(row["domain"] == name for row in rows)]
    families = list(dict.fromkeys(str(row["family"]) for row in rows))
    columns = 4 if len(names) > 6 else 3
    lines = -(-max(len(names), 1) // columns)
    with palette.plot_style():
        drawn = palette.figure(4.2 * columns, 3.1 * lines + 0.3 * (-(-len(families) // 5)))
        axes = np.atleast_1d(drawn.subplots(lines, columns)).ravel()
        for own, name in zip(axes, names, strict=False):
            epsilon = max(float(row["epsilon"]) for row in rows if row["domain"] == name)
            mine = [row for row in rows if row["domain"] == name and row["epsilon"] == epsilon]
            for row in mine:
                at = families.index(str(row["family"]))
                shape = palette.MARKERS[(at + at // len(COLOURS)) % len(palette.MARKERS)]  # no two look alike
                hollow = {} if row["promise"] == "the same" else {"markerfacecolor": "none"}
                own.plot(
                    row["corrected"], row["adversary_error"], shape, color=COLOURS[at % len(COLOURS)],
                    markersize=7, label=row["family"], **hollow,
                )  # fmt: skip
            bound = next((row["bound"] for row in mine if row.get("bound") is not None), None)
            if bound is not None:
                own.axvline(bound, color=palette.BOUND, linestyle="--", linewidth=1)
            own.set_title(f"{name}, epsilon {epsilon:g}")
            own.set_xlabel("expected loss")
            own.set_ylabel("adversary's error")
        shown: dict[str, Any] = {}
        for own in axes:
            shown |= dict(zip(*reversed(own.get_legend_handles_labels()), strict=True))
        for own in axes[len(names) :]:
            own.set_visible(False)
        drawn.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize=8)
        with replace_file(path) as made:
            drawn.savefig(made, format="png")
