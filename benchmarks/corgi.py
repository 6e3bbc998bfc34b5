"""Pruning as CORGI publishes it, beside pruning that keeps the promise: 49 hexagonal cells, seven of them left out.

    python benchmarks/corgi.py --record             about five minutes on one core, with OMP_NUM_THREADS=1

As published (Pappachan, Qiu, Squicciarini and Manjunath 2023, and the code of its authors): cells within sqrt(3) widths
are neighbours and constrained at one width m; with T_i the mass of the `count` likeliest other reports in row i of the
last round's law,

    r_ij = min((1 - T_i exp(-epsilon m)) / (1 - T_i), exp(epsilon m)),     r_ij z_ik <= exp(epsilon m) z_jk,

ten rounds, the first without a reserve. Then columns of pruned cells are left out and rows divided by what is left; the
rows of pruned cells are left out too, so that nothing is said about somebody who is there. Every ratio of two rows is
counted, at every report that stays, in the distance of the cells: as published, and with all secrets. The loss is how
much the distance to seven targets is wrong, as published, or the distance itself.
"""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
from record import Recorder, arguments, recorder
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array

import metricdp as mdp
from metricdp.design import prunable, prune_reports

WIDTH = 0.37  # km between the middles of neighbouring cells, as published
ROUNDS = 10
SETS = 400
FEW = 10
TARGETS = (1, 8, 15, 22, 29, 35, 42)
GAP = 1e-2
TOLERANCE = 1e-6  # of a ratio: below it a solver may be meant


def hexagons(count: int) -> np.ndarray:
    """Return the middles of so many hexagonal cells around one, nearest first."""
    steps = itertools.product(range(-6, 7), repeat=2)
    places = np.array([[a + b / 2, b * math.sqrt(3) / 2] for a, b in steps]) * WIDTH
    order = np.argsort(np.round((places**2).sum(axis=1), 9) * 1e3 + np.arctan2(places[:, 1], places[:, 0]) * 1e-6)
    return places[order[:count]]


def published(places: np.ndarray, epsilon: float, count: int, costs: np.ndarray) -> np.ndarray:
    """Return the law of the published rounds; with `count` 0 there is no reserve and one round is enough."""
    size, apart = len(places), np.linalg.norm(places[:, None] - places[None], axis=2)
    near = np.argwhere((apart > 0) & (apart <= WIDTH * math.sqrt(3) * (1 + 1e-9)))
    limit, law = math.exp(epsilon * WIDTH), np.zeros((size, size))
    sums = csr_array(np.kron(np.eye(size), np.ones(size)))
    for _ in range(ROUNDS if count else 1):
        others = np.where(np.eye(size, dtype=bool), 0.0, law)
        top = np.sort(others, axis=1)[:, size - count :].sum(axis=1)
        with np.errstate(divide="ignore"):
            reserve = np.minimum((1 - top / limit) / np.maximum(1 - top, 0.0), limit)
        rows = np.arange(len(near) * size)
        one, two = (near[:, side, None] * size + np.arange(size) for side in (0, 1))
        scale = np.repeat(reserve[near[:, 0]], size)
        entries = np.concatenate([scale, np.full(len(rows), -limit)])
        place = (np.concatenate([rows, rows]), np.concatenate([one.ravel(), two.ravel()]))
        ratios = coo_array((entries, place), shape=(len(rows), size * size)).tocsr()
        found = linprog(costs.ravel() / size, ratios, np.zeros(len(rows)), sums, np.ones(size), method="highs-ipm")
        if found.status:
            raise RuntimeError(found.message)
        law = np.maximum(found.x.reshape(size, size), 0.0)
        law /= law.sum(axis=1, keepdims=True)
    return law


def violations(law: np.ndarray, limits: np.ndarray, gone: np.ndarray, *, everybody: bool) -> tuple[float, float]:
    """Return the share of ratios above the promise after pruning, and the largest leak as a share of epsilon.

    Both are no number where nothing is left of a row: there is no law then.
    """
    kept = np.setdiff1d(np.arange(len(law)), gone)
    rows = np.arange(len(law)) if everybody else kept
    rest = law[np.ix_(rows, kept)]
    rest = rest[:, (rest > 0).any(axis=0)]
    if not rest.shape[1] or not (rest.sum(axis=1) > 0).all():
        return math.nan, math.nan
    rest = rest / rest.sum(axis=1, keepdims=True)
    one, two = np.nonzero(~np.eye(len(rows), dtype=bool))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.nan_to_num(np.log(rest[one]) - np.log(rest[two]), nan=0.0, posinf=np.inf, neginf=-np.inf)
    limit = limits[np.ix_(rows, rows)][one, two, None]
    return float(np.mean(logs > limit * (1 + TOLERANCE))), float((logs / limit).max())


