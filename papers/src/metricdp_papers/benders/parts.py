"""What the decomposition study measures without rounds: sizes (Tables 1 and 2, Figure 12) and loss (Figure 7)."""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import softmax

from metricdp import decomposed, exponential, optimal
from metricdp.arrays import Booleans, Floats, Integers
from metricdp.design import Neighbours
from metricdp.problems import Problem
from metricdp.solvers import PartitionName, balance
from metricdp_papers.benders import printed
from metricdp_papers.benders.data import DATA
from metricdp_papers.benders.runs import ONE_CORE, Setting
from metricdp_papers.common import Row, RowList, row

BELOW = "percent below ExpMech"


def size_rows(setting: Setting, instance: int) -> list[Row]:
    """Cut one instance in every way: inner records of subproblems, records of the master's components."""
    problem = setting.problem(instance)
    graph = Neighbours.of(problem)
    rows: list[Row] = []
    for method, labels in setting.partitions(problem, graph):
        rows += _sizes(setting, instance, method, labels, graph.adjacency)
    return rows


def _sizes(setting: Setting, instance: int, method: PartitionName, labels: Integers, adjacency: Booleans) -> list[Row]:
    part = balance(labels, adjacency)
    known = setting.data in DATA and setting.records == 500 and method != "balanced"
    about = {"data": setting.data, "partition": printed.NAMES[method], "repetition": instance}
    rows = RowList(about, "corrected" if method == "balanced" else "as_published")

    def add(table: str, measure: str, sizes: Integers, of: str, source: printed.Printed | None = None) -> None:
        given = printed.cell(source, setting.data, method) if known and source is not None else {}
        value = float(sizes.mean() if of == "mean" else sizes.max()) if sizes.size else 0.0
        rows.add(measure, value, table=table, **{"published": None, **given})

    across = across_components(labels, adjacency)
    add("1", "mean inner records", part.inner, "mean", printed.SUBPROBLEM_MEAN)
    add("1", "largest inner records", part.inner, "most", printed.SUBPROBLEM_MOST)
    rows.add("boundary records in all", float(part.boundary), table="1", published=None)
    add("2", "mean component across subsets", across, "mean", printed.COMPONENT_MEAN)
    add("2", "largest component across subsets", across, "most", printed.COMPONENT_MOST)
    add("2", "mean component by Eq. (25)", part.components, "mean")
    add("2", "largest component by Eq. (25)", part.components, "most")
    return rows


def across_components(labels: Integers, adjacency: Booleans) -> Integers:
    """Return sizes of the parts of the boundary joined by pairs of different subsets alone, as the program counts."""
    between = adjacency & (labels[:, None] != labels)
    _, part = connected_components(sparse.csr_array(between), directed=False)
    sizes = np.bincount(part)
    return sizes[sizes > 1].astype(np.int64)


def subset_rows(setting: Setting, instance: int, counts: tuple[int, ...]) -> list[Row]:
    """Return Figure 12: the same by k-m-DV for more and more subsets."""
    problem = setting.problem(instance)
    graph = Neighbours.of(problem)
    found: list[Row] = []
    for count in counts:
        own = Setting(setting.data, setting.records, setting.epsilon, setting.reports, count)
        labels = own.labels(problem, graph, "distances")
        part, across = balance(labels, graph.adjacency), across_components(labels, graph.adjacency)
        rows = RowList({"data": setting.data, "subsets": count, "repetition": instance}, "as_published")
        rows.add("mean inner records", float(part.inner.mean()))
        rows.add("mean component across subsets", float(across.mean()) if across.size else 0.0)
        rows.add("mean component by Eq. (25)", float(part.components.mean()) if part.components.size else 0.0)
        found += rows
    return found


def printed_exponential(problem: Problem) -> Floats:
    """Return the matrix of Eq. (47): probabilities proportional to e^(-epsilon d_ik / 2)."""
    outputs = problem.outputs
    assert outputs is not None
    metric = problem.inputs.metric
    apart = np.asarray(metric(problem.inputs.points[:, None], outputs.points[None]))
    return np.asarray(softmax(-0.5 * problem.epsilon * apart, axis=1))


def loss_rows(setting: Setting, epsilons: tuple[float, ...], instance: int, seconds: float) -> list[Row]:
    """Return Figure 7: the exponential mechanism of Eq. (47) and the program's optimum, certified, for each epsilon."""
    about = {"data": setting.data, "repetition": instance}
    rows: list[Row] = []
    saved = []
    for epsilon in epsilons:
        problem = setting.problem(instance, epsilon)
        started = time.process_time()
        plain = float((problem.cost * printed_exponential(problem)).sum())
        budgeted = exponential(problem.inputs, epsilon, outputs=problem.outputs)
        better = float((problem.cost * budgeted.matrix).sum())
        proof = decomposed(
            problem, blocks=setting.blocks, gap=1e-2, seconds=seconds / len(epsilons), executor=ONE_CORE
        ).certificate
        saved.append(100.0 * (1.0 - proof.loss / plain))
        spent = time.process_time() - started
        at = {**about, "epsilon": epsilon, "method": "optimum for neighbours"}
        rows += [
            row({**at, "method": "ExpMech by Eq. (47)"}, "expected loss", plain),
            row({**at, "method": "exponential with a measured budget"}, "expected loss", None, better),
            row(at, "expected loss", None, proof.loss, bound=proof.lower_bound, seconds=spent),
            row(at, BELOW, None, saved[-1]),
        ]
    given = printed.REDUCTION.get(setting.data) if setting.records == 500 else None
    at = {**about, "epsilon": "mean", "method": "optimum for neighbours"}
    return [*rows, row(at, BELOW, None, float(np.mean(saved)), published=given)]


def all_pairs_rows(setting: Setting, epsilon: float, instance: int, seconds: float) -> list[Row]:
    """Return what the program costs when it protects all pairs, as the exponential mechanism beside it does."""
    near = setting.problem(instance, epsilon)
    problem = Problem(near.inputs, epsilon, outputs=near.outputs, loss=near.loss)
    plain = float((problem.cost * printed_exponential(problem)).sum())
    started = time.process_time()
    proof = optimal(problem, gap=1e-2, seconds=seconds).certificate
    spent = time.process_time() - started
    at = {"data": setting.data, "repetition": instance, "epsilon": epsilon, "method": "optimum for all pairs"}
    saved = 100.0 * (1.0 - proof.loss / plain)
    note = "" if proof.gap <= 1e-2 else f"gap {proof.gap:.2%} after {seconds:g} s"
    return [
        row(at, "expected loss", None, proof.loss, bound=proof.lower_bound, seconds=spent, note=note),
        row(at, BELOW, None, saved, note=note),
    ]
