"""Policies and pruning on a thousand random spaces each: every law judged exactly, its loss beside the proven bound.

    python benchmarks/policies.py policies              random policies, in hops and lengths, in one part and several
    python benchmarks/policies.py pruning               random reports pruned from the optimum, by each rule
    python benchmarks/policies.py prunable              laws made for pruning, every set of reports left out
    python benchmarks/policies.py all --record          ten minutes on one core, with OMP_NUM_THREADS=1
    python benchmarks/policies.py all --journal runs    keeps every space as it is done, and goes on from there
    python benchmarks/policies.py all --processes 14    several spaces at a time

A loss is stated as a share above the engine's proven lower bound of the same problem: for pruned laws that of the
optimum over the reports that are kept.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from record import Recorder, arguments, recorder

import metricdp as mdp
from metricdp.design import prunable, prune_reports
from metricdp.errors import Infeasible

GAP = 2e-2
Found = dict[str, Any]  # of one space: for every law whether it holds and how far it is above the bound


def random_policy(seed: int) -> mdp.Problem:
    """Return a random policy over random places, losses in the distance on the ground."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 9))
    places = mdp.FiniteSpace(rng.uniform(0, 4, (size, 2)), mdp.Lp(2))
    kind = seed % 4
    if kind == 0:
        edges = mdp.policy_graphs.nearest(places, int(rng.integers(1, min(4, size))))
    elif kind == 1:
        edges = mdp.policy_graphs.areas(np.append(rng.integers(0, 3, size - 2), [0, 0]))
    elif kind == 2:
        pairs = np.array(list(itertools.combinations(range(size), 2)))
        edges = pairs[rng.permutation(len(pairs))[: int(rng.integers(1, len(pairs) + 1))]]
    else:
        near = np.sort(places.distances, axis=1)[:, 1]
        edges = mdp.policy_graphs.within(places, float(rng.uniform(near.min(), near.max()) * 1.2))
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


def judged(name: str, law: mdp.mechanisms.MatrixMechanism, bound: float | None = None) -> list[Any]:
    """Return whether the exact audit proves a law, and how far its loss is above a bound; below would refute it."""
    report = mdp.audit(law)
    holds = report.verdict == "holds" and report.basis == "proof"
    if bound is None:
        return [holds, None]
    loss = law.certificate.loss
    if loss < bound * (1 - 1e-9) - 1e-12:
        raise AssertionError(f"{name} lies below the proven bound")
    return [holds, loss / bound - 1.0 if bound > 1e-9 else None]


def one_policy(seed: int) -> Found:
    problem = random_policy(seed)
    loss_basis = {"prior": problem.prior, "loss": problem.loss}
    best = mdp.optimal(problem, gap=GAP)
    bound = best.certificate.lower_bound
    exponential = mdp.exponential(problem.inputs, problem.epsilon, **loss_basis)
    laws = {"optimal": judged("optimal", best, bound), "exponential": judged("exponential", exponential, bound)}
    with contextlib.suppress(Infeasible):  # there are no weights that make all normalisers one
        tight = mdp.tight_constraints(problem.inputs, problem.epsilon, **loss_basis)
        laws["tight_constraints"] = judged("tight_constraints", tight, bound)
    return {"laws": laws, "parts": problem.radius is not None}