def told(law: np.ndarray, problem: mdp.Problem, count: int, bound: float) -> tuple[str, dict[str, float]]:
    """Return what pruning does to a law over many random sets, in words and numbers."""
    limits, numbers, words = problem.epsilon * problem.inputs.distances, {}, []
    for name, everybody in (("staying", False), ("all", True)):
        rng = np.random.default_rng(7)
        sets = [rng.choice(len(law), count, replace=False) for _ in range(SETS)]
        found = np.array([violations(law, limits, gone, everybody=everybody) for gone in sets])
        there = found[np.isfinite(found[:, 0])]
        numbers[f"{name}_violated"], numbers[f"{name}_worst"] = float(there[:, 0].mean()), float(there[:, 1].max())
        numbers[f"{name}_nothing_left"] = 1.0 - len(there) / SETS
        worst = f"{numbers[f'{name}_worst']:.2f}"
        words.append(
            f"{100 * numbers[f'{name}_violated']:.2f} % of the ratios of {name} secrets above the promise (worst "
            f"{worst} epsilon)"
        )
    numbers["above_bound"] = float((law * problem.cost).sum()) / bound - 1
    words.append(f"loss before pruning {100 * numbers['above_bound']:.1f} % above the proven bound")
    if numbers["all_nothing_left"]:
        words.append(f"nothing is left of a row in {100 * numbers['all_nothing_left']:.0f} % of {SETS} sets")
    return "; ".join(words), numbers


def costs_of(places: np.ndarray, loss: str) -> np.ndarray:
    """Return what every report costs every cell."""
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    away = apart[:, [target for target in TARGETS if target < len(places)]]
    return np.abs(away[:, None] - away[None]).mean(axis=2) if loss == "targets" else apart


def compared(cells: int, count: int, epsilon: float, loss: str) -> list[dict[str, Any]]:
    """Return what is recorded of one setting: the published laws, ours, and the map."""
    places = hexagons(cells)
    costs = costs_of(places, loss)
    problem = mdp.Problem(mdp.FiniteSpace(places, mdp.Lp(2, "km")), epsilon, loss=None if loss == "distance" else costs)
    best = mdp.optimal(problem, gap=GAP)
    head = f"CORGI, {count} of {cells} cells pruned, epsilon {epsilon:g}/km, {loss}"
    laws = {
        "without a reserve": published(places, epsilon, 0, costs),
        "with the published reserve": published(places, epsilon, count, costs),
        "our law made for pruning": prunable(problem, count, gap=GAP).matrix,
    }
    rows = []
    for name, law in laws.items():
        words, numbers = told(law, problem, count, best.certificate.lower_bound)
        rows.append({"what": f"{head}, {name}", "asked": "none" if "our" in name else "", "measured": words, **numbers})
    words, share = mapped(best, problem, count)
    return [*rows, {"what": f"{head}, our map", "asked": "none", "measured": words, "above_bound": share}]


def main(keep: Recorder, settings: list[tuple[int, int, float, str]], processes: int) -> None:
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        columns = zip(*settings, strict=True)
        for rows in pool.map(compared, *columns) if processes > 1 else map(compared, *columns):
            for row in rows:
                print(f"{row['what']}: {row['measured']}", flush=True)
                keep("policies", **row)


def mapped(best: mdp.mechanisms.MatrixMechanism, problem: mdp.Problem, count: int) -> tuple[str, float]:
    """Return what pruning by a map costs: each law audited, its loss beside the bound for the reports that are kept."""
    rng, size, shares = np.random.default_rng(7), len(problem.inputs), []
    for _ in range(FEW):
        gone = rng.choice(size, count, replace=False)
        kept = np.setdiff1d(np.arange(size), gone)
        own = None if problem.loss_is_distance else problem.loss
        less = prune_reports(best, gone, loss=own)
        part = problem.inputs.part(kept)
        fewer = mdp.Problem(problem.inputs, problem.epsilon, outputs=part, loss=None if own is None else own[:, kept])
        assert mdp.audit(less).verdict == "holds"
        shares.append(less.certificate.loss / mdp.optimal(fewer, gap=GAP).certificate.lower_bound - 1)
    share = float(np.median(shares))
    return (
        f"none above, all secrets; loss after pruning {100 * share:.1f} % above the bound (median of {FEW} sets)",
        share,
    )


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--cells", type=int, default=49)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[3.0, 6.0, 10.0], help="per km")
    parser.add_argument("--loss", nargs="+", default=["targets", "distance"], choices=["targets", "distance"])
    parser.add_argument("--count", type=int, default=7, help="cells that are pruned")
    parser.add_argument("--processes", type=int, default=1, help="settings at a time")
    chosen = parser.parse_args()
    asked = [(chosen.cells, chosen.count, epsilon, loss) for loss in chosen.loss for epsilon in chosen.epsilon]
    main(recorder(chosen.record), asked, chosen.processes)
