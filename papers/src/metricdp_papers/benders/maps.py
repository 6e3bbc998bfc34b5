"""Where subsets and components lie: Figure 5 (components of the master) and Figures 13 to 16 (four partitions)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components

from metricdp.arrays import Booleans, Floats, Integers
from metricdp.design import Neighbours
from metricdp.problems import Problem
from metricdp.solvers import boundary_of
from metricdp_papers.benders import printed
from metricdp_papers.benders.data import WIDE_GRID
from metricdp_papers.benders.runs import Setting
from metricdp_papers.common import Row, RowList, row

ACROSS, ALL_PAIRS, CUTS = "pairs of different subsets", "all pairs, Eq. (25)", "all pairs and the cuts, Eq. (15)"


def positions(data: str, problem: Problem) -> Floats:
    """Return a place on the plane for every record: the map itself, or the two directions of most variance."""
    points = problem.inputs.points.astype(np.float64)
    if data in ("road", "grid", WIDE_GRID):
        return points[:, ::-1]  # the east to the right, the north above
    middle = points - points.mean(axis=0)
    return np.asarray(middle @ np.linalg.svd(middle, full_matrices=False)[2][:2].T)


def component_rows(setting: Setting, instance: int) -> list[Row]:
    """Return Figure 5 for k-m-DV: the master's components, and what becomes of them once its cuts are there.

    The cut of a subset holds every boundary record that an inner record of it touches: these are one program from the
    first cut on, so that components can be solved apart only where no subset touches two of them.
    """
    problem = setting.problem(instance)
    graph = Neighbours.of(problem)
    labels = setting.labels(problem, graph, "distances")
    edge = boundary_of(labels, graph.adjacency)
    places = positions(setting.data, problem)
    about = {"data": setting.data, "partition": printed.NAMES["distances"]}
    found: list[Row] = []
    for rule, joined in _joint_boundary(labels, edge, graph.adjacency).items():
        rows = RowList({**about, "joined_by": rule}, "corrected" if rule == CUTS else "as_published")
        parts = [np.flatnonzero(edge)[members] for members in _components(joined[np.ix_(edge, edge)])]
        parts = [members for members in parts if rule != ACROSS or len(members) > 1]
        sizes = np.array([len(members) for members in parts])
        rows.add("components", float(len(sizes)))
        rows.add("mean records of a component", float(sizes.mean()) if sizes.size else 0.0)
        rows.add("records of the largest component", float(sizes.max(initial=0)))
        found += rows
        if rule == ACROSS:
            found += [_circle({**rows.about, "component": at}, places[one], "records of this component")
                      for at, one in enumerate(parts, 1)]  # fmt: skip
    return found


def _joint_boundary(labels: Integers, edge: Booleans, near: Booleans) -> dict[str, Booleans]:
    """Return which boundary records the master holds together: by what is printed, and with the cuts it gets."""
    cuts = near.copy()
    for label in range(int(labels.max()) + 1):
        inner = (labels == label) & ~edge
        touched = edge & near[inner].any(axis=0)
        cuts |= touched[:, None] & touched
    return {ACROSS: near & (labels[:, None] != labels), ALL_PAIRS: near, CUTS: cuts}


def _components(adjacency: Booleans) -> list[Integers]:
    count, part = connected_components(sparse.csr_array(adjacency), directed=False)
    return [np.flatnonzero(part == one) for one in range(count)] if adjacency.size else []


def _circle(about: Row, members: Floats, measure: str) -> Row:
    """Return a row that a circle is drawn from: the middle of some records, and how many they are."""
    x, y = members.mean(axis=0).round(4).tolist()
    return row({**about, "x": x, "y": y}, measure, len(members))


def partition_rows(setting: Setting, instance: int) -> list[Row]:
    """Return Figures 13 to 16: where the subsets of every partition lie, how large they are, and how uneven."""
    problem = setting.problem(instance)
    graph = Neighbours.of(problem)
    places = positions(setting.data, problem)
    found: list[Row] = []
    for method, labels in setting.partitions(problem, graph):
        edge = boundary_of(labels, graph.adjacency)
        sizes = np.bincount(labels)
        inner = np.bincount(labels[~edge], minlength=len(sizes))
        about = {"data": setting.data, "partition": printed.NAMES[method]}
        rows = RowList(about, "corrected" if method == "balanced" else "as_published")
        rows.add("records of the smallest subset", int(sizes.min()))
        rows.add("records of the largest subset", int(sizes.max()))
        rows.add("standard deviation of the records of a subset", float(sizes.std()))
        rows.add("subsets without inner records", int((inner == 0).sum()))
        found += rows
        for one in range(len(sizes)):
            circle = _circle({**about, "subset": one + 1}, places[labels == one], "records of this subset")
            found += [circle, {**circle, "measure": "inner records of this subset", "as_published": int(inner[one])}]
    return found
