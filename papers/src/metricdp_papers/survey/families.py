"""The families of the comparison: every builder that fits, and what else the survey names, all at one guarantee.

A family with a metric of its own (a policy graph, elastic levels, zones, protection sets, areas of a tree) guarantees
something else at the same epsilon. It is brought to the guarantee of the comparison: with c the largest ratio of its
distance to that of the domain, its optimum at epsilon / c keeps epsilon times the distance of the domain. What comes
out is audited there. Two rows keep a guarantee of their own, are marked, and have no bound beside them: the policy
graph at the same epsilon a step, and Gaussian noise, whose guarantee is approximate.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from metricdp import (
    elastic,
    exponential,
    gaussian,
    laplace,
    masked,
    optimal,
    policy,
    policy_graphs,
    quantised,
    weighted_exponential,
)
from metricdp.arrays import Booleans, Floats
from metricdp.design import BUILDERS, Builder, noise_mismatch, noise_of
from metricdp.errors import MetricdpError
from metricdp.mechanisms import Mechanism, rho_for
from metricdp.metrics import Lp, Mahalanobis, exponent_of, points_are
from metricdp.mobility import zones
from metricdp.places import location_tree, protection_sets, scaled
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace
from metricdp_papers.columns import BUILDER as DANTZIG_WOLFE
from metricdp_papers.survey import traces
from metricdp_papers.survey.asked import GAP, SECONDS, Build, ComparisonTask, FamilyResult, ReportSampler, ReportTable

DELTA = 1e-6  # of Gaussian noise, at the mean distance
PROJECTED = 8  # numbers that vectors are projected to
SHOWN_OTHERWISE = ("masked", "weighted_exponential", "quantised", "product", "contextual", "from_matrix")
NOT_HERE = {
    "contextual": "its secrets are places together with the way there, see `metricdp reproduce contextual`",
    "from_matrix": "a matrix of one's own: no family",
    "shuffling": "what a crowd adds is approximate and belongs to many reports, see mdp.auditing.shuffled_epsilon",
    "cloaked times": "its secrets are places with times; each part is compared in its own domain",
    "stay points": "it thins traces before the noise and hides nothing by itself",
    "windows": "what optimal does above 4,096 places",
}


def families(task: ComparisonTask) -> tuple[dict[str, Build], dict[str, str]]:
    """Return the families that fit a domain, by name, and why others do not."""
    listed: dict[str, Build] = {
        "condensed (exponential, half the budget)": lambda: task.check_table(_half(task)),
        "weighted exponential (by the prior)": lambda: _weighted(task),
        "masked (disk)": lambda: _masked(task, 0.0),
        "masked (ring)": lambda: _masked(task, 0.5),
        "optimal, quantised to 24 bits": lambda: _quantised(task),
        "elastic metric, optimal": lambda: task.best_on(
            elastic(task.space, mass=_blend(task), requirement=lambda level: level)
        ),
        "local scale, optimal": lambda: task.best_on(scaled(task.space, np.where(_around_home(task), 0.5, 1.0))),
        "protection sets, optimal": lambda: _protected(task),
        "policy graph, optimal": lambda: task.best_on(policy(task.space, _edges(task))),
        "policy graph, its own promise": lambda: _policy(task),
    }
    missing = dict(NOT_HERE)
    listed |= _on_maps(task, missing) | _noises(task, missing)
    for builder in {one.name: one for one in (*BUILDERS, DANTZIG_WOLFE)}.values():
        if builder.start == "metric" or builder.name in SHOWN_OTHERWISE:
            continue
        name = "madlib (noise, nearest word)" if builder.name == "madlib" else builder.name.replace("_", " ")
        if why := task.question.mismatch(builder):
            missing.setdefault(name, why)
        else:
            listed[name] = partial(_built, task, builder)
    if task.domain == "traces":
        listed |= traces.families(task)
        for name in ("condensed (exponential, half the budget)", "exponential", "optimal"):
            listed[f"{name}, of whole traces"] = listed.pop(name)
    else:
        for name in ("predictive", "budgets of a stream", "steps apart"):
            missing[name] = "it releases a trace step by step: see the domain traces"
    return {name: build for name, build in listed.items() if name not in missing}, missing


def _built(task: ComparisonTask, builder: Builder) -> FamilyResult:
    made = task.question.build(builder, task.epsilon, task.measure)
    if builder.name == "madlib":
        return ReportSampler(lambda secrets, generator: made.sample(secrets, rng=generator))
    promise = made.guarantee
    if promise.radius is not None or promise.slack > 0 or promise.epsilon > task.epsilon or promise.basis == "none":
        raise MetricdpError(f"it keeps another promise: {promise}.")
    if made.inputs.size is None:  # on a box
        box: Any = made
        return ReportTable(box.probabilities(task.space.points), task.loss, note=made.certificate.note)
    table: Any = made
    result = table.matrix / table.matrix.sum(axis=1, keepdims=True)
    bounds_all = task.question.bounds_all(made, builder, task.epsilon, task.measure)
    return ReportTable(
        result, task.loss, made.certificate.lower_bound if bounds_all else None, note=made.certificate.note
    )


def _half(task: ComparisonTask) -> Floats:
    return exponential(task.space, task.epsilon, budget="half", form="matrix").matrix


def _weighted(task: ComparisonTask) -> ReportTable:
    made = weighted_exponential(task.space, task.epsilon, weights=_blend(task), form="matrix")
    return task.check_table(made.matrix)


def _blend(task: ComparisonTask) -> Floats:
    """Return the prior, mixed with what is even, so that nothing is worth nothing."""
    return np.asarray((task.prior + 1.0 / len(task.prior)) / 2.0)


def _around_home(task: ComparisonTask) -> Booleans:
    """Tell which half of the secrets lies nearest to the likeliest one: where less may be told."""
    away = task.space.distances[int(task.prior.argmax())]
    return np.asarray(away <= np.median(away))


def _masked(task: ComparisonTask, share: float) -> ReportTable:
    reach = 1.0 / task.epsilon
    return task.check_table(masked(task.space, task.epsilon, inner=share * reach, outer=reach).matrix)


def _quantised(task: ComparisonTask) -> ReportTable:
    problem = Problem(task.space, task.epsilon, loss=task.loss, prior=task.prior)
    made = quantised(optimal(problem, gap=GAP, seconds=SECONDS), problem=problem, bits=24)
    return task.check_table(made.matrix)


def _protected(task: ComparisonTask) -> ReportTable:
    """Return the optimum on protection sets whose best guess errs by a fourth of the blind one, at epsilon one."""
    error = 0.25 * float((task.prior @ task.space.distances).min()) / math.e
    sets = protection_sets(task.space, 1.0, error=error, prior=task.prior)
    return task.best_on(sets.space, note=f", {len(sets)} sets")


def _edges(task: ComparisonTask) -> Any:
    """Return who must be hidden from whom: neighbours on a grid or along streets, else the four nearest."""
    if task.domain == "grid":
        return np.argwhere(np.triu(task.space.distances <= 1.0 + 1e-9, 1))
    found = policy_graphs.nearest(task.space, min(4, len(task.space) - 1))
    added = policy_graphs.repairs(task.space, found, isolated="join", parts="join")
    return np.concatenate([found, added]) if len(added) else found


def _policy(task: ComparisonTask) -> ReportTable:
    """Return the optimum where neighbours must be hidden, at epsilon a step: another guarantee."""
    hops = policy(task.space, _edges(task))
    made = optimal(Problem(hops, task.epsilon, loss=task.loss, prior=task.prior), gap=GAP, seconds=SECONDS)
    result = made.matrix / made.matrix.sum(axis=1, keepdims=True)
    return ReportTable(result, task.loss, own="epsilon a step between neighbours")


def _on_maps(task: ComparisonTask, missing: dict[str, str]) -> dict[str, Build]:
    """Return what needs places on a map: zones, location trees, and rows with columns."""
    names = ("zones, optimal", "location tree, areas", "location tree, pruned by a map", "location tree, prunable")
    if task.domain not in ("roads", "grid"):
        missing |= dict.fromkeys(names, "it is for places on a map")
    else:
        home = int(task.prior.argmax())
        radius = float(np.median(task.space.distances[home])) / 2
        listed: dict[str, Build] = {
            "zones, optimal": lambda: task.best_on(zones(task.space, [home], radius=radius, scale=0.3).space),
            "location tree, areas": lambda: _areas(task),
            "location tree, pruned by a map": lambda: _pruned(task),
            "location tree, prunable": lambda: task.check_table(
                location_tree(task.space, 2).prunable(task.epsilon, 2, prior=task.prior).matrix
            ),
        }
        if task.domain == "grid":
            listed["product of rows and columns"] = lambda: _product(task)
        return listed
    missing["product of rows and columns"] = "it is for secrets of several parts"
    return {}


def _areas(task: ComparisonTask) -> ReportTable:
    """Return the optimum on the areas of a tree, for the places in them."""
    tree = location_tree(task.space, 2)
    labels, areas = tree.labels[1], tree.at_level(1)
    share = np.zeros((len(areas), len(task.space)))
    share[labels, np.arange(len(task.space))] = task.prior
    middles = tree.for_places(exponential(areas, task.epsilon), 1).outputs
    codes = task.space.nearest(middles.coordinates)[0]
    loss = share @ task.loss[:, codes] / share.sum(axis=1, keepdims=True)
    problem = Problem(areas, task.epsilon, loss=loss, prior=share.sum(axis=1))
    made = tree.for_places(optimal(problem, gap=GAP, seconds=SECONDS), 1)
    return task.check_table(made.matrix, task.loss[:, codes], note=f"{len(areas)} areas")


def _pruned(task: ComparisonTask) -> ReportTable:
    """Return the optimum with a fourth of the map never reported."""
    tree = location_tree(task.space, 2)
    problem = Problem(task.space, task.epsilon, loss=task.loss, prior=task.prior)
    made = tree.prune(optimal(problem, gap=GAP, seconds=SECONDS), [0], level=1, prior=task.prior, loss=task.loss)
    codes = task.space.nearest(made.outputs.coordinates)[0]
    used = int(made.matrix.any(axis=0).sum())
    return task.check_table(made.matrix, task.loss[:, codes], note=f"{used} of {len(task.space)} places reported")


def _product(task: ComparisonTask) -> ReportTable:
    """Return rows and columns drawn apart, each with epsilon / sqrt(2): l_1 is at most sqrt(2) times l_2."""
    lines = [FiniteSpace(np.unique(task.space.points[:, axis])[:, None], Lp(1)) for axis in (0, 1)]
    both = task.prior.reshape(len(lines[0]), len(lines[1]))
    parts = [
        optimal(Problem(line, task.epsilon / math.sqrt(2.0) * (1 - 1e-9), prior=both.sum(axis=1 - axis)), gap=GAP)
        for axis, line in enumerate(lines)
    ]
    return task.check_table(np.asarray(np.kron(parts[0].matrix, parts[1].matrix), dtype=np.float64))


def _noises(task: ComparisonTask, missing: dict[str, str]) -> dict[str, Build]:
    """Return noise that keeps the guarantee in the metric, each followed by the nearest secret."""
    space = task.space
    listed: dict[str, Build] = {}
    for builder in BUILDERS:
        if builder.start != "metric":
            continue
        name = builder.name.replace("_", " ")
        if builder.promise == "concentrated":
            continue
        if why := noise_mismatch(builder, space):
            missing[name] = why
        else:
            listed[name] = partial(_noise, task, builder)
    flat = exponent_of(space.metric) == 2.0 and not space.is_text
    for name, build, fits, why in (
        ("gaussian, its own promise", _gaussian, flat or points_are(space.ground, "degrees"),
         "it is for vectors under l2 and for places on the Earth"),
        ("laplace in ellipses of 2 : 1", _ellipse, flat and space.dimension == 2, "it is for the plane"),
        (f"laplace after a projection to {PROJECTED}", _projected, flat and space.dimension > PROJECTED,
         "it is for long vectors under l2"),
    ):  # fmt: skip
        if fits:
            listed[name] = partial(build, task)
        else:
            missing[name] = why
    return listed


def _noise(task: ComparisonTask, builder: Builder) -> ReportSampler:
    draw, ratio = noise_of(builder, task.space, task.epsilon)
    under = "" if ratio == 1.0 else f"epsilon {task.epsilon / ratio:.4g} along the ground; "
    said = "private in l_2, which is never above the angle; " if builder.name == "von_mises_fisher" else under
    return ReportSampler(draw, note=said)


def _gaussian(task: ComparisonTask) -> ReportSampler:
    """Return Gaussian noise that is (epsilon d, delta) at the mean distance d of two secrets, and not pure anywhere."""
    space = task.space
    middle = float(task.prior @ space.distances @ task.prior)
    rho = rho_for(math.exp(task.epsilon * middle), middle, DELTA)
    noise = gaussian(space.ground, rho, dimension=None if points_are(space.ground, "degrees") else space.width)
    own = f"approximate, not pure: epsilon d with a delta of {DELTA:g} at the mean distance {middle:.3g} only"
    return _nearest_after(noise, space, own=own)


def _ellipse(task: ComparisonTask) -> ReportSampler:
    """Return noise twice as long one way: its distance is never above l_2, so that the guarantee is kept."""
    return _nearest_after(laplace(Mahalanobis(np.diag([4.0, 1.0])), task.epsilon), task.space)


def _projected(task: ComparisonTask) -> ReportSampler:
    """Return noise after a public projection that was drawn once, and the nearest projected secret."""
    space = task.space
    matrix = np.linalg.qr(np.random.default_rng(3).normal(size=(space.dimension, PROJECTED)))[0].T
    noise = laplace(Lp(2), task.epsilon, projection=matrix)
    return _nearest_after(noise, space, FiniteSpace(space.points @ matrix.T, Lp(2)))


def _nearest_after(
    noise: Mechanism, space: FiniteSpace, seen: FiniteSpace | None = None, own: str = ""
) -> ReportSampler:
    """Return noise on the secrets and then the nearest of them, in the space where the noise is seen."""
    return ReportSampler(
        lambda secrets, generator: (seen or space).nearest(noise.sample(space.decode(secrets), rng=generator))[0], own
    )
