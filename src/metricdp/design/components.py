"""Mechanisms on a policy graph of several parts: each part on its own, since nothing binds secrets across parts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.design._certify import certify
from metricdp.errors import InvalidInput
from metricdp.mechanisms import FiniteMechanism, MatrixMechanism
from metricdp.metrics import PolicyGraph, ShortestPath, policy_of, protected_distance
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace

MOST = 4_096  # secrets up to which the parts are put into one matrix


@dataclass(frozen=True)
class Component:
    """One part of a problem, as a problem of its own: its secrets and reports in the whole, its weight in the prior."""

    problem: Problem
    secrets: Integers
    reports: Integers
    weight: float


def is_disconnected(problem: Problem) -> bool:
    """Tell whether the secrets of a problem lie in several parts of a policy graph."""
    return protected_distance(problem.inputs.metric, problem.inputs.points) is not None


def build_by_component(
    problem: Problem,
    build: Callable[..., FiniteMechanism],
    *,
    inside: bool = False,
    weights: Floats | None = None,
    seconds: float | None = None,
    **options: Any,
) -> MatrixMechanism:
    """Build a mechanism for every part by `build(part, **options)` and put their rows together.

    Parts share out `seconds` by their sizes, and each has the `weights` of its own reports; `build` gets neither where
    it is not given.

    No constraint joins two parts, so the expected loss is the sum of the parts' with the prior's weights, the worst the
    largest, and so are the lower bounds. A part reports its own secrets where the loss is the distance: any other is
    farther away than all of them, so that a fixed one of its own is no worse. With a loss of one's own it may report
    whatever is cheapest, also across parts; `inside` is for builders that weigh reports by their distance and keep to
    their part.
    """
    started = time.perf_counter()
    shares, made = _components(problem, inside=inside), list[FiniteMechanism]()
    for share in shares:
        own = dict(options)
        if weights is not None:
            own["weights"] = weights[share.reports]
        if seconds is not None:
            own["seconds"] = seconds * len(share.secrets) / len(problem.inputs)
        made.append(build(share.problem, **own))
    matrix = np.zeros((len(problem.inputs), len(problem.outputs)))
    for share, mechanism in zip(shares, made, strict=True):
        matrix[np.ix_(share.secrets, share.reports)] = mechanism.matrix
    bounds = np.array([one.certificate.lower_bound for one in made])
    masses = np.array([share.weight for share in shares])
    bound = float(bounds.max())
    largest = max(made, key=lambda one: len(one.inputs)).certificate
    if largest.objective == "expected":  # rounded down
        bound = float(masses @ bounds) - (len(shares) + 4) * 2.0**-53 * float(masses @ np.abs(bounds))
    notes = dict.fromkeys(one.certificate.note for one in made if one.certificate.note)
    return certify(
        problem,
        matrix,
        method=f"{largest.method}, each of {len(shares)} parts on its own",
        started=started,
        objective=largest.objective,
        lower_bound=None if inside and not problem.loss_is_distance else bound,
        note="; ".join(notes),
    )


def _components(problem: Problem, *, inside: bool) -> list[Component]:
    """Return the parts of a problem as problems of their own, each in the shortest paths of its part."""
    inputs, metric, outputs = problem.inputs, policy_of(problem.inputs.metric), problem.outputs
    assert metric is not None
    if len(inputs) > MOST:
        raise InvalidInput(
            f"the {len(inputs):,} secrets lie in several parts of a policy: above {MOST:,} build a mechanism for each "
            "part on its own, mdp.policy_graphs.component_space(space, codes) for codes in "
            "mdp.policy_graphs.parts(space), or join the parts with mdp.policy(..., parts='join')."
        )
    if problem.radius != metric.protected_distance(inputs.points):
        raise InvalidInput("a policy of several parts says itself which pairs are protected: leave `radius` out.")
    parts, shares = metric.parts[inputs.points[:, 0].astype(np.int64)], []
    for part in np.unique(parts):
        secrets = np.flatnonzero(parts == part)
        weight = float(problem.prior[secrets].sum())
        prior = None if weight <= 0.0 else problem.prior[secrets] / weight
        space, reports, goals = component_space(inputs, secrets), np.arange(len(outputs)), outputs
        if outputs is inputs and (inside or problem.loss_is_distance):
            reports, goals = secrets, space
        elif inside:
            reports = _reports_inside(metric, outputs, int(part))
            space, goals = inputs.part(secrets), outputs.part(reports)
        measured = problem.loss_is_distance and goals is not outputs  # in the part's own metric
        loss = None if measured else problem.loss[np.ix_(secrets, reports)]
        own = Problem(space, problem.epsilon, outputs=goals, loss=loss, prior=prior)
        shares.append(Component(own, secrets, reports, weight))
    return shares


def _reports_inside(metric: PolicyGraph, outputs: FiniteSpace, part: int) -> Integers:
    metric.check(outputs.points)
    reports = np.flatnonzero(metric.parts[outputs.points[:, 0].astype(np.int64)] == part)
    if not len(reports):
        raise InvalidInput("a part of the policy has no report among `outputs`: its secrets could not be reported.")
    return reports


def component_space(space: FiniteSpace, secrets: Integers) -> FiniteSpace:
    """Return the places of one part of a policy as a space of their own, in the shortest paths of that part."""
    metric, secrets = policy_of(space.metric), np.asarray(secrets)
    if metric is None:
        return space.part(secrets)
    nodes = space.points[secrets, 0].astype(np.int64)
    whole = metric.parts == metric.parts[nodes[0]]
    if int(whole.sum()) != len(nodes) or len(nodes) == 1:  # ways may lead over nodes that are no secrets
        return space.part(secrets)
    position = np.full(metric.network.nodes, -1)
    position[nodes] = np.arange(len(nodes))
    inside = whole[metric.network.edges[:, 0]]
    graph = ShortestPath(
        position[metric.network.edges[inside]], metric.network.lengths[inside], len(nodes), unit=metric.unit
    )
    return replace(space.part(secrets), points=np.arange(len(nodes)), metric=graph)
