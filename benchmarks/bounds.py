"""Lower bounds against an independent optimum: random small problems, the builders that `BUILDERS` names here.

    python benchmarks/bounds.py                                        # 1,000 problems, lines in .benchmarks/
    python benchmarks/bounds.py --problems 10000 --workers 2 --record  # and the figure into benchmarks/results/

A problem draws its space (also with secrets almost at one place), epsilon, radius or none, prior (with zeros), loss
(negative ones too) and outputs other than the inputs. Its optimum is found by scipy's HiGHS on the plainly written
linear program over the pairs that the promise covers. A bound is ABOVE where it exceeds that optimum by more than
1e-7 of it, or where it exceeds, however little, the loss of a matrix that keeps the promise exactly: intervals of 256
bits decide about the matrix, fractions about its loss. Every problem is a line of the file; a run that was stopped goes
on with the problems that are missing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any

import flint
import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack
from scipy.sparse.csgraph import shortest_path

import metricdp as mdp
from metricdp.arrays import Floats
from metricdp.design import context_bound
from metricdp.errors import Infeasible, InvalidInput, SolverFailure

TOLERANCE = 1e-7  # relative, of HiGHS
BITS = 256  # of the intervals that decide about a matrix
LARGEST = 18.0  # log ratios beyond which HiGHS drops the coefficients e^-w: then only matrices judge
WATCHDOG = 20  # seconds a builder may take
EACH = 4  # builders a problem is given to, beside the optimal one


@dataclass(frozen=True)
class Case:
    """One problem and what it is made of."""

    problem: mdp.Problem
    words: str
    seed: int


def case(seed: int) -> Case:
    """Draw a problem."""
    rng = np.random.default_rng(seed)
    space, kind = _space(rng)
    n = len(space)
    apart = space.distances[np.triu_indices(n, 1)] if n > 1 else np.ones(1)
    scale = float(np.median(apart))
    epsilon = float(10.0 ** rng.uniform(-1.5, 1.2)) / scale
    outputs, other = None, rng.random() < 0.3
    if other:
        outputs = mdp.FiniteSpace(rng.uniform(0, 3, (int(rng.integers(1, 6)), 2)), mdp.Lp(2))
    loss, losses = _loss(rng, space, outputs)
    prior, priors = _prior(rng, n)
    radius = None
    if rng.random() < 0.35:
        radius = float(np.quantile(apart, rng.uniform(0, 0.9))) * 1.000001
    problem = mdp.Problem(space, epsilon, outputs=outputs, loss=loss, prior=prior, radius=radius)
    words = f"{kind}, {n} secrets, epsilon {epsilon:.3g}, {losses}, {priors}"
    words += ", other outputs" if other else ""
    words += "" if radius is None else f", radius {radius:.3g}"
    return Case(problem, words, seed)


def _space(rng: np.random.Generator) -> tuple[mdp.FiniteSpace, str]:
    n = int(rng.integers(2, 9))
    kind = str(
        rng.choice(
            ["l1", "l2", "linf", "line", "ring", "road", "twins", "one"], p=[0.15, 0.2, 0.1, 0.15, 0.1, 0.1, 0.17, 0.03]
        )
    )
    if kind == "one":
        return mdp.FiniteSpace(rng.uniform(0, 3, (1 if rng.random() < 0.5 else 2, 2)), mdp.Lp(2)), kind
    if kind == "line":
        return mdp.FiniteSpace(np.arange(float(n)), mdp.Lp(1)), kind
    if kind == "ring":
        apart = np.abs(np.arange(n)[:, None] - np.arange(n)[None])
        return mdp.FiniteSpace(np.arange(n), mdp.Precomputed(np.minimum(apart, n - apart).astype(float))), kind
    if kind == "road":
        tree = np.array([(int(rng.integers(0, i)), i) for i in range(1, n)])
        edges = np.concatenate([tree, rng.integers(0, n, (n, 2))])
        edges = edges[edges[:, 0] != edges[:, 1]]
        return mdp.FiniteSpace(np.arange(n), mdp.ShortestPath(edges, rng.uniform(0.3, 2, len(edges)))), kind
    points = rng.uniform(0, 3, (n, 2))
    if kind == "twins":  # some secrets almost at one place
        owner = rng.integers(0, n, n)
        points = points[owner] + rng.uniform(0, 10.0 ** rng.uniform(-11, -5), (n, 2))
        return mdp.FiniteSpace(points, mdp.Lp(2)), kind
    metric = {"l1": mdp.Lp(1), "l2": mdp.Lp(2), "linf": mdp.Lp(np.inf)}[kind]
    return mdp.FiniteSpace(points, metric), kind


def _loss(rng: np.random.Generator, space: mdp.FiniteSpace, outputs: Any) -> tuple[Floats | None, str]:
    reports = space if outputs is None else outputs
    shape = (len(space), len(reports))
    plane = space.points.shape[1:] == reports.points.shape[1:] and (outputs is None or isinstance(space.metric, mdp.Lp))
    kind = str(
        rng.choice(
            ["distance", "random", "signed", "negative", "shifted", "whole", "nothing"],
            p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.1, 0.05],
        )
    )
    if kind in ("distance", "shifted") and plane:
        if kind == "distance":
            return None, kind
        return space.distances_to(reports) - float(rng.uniform(0, 3)), kind
    if kind in ("signed", "shifted"):
        return rng.normal(size=shape) * 10.0 ** rng.uniform(-3, 3), "signed"
    if kind == "negative":
        return -rng.uniform(0, 1, shape), kind
    if kind == "whole":
        return rng.integers(-1, 3, shape).astype(float), kind
    return (np.zeros(shape), kind) if kind == "nothing" else (rng.uniform(0, 1, shape), "random")


def _prior(rng: np.random.Generator, n: int) -> tuple[Floats | None, str]:
    kind = str(rng.choice(["uniform", "any", "zeros", "one"], p=[0.3, 0.3, 0.3, 0.1]))
    if kind == "uniform":
        return None, "uniform prior"
    prior = rng.dirichlet(np.full(n, 0.5))
    if kind == "zeros":
        prior[rng.random(n) < 0.5] = 0.0
    if kind == "one" or not prior.any():
        prior = np.eye(n)[int(rng.integers(0, n))]
    return prior / prior.sum(), f"prior: {kind}"


# --- the reference, which knows nothing of the library's solvers -----------------------------------------------------


def optimum(problem: mdp.Problem, objective: str) -> tuple[float, Floats] | None:
    """Return the least loss and its matrix by scipy's HiGHS, row by row; None where HiGHS cannot say."""
    n, m = problem.loss.shape
    width = n * m + 1
    pairs = [(i, j) for i, j in itertools.permutations(range(n), 2) if _covered(problem, i, j)]
    blocks: list[csr_array] = []
    if pairs:
        rows, columns, values = [], [], []
        for row, ((i, j), k) in enumerate(itertools.product(pairs, range(m))):
            rows += [row, row]
            columns += [i * m + k, j * m + k]
            values += [float(np.exp(-problem.epsilon * problem.inputs.distances[i, j])), -1.0]
        blocks.append(csr_array((values, (rows, columns)), shape=(len(pairs) * m, width)))
    goal = np.zeros(width)
    size = float(np.abs(problem.loss).max()) or 1.0
    if objective == "worst":
        worst = csr_array((n, width)).tolil()
        for i in range(n):
            worst[i, i * m : (i + 1) * m] = problem.loss[i] / size
            worst[i, n * m] = -1.0
        blocks.append(worst.tocsr())
        goal[-1] = 1.0
    else:
        goal[:-1] = (problem.prior[:, None] * problem.loss).ravel() / size
    below = vstack(blocks, format="csr") if blocks else None
    sums = csr_array((np.ones(n * m), (np.repeat(np.arange(n), m), np.arange(n * m))), shape=(n, width))
    limits = [(0, None)] * (n * m) + [(None, None) if objective == "worst" else (0, 0)]
    answer = linprog(
        goal,
        below,
        None if below is None else np.zeros(below.shape[0]),
        sums,
        np.ones(n),
        bounds=limits,
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.status != 0:
        return None
    return float(answer.fun) * size, np.asarray(answer.x[:-1]).reshape(n, m)


def _covered(problem: mdp.Problem, i: int, j: int) -> bool:
    return problem.radius is None or bool(problem.inputs.distances[i, j] <= problem.radius)


def feasible(problem: mdp.Problem, matrix: Floats) -> Floats:
    """Return a matrix near the given one that should keep the promise: closed by maxima, row sums levelled."""
    n = len(matrix)
    apart = np.where(np.eye(n, dtype=bool), 0.0, problem.epsilon * problem.inputs.distances)
    covered = np.array([[_covered(problem, i, j) for j in range(n)] for i in range(n)])
    graph = np.where(covered & ~np.eye(n, dtype=bool), np.maximum(apart, 1e-300), 0.0)
    paths = np.minimum(
        shortest_path(csr_array(graph), directed=False) * (1 - 1e-11), 700.0
    )  # 700: parts that nothing joins
    closed = (np.exp(-paths)[:, :, None] * np.maximum(matrix, 0.0)[None]).max(axis=1)
    closed /= closed.sum(axis=1).max() * (1 + 1e-14)
    missing = np.maximum(1.0 - closed.sum(axis=1), 0.0)
    growth = np.expm1(paths) + np.eye(n)
    extra = max(0.0, float(((missing[:, None] - missing) / growth - missing).max())) * 2.0
    share = missing + extra
    best = int(problem.cost.sum(axis=0).argmin())
    closed[:, best] += share
    return np.asarray(closed / (1.0 + extra))


def keeps_promise(problem: mdp.Problem, matrix: Floats) -> bool:
    """Decide z_ik / S_i <= exp(epsilon d_ij) z_jk / S_j for every covered pair by intervals."""
    before, flint.ctx.prec = flint.ctx.prec, BITS
    try:
        entries = [[flint.fmpq(*Fraction(float(z)).as_integer_ratio()) for z in row] for row in matrix]
        sums = [sum(row, flint.fmpq(0)) for row in entries]
        for i, j in itertools.permutations(range(len(matrix)), 2):
            if not _covered(problem, i, j):
                continue
            allowed = (flint.arb(problem.epsilon) * flint.arb(float(problem.inputs.distances[i, j]))).exp()
            for a, b in zip(entries[i], entries[j], strict=True):
                if a == 0:
                    continue
                if b == 0 or not flint.arb(a / sums[i]) <= allowed * flint.arb(b / sums[j]):
                    return False
        return True
    finally:
        flint.ctx.prec = before


def exact_loss(problem: mdp.Problem, matrix: Floats, objective: str) -> Fraction:
    """Return the loss of the law row / sum(row), as a fraction."""
    losses = []
    for row, costs in zip(matrix, problem.loss, strict=True):
        entries = [Fraction(float(z)) for z in row]
        paid = sum((z * Fraction(float(c)) for z, c in zip(entries, costs, strict=True)), Fraction(0))
        losses.append(paid / sum(entries))
    if objective == "worst":
        return max(losses)
    return sum((Fraction(float(p)) * loss for p, loss in zip(problem.prior, losses, strict=True)), Fraction(0))


# --- what is judged ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stated:
    """A bound that a builder states, the objective it is of, and the builder's own matrix."""

    bound: float
    objective: str
    matrix: Floats | None = None
    problem: mdp.Problem | None = None  # where it is another one than that of the case


def _of(mechanism: mdp.mechanisms.MatrixMechanism, problem: mdp.Problem | None = None) -> Stated:
    certificate = mechanism.certificate
    return Stated(
        certificate.lower_bound,
        getattr(
            certificate,
            "objective",
            "worst" if "worst" in certificate.method or "constopt" in certificate.method else "expected",
        ),
        mechanism.matrix,
        problem,
    )


def _closed_form(build: Callable[..., Any], *, outputs: bool = True) -> Callable[[Case], Stated]:
    def run(case: Case) -> Stated:
        asked = case.problem
        options = {"prior": asked.prior, "loss": asked.loss}
        if outputs:
            options["outputs"] = asked.outputs
        elif asked.outputs is not asked.inputs:
            raise InvalidInput("reports the secrets themselves")
        made = build(asked.inputs, asked.epsilon, **options)
        whole = mdp.Problem(asked.inputs, asked.epsilon, **{**options, "outputs": asked.outputs})
        return _of(made, whole)

    return run


def _remapped(case: Case) -> Stated:
    asked = case.problem
    base = mdp.exponential(asked.inputs, asked.epsilon, outputs=asked.outputs, prior=asked.prior, loss=asked.loss)
    whole = mdp.Problem(asked.inputs, asked.epsilon, outputs=asked.outputs, loss=asked.loss, prior=asked.prior)
    return _of(mdp.remapped(base, prior=asked.prior, loss=asked.loss), whole)


def _quantised(case: Case) -> Stated:
    return _of(mdp.quantised(mdp.optimal(case.problem), bits=40))


def _quantised_elsewhere(case: Case) -> Stated:
    """Round a mechanism of one problem and judge it by another."""
    asked = case.problem
    rng = np.random.default_rng(case.seed + 1)
    loss = rng.normal(size=asked.loss.shape) - 2.0
    other = mdp.Problem(asked.inputs, asked.epsilon, outputs=asked.outputs, loss=loss, radius=asked.radius)
    return _of(mdp.quantised(mdp.optimal(asked), bits=40, problem=other), other)


def _classes(case: Case) -> Stated:
    labels = np.random.default_rng(case.seed + 2).integers(0, 3, len(case.problem.inputs))
    return _of(mdp.contextual(case.problem, classes=labels))


def _context_bound(case: Case) -> Stated:
    if case.problem.radius is not None:
        raise InvalidInput("is for all pairs")
    labels = np.random.default_rng(case.seed + 3).integers(0, 2, len(case.problem.inputs))
    return Stated(context_bound(case.problem, labels), "expected")


def _constopt(objective: Any) -> Callable[[Case], Stated]:
    def run(case: Case) -> Stated:
        nearest = 1 + case.seed % len(case.problem.inputs)
        return _of(mdp.constopt(case.problem, nearest=nearest, objective=objective))

    return run


def _decomposed(**options: Any) -> Callable[[Case], Stated]:
    def run(case: Case) -> Stated:
        blocks = min(2, len(case.problem.inputs))
        return _of(mdp.decomposed(case.problem, blocks=blocks, **options))

    return run


def _neighbours(case: Case) -> Stated:
    tree = case.problem.inputs.distances
    reach = float(np.sort(tree, axis=1)[:, min(3, len(tree) - 1)].max()) * 1.0001 or 1.0
    return _of(mdp.decomposed(case.problem, blocks=min(2, len(tree)), neighbours=reach))


BUILDERS: dict[str, Callable[[Case], Stated]] = {
    "optimal": lambda case: _of(mdp.optimal(case.problem, gap=1e-6)),
    "optimal, worst": lambda case: _of(mdp.optimal(case.problem, objective="worst")),
    "optimal, clarabel": lambda case: _of(mdp.optimal(case.problem, solver=mdp.solvers.Clarabel())),
    "optimal, highs": lambda case: _of(mdp.optimal(case.problem, solver=mdp.solvers.Highs())),
    "optimal, first order": lambda case: _of(
        mdp.optimal(case.problem, gap=0.02, seconds=0.5, solver=mdp.solvers.FirstOrder())
    ),
    "dictionary": lambda case: _of(mdp.dictionary(case.problem)),
    "spanner": lambda case: _of(mdp.spanner(case.problem, stretch=1.2)),
    "constopt": _constopt("worst"),
    "constopt, expected": _constopt("expected"),
    "decomposed": _decomposed(),
    "decomposed, kernels": _decomposed(start="kernels", gap=1e-6),
    "decomposed, plain": _decomposed(stabilise=False),
    "decomposed, neighbours": _neighbours,
    "contextual": lambda case: _of(mdp.contextual(case.problem)),
    "contextual, classes": _classes,
    "context bound": _context_bound,
    "quantised": _quantised,
    "quantised, other problem": _quantised_elsewhere,
    "remapped": _remapped,
    "exponential": _closed_form(mdp.exponential),
    "truncated exponential": _closed_form(mdp.truncated_exponential),
    "tight": _closed_form(mdp.tight_constraints, outputs=False),
}


@dataclass
class Line:
    """What came out for one problem."""

    seed: int
    words: str
    bounds: int = 0
    above: list[str] = field(default_factory=list)
    close: int = 0
    refused: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    seconds: float = 0.0


def judged(seed: int, each: int = EACH) -> Line:
    """Run some builders on one problem and compare their bounds with the optimum."""
    started = time.perf_counter()
    drawn = case(seed)
    line = Line(seed, drawn.words)
    others = [name for name in BUILDERS if name != "optimal"]
    chosen = ("optimal", *np.random.default_rng(seed + 7).choice(others, each, replace=False).tolist())
    stated: dict[str, Stated] = {}
    for name in chosen:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                signal.signal(signal.SIGALRM, _too_long)
                signal.alarm(WATCHDOG)
                stated[name] = BUILDERS[name](drawn)
        except (InvalidInput, Infeasible) as error:
            line.refused.append(f"{name}: {error}")
        except SolverFailure as error:
            line.failed.append(f"{name}: {error}")
        except Exception as error:
            line.failed.append(f"{name}: {type(error).__name__}: {error}")
        finally:
            signal.alarm(0)
    for problem, objective in {(found.problem or drawn.problem, found.objective) for found in stated.values()}:
        here = {
            name: found
            for name, found in stated.items()
            if (found.problem or drawn.problem) is problem and found.objective == objective
        }
        line.bounds += len(here)
        _compare(problem, objective, here, line)
    line.seconds = time.perf_counter() - started
    return line


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"took more than {WATCHDOG} s")


