"""What the tables rest on, varied: anchors, split, budget, reports; the other surrogate; losses of other reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from metricdp.errors import MetricdpError
from metricdp.mechanisms import Rule
from metricdp_papers.aipo.cases import LOSS, Budget, Case, Interpolated, Size, interpolation, open_case
from metricdp_papers.aipo.cities import city, setting
from metricdp_papers.aipo.fractional import charnes_cooper
from metricdp_papers.aipo.published import printed
from metricdp_papers.aipo.rivals import em, mean_loss, planar_laplace, remapped, tem
from metricdp_papers.common import Row, row

RULES: tuple[Rule, ...] = ("log", "exact")  # as published, and corrected
CERTIFIED: Budget = "certified"
SCALES = (0.5, 1.0, 1.5, 2.0)
ANGLES = (15, 25, 35, 45, 55, 65, 75)
REPORTS = (10, 20, 50, 100)
APART = 100  # seed of the reports whose losses are used for others


def anchors(name: str, p: float, epsilon: float, repetition: int, size: Size) -> list[Row]:
    """Vary the number of cells along each axis; even split."""
    case = open_case(name, p, epsilon, repetition, size)
    bound = case.lower_bound()
    rows = []
    for scale in SCALES:
        grid = (max(1, round(size.grid[0] * scale)), max(1, round(size.grid[1] * scale)))
        pair = [interpolation(case, rule, "even", grid=grid) for rule in RULES]
        rows.append(_varied(case, "cells", f"{grid[0]} x {grid[1]}", pair, bound))
    return rows


def splits(name: str, p: float, epsilon: float, repetition: int, size: Size) -> list[Row]:
    """Vary the split of the budget over the axes, then the budget itself: half, or the normaliser's exact constant."""
    case = open_case(name, p, epsilon, repetition, size)
    bound = case.lower_bound()
    rows = []
    for angle in ANGLES:
        parts = (float(np.cos(np.radians(angle))), float(np.sin(np.radians(angle))))
        pair = [interpolation(case, rule, parts) for rule in RULES]
        rows.append(_varied(case, "split", f"epsilon_2 / epsilon_1 = tan {angle} degrees", pair, bound))
    half, whole = pair = [interpolation(case, "log", "even", budget=budget) for budget in (None, CERTIFIED)]
    note = f"audited constants {half.proven:.3f} and {whole.proven:.3f} epsilon"
    return [*rows, _varied(case, "budget", "half, certified", pair, bound, note)]


def reports(name: str, p: float, epsilon: float, repetition: int, size: Size) -> list[Row]:
    """Vary the number of reports: the published number is not printed, the public code has 20."""
    rows = []
    for count in REPORTS:
        case = open_case(name, p, epsilon, repetition, replace(size, reports=count))
        pair = [interpolation(case, rule, "even") for rule in RULES]
        closed = [rule(case.setting, epsilon, repetition).loss for rule in (em, planar_laplace)]
        note = f"EM {closed[0]:.4g}, Laplace {closed[1]:.4g}"
        rows.append(_varied(case, "reports", str(count), pair, case.lower_bound(), note))
    return rows


def _varied(case: Case, varied: str, value: str, pair: Sequence[Interpolated], bound: float, note: str = "") -> Row:
    """Return the row of one choice: the loss of two designs, and what both took where their time is compared."""
    about: Row = {**case.about, "varied": varied, "value": value, "repetition": case.repetition}
    plain, better = pair
    seconds = plain.seconds + better.seconds if varied in ("cells", "reports") else None
    return row(about, LOSS, plain.loss, better.loss, bound=bound, seconds=seconds, note=note)


def fractional(name: str, p: float, epsilon: float, repetition: int, size: Size) -> list[Row]:
    """Compare the true loss of the Charnes-Cooper variant with the bound it minimises and with one constant report."""
    case = open_case(name, p, epsilon, repetition, size)
    here = case.setting
    budgets = np.full(2, epsilon / 2 / (np.sqrt(2.0) if p == 2.0 else 1.0))
    start = {**case.about, "method": "Charnes-Cooper", "repetition": repetition}
    plain = interpolation(case, "log", "even")
    try:
        found = charnes_cooper(here, epsilon, case.axes, budgets)
    except MetricdpError as error:
        return [row(start, LOSS, note=f"failed: {error}")]
    true = mean_loss(here, found.mechanism.probabilities)
    single = float(here.losses.mean(axis=0).min())
    note = "corrected: the linear surrogate at the same split"
    return [
        row(start, LOSS, true, plain.loss, bound=case.lower_bound(), note=note),
        row(start, "surrogate gap", (true - found.bound) / true, plain.surrogate_gap),
        row(start, "loss over that of the best single report", true / single, plain.loss / single),
    ]


def mismatched(name: str, epsilon: float, repetition: int, size: Size) -> list[Row]:
    """Score closed forms with the losses of other reports than those their distances belong to."""
    case = open_case(name, 2.0, epsilon, repetition, size)
    here = case.setting
    others = setting(city(name), p=2.0, reports=size.reports, destinations=size.destinations, seed=repetition + APART)
    crossed = replace(here, losses=others.losses)
    rows = []
    for method, rule in {"EM": em, "Laplace": planar_laplace, "TEM": tem, "RMP": remapped}.items():
        about = {**case.about, "method": method, "repetition": repetition}
        plain, better = (rule(one, epsilon, repetition).loss for one in (crossed, here))
        rows.append(row(about, LOSS, plain, better, published=printed("2", name, method, epsilon)[0]))
    return rows
