"""What the page about the decomposition says beyond the paper: six digits, and what a radius of neighbours costs."""

from __future__ import annotations

import time

import numpy as np

from metricdp import decomposed, optimal
from metricdp.design import Neighbours
from metricdp.metrics import Lp
from metricdp.problems import Problem
from metricdp.solvers import Highs, RatioProgram
from metricdp.spaces import FiniteSpace
from metricdp_papers.benders.runs import ONE_CORE, Setting
from metricdp_papers.common import Row, row


def digits_rows(setting: Setting, gap: float, seconds: float) -> list[Row]:
    """Ask `optimal` and `decomposed` for a gap that is much smaller than anybody needs."""
    problem = setting.problem(0)
    rows: list[Row] = []
    for name in ("optimal", "decomposed"):
        started = time.process_time()
        if name == "optimal":
            proof = optimal(problem, gap=gap, seconds=seconds).certificate
        else:
            proof = decomposed(problem, blocks=setting.blocks, gap=gap, seconds=seconds, executor=ONE_CORE).certificate
        spent = time.process_time() - started
        about = {"data": setting.data, "records": setting.records, "epsilon": setting.epsilon, "method": name}
        rows += [
            row(about, "expected loss", None, proof.loss, bound=proof.lower_bound, seconds=spent),
            row(about, "gap", None, proof.gap, seconds=spent),
        ]
    return rows


def detour_rows(size: int, reach: float, epsilon: float) -> list[Row]:
    """Compare what chains of neighbours cost: epsilon divided by the largest detour, repaired, or all pairs."""
    points = np.random.default_rng(0).uniform(0.0, 6.0, (size, 2))
    problem = Problem(FiniteSpace(points, Lp(2)), epsilon)
    graph = Neighbours.of(problem, reach=reach)
    pairs = np.argwhere(np.triu(graph.adjacency, 1))
    apart = problem.inputs.distances[pairs[:, 0], pairs[:, 1]]
    charged = Highs(method="simplex").solve(RatioProgram(problem.cost, pairs, epsilon / graph.stretch * apart))
    proof = decomposed(problem, blocks=3, neighbours=reach, gap=1e-4, seconds=60.0, executor=ONE_CORE).certificate
    best = optimal(problem, gap=1e-4, seconds=60.0).certificate
    found = {
        "epsilon divided by the detour": (charged.objective, None),
        "decomposed": (proof.loss, best.lower_bound),
        "optimal for all pairs": (best.loss, best.lower_bound),
    }
    about = {"data": "random points", "records": size, "epsilon": epsilon}
    first = row({**about, "method": "neighbours"}, "largest detour", None, graph.stretch)
    return [first] + [row({**about, "method": name}, "expected loss", None, loss, bound=bound)
                      for name, (loss, bound) in found.items()]  # fmt: skip
