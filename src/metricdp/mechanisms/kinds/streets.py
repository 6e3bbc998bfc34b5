"""Distributions at crossings and cuts of streets, interpolated to every place along them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from metricdp import constants
from metricdp.arrays import Booleans, Floats, Integers, as_codes, as_stochastic, frozen, set_fields
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import Certificate, Guarantee
from metricdp.mechanisms.curves import TINIEST, check_ratios, flip_coins, near_share
from metricdp.mechanisms.kind import FINITE, RATIOS, Distribution, declare_kind, table_distribution
from metricdp.mechanisms.rows import AnchorRows
from metricdp.randomness import Randomness, source_of
from metricdp.registry import Array, Effort, Part, Table
from metricdp.spaces import FiniteSpace, Streets, require_space

ROUNDINGS = 4 * 2.0**-53  # of a quotient, a product and a difference, for every piece
TINIEST_RATIO = 1e-300  # a street has a length, so its anchors may differ


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
class StreetMechanism(AnchorRows):
    """Distributions at crossings and cuts, interpolated along every street by random rounding to a neighbouring anchor.

    Guarantee: along a piece the log-probabilities move no faster than `auditing.lipschitz` proves, and the path metric
    adds up such movements, so the guarantee holds between any two places of the network. Sampling is exact as on a box.
    """

    inputs: Streets
    outputs: FiniteSpace
    counts: Integers
    matrix: Floats
    ratios: Floats  # one per street
    guarantee: Guarantee
    certificate: Certificate

    def __post_init__(self) -> None:
        require_space(self.inputs, Streets, "inputs")
        require_space(self.outputs, FiniteSpace, "outputs")
        matrix = as_stochastic(self.matrix)
        # No street has more pieces than there are anchors and one: sums of counts cannot overflow.
        counts = frozen(as_codes(self.counts, len(matrix) + 2, "counts"))
        if counts.shape != (len(self.inputs),) or np.any(counts < 1):
            raise InvalidInput(f"`counts` must be {len(self.inputs)} whole numbers from 1 on, one per street.")
        set_fields(self, counts=counts, ratios=frozen(check_ratios(self.ratios, len(counts), least=TINIEST_RATIO)))
        if matrix.shape != (self.pieces.anchors, len(self.outputs)):
            raise InvalidInput(
                f"`matrix` must be {self.pieces.anchors} x {len(self.outputs)} (anchors x outputs), got {matrix.shape}."
            )
        set_fields(self, matrix=frozen(matrix))

    def __repr__(self) -> str:
        return f"StreetMechanism({self.pieces.anchors} anchors, {len(self.outputs)} reports, {self.guarantee})"

    @cached_property
    def pieces(self) -> Pieces:
        return Pieces(self.inputs, self.counts)

    def sample(self, secrets: Any, /, *, rng: Randomness = None) -> Integers:
        """Return one report code for every place."""
        places = self.inputs.encode(secrets)
        near, far, position, step, beyond = locate_places(self.pieces, places)
        street = places[:, 0].astype(np.int64)
        ratio = self.ratios[street]

        def exactly(at: int) -> tuple[Any, float]:
            import flint

            along = _exact_steps(self.pieces, int(street[at]), float(places[at, 1])) - int(step[at])
            value = 1 - along if beyond[at] else along
            return flint.fmpq(value.numerator, value.denominator), float(ratio[at])

        blur, source = np.asarray(ROUNDINGS * self.counts[street], dtype=np.float64), source_of(rng)
        away = flip_coins(position, ratio, exactly, source, blur)
        return self._sampler.draw(np.where(away, far, near), source)

    def probabilities(self, secrets: Any, /) -> Floats:
        """Return one distribution per place."""
        weights = street_weights(self.pieces, self.ratios, self.inputs.encode(secrets))
        return np.asarray(weights @ self._anchor_rows)

    def log_density(self, secrets: Any, reports: ArrayLike, /) -> Floats:
        """Return the log of the probability of each report at each place."""
        distribution = self.probabilities(secrets)
        codes = np.broadcast_to(as_codes(reports, len(self.outputs), "reports"), (len(distribution),))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(distribution[np.arange(len(distribution)), codes]))

    def _facet_distribution(self) -> Distribution:
        return table_distribution("Pr[report k | x] = (1 - s(x)) matrix[near anchor, k] + s(x) matrix[far anchor, k]")

    def _facet_effort(self) -> Effort:
        pieces, reports = float(self.counts.sum()), float(self.matrix.shape[1])
        return Effort(10.0 * pieces * reports, 50.0 * pieces * reports)


class Location(NamedTuple):
    """Where places lie: the near and the far anchor, how far along the piece from the near one, the piece."""

    near: Integers
    far: Integers
    position: Floats
    step: Integers
    beyond: Booleans  # whether the near anchor is the upper one


def locate_places(pieces: Pieces, places: Floats) -> Location:
    """Return the pieces of places, their anchors, and how far the places are from the nearer one.

    Doubles are off by at most ROUNDINGS times the number of pieces. A place that may lie on either side of a cut is
    found exactly, so that the piece is the true one and a position of 0 is the cut itself.
    """
    street, offset = places[:, 0].astype(np.int64), places[:, 1]
    lengths, counts = pieces.streets.network.lengths[street], pieces.counts[street]
    steps = offset / lengths * counts
    step = np.minimum(steps.astype(np.int64), counts - 1)
    along = np.clip(steps - step, 0.0, 1.0)
    beyond = along > 0.5
    position = np.where(beyond, 1.0 - along, along)
    for at in np.flatnonzero((position <= ROUNDINGS * counts) & (offset > 0) & (offset < lengths)).tolist():
        exact = _exact_steps(pieces, int(street[at]), float(offset[at]))
        step[at] = exact.numerator // exact.denominator
        here = exact - int(step[at])
        beyond[at] = 2 * here > 1
        position[at] = max(float(min(here, 1 - here)), TINIEST) if here else 0.0
    lower, upper = pieces.anchor(street, step), pieces.anchor(street, step + 1)
    return Location(np.where(beyond, upper, lower), np.where(beyond, lower, upper), position, step, beyond)


def _exact_steps(pieces: Pieces, street: int, offset: float) -> Fraction:
    """Return the length up to a place in pieces of its street."""
    return Fraction(offset) * int(pieces.counts[street]) / Fraction(float(pieces.streets.network.lengths[street]))


def street_weights(pieces: Pieces, ratios: Floats, places: Floats) -> Any:
    """Return the sparse places x anchors matrix of rounding probabilities."""
    from scipy import sparse

    near, far, position, _, _ = locate_places(pieces, places)
    share = near_share(position, ratios[places[:, 0].astype(np.int64)])
    rows = np.arange(len(places))
    return sparse.csr_array(
        (np.concatenate([1.0 - share, share]), (np.concatenate([rows, rows]), np.concatenate([near, far]))),
        shape=(len(places), pieces.anchors),
    )


declare_kind(
    StreetMechanism,
    "streets",
    "tables at crossings, for any place along the streets",
    {
        "inputs": Part("space", ("streets",)),
        "outputs": FINITE,
        "counts": Array("whole", sides=1, least=1, most=constants.LARGEST_MATRIX),
        "ratios": RATIOS,
        "matrix": Table(),
    },
    since=2,
    report_probabilities=StreetMechanism.probabilities,
)
