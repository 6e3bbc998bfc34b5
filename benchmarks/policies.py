"""Policies and pruning on a thousand random spaces each: every law judged exactly, its loss beside the proven bound.

    python benchmarks/policies.py policies              random policies, in hops and lengths, in one part and several
    python benchmarks/policies.py pruning               random reports pruned from the optimum, by each rule
    python benchmarks/policies.py prunable              laws made for pruning, every set of reports left out
    python benchmarks/policies.py all --record

A loss is stated as a share above the engine's proven lower bound of the same problem: for pruned laws that of the
optimum over the reports that are kept.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from record import Recorder, arguments, recorder

import metricdp as mdp
from metricdp.design.pruning import prunable, pruned
from metricdp.errors import Infeasible

GAP = 2e-2


def seeds(count: int, minutes: float) -> Iterator[int]:
    """Yield seeds until there are enough, or time is up: what was done by then is told with its number."""
    end = time.monotonic() + 60 * minutes
    for seed in range(count):
        if time.monotonic() > end:
            return
        yield seed


def random_policy(seed: int) -> mdp.Problem:
    """Return a random policy over random places, losses in the distance on the ground."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 9))
    places = mdp.FiniteSpace(rng.uniform(0, 4, (size, 2)), mdp.Lp(2))
    kind = seed % 4
    if kind == 0:
        edges = mdp.policies.nearest(places, int(rng.integers(1, min(4, size))))
    elif kind == 1:
        edges = mdp.policies.areas(np.append(rng.integers(0, 3, size - 2), [0, 0]))
    elif kind == 2:
        pairs = np.array(list(itertools.combinations(range(size), 2)))
        edges = pairs[rng.permutation(len(pairs))[: int(rng.integers(1, len(pairs) + 1))]]
    else:
        near = np.sort(places.distances, axis=1)[:, 1]
        edges = mdp.policies.within(places, float(rng.uniform(near.min(), near.max()) * 1.2))
    left = str(rng.choice(["join", "disclose"]))
    lengths = "distance" if rng.random() < 0.4 else None
    space = mdp.policy(places, edges, lengths=lengths, isolated=left, parts=left)
    prior = rng.dirichlet(np.ones(size)) if rng.random() < 0.5 else None
    return mdp.Problem(space, float(np.exp(rng.uniform(-1.5, 1.5))), loss=places.distances, prior=prior)


def random_places(seed: int, most: int) -> mdp.Problem:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(4, most))
    places = mdp.FiniteSpace(rng.uniform(0, 4, (size, 2)), mdp.Lp(2 if seed % 2 else 1))
    prior = rng.dirichlet(np.ones(size)) if rng.random() < 0.5 else None
    return mdp.Problem(places, float(np.exp(rng.uniform(-1.5, 1.0))), prior=prior)


def above(name: str, law: mdp.MatrixMechanism, bound: float) -> float:
    """Return the share of a loss above the proven bound; one below it would refute the engine."""
    loss = law.certificate.loss
    if loss < bound * (1 - 1e-9) - 1e-12:
        raise AssertionError(f"{name} lies below the proven bound")
    return loss / bound - 1.0 if bound > 1e-9 else math.nan


def spread(shares: list[float]) -> str:
    """Return how far above the bound losses are, in words."""
    found = np.array([share for share in shares if math.isfinite(share)])
    return (
        f"{100 * np.median(found):.1f} % above the proven bound (median of {len(found):,}), "
        f"{100 * np.quantile(found, 0.9):.1f} % (nine in ten)"
    )


def policies(chosen: Iterator[int], keep: Recorder, searched: int) -> None:
    shares, held, made = defaultdict(list), defaultdict(int), defaultdict(int)
    parts = count = 0
    for seed in chosen:
        problem = random_policy(seed)
        count, parts = count + 1, parts + (problem.radius is not None)
        stakes = {"prior": problem.prior, "loss": problem.loss}
        laws = {"exponential": mdp.exponential(problem.inputs, problem.epsilon, **stakes)}
        with contextlib.suppress(Infeasible):
            laws["tight_constraints"] = mdp.tight_constraints(problem.inputs, problem.epsilon, **stakes)
        if seed < searched:
            laws["optimal"] = mdp.optimal(problem, gap=GAP)
        for name, law in laws.items():
            report = mdp.audit(law)
            made[name] += 1
            held[name] += report.verdict == "holds" and report.basis == "proof"
            if "optimal" in laws:
                shares[name].append(above(f"{name} {seed}", law, laws["optimal"].certificate.lower_bound))
    for name in made:
        told = f"{held[name]:,} of {made[name]:,} hold; {spread(shares[name])}"
        print(f"policies, {name}: {told}; {parts} of {count} in several parts")
        keep("policies", f"random policies, {name}", asked="all hold", measured=told, several_parts=parts, count=count)