def _compare(problem: mdp.Problem, objective: str, stated: dict[str, Stated], line: Line) -> None:
    """Hold all bounds of one problem and objective against HiGHS and against every matrix that keeps the promise."""
    reference = optimum(problem, objective)
    matrices = [found.matrix for found in stated.values() if found.matrix is not None]
    least = float("inf")
    if reference is not None:
        least, primal = reference
        matrices.append(feasible(problem, primal))
    size = float(np.abs(problem.loss).max())
    within = bool(problem.epsilon * problem.inputs.distances.max() <= LARGEST)
    near = {name: found for name, found in stated.items() if found.bound > least - TOLERANCE * (abs(least) + size)}
    line.close += len(near)
    for name, found in near.items():
        if within and found.bound > least + TOLERANCE * max(abs(least), 1e-3 * size):
            line.above.append(f"{name}: {objective} bound {found.bound!r} above the optimum {least!r}")
    if not near and np.isfinite(least):
        return
    for matrix in matrices:
        value = exact_loss(problem, matrix, objective)
        for name, found in stated.items():
            if Fraction(found.bound) > value and keeps_promise(problem, matrix):
                line.above.append(f"{name}: {objective} bound {found.bound!r} above a loss of {float(value)!r}")


def missing(path: Path, count: int) -> Iterator[int]:
    """Return the seeds that have no line yet."""
    done = set()
    if path.exists():
        for text in path.read_text(encoding="utf-8").splitlines():
            done.add(json.loads(text)["seed"])
    return (seed for seed in range(count) if seed not in done)


