"""Rounds of the decomposition, plain against stabilised, on random instances; and what both bounds miss the optimum by.

    python benchmarks/rounds.py [--seconds 120]

The optimum is that of scipy's HiGHS on the program written out.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import scipy.sparse as sparse
from scipy.optimize import linprog
from scipy.sparse.csgraph import shortest_path

import metricdp as mdp


def instance(seed: int, size: int, reports: int, side: float) -> mdp.Problem:
    """Random points whose neighbours up to 2 are connected; epsilon 0.5, 1.5, 3 or 6."""
    rng = np.random.default_rng(seed)
    while True:
        points = rng.uniform(0, side, (size, 2))
        apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=-1))
        if np.isfinite(shortest_path(np.where(apart <= 2.0, apart, 0.0), directed=False)).all():
            break
    outputs = mdp.FiniteSpace(points[rng.choice(size, reports, replace=False)], mdp.Lp(2))
    prior = rng.dirichlet(np.full(size, 3.0))
    epsilon = (0.5, 1.5, 3.0, 6.0)[seed % 4]
    return mdp.Problem(mdp.FiniteSpace(points, mdp.Lp(2)), epsilon, outputs=outputs, prior=prior, radius=2.0)


def optimum(problem: mdp.Problem) -> float:
    """Solve the program written out."""
    n, m = problem.cost.shape
    tail, head = np.nonzero(np.isfinite(problem.exponents) & ~np.eye(n, dtype=bool))
    half = problem.exponents[tail, head] / 2.0
    count = len(tail)
    index = np.arange(count)
    one = sparse.csr_array(
        (np.r_[np.exp(-half), -np.exp(half)], (np.r_[index, index], np.r_[tail, head])), shape=(count, n)
    )
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(
        problem.cost.ravel(),
        A_ub=sparse.kron(one, sparse.eye_array(m)),
        b_ub=np.zeros(count * m),
        A_eq=sparse.kron(sparse.eye_array(n), np.ones((1, m))),
        b_eq=np.ones(n),
        method="highs",
        options=tight,
    )
    return float(found.fun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="limit of one run")
    seconds = parser.parse_args().seconds
    print("| instance | records | optimum | loss - optimum | optimum - bound | highest bound - optimum |")
    for seed in range(8):
        problem = instance(seed, (20, 24, 30, 40)[seed // 2], 6, 5.0)
        best = optimum(problem)
        seen: list[float] = []
        proof = mdp.decomposed(
            problem, blocks=3, gap=2e-7, progress=lambda lower, *rest, seen=seen: seen.append(lower)
        ).certificate
        most = max([proof.lower_bound, *seen]) - best
        print(
            f"| {seed} | {len(problem.inputs)} | {best:.9f} | {proof.loss - best:.1e} | "
            f"{best - proof.lower_bound:.1e} | {most:.1e} |"
        )
    total = {"plain": 0, "kernels": 0, "engine": 0}
    for seed in range(8):
        problem = instance(seed, 30, 12, 6.0)
        row = []
        for name in total:
            count: list[int] = []
            used = time.process_time()
            proof = mdp.decomposed(
                problem,
                blocks=3,
                gap=1e-3,
                seconds=seconds,
                start="engine" if name == "engine" else "kernels",
                stabilise=name != "plain",
                progress=lambda *values, count=count: count.append(values[3]),
            ).certificate
            total[name] += len(count)
            row.append(f"{name} {len(count)} ({proof.gap:.1e}, {time.process_time() - used:.1f} s)")
        print(f"rounds to 0.1 %, instance {seed}: " + ", ".join(row), flush=True)
    print("all: " + ", ".join(f"{name} {count}" for name, count in total.items()))


if __name__ == "__main__":
    main()
