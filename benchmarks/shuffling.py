"""A thousand random crowds: what is stated of shuffled reports against all multisets they can show, counted exactly.

    python benchmarks/shuffling.py --record              # a minute
    python benchmarks/shuffling.py --count 50

A setting is a space of 2 to 4 secrets in the plane under l_1, l_2 or l_inf or around a ring, a mechanism on it
(exponential, optimal, or random ratios up to its epsilon), 2 to 6 people and where the others are. The law of the
multiset of reports is convolved person by person; for every pair x, x', both ways and several levels e, the exact

    delta = sum over multisets S of max(Pr[S | x] - exp(e) Pr[S | x'], 0)

must not be above what `mdp.auditing.shuffled_delta` says, nor be above delta at the level of
`mdp.auditing.shuffled_epsilon`. Nothing
here is pure: where the stated delta is 0 the level is what the mechanism promises without a crowd.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from record import arguments, recorder

import metricdp as mdp

Crowd = dict[tuple[int, ...], float]
MOST_OTHERS = 12  # ways in which the others are placed
LEVELS = (1e-9, 0.3, 0.7)  # as a share of what the mechanism promises without a crowd


def drawn(seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64], float, int]:
    """Return distances, a law, its epsilon and how many people there are."""
    rng = np.random.default_rng(seed)
    size, epsilon = int(rng.integers(2, 5)), float(rng.choice([0.3, 1.0, 2.5]))
    if seed % 4 == 3 and size > 2:
        ring = np.stack([np.arange(size), (np.arange(size) + 1) % size], axis=1)
        space = mdp.FiniteSpace(np.arange(size), mdp.ShortestPath(ring, rng.uniform(0.3, 1.5, size), size))
    else:
        space = mdp.FiniteSpace(rng.uniform(0, 1.2, (size, 2)), mdp.Lp((1, 2, np.inf)[seed % 3]))
    kind = seed % 5
    if kind < 2:
        made = mdp.exponential(space, epsilon).matrix
    elif kind < 4:
        made = mdp.optimal(mdp.Problem(space, epsilon, prior=rng.dirichlet(np.ones(size)))).matrix
    else:  # columns exp(c_k . d) of random mixtures, scaled to epsilon by the audit
        logs = -rng.uniform(0, 1, (size, size)) @ space.distances
        law = np.exp(logs - logs.max(axis=1, keepdims=True))
        law /= law.sum(axis=1, keepdims=True)
        epsilon = mdp.audit(law, metric=space.metric, points=space.points, epsilon=1e9).epsilon
        made = law
    used = made[:, made.max(axis=0) > 0]
    return space.distances, used / used.sum(axis=1, keepdims=True), epsilon, int(rng.integers(2, 7))


def seen(law: NDArray[np.float64], secrets: Sequence[int]) -> Crowd:
    """Return the law of the multiset of reports: how often each was made, with its probability."""
    found: Crowd = {(0,) * law.shape[1]: 1.0}
    for secret in secrets:
        longer: Crowd = defaultdict(float)
        for counts, chance in found.items():
            for report in range(law.shape[1]):
                more = (*counts[:report], counts[report] + 1, *counts[report + 1 :])
                longer[more] += chance * float(law[secret, report])
        found = longer
    return found


def hockey_stick(one: Crowd, other: Crowd, level: float) -> float:
    """Return sup over sets of Pr[S | one] - exp(level) Pr[S | other]."""
    return math.fsum(max(chance - math.exp(level) * other.get(what, 0.0), 0.0) for what, chance in one.items())


def others(size: int, people: int, rng: np.random.Generator) -> Iterator[tuple[int, ...]]:
    """Yield where everybody else is: all ways where there are few, else some of them."""
    ways = list(itertools.combinations_with_replacement(range(size), people - 1))
    picked = rng.permutation(len(ways))[:MOST_OTHERS]
    yield from (ways[at] for at in picked)


def judged(seed: int) -> tuple[int, list[float]]:
    """Return how many statements were checked, and exact over stated deltas."""
    apart, law, epsilon, people = drawn(seed)
    rng, size, diameter = np.random.default_rng(10_000 + seed), len(apart), float(apart.max())
    places = [[seen(law, (one, *rest)) for one in range(size)] for rest in others(size, people, rng)]
    checked, ratios = 0, []
    for x, y in itertools.permutations(range(size), 2):
        distance = float(apart[x, y])
        pure, where = epsilon * distance, {"distance": distance, "diameter": diameter}
        stated = [(at * pure, mdp.auditing.shuffled_delta(epsilon, people, level=at * pure, **where)) for at in LEVELS]
        delta = float(10 ** rng.uniform(-4, -1))
        stated.append((mdp.auditing.shuffled_epsilon(epsilon, people, delta=delta, **where), delta))
        for (level, most), crowds in itertools.product(stated, places):
            exact = hockey_stick(crowds[x], crowds[y], level)
            assert 0.0 <= level <= pure, (seed, x, y, level, pure)
            assert exact <= most, (seed, x, y, level, exact, most)
            checked += 1
            if most != delta:
                ratios.append(exact / most)
    return checked, ratios


def main() -> None:
    """Judge all settings."""
    parser = arguments(__doc__)
    parser.add_argument("--count", type=int, default=1_000)
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    started, checked = time.perf_counter(), 0
    ratios: list[float] = []
    for seed in range(chosen.count):
        more, shares = judged(seed)
        checked, ratios = checked + more, ratios + shares
        if seed % 100 == 99:
            print(f"{seed + 1:,} settings, {time.perf_counter() - started:.0f} s", flush=True)
    words = (
        f"{chosen.count:,} of {chosen.count:,} settings hold, {checked:,} statements against all multisets; the exact "
        f"delta is {np.median(ratios):.0%} of the stated one in the middle, {max(ratios):.1%} at most"
    )
    keep("scales", f"shuffling: {chosen.count:,} random crowds", asked="all hold", measured=words, count=chosen.count,
         statements=checked, middle=float(np.median(ratios)), most=max(ratios))  # fmt: skip
    print(words)


if __name__ == "__main__":
    main()
