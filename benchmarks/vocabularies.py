"""Whole vocabularies: what the largest certified exponential, kernels in balance and windows lose, beside the bound.

    python benchmarks/vocabularies.py                        # short: 2,000 words, random vectors
    python benchmarks/vocabularies.py --full --record        # GloVe, 5,000 and 20,000 words, some minutes each
    python benchmarks/vocabularies.py --full --only 5000     # one size
    python benchmarks/vocabularies.py --full --only 5000 --epsilon 4 --windows     # and windows

Words are the most frequent of GloVe 6B in 100 dimensions, in l2; the prior is uniform or Zipf's, 1 / rank. The loss is
the expected distance of a report from its word; the bound holds for every mechanism with the same promise. Windows are
those of whole cities, asked for by `window`.
"""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import numpy as np
from record import Recorder, arguments, recorder

import metricdp as mdp
from metricdp.arrays import Floats

EPSILONS = (1.0, 1.5, 2.0, 3.0, 4.0)
WINDOWS = {3.0: 5.0, 4.0: 5.0}  # epsilon -> how far windows reach
PATIENCE = 240.0  # seconds for windows


def glove(size: int) -> mdp.FiniteSpace:
    """Return the most frequent words of GloVe 6B."""
    folder = Path(os.environ.get("METRICDP_DATA", Path(__file__).parents[2] / "shared" / "data"))
    return mdp.text.read_vectors(folder / "glove_6b_100d" / "vectors.npz", limit=size).space()


def scattered(size: int) -> mdp.FiniteSpace:
    vectors = np.random.default_rng(0).normal(size=(size, 20)) * 0.8
    return mdp.vocabulary([f"w{i}" for i in range(size)], vectors)


def priors(size: int) -> dict[str, Floats]:
    falling = 1.0 / np.arange(1.0, size + 1.0)
    return {"uniform": np.full(size, 1.0 / size), "zipf": falling / falling.sum()}


def unchanged(mechanism: mdp.Mechanism, prior: Floats) -> float:
    everybody = np.arange(len(prior))
    return float(prior @ np.exp(mechanism.log_density(everybody, everybody)))


def measured(space: mdp.FiniteSpace, source: str, epsilon: float, keep: Recorder, *, windows: bool = False) -> None:
    """Build and record all of one size and epsilon."""
    size = len(space)
    started = time.perf_counter()
    plain = mdp.exponential(space, epsilon, form="kernel")
    spent = time.perf_counter() - started
    everybody = np.arange(size)
    for name, prior in priors(size).items():
        loss = sum(
            float(prior[some] @ (plain.rows(some) * np.asarray(plain.distribution.measured.rows(some))).sum(axis=1))
            for some in np.array_split(everybody, max(1, size // 200))
        )
        told(keep, (source, size, epsilon, name), "exponential, certified", loss, unchanged(plain, prior), spent)
        problem = mdp.Problem(space, epsilon, prior=prior)
        started = time.perf_counter()
        try:
            best = optimal(problem)
        except mdp.MetricdpError as error:
            print(f"  optimal: {error}")
            continue
        spent, found = time.perf_counter() - started, best.certificate
        told(keep, (source, size, epsilon, name), "kernel in balance", found.loss, unchanged(best, prior), spent, found)
        if not windows or epsilon not in WINDOWS or size > 5_000:
            continue
        started = time.perf_counter()
        local = mdp.optimal(problem, window=WINDOWS[epsilon], gap=0.01, seconds=PATIENCE)
        spent, found = time.perf_counter() - started, local.certificate
        told(keep, (source, size, epsilon, name), "windows", found.loss, unchanged(local, prior), spent, found)


def optimal(problem: mdp.Problem) -> mdp.Mechanism:
    if len(problem.inputs) > 4_096:
        return mdp.optimal(problem)
    from metricdp.design.balanced import optimal_kernel

    return optimal_kernel(problem, gap=1e-3)


def told(
    keep: Recorder,
    case: tuple[str, int, float, str],
    how: str,
    loss: float,
    share: float,
    seconds: float,
    found: mdp.Certificate | None = None,
) -> None:
    source, size, epsilon, prior = case
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    bound = None if found is None else found.lower_bound
    text = f"loss {loss:.4g}, {share:.2%} of words unchanged, {seconds:.0f} s, {memory:.1f} GB at most so far"
    if found is not None:
        text += f"; none that reports these words below {found.lower_bound:.4g} (gap {found.gap:.2g})"
    what = f"{size:,} words of {source}, epsilon {epsilon:g}, {prior} prior: {how}"
    print(f"{what}: {text}\n   {found.method if found else ''} {found.note if found else ''}", flush=True)
    keep(
        "vocabularies",
        what,
        measured=text,
        words=size,
        epsilon=epsilon,
        prior=prior,
        how=how,
        loss=loss,
        unchanged=share,
        seconds=seconds,
        gigabytes=memory,
        **({} if bound is None else {"bound": bound}),
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--full", action="store_true", help="5,000 and 20,000 words of GloVe")
    parser.add_argument("--only", nargs="+", type=int, default=(), help="sizes")
    parser.add_argument("--windows", action="store_true", help="windows of whole cities as well, up to 5,000 words")
    parser.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS)
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    for size in chosen.only or ((5_000, 20_000) if chosen.full else (2_000,)):
        space = glove(size) if chosen.full else scattered(size)
        for epsilon in chosen.epsilon:
            measured(space, "GloVe" if chosen.full else "random vectors", epsilon, keep, windows=chosen.windows)


if __name__ == "__main__":
    main()
