"""Level and power of the independence tests on known laws: 1,000 null draws each, then blankets of known chains.

    python benchmarks/independence.py [--draws 1000] [--runs 100] [--record]

Prints the share of null draws rejected at 5 % with its standard error, processor milliseconds a test, and how often the
blanket of a lag-1, lag-2 and lag-3 chain is found.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from record import arguments, recorder

from metricdp.mobility import conditional_independence, discover
from metricdp_papers.independence import analytic_independence, kernel_independence

Sample = tuple[Any, Any, Any]
Figure = tuple[str, str]
PLACES = 5


def discrete(rng: np.random.Generator, count: int, places: int) -> Sample:
    z = rng.integers(0, places, count)
    x, y = ((z + rng.integers(0, 3, count)) % places for _ in range(2))
    return x, y, z


def curves(rng: np.random.Generator, count: int, columns: int) -> Sample:
    z = rng.normal(size=(count, columns))
    x = np.sin(2.0 * z[:, 0]) + 0.5 * rng.normal(size=count)
    return x, z[:, 0] ** 2 + 0.5 * rng.normal(size=count), z


def plane(lag: int, count: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    walk = np.zeros((count + 60, 2))
    noise = 0.5 * rng.normal(size=walk.shape)
    for t in range(lag, len(walk)):
        walk[t] = 0.8 * walk[t - lag] + noise[t]
    return walk[50:]


def windows(rng: np.random.Generator, count: int, lag: int) -> Sample:
    """The current place, the one before the blanket, the blanket: independent, since the walk has that lag."""
    walk = plane(lag, count + lag + 1, rng)
    rows = np.arange(lag + 1, lag + 1 + count)
    return walk[rows], walk[rows - lag - 1], np.hstack([walk[rows - back] for back in range(1, lag + 1)])


def level(name: str, test: Callable[[Sample, int], float], sample: Callable[[Any], Sample], draws: int) -> Figure:
    """Return what was measured and what came out: the share of null draws that the test rejects."""
    started, rejected = time.process_time(), 0
    for draw in range(draws):
        np.random.seed(draw)  # noqa: NPY002 - causal-learn draws its random features from here
        rejected += test(sample(np.random.default_rng(draw)), draw) <= 0.05
    share = rejected / draws
    error = np.sqrt(share * (1 - share) / draws)
    spent = 1000 * (time.process_time() - started) / draws
    print(
        f"{name}: {100 * share:.1f} % +- {100 * error:.1f} of {draws} null draws rejected, {spent:.0f} ms", flush=True
    )
    found = f"{100 * share:.1f} % (standard error {100 * error:.1f}), {spent:.0f} processor ms a test"
    return f"{name}: {draws:,} null draws at 5 %", found


def chain(lag: int, steps: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    walk = list(rng.integers(0, PLACES, lag))
    for move in rng.choice(3, p=[0.6, 0.2, 0.2], size=steps):
        walk.append((walk[-lag] + move) % PLACES)
    return np.array(walk)


def analytic_size(walk: np.ndarray[Any, Any], most_lag: int, seed: int) -> int:
    rows = np.arange(most_lag, len(walk))
    lags = [walk[rows - lag] for lag in range(most_lag + 1)]
    for m in range(most_lag):
        given = np.hstack(lags[1 : m + 1]) if m else None
        if analytic_independence(lags[0], np.hstack(lags[m + 1 :]), given, seed=seed).p_value > 0.05:
            return m
    return most_lag


def blanket(lag: int, runs: int) -> Figure:
    """Return how often the blanket of a chain of known lag is found."""
    places, coordinates = Counter[int](), Counter[int]()
    for run in range(runs):
        walk = chain(lag, 200 + 4, np.random.default_rng([lag, run]))
        rows = np.stack([walk[4 - back : len(walk) - back] for back in range(5)], axis=1)
        places[discover(rows, permutations=99, seed=run).size] += 1
        coordinates[analytic_size(plane(lag, 204, np.random.default_rng([lag, run])), 4, run)] += 1
    print(f"lag-{lag} chain of 200, size found: permutation {dict(places)}, analytic {dict(coordinates)}", flush=True)
    found = [
        f"{name} {sizes[lag]} right, {sum(sizes[less] for less in range(lag))} too small, "
        f"{sum(count for size, count in sizes.items() if size > lag)} too large"
        for name, sizes in (("permutation", places), ("analytic on walks in the plane", coordinates))
    ]
    return f"blanket of a lag-{lag} chain, 200 samples, {runs} runs", "; ".join(found)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=100)
    chosen = parser.parse_args()

    def permutation(sample: Sample, seed: int) -> float:
        return conditional_independence(*sample, permutations=99, seed=seed).p_value

    def analytic(sample: Sample, seed: int) -> float:
        return analytic_independence(*sample, seed=seed).p_value

    draws, keep = chosen.draws, recorder(chosen.record)
    null: list[tuple[str, Callable[[Sample, int], float], Callable[[Any], Sample]]] = [
        ("permutation, 200 samples, 6 places", permutation, lambda rng: discrete(rng, 200, 6)),
        ("permutation, 400 samples, 10 places", permutation, lambda rng: discrete(rng, 400, 10)),
        ("analytic, 200 samples, one condition", analytic, lambda rng: curves(rng, 200, 1)),
        ("analytic, 120 samples, one condition", analytic, lambda rng: curves(rng, 120, 1)),
        ("analytic, 120 samples, one of two conditions", analytic, lambda rng: curves(rng, 120, 2)),
        ("analytic, 120 samples, one of four conditions", analytic, lambda rng: curves(rng, 120, 4)),
    ]
    for lag in (1, 2, 3):
        null.append((f"analytic, 120 windows of a lag-{lag} walk", analytic, lambda rng, k=lag: windows(rng, 120, k)))
    for name, test, sample in null:
        what, found = level(name, test, sample, draws)
        keep("contextual", what, asked="3 to 7 %", measured=found)
    for method in ("rcit", "kci"):
        what, found = level(
            f"causal-learn {method}, 200 samples, one condition",
            lambda sample, seed, kind=method: kernel_independence(*sample, method=kind),
            lambda rng: curves(rng, 200, 1),
            min(draws, 200),
        )
        keep("contextual", what, measured=found)
    for lag in (1, 2, 3):
        what, found = blanket(lag, chosen.runs)
        keep("contextual", what, asked="the right one", measured=found)


if __name__ == "__main__":
    main()