def main() -> None:
    """Run what is missing and say how many bounds were above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--lines", type=Path, default=Path(".benchmarks") / "bounds.jsonl")
    parser.add_argument("--record", action="store_true", help="write the figure to benchmarks/results")
    chosen = parser.parse_args()
    chosen.lines.parent.mkdir(exist_ok=True)
    with ProcessPoolExecutor(chosen.workers) as pool, chosen.lines.open("a", encoding="utf-8") as file:
        for line in pool.map(judged, missing(chosen.lines, chosen.problems), chunksize=8):
            file.write(json.dumps(line.__dict__) + "\n")
            file.flush()
            for text in line.above + line.failed:
                print(f"{line.seed}: {text} [{line.words}]", flush=True)
    lines = [json.loads(text) for text in chosen.lines.read_text(encoding="utf-8").splitlines()]
    totals: Counter[str] = Counter()
    for entry in lines:
        totals.update(bounds=entry["bounds"], above=len(entry["above"]), failed=len(entry["failed"]))
    text = f"{len(lines)} problems, {totals['bounds']} bounds, {totals['above']} above, {totals['failed']} failures"
    print(text)
    if chosen.record:
        from record import record

        what = "lower bounds against an independent optimum: radius, zeros in priors, negative losses, other outputs"
        record("attacks", what, asked="10,000 problems, none above", measured=text, problems=len(lines), **totals)


if __name__ == "__main__":
    main()
