"""The search on windows: iterate, bound, repair, until the gap is closed or time is up."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from metricdp import deadlines
from metricdp.arrays import Floats
from metricdp.errors import SolverFailure
from metricdp.metrics import NeighbourRows
from metricdp.progress import SEARCHING, report_step, report_task
from metricdp.solvers.backends.first_order import FirstOrder
from metricdp.solvers.local.polish import LocalIterates
from metricdp.solvers.local.program import LocalProgram, bound_of, total_bound
from metricdp.solvers.local.repair import (
    FEW_ENTRIES,
    SPARE,
    Closing,
    HostClosing,
    LocalDistribution,
    Polish,
    repair_columns,
)
from metricdp.solvers.local.windows import RatioGraph, SecretWindows
from metricdp.solvers.program import Progress, Solution, Status, least

# primal weights; the heaviest is for degree 1, since steps are 1 / (weight degree)
LIGHTEST, WEIGHT, HEAVIEST = 1.0, 3.0, 840.0
ROUGH = 1_000  # iterations up to which a point is repaired without polish: there is nothing to polish yet
BOTH = 5  # looks after which both ways are tried again
AGAIN = 1.5  # how much longer the audit of the result may take than that of the first distribution
Place = Literal["cores", "gpu"]


@dataclass(frozen=True, eq=False)
class LocalTask:
    """What is asked, in an order in which near secrets have near numbers.

    `entries` are those of the mechanism, with their losses; the solver has variables for those that are `inner`.
    `graph` holds ratios that bind any mechanism, for the iterates and the bound; `kept` those the distribution must
    keep so that it keeps all pairs: the same edges, or more of them, and smaller ratios where these still make detours.
    `beyond` bounds the loss of all other reports from below, and `far` tells about what a report from the background
    costs.
    """

    epsilon: float
    entries: NeighbourRows
    reports: int
    loss: Floats
    prior: Floats
    graph: RatioGraph
    kept: RatioGraph
    inner: NDArray[np.bool_]
    beyond: Floats
    far: Floats
    start: NDArray[np.float32] | None = None  # weights of entries to begin with


@dataclass(frozen=True)
class LocalOptions:
    """When to stop, where to run, whom to tell."""

    gap: float = 1e-2
    seconds: float | None = None
    place: Place = "cores"
    iterations: int = 200_000
    progress: Progress | None = None
    audit: Callable[[LocalDistribution], bool] | None = (
        None  # whether a distribution keeps all pairs; the audit of a first one is timed
    )


@dataclass(frozen=True, eq=False)
class LocalSolution:
    """A distribution that keeps the ratios along all edges, and a bound for every mechanism that keeps them."""

    distribution: LocalDistribution
    lower_bound: float
    why: str  # it ended where it did
    tightened: Callable[[float], LocalDistribution]  # the same distribution at this share of its log ratios


@dataclass(eq=False)
class _Looks:
    """Looks at points of the search; the cheapest distribution of all is kept."""

    task: LocalTask
    windows: SecretWindows
    closing: Closing
    best: LocalDistribution | None = None
    value: float = np.inf
    looks: int = 0
    repaired: float = np.inf  # what the last point cost in either way
    polished: float = np.inf

    def keep(self, distribution: LocalDistribution | None) -> float:
        """Return what a distribution costs, and keep the cheapest."""
        if distribution is None:
            return np.inf
        far = self.task.far * distribution.background.sum(dtype=np.float64) / distribution.totals
        cost = float(self.task.prior @ (distribution.near_loss + far))
        if cost < self.value:
            self.best, self.value = distribution, cost
            report_step(SEARCHING)
        return cost

    def repair(self, point: Any) -> float:
        """Return what a repaired point costs; where a repair fails, a later one may succeed."""
        kept = self.task.kept
        in_time = deadlines.seconds_left() > -deadlines.SPARE or self.windows.size < FEW_ENTRIES
        whole = self.best is None and in_time
        try:
            with report_task("repairing"):
                return self.keep(
                    repair_columns(self.closing, point, self.windows, kept, kept.log_ratios, to_the_end=whole)
                )
        except SolverFailure:
            return np.inf

    def look(self, state: LocalIterates, polish: Polish) -> float:
        """Return the least cost so far, after a look at x' in the way that did better the last time."""
        both = self.looks % BOTH == 0 and state.iterations > ROUGH
        self.looks += state.iterations > ROUGH
        polishes = both or self.polished < self.repaired
        if polishes:
            with report_task("polishing"):
                self.polished = self.keep(polish.distribution())
        if both or not polishes:
            self.repaired = self.repair(state.point)
        return self.value