def pruning(chosen: Iterator[int], keep: Recorder, searched: int) -> None:
    shares, held, made = defaultdict(list), defaultdict(int), defaultdict(int)
    count, broken, leaks = 0, [], []
    for seed in chosen:
        count += 1
        problem, rng = random_places(seed, 9), np.random.default_rng(seed)
        size, apart = len(problem.inputs), problem.inputs.distances
        gone = rng.permutation(size)[: int(rng.integers(1, size // 2 + 1))]
        law = mdp.exponential(problem.inputs, problem.epsilon)
        bound = None
        if seed < searched:
            law = mdp.optimal(problem, gap=GAP)
            part = problem.inputs.part(np.delete(np.arange(size), gone))
            fewer = mdp.Problem(problem.inputs, problem.epsilon, outputs=part, prior=problem.prior)
            bound = mdp.optimal(fewer, gap=GAP).certificate.lower_bound
            rest = np.delete(law.matrix, gone, axis=1)
            rest = rest[:, rest.sum(axis=0) > 0]
            if rest.shape[1] and np.all(rest.sum(axis=1) > 0):
                rest = rest / rest.sum(axis=1, keepdims=True)
                one, two = np.triu_indices(size, 1)
                limit = problem.epsilon * apart[one, two, None] * (1 + 1e-9)
                broken.append(float(np.mean(np.abs(np.log(rest[one] / rest[two])) > limit)))
                leaks.append(mdp.audit(rest, distances=apart, epsilon=problem.epsilon).epsilon / problem.epsilon)
        laws = {rule: pruned(law, gone, rule=rule, prior=problem.prior) for rule in ("cheapest", "nearest")}
        tree = mdp.location_tree(problem.inputs, 3)
        laws["coarser reports"] = tree.coarsen(law, 2)
        laws["on areas"] = tree.for_places(mdp.exponential(tree.at_level(2), problem.epsilon), 2)
        for name, one in laws.items():
            made[name] += 1
            held[name] += one.certificate.epsilon <= problem.epsilon  # what the exact audit found when it was built
            if bound is not None and name in ("cheapest", "nearest"):
                shares[name].append(above(f"{name} {seed}", one, bound))
    for name in made:
        told = f"{held[name]:,} of {made[name]:,} hold"
        told += f"; for the reports that are kept {spread(shares[name])}" if shares[name] else ""
        print(f"pruning, {name}: {told}")
        keep("policies", f"reports pruned or coarser, {name}", asked="all hold", measured=told, count=count)
    bad = 100 * float(np.mean(np.array(leaks) > 1 + 1e-9))
    told = (
        f"{bad:.0f} % of {len(leaks):,} optima break their promise, at {100 * np.mean(broken):.0f} % of all pairs and "
    )
    told += f"reports on average; the worst leaks {max(leaks):.2f} epsilon, below the proven 2"
    print(f"pruning, renormalised as published: {told}")
    keep("policies", "reports pruned and rows renormalised, as published", measured=told, leaks=max(leaks), count=count)


def pruned_by_any(chosen: Iterator[int], keep: Recorder, searched: int) -> None:
    count, held, shares = 0, 0, []
    for seed in itertools.islice(chosen, searched):
        count += 1
        problem, rng = random_places(seed, 7), np.random.default_rng(seed)
        size = len(problem.inputs)
        many = int(rng.integers(1, size - 1))
        law = prunable(problem, many, gap=0.02, rounds=1)
        apart, good = problem.inputs.distances, mdp.audit(law).verdict == "holds"
        for gone in itertools.combinations(range(size), many):
            rest = np.delete(law.matrix, gone, axis=1)
            rest = rest[:, rest.sum(axis=0) > 0]
            report = mdp.audit(rest / rest.sum(axis=1, keepdims=True), distances=apart, epsilon=problem.epsilon)
            good = good and report.verdict == "holds"
        held += good
        shares.append(above(f"prunable {seed}", law, law.certificate.lower_bound))
    told = f"{held:,} of {count:,} hold, every set of reports left out; {spread(shares)}"
    print(f"prunable: {told}")
    keep("policies", "laws made for pruning, every set left out", asked="all hold", measured=told, count=count)


RUNS = {"policies": policies, "pruning": pruning, "prunable": pruned_by_any}

if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("what", choices=[*RUNS, "all"])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--searched", type=int, default=1000, help="spaces for which the optimum is searched too")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after which each run tells what it has")
    chosen = parser.parse_args()
    for name, run in RUNS.items():
        if chosen.what in (name, "all"):
            run(seeds(chosen.count, chosen.minutes), recorder(chosen.record), chosen.searched)
