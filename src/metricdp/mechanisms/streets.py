"""Secrets anywhere along the streets of a network: the space, its path metric and the interpolated mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, Integers, Points, as_codes, as_floats, as_stochastic, frozen
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.mechanisms.base import Certificate, Guarantee
from metricdp.mechanisms.curves import ULP, flips, near_share, speed
from metricdp.mechanisms.lipschitz import Proof
from metricdp.mechanisms.rows import RowSampler
from metricdp.metrics import ShortestPath
from metricdp.randomness import Randomness, source_of
from metricdp.spaces import FiniteSpace


@dataclass(frozen=True)  # equal where the network is the same one
class StreetPath:
    """The shortest way along the streets between places (street number, offset from its first end)."""

    network: ShortestPath

    @property
    def unit(self) -> str:
        return self.network.unit

    def __call__(self, a: Points, b: Points, /) -> Floats:
        a, b = np.broadcast_arrays(np.asarray(a, float), np.asarray(b, float))
        streets, others = a[..., 0].astype(np.int64), b[..., 0].astype(np.int64)
        edges, lengths = self.network.edges, self.network.lengths
        best = np.where(streets == others, np.abs(a[..., 1] - b[..., 1]), np.inf)
        for end in (0, 1):
            walk = a[..., 1] if end == 0 else lengths[streets] - a[..., 1]
            for other in (0, 1):
                last = b[..., 1] if other == 0 else lengths[others] - b[..., 1]
                between = self.network(edges[streets, end][..., None], edges[others, other][..., None])
                best = np.minimum(best, walk + between + last)
        return np.asarray(best)

    def check(self, points: Points, /) -> None:
        Streets(self.network).encode(points)


@dataclass(frozen=True, eq=False)
class Streets:
    """All places along the streets of a road network, written (street number, offset), 0 <= offset <= length."""

    network: ShortestPath

    def __post_init__(self) -> None:
        if not isinstance(self.network, ShortestPath) or self.network.one_way != "open":
            raise InvalidInput("`network` must be a ShortestPath metric with one_way='open': streets have two ways.")

    @cached_property
    def metric(self) -> StreetPath:
        return StreetPath(self.network)

    @property
    def unit(self) -> str:
        return self.network.unit

    @property
    def dimension(self) -> int:
        return 2

    def __len__(self) -> int:
        return len(self.network.lengths)

    def __repr__(self) -> str:
        return f"Streets({len(self)} streets, {self.network.nodes} crossings)"

    def encode(self, values: Any) -> Floats:
        """Return the places as they are, refusing those that lie on no street."""
        rows = as_floats(values, "values")
        if rows.ndim != 2 or rows.shape[1] != 2:
            raise InvalidInput(f"places must be rows of (street number, offset), got shape {rows.shape}.")
        strangers = np.flatnonzero(~self.holds(rows))
        if strangers.size:
            row = int(strangers[0])
            street = np.clip(rows[:, 0], 0, len(self) - 1).astype(np.int64)
            raise OutOfDomain(
                f"row {row}: ({rows[row, 0]:g}, {rows[row, 1]:g}) lies on no street; streets are numbered 0 to "
                f"{len(self) - 1} and offsets run from 0 to the street's length, "
                f"{self.network.lengths[street[row]]:.6g} here.",
                rows=tuple(int(r) for r in strangers[:1000]),
            )
        return rows

    def holds(self, rows: Floats) -> Booleans:
        """Tell which rows of finite numbers are places along a street."""
        street = np.clip(rows[:, 0], 0, len(self) - 1).astype(np.int64)
        return np.asarray((rows[:, 0] == street) & (rows[:, 1] >= 0) & (rows[:, 1] <= self.network.lengths[street]))

    def at_crossings(self, nodes: ArrayLike) -> Floats:
        """Return crossings as places: an end of some street that meets there."""
        codes = as_codes(nodes, self.network.nodes, "nodes")
        edges, lengths = self.network.edges, self.network.lengths
        street = np.full(self.network.nodes, -1, dtype=np.int64)
        offset = np.zeros(self.network.nodes)
        street[edges[:, 1]], offset[edges[:, 1]] = np.arange(len(edges)), lengths
        street[edges[:, 0]], offset[edges[:, 0]] = np.arange(len(edges)), 0.0
        if np.any(street[codes] < 0):
            raise OutOfDomain("a crossing meets no street.")
        return np.stack([street[codes], offset[codes]], axis=1).astype(float)


@dataclass(frozen=True)
class Pieces:
    """Streets cut into equal pieces; anchors are the crossings, then the cuts street by street."""

    streets: Streets
    counts: Integers  # pieces of every street

    @cached_property
    def first_cut(self) -> Integers:
        cuts = np.concatenate([[0], np.cumsum(self.counts - 1)[:-1]])
        return np.asarray(cuts + self.streets.network.nodes, dtype=np.int64)

    @property
    def anchors(self) -> int:
        return int(self.streets.network.nodes + (self.counts - 1).sum())

    def anchor(self, street: Integers, step: Integers) -> Integers:
        """Return the anchor `step` pieces from the first end of a street."""
        edges = self.streets.network.edges
        inner = self.first_cut[street] + step - 1
        ends = np.where(step == 0, edges[street, 0], edges[street, 1])
        return np.where((step == 0) | (step == self.counts[street]), ends, inner)

    @property
    def widths(self) -> Floats:
        """The length of the pieces of every street."""
        return np.asarray(self.streets.network.lengths / self.counts)

    def list(self) -> tuple[Integers, Integers, Integers]:
        """Return the street, the lower and the upper anchor of all pieces."""
        street = np.repeat(np.arange(len(self.counts)), self.counts)
        step = np.arange(len(street)) - np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        return street, self.anchor(street, step), self.anchor(street, step + 1)


@dataclass(frozen=True, eq=False)
class StreetMechanism:
    """Laws at crossings and cuts, interpolated along every street by randomised rounding to a neighbouring anchor.

    Guarantee: along a piece the log-probabilities move no faster than `proof()` says, and the path metric adds up such
    movements, so the promise holds between any two places of the network. Sampling is exact as on a box.
    """

    inputs: Streets
    outputs: FiniteSpace
    counts: Integers
    matrix: Floats
    ratios: Floats  # one per street
    guarantee: Guarantee
    certificate: Certificate

    def __post_init__(self) -> None:
        counts = frozen(np.asarray(self.counts, dtype=np.int64))
        ratios = frozen(as_floats(self.ratios, "ratios"))
        size = (len(self.inputs),)
        if counts.shape != size or ratios.shape != size or np.any(counts < 1) or np.any(ratios <= 0):
            raise InvalidInput(f"`counts` and `ratios` must be {size[0]} positive numbers, one per street.")
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "ratios", ratios)
        matrix = as_stochastic(self.matrix)
        if matrix.shape != (self.pieces.anchors, len(self.outputs)):
            raise InvalidInput(
                f"`matrix` must be {self.pieces.anchors} x {len(self.outputs)} (anchors x outputs), got {matrix.shape}."
            )
        object.__setattr__(self, "matrix", frozen(matrix))

    def __repr__(self) -> str:
        return f"StreetMechanism({self.pieces.anchors} anchors, {len(self.outputs)} reports, {self.guarantee})"

    @cached_property
    def pieces(self) -> Pieces:
        return Pieces(self.inputs, self.counts)

    @cached_property
    def _laws(self) -> Floats:
        return np.asarray(self.matrix / self.matrix.sum(axis=1, keepdims=True))

    @cached_property
    def _sampler(self) -> RowSampler:
        return RowSampler(self.matrix)

    def sample(self, secrets: Any, /, *, rng: Randomness = None) -> Integers:
        """Return one report code for every place."""
        places = self.inputs.encode(secrets)
        source = source_of(rng)
        near, far, position = located(self.pieces, places)
        street = places[:, 0].astype(np.int64)
        ratio = self.ratios[street]
        network, counts = self.inputs.network, self.counts

        def exactly(at: int) -> tuple[Any, float]:
            import flint

            here = Fraction(float(places[at, 1])) * int(counts[street[at]])
            here /= Fraction(float(network.lengths[street[at]]))
            here -= here.numerator // here.denominator
            value = here if position[at] == 0 or float(here) < 0.5 else 1 - here
            return flint.fmpq(value.numerator, value.denominator), float(ratio[at])

        away = flips(near_share(position, ratio), position, ratio, exactly, source)
        return self._sampler.draw(np.where(away, far, near), source)

    def probabilities(self, secrets: Any, /) -> Floats:
        """Return one law per place."""
        weights = street_weights(self.pieces, self.ratios, self.inputs.encode(secrets))
        return np.asarray(weights @ self._laws)

    def log_density(self, secrets: Any, reports: ArrayLike, /) -> Floats:
        """Return the log of the probability of each report at each place."""
        law = self.probabilities(secrets)
        codes = np.broadcast_to(as_codes(reports, len(self.outputs), "reports"), (len(law),))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(law[np.arange(len(law)), codes]))

    @cached_property
    def lipschitz(self) -> Proof:
        """The constant of the log-probabilities along all streets, proven at theta = 0, 1/2 and 1 of every piece."""
        positive = self.matrix > 0
        used = positive.any(axis=0)
        if not np.array_equal(used, positive.all(axis=0)):
            return Proof(np.inf, "a report has probability zero at some anchors only", (), 0)
        laws = self._laws[:, used]
        street, lower, upper = self.pieces.list()
        low, high = laws[lower], laws[upper]
        error = (self.matrix.shape[1] + 64.0) * ULP
        end, middle = (part[street, None] for part in speed(self.ratios))
        change = np.abs(high - low) + error * (high + low)
        slope = np.maximum(end * change / np.minimum(low, high), middle * change / (0.5 * (low + high)))
        values = slope.max(axis=1) / self.pieces.widths[street] * (1.0 + 2.0 * error)
        worst = int(values.argmax())
        return Proof(float(values[worst]), "slope along every piece of street", (int(street[worst]),), len(values))

    def proof(self) -> tuple[float, str, int]:
        """Return (epsilon, method, pieces): a proven bound of every |ln z(x) - ln z(x')| / path(x, x')."""
        return self.lipschitz.epsilon, self.lipschitz.method, self.lipschitz.cells


def located(pieces: Pieces, places: Floats) -> tuple[Integers, Integers, Floats]:
    """Return the near and the far anchor of every place, and how far along the piece it is from the near one."""
    street = places[:, 0].astype(np.int64)
    steps = places[:, 1] / pieces.streets.network.lengths[street] * pieces.counts[street]
    step = np.minimum(steps.astype(np.int64), pieces.counts[street] - 1)
    along = np.clip(steps - step, 0.0, 1.0)
    lower, upper = pieces.anchor(street, step), pieces.anchor(street, step + 1)
    beyond = along > 0.5
    position = np.where(beyond, 1.0 - along, along)
    return np.where(beyond, upper, lower), np.where(beyond, lower, upper), position


def street_weights(pieces: Pieces, ratios: Floats, places: Floats) -> Any:
    """Return the sparse places x anchors matrix of rounding probabilities."""
    from scipy import sparse

    near, far, position = located(pieces, places)
    share = near_share(position, ratios[places[:, 0].astype(np.int64)])
    rows = np.arange(len(places))
    return sparse.csr_array(
        (np.concatenate([1.0 - share, share]), (np.concatenate([rows, rows]), np.concatenate([near, far]))),
        shape=(len(places), pieces.anchors),
    )