def solve_local(task: LocalTask, options: LocalOptions) -> LocalSolution:
    """Minimise the expected loss on windows."""
    started = time.perf_counter()
    windows = SecretWindows(task.entries, task.reports)
    program = program_of(task, windows)
    positions = np.flatnonzero(task.inner)
    closing = _closing(task, windows, positions, options.place)
    looks = _Looks(task, windows, closing)
    lower = total_bound(_row_minima(program))
    start = start_of(program, task)
    reserved, begun = 0.0, deadlines.clock()
    if task.start is not None or deadlines.has_deadline():
        looks.repair(start)  # what comes back is no worse
    repairing = deadlines.clock() - begun
    if looks.best is not None and deadlines.has_deadline() and options.audit is not None:
        begun = deadlines.clock()
        kept = options.audit(looks.best)
        audited = deadlines.clock() - begun
        reserved = AGAIN * (audited if kept else 2.0 * audited + repairing)  # what is not kept is repaired again
    seconds_left = None if options.seconds is None else max(options.seconds - (time.perf_counter() - started), 1e-3)
    heaviest = HEAVIEST / float(task.graph.degrees.mean())
    weights = (LIGHTEST, max(heaviest, 2.0 * LIGHTEST))
    seconds_left = least(
        seconds_left, None if not deadlines.has_deadline() else max(deadlines.seconds_left() - reserved, 1e-3)
    )
    state = _iterates(program, start, options.place)
    polish = Polish(state, closing, task.kept, np.full(task.kept.size, SPARE))
    driver = FirstOrder(
        options.gap,
        seconds_left,
        options.iterations,
        min(WEIGHT, heaviest / 30.0),
        weights,
        upper=lambda point: looks.look(state, polish),
    )
    before = time.perf_counter() - started

    def report(low: float, high: float, seconds: float, iterations: int) -> None:
        if options.progress is not None and min(looks.value, high) < np.inf:
            options.progress(max(lower, low), min(looks.value, high), before + seconds, iterations)

    with deadlines.time_limit(None, reserve=reserved):
        answer = driver.drive(state, report)
    if looks.best is None:  # time was up at once: no worse than the kernel it began with
        looks.repair(start)
        looks.repair(state.point)
    best, ratios = looks.best, task.kept.log_ratios
    if best is None:
        best = repair_columns(closing, start, windows, task.kept, ratios, to_the_end=True)
    distribution = best

    def tightened(share: float) -> LocalDistribution:
        nonlocal distribution, ratios
        ratios = ratios * share
        distribution = repair_columns(
            closing, distribution.values[positions], windows, task.kept, ratios, to_the_end=True
        )
        return distribution

    bound = max(lower, bound_of(program, answer.dual))  # what the iterates said of their own bound is not asked
    return LocalSolution(best, bound, _why(answer, seconds_left, options), tightened)


def _why(answer: Solution, seconds: float | None, options: LocalOptions) -> str:
    if answer.status is Status.INTERRUPTED:
        return Status.INTERRUPTED.value
    if answer.iterations >= options.iterations or (seconds is not None and answer.seconds > 0.9 * seconds):
        return "time or iterations were up"
    return "the rest is what windows, edges and repair cost; a larger `window` may bring more"


def program_of(task: LocalTask, windows: SecretWindows) -> LocalProgram:
    """Return the program of the inner entries."""
    inner = task.inner
    rows = np.repeat(np.arange(windows.rows), windows.counts)[inner]
    cost = task.prior[rows] * task.loss[inner]
    finite = np.isfinite(task.beyond)
    beyond = np.where(finite, task.prior * np.where(finite, task.beyond, 0.0), np.inf)
    starts = np.searchsorted(np.flatnonzero(inner), task.entries.starts)
    entries = NeighbourRows(starts, task.entries.codes[inner], task.entries.distances[inner])
    return LocalProgram(SecretWindows(entries, task.reports), task.graph, cost, beyond)


def start_of(program: LocalProgram, task: LocalTask) -> Any:
    """Return the weights to begin with, or the kernel e^{-epsilon d} around every report, normalised row by row."""
    windows = program.windows
    if task.start is None:
        weights = np.exp(-task.epsilon * windows.entries.distances)
    else:
        weights = task.start[task.inner].astype(np.float64)
    sums = np.add.reduceat(weights, windows.starts[:-1])
    return (weights / np.repeat(np.maximum(sums, 1e-300), windows.counts)).astype(np.float32)


def _row_minima(program: LocalProgram) -> Floats:
    return np.minimum(np.minimum.reduceat(program.cost, program.windows.starts[:-1]), program.beyond)


def _iterates(program: LocalProgram, start: Any, place: Place) -> Any:
    if place == "gpu":
        from metricdp.solvers.local.device import LocalDevice

        return LocalDevice(program, start)
    from metricdp.solvers.local.cores import LocalCores

    return LocalCores(program, start)


def _closing(task: LocalTask, windows: SecretWindows, positions: Any, place: Place) -> Closing:
    if place == "gpu":
        from metricdp.solvers.local.device import DeviceClosing

        return DeviceClosing(windows, task.kept, task.loss, positions)
    return HostClosing(windows, task.kept, task.loss, positions)
