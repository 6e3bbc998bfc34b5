"""The averages over cities and budgets that the paper states in its text, one row of each for every case.

Rows that differ in `repetition` alone are averaged, so a repetition here is a whole case: city, budget and draw.
"""

from __future__ import annotations

from collections.abc import Sequence

from metricdp_papers.aipo.published import SAVED, SURROGATE_GAP
from metricdp_papers.common import Row


def claims(rows: Sequence[Row], measure: str) -> list[Row]:
    """Return what a case says about the claims, from its rows of Table 2 (with this measure) and of the gap."""
    losses = [row for row in rows if row["table"] == "2" and row["measure"] == measure]
    plain = {row["method"]: row["as_published"] for row in losses if row.get("as_published") is not None}
    better = {row["method"]: row["corrected"] for row in losses if row.get("corrected") is not None}
    first = losses[0]
    case = f"{first['city']}, {first['epsilon']:g}, {first['repetition']}"
    l2 = first["norm"] == "l2"
    found: list[Row] = []

    def add(method: str, about: str, **values: float | None) -> None:
        start: Row = {"table": "claims", "norm": first["norm"], "method": method, "repetition": case}
        found.append({**start, "measure": about, **values})

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
    for row in rows:
        if row["table"] == "gap":
            values = {name: row.get(name) for name in ("as_published", "corrected")}
            add("AIPO", "surrogate gap", published=SURROGATE_GAP if l2 else None, **values)
    return found


def _below(ours: float, theirs: float) -> float:
    return 100.0 * (1.0 - ours / theirs)
