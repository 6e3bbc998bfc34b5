"""Mechanisms for secrets anywhere along the streets of a road network, under the path metric."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from metricdp.arrays import Floats, as_positive
from metricdp.auditing.bounds import trivial_lower_bound
from metricdp.auditing.lipschitz import prove_streets
from metricdp.design.interpolation.anchors import MARGIN, blank_certificate, certify_proof, solve_anchors
from metricdp.design.interpolation.samples import WeightedSamples, integrate_samples, weigh_samples
from metricdp.errors import InvalidInput
from metricdp.mechanisms import StreetMechanism
from metricdp.mechanisms.curves import widest_ratio
from metricdp.mechanisms.kinds.streets import Pieces, street_weights
from metricdp.metrics import roads_of
from metricdp.progress import AUDITING, report_task
from metricdp.solvers import Edges, Status, solve_ratio
from metricdp.spaces import FiniteSpace, Streets, require_space

GAUSS_NODES = 4  # in every half piece, where `loss` is a function
UNIT = 2.0**-53


def interpolate_streets(
    space: Any, outputs: FiniteSpace, epsilon: float, *, loss: Any, prior: Any, pieces: Any, bound: bool, **limits: Any
) -> StreetMechanism:
    """Build a mechanism for places along streets: exact rounding on every piece, no loss of budget to dimensions.

    Two neighbouring anchors at length u / epsilon may differ by e^a = 2 e^(u/2) - 1 (see `mechanisms.curves`); chains
    of pieces make the guarantee hold for the path metric between any two places.

    `pieces` cuts every street (a number), or each one (an array), or into pieces no longer than a length (a float, 0.2
    for 200 m). `loss` is (places, losses) with places (street, offset); or a matrix with one row per crossing; or a
    function of places, integrated along all streets; it defaults to the path length to the reports, which are then
    crossings. `prior` are the weights of the places or crossings, or a density along the streets. `limits` are gap,
    seconds and progress of the program.
    """
    started = time.perf_counter()
    streets = require_space(space, Streets, "box") if space.size is None else Streets(space.network)
    rate = as_positive(epsilon, "epsilon")
    cut = Pieces(streets, _counts(streets, pieces))
    samples = _samples(streets, cut, outputs, loss, prior)
    ratios = widest_ratio(rate * (1.0 - MARGIN) * cut.widths)
    cost = np.asarray(street_weights(cut, ratios, samples.points).T @ samples.cost)
    street, lower, upper = cut.list()
    edges = _edges(cut.anchors, lower, upper, ratios[street])
    matrix, reached, method, stopped = solve_anchors(cost, edges, **limits)
    least = trivial_lower_bound(samples.losses, samples.weights)
    if bound and len(outputs) > 1 and not stopped:
        try:
            least = max(least, _lower_bound(streets, samples, rate, limits["seconds"]))
        except KeyboardInterrupt:
            stopped = True
    mechanism = StreetMechanism(streets, outputs, cut.counts, matrix, ratios, *blank_certificate(rate, streets.metric))
    with report_task(AUDITING):
        proof = prove_streets(mechanism)
    note = f"within {reached:.2g} of the best distributions at these anchors"
    if stopped:
        note += f"; distribution and bound could be better: {Status.INTERRUPTED.value}"
    method = f"exact interpolation along streets, {method}"
    achieved = samples.mean_loss(mechanism)
    return certify_proof(mechanism, proof, achieved, least, method=method, note=note, started=started)


def _counts(streets: Streets, pieces: Any) -> Any:
    lengths = streets.network.lengths
    if isinstance(pieces, float):
        return np.maximum(1, np.ceil(lengths / as_positive(pieces, "anchors"))).astype(np.int64)
    counts = np.broadcast_to(np.asarray(pieces), lengths.shape)
    if counts.dtype.kind not in "iu" or np.any(counts < 1):
        raise InvalidInput(
            "`anchors` on a road network must be the number of pieces of a street, one number per street, or the "
            "greatest length of a piece (a float)."
        )
    return counts.astype(np.int64)


def _edges(anchors: int, lower: Any, upper: Any, ratios: Floats) -> Edges:
    """Return one edge per pair of anchors: of parallel streets the strictest."""
    pairs = np.sort(np.stack([lower, upper], axis=1), axis=1)
    order = np.lexsort((ratios, pairs[:, 1], pairs[:, 0]))
    pairs, ratios = pairs[order], ratios[order]
    first = np.append(True, np.any(np.diff(pairs, axis=0) != 0, axis=1))
    return Edges(pairs[first], ratios[first])


def _samples(streets: Streets, cut: Pieces, outputs: FiniteSpace, loss: Any, prior: Any) -> WeightedSamples:
    if loss is None:
        if roads_of(outputs.metric) is None:
            raise InvalidInput("`loss` must be given where the reports are not crossings of the network.")
        ends = streets.at_crossings(outputs.points[:, 0])

        def loss(places: Floats) -> Floats:
            return streets.metric(places[:, None], ends[None])

    if callable(loss):
        nodes, shares = np.polynomial.legendre.leggauss(GAUSS_NODES)
        inside = np.concatenate([(nodes + 1) / 4, 0.5 + (nodes + 1) / 4])
        street, _, _ = cut.list()
        step = np.arange(len(street)) - np.repeat(np.cumsum(cut.counts) - cut.counts, cut.counts)
        offsets = (step[:, None] + inside) * cut.widths[street][:, None]
        places = np.stack([np.repeat(street, len(inside)), offsets.ravel()], axis=1).astype(float)
        mass = (np.tile(shares / 4, 2) * cut.widths[street][:, None]).ravel()
        return integrate_samples(places, mass, len(outputs), loss, prior)
    if isinstance(loss, tuple) and len(loss) == 2:
        places, loss = streets.encode(loss[0]), loss[1]
    else:
        places = streets.at_crossings(np.arange(streets.network.nodes))
    return weigh_samples(places, loss, len(outputs), prior)


def _lower_bound(streets: Streets, samples: WeightedSamples, rate: float, seconds: float | None) -> float:
    """Return the representative bound with the crossings as representatives and the streets as pairs.

    z(x) >= e^(-epsilon d(x, m)) z(m) for the nearer end m of the street of x.
    """
    network, places, weights, losses = streets.network, samples.points, samples.weights, samples.losses
    street = places[:, 0].astype(np.int64)
    rest = network.lengths[street] - places[:, 1]
    nearer = np.where(places[:, 1] <= rest, 0, 1)
    away = np.minimum(places[:, 1], rest)
    base = losses.min(axis=1)
    share = weights * np.exp(-rate * away * (1 + 8 * UNIT) - 8 * UNIT)
    cost = np.zeros((network.nodes, losses.shape[1]))
    np.add.at(cost, network.edges[street, nearer], share[:, None] * (losses - base[:, None]))
    cost *= 1.0 - (len(places) + 16) * UNIT
    edges = _edges(network.nodes, network.edges[:, 0], network.edges[:, 1], rate * network.lengths)
    limit = None if seconds is None else 0.5 * seconds
    fixed = weights * base
    start = float(fixed.sum() - (len(fixed) + 4) * UNIT * np.abs(fixed).sum())
    return start + solve_ratio(cost, edges=edges, gap=3e-3, seconds=limit).lower_bound