def one_pruning(seed: int) -> Found:
    problem, rng = random_places(seed, 9), np.random.default_rng(seed)
    size, apart = len(problem.inputs), problem.inputs.distances
    gone = rng.permutation(size)[: int(rng.integers(1, size // 2 + 1))]
    law = mdp.optimal(problem, gap=GAP)
    part = problem.inputs.part(np.delete(np.arange(size), gone))
    fewer = mdp.Problem(problem.inputs, problem.epsilon, outputs=part, prior=problem.prior)
    bound = mdp.optimal(fewer, gap=GAP).certificate.lower_bound
    tree = mdp.places.location_tree(problem.inputs, 3)
    areas = tree.for_places(mdp.exponential(tree.at_level(2), problem.epsilon), 2)
    laws = {
        rule: judged(rule, prune_reports(law, gone, rule=rule, prior=problem.prior), bound)
        for rule in ("cheapest", "nearest")
    }
    laws |= {"coarser reports": judged("coarser", tree.coarsen(law, 2)), "on areas": judged("areas", areas)}
    rest = np.delete(law.matrix, gone, axis=1)
    rest = rest[:, rest.sum(axis=0) > 0]
    found: Found = {"laws": laws}
    if rest.shape[1] and np.all(rest.sum(axis=1) > 0):
        rest = rest / rest.sum(axis=1, keepdims=True)
        one, two = np.triu_indices(size, 1)
        limit = problem.epsilon * apart[one, two, None] * (1 + 1e-9)
        found["broken"] = float(np.mean(np.abs(np.log(rest[one] / rest[two])) > limit))
        found["leak"] = mdp.audit(rest, distances=apart, epsilon=problem.epsilon).epsilon / problem.epsilon
    return found


def one_prunable(seed: int) -> Found:
    problem, rng = random_places(seed, 7), np.random.default_rng(seed)
    size, apart = len(problem.inputs), problem.inputs.distances
    many = int(rng.integers(1, size - 1))
    law = prunable(problem, many, gap=0.02, rounds=2)
    holds, share = judged(f"prunable {seed}", law, law.certificate.lower_bound)
    for gone in itertools.combinations(range(size), many):
        rest = np.delete(law.matrix, gone, axis=1)
        rest = rest[:, rest.sum(axis=0) > 0]
        report = mdp.audit(rest / rest.sum(axis=1, keepdims=True), distances=apart, epsilon=problem.epsilon)
        holds = holds and report.verdict == "holds"
    half = mdp.optimal(mdp.Problem(problem.inputs, 0.5 * problem.epsilon, prior=problem.prior), gap=GAP)
    return {"laws": {"any set": [holds, share], "half of epsilon": judged("half", half, law.certificate.lower_bound)}}


def spread(shares: Iterable[float | None]) -> str:
    """Return how far above the bound losses are, in words."""
    found = np.array([share for share in shares if share is not None])
    return (
        f"{100 * np.median(found):.1f} % above the proven bound (median of {len(found):,}), "
        f"{100 * np.quantile(found, 0.9):.1f} % (nine in ten)"
    )


def summed(found: list[Found]) -> Iterator[tuple[str, int, int, str]]:
    """Yield every law by name: how many there are, how many hold, and how far above the bound they are."""
    laws: dict[str, list[Any]] = defaultdict(list)
    for one in found:
        for name, row in one["laws"].items():
            laws[name].append(row)
    for name, rows in laws.items():
        shares = [share for _, share in rows if share is not None]
        yield name, len(rows), sum(holds for holds, _ in rows), f"; {spread(shares)}" if shares else ""


def tell_policies(found: list[Found], keep: Recorder) -> None:
    parts, tight = sum(one["parts"] for one in found), sum("tight_constraints" in one["laws"] for one in found)
    for name, made, held, above in summed(found):
        told = f"{held:,} of {made:,} hold{above}"
        if name == "tight_constraints":
            told += f"; {len(found) - tight:,} of {len(found):,} graphs have no such law and are refused"
        print(f"policies, {name}: {told}; {parts} of {len(found)} in several parts")
        keep("policies", f"random policies, {name}", asked="all hold", measured=told, several_parts=parts, count=made)


def tell_pruning(found: list[Found], keep: Recorder) -> None:
    for name, made, held, above in summed(found):
        told = f"{held:,} of {made:,} hold{above.replace('; ', '; for the reports that are kept ', 1)}"
        print(f"pruning, {name}: {told}")
        keep("policies", f"reports pruned or coarser, {name}", asked="all hold", measured=told, count=made)
    broken, leaks = ([one[name] for one in found if name in one] for name in ("broken", "leak"))
    bad = 100 * float(np.mean(np.array(leaks) > 1 + 1e-9))
    told = (
        f"{bad:.0f} % of {len(leaks):,} optima break their promise, at {100 * np.mean(broken):.0f} % of all pairs and "
        f"reports on average; the worst leaks {max(leaks):.2f} epsilon, below the proven 2"
    )
    print(f"pruning, renormalised as published: {told}")
    what = "reports pruned and rows renormalised, as published"
    keep("policies", what, measured=told, leaks=max(leaks), count=len(leaks))


def tell_prunable(found: list[Found], keep: Recorder) -> None:
    for name, made, held, above in summed(found):
        whole = "; every set of reports left out" if name == "any set" else ""
        told = f"{held:,} of {made:,} hold{whole}{above}"
        what = (
            "laws made for pruning, every set left out" if whole else "the optimum at half of epsilon, for any pruning"
        )
        print(f"prunable, {name}: {told}")
        keep("policies", what, asked="all hold", measured=told, count=made)


def done(
    one: Callable[[int], Found], count: int, journal: Path | None, enough: Callable[[Found], bool], processes: int
) -> list[Found]:
    """Return what was found for so many spaces that are enough, each kept in a journal as it is done."""
    lines = journal.read_text(encoding="utf-8").splitlines() if journal is not None and journal.exists() else []
    found: list[Found] = [json.loads(line) for line in lines]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        while (left := count - sum(map(enough, found))) > 0:
            seeds = range(len(found), len(found) + left)
            for row in pool.map(one, seeds) if processes > 1 else map(one, seeds):
                found.append(row)
                if journal is not None:
                    with journal.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
    return found


RUNS = {
    "policies": (one_policy, tell_policies),
    "pruning": (one_pruning, tell_pruning),
    "prunable": (one_prunable, tell_prunable),
}

if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("what", choices=[*RUNS, "all"])
    parser.add_argument("--count", type=int, default=1000, help="laws of every builder that are judged")
    parser.add_argument("--journal", help="a folder in which every space is kept as it is done")
    parser.add_argument("--processes", type=int, default=1, help="spaces at a time")
    chosen = parser.parse_args()
    for name, (one, tell) in RUNS.items():
        if chosen.what in (name, "all"):
            kept = None if chosen.journal is None else Path(chosen.journal) / f"{name}.jsonl"
            if kept is not None:
                kept.parent.mkdir(parents=True, exist_ok=True)
            needed = "tight_constraints" if name == "policies" else None  # which not every graph has

            def enough(found: Found, needed: str | None = needed) -> bool:
                return needed is None or needed in found["laws"]

            tell(done(one, chosen.count, kept, enough, chosen.processes), recorder(chosen.record))
