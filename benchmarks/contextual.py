"""Measure what the context-aware mechanisms claim, without any data: the toy, a draw, a trace of 100 points, a call.

    python benchmarks/contextual.py [--record]

The toy: 64 secrets, a walk on four places with two steps back; a fast step (two places or more) makes the mechanism
look two steps back, a slow one only one. The group is read off the secret.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import numpy as np
from record import Recorder, arguments, recorder

import metricdp as mdp
from metricdp.auditing import bounded_range
from metricdp.mobility import account, allocate, train_predictor, trajectory_epsilon
from metricdp_papers.contextual.per_group import one_program_per_group

LINE = mdp.FiniteSpace(np.arange(4.0)[:, None], mdp.Lp(2))
CUBE = np.array(list(itertools.product(range(4), repeat=3)))
FAST = np.abs(CUBE[:, 0] - CUBE[:, 1]) >= 2


def toy(keep: Recorder) -> None:
    prior = np.exp(-np.abs(CUBE[:, 0] - CUBE[:, 1]) - np.abs(CUBE[:, 1] - CUBE[:, 2]))
    loss = np.abs((2.0 * CUBE[:, 0] - CUBE[:, 1])[:, None] - np.arange(4.0))
    space = mdp.spaces.Augmented(LINE, CUBE, [0.5, 0.25]).space
    problem = mdp.Problem(space, 1.0, outputs=LINE, loss=loss, prior=prior / prior.sum())
    broken = one_program_per_group(problem, groups=FAST.astype(int), blankets={0: CUBE[:, :2], 1: CUBE})
    share, _ = mdp.violation_ratio(broken, 1.0)
    report = mdp.audit(broken, epsilon=1.0)
    print(
        f"one program per group: {report.verdict}, epsilon {report.epsilon:.4g}, {100 * share:.1f} % of pairs violate"
    )
    keep(
        "contextual",
        "one program per blanket chosen by the secret, 64 secrets",
        asked="shown to violate",
        measured=f"audited {report.epsilon:.4g} instead of 1, violated at {100 * share:.1f} % of (pair, report)",
        epsilon=report.epsilon,
        share=share,
    )
    full = mdp.contextual(problem, gap=1e-4)
    classes = np.column_stack([CUBE[:, 0], CUBE[:, 1], np.where(FAST, CUBE[:, 2], -1)])
    quotient = mdp.contextual(problem, classes=classes, gap=1e-4)
    report, whole = mdp.audit(quotient), full.certificate.loss
    across = [pair for pair in itertools.combinations(range(64), 2) if FAST[pair[0]] != FAST[pair[1]]]
    logs = np.log(quotient.matrix)
    worst = max(np.abs(logs[a] - logs[b]).max() / space.distances[a, b] for a, b in across)
    count, reduced = len(np.unique(classes, axis=0)), quotient.certificate.loss
    print(
        f"one program over {count} classes: {report.verdict}, epsilon {report.epsilon:.9g} over {report.pairs} pairs "
        f"({worst:.9g} over the {len(across)} pairs whose blankets differ); loss {reduced:.4f} against {whole:.4f} "
        f"unreduced ({100 * (reduced / whole - 1):.2f} %)"
    )
    keep(
        "contextual",
        f"the same with one program over {count} classes",
        asked="exactly epsilon, within 1 % of the full program",
        measured=f"{report.epsilon:.9g} of 1 over {report.pairs:,} pairs, {worst:.9g} over the {len(across)} whose "
        f"blankets differ; loss {reduced:.4f} against {whole:.4f} ({100 * (reduced / whole - 1):.2f} %)",
        epsilon=report.epsilon,
        loss=reduced,
        full_loss=whole,
    )
    encode = mdp.spaces.Augmented(LINE, CUBE, [0.5, 0.25])
    best = min(_timed(lambda: quotient.sample(encode.encode([[1, 2, 3]])), 500) for _ in range(5))
    print(f"a draw with context, encoding included: {best:.3f} ms (best of 5 means of 500)")
    told = f"{best:.3f} ms with encoding, best of five means of 500"
    keep("contextual", "draw with context", asked="under 1 ms", measured=told, milliseconds=best)


def trace(keep: Recorder) -> None:
    noise = mdp.exponential(mdp.grid(6), 0.1, budget="half")
    ranges = np.full(100, bounded_range(noise))
    spent = account(np.full(100, 0.1), radius=1.0, delta=1e-5, ranges=ranges)
    print(
        f"100 releases of 0.1 per km, 1 km each: basic {spent.basic:.4g}, l2 over time {spent.product:.4g}, "
        f"concentrated {spent.concentrated:.4g}, bounded range {spent.bounded_range:.4g}; with context 1, 0.5 a place "
        f"costs {trajectory_epsilon(0.1, [1.0, 0.5]):.4g} per km"
    )
    keep(
        "contextual",
        "100 releases of 0.1 per km, 1 km, delta 1e-5",
        asked="three rules",
        measured=f"basic {spent.basic:.4g}, l2 over time {spent.product:.4g}, concentrated {spent.concentrated:.4g} "
        f"(bounded range {spent.bounded_range:.4g})",
    )
    weights = np.array([1.0, 1.0, 1.0, 4.0, 9.0])
    even, best = float((weights / 0.1).sum()), float((weights / allocate(0.5, weights)).sum())
    print(f"allocation for weights 1, 1, 1, 4, 9: sum of weight / epsilon {even:.0f} evenly, {best:.0f} allocated")


def call(keep: Recorder) -> None:
    rng = np.random.default_rng(0)
    inputs = np.column_stack([rng.uniform(0, 24, 200), rng.uniform(0, 40, 200), rng.integers(0, 3, (200, 3))])
    predictor = train_predictor(inputs, inputs[:, 1] > 20.0, most_lag=3)
    best = min(_timed(lambda: predictor.probability(inputs[:1]), 500) for _ in range(5))
    print(f"one call of the predictor: {best:.3f} ms (best of 5 means of 500)")
    told = f"{best:.3f} ms, best of five means of 500"
    keep("contextual", "predictor, one call", asked="under 2 ms", measured=told, milliseconds=best)


def _timed(action: Callable[[], object], times: int) -> float:
    started = time.perf_counter()
    for _ in range(times):
        action()
    return 1000.0 * (time.perf_counter() - started) / times


if __name__ == "__main__":
    chosen = recorder(arguments(__doc__).parse_args().record)
    toy(chosen)
    trace(chosen)
    call(chosen)
