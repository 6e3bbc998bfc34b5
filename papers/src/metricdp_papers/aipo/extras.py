"""What the tables rest on, varied: anchors, split, budget, reports; the other surrogate; losses of other reports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metricdp.errors import MetricdpError
from metricdp_papers.aipo.cases import LOSS, Size, interpolation, open_case
from metricdp_papers.aipo.cities import city, setting
from metricdp_papers.aipo.fractional import charnes_cooper
from metricdp_papers.aipo.published import printed
from metricdp_papers.aipo.rivals import em, mean_loss, planar_laplace, remapped, tem
from metricdp_papers.common import Row

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
        plain, better = (interpolation(case, rule, "even", grid=grid) for rule in ("log", "exact"))
        rows.append({
            **case.about, "varied": "cells", "value": f"{grid[0]} x {grid[1]}", "repetition": repetition,
            "measure": LOSS, "as_published": plain.loss, "corrected": better.loss, "bound": bound,
            "seconds": plain.seconds + better.seconds, "note": "",
        })  # fmt: skip
    return rows


def splits(name: str, p: float, epsilon: float, repetition: int, size: Size) -> list[Row]:
    """Vary the split of the budget over the axes, then the budget itself: half, or the normaliser's exact constant."""
    case = open_case(name, p, epsilon, repetition, size)
    bound = case.lower_bound()
    start = {**case.about, "varied": "split", "repetition": repetition, "measure": LOSS, "bound": bound}
    rows = []
    for angle in ANGLES:
        parts = (float(np.cos(np.radians(angle))), float(np.sin(np.radians(angle))))
        plain, better = interpolation(case, "log", parts), interpolation(case, "exact", parts)
        value = f"epsilon_2 / epsilon_1 = tan {angle} degrees"
        rows.append({**start, "value": value, "as_published": plain.loss, "corrected": better.loss})
    half = interpolation(case, "log", "even")
    whole = interpolation(case, "log", "even", budget="certified")
    note = f"audited constants {half.proven:.3f} and {whole.proven:.3f} epsilon"
    start["varied"] = "budget"
    rows.append({**start, "value": "half, certified", "as_published": half.loss, "corrected": whole.loss, "note": note})
    return rows


def reports(name: str, p: float, epsilon: float, repetition: int, size: Size) -> list[Row]:
    """Vary the number of reports: the published number is not printed, the public code has 20."""
    rows = []
    for count in REPORTS:
        case = open_case(name, p, epsilon, repetition, replace(size, reports=count))
        plain, better = interpolation(case, "log", "even"), interpolation(case, "exact", "even")
        here = case.setting
        closed = [rule(here, epsilon, repetition).loss for rule in (em, planar_laplace)]
        note = f"EM {closed[0]:.4g}, Laplace {closed[1]:.4g}"
        rows.append({
            **case.about, "varied": "reports", "value": str(count), "repetition": repetition, "measure": LOSS,
            "as_published": plain.loss, "corrected": better.loss, "bound": case.lower_bound(),
            "seconds": plain.seconds + better.seconds, "note": note,
        })  # fmt: skip
    return rows


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
        return [{**start, "measure": LOSS, "note": f"failed: {error}"}]
    true = mean_loss(here, found.mechanism.probabilities)
    single = float(here.losses.mean(axis=0).min())
    return [
        {**start, "measure": LOSS, "as_published": true, "corrected": plain.loss, "bound": case.lower_bound(),
         "note": "corrected: the linear surrogate at the same split"},
        {**start, "measure": "surrogate gap", "as_published": (true - found.bound) / true,
         "corrected": (plain.loss - plain.surrogate) / plain.loss},
        {**start, "measure": "loss over that of the best single report", "as_published": true / single,
         "corrected": plain.loss / single},
    ]  # fmt: skip


def mismatched(name: str, epsilon: float, repetition: int, size: Size) -> list[Row]:
    """Score closed forms with the losses of other reports than those their distances belong to."""
    case = open_case(name, 2.0, epsilon, repetition, size)
    here = case.setting
    others = setting(city(name), p=2.0, reports=size.reports, destinations=size.destinations, seed=repetition + APART)
    crossed = replace(here, losses=others.losses)
    rows = []
    for method, rule in {"EM": em, "Laplace": planar_laplace, "TEM": tem, "RMP": remapped}.items():
        rows.append({
            **case.about, "method": method, "repetition": repetition, "measure": LOSS,
            "published": printed("2", name, method, epsilon)[0],
            "as_published": rule(crossed, epsilon, repetition).loss,
            "corrected": rule(here, epsilon, repetition).loss, "note": "",
        })  # fmt: skip
    return rows
