"""Laws at crossings and cuts of streets, interpolated to every place along them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, Integers, as_codes, as_stochastic, frozen
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import Certificate, Guarantee, mechanism_card
from metricdp.mechanisms.curves import checked_ratios, flips, near_share
from metricdp.mechanisms.rows import RowSampler
from metricdp.randomness import Randomness, source_of
from metricdp.spaces import FiniteSpace, Streets, given

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
class StreetMechanism:
    """Laws at crossings and cuts, interpolated along every street by randomised rounding to a neighbouring anchor.

    Guarantee: along a piece the log-probabilities move no faster than `auditing.lipschitz` proves, and the path metric
    adds up such movements, so the promise holds between any two places of the network. Sampling is exact as on a box.
    """

    inputs: Streets
    outputs: FiniteSpace
    counts: Integers
    matrix: Floats
    ratios: Floats  # one per street
    guarantee: Guarantee
    certificate: Certificate

    def __post_init__(self) -> None:
        given(self.inputs, Streets, "inputs")
        given(self.outputs, FiniteSpace, "outputs")
        matrix = as_stochastic(self.matrix)
        # No street has more pieces than there are anchors and one: sums of counts cannot overflow.
        counts = frozen(as_codes(self.counts, len(matrix) + 2, "counts"))
        if counts.shape != (len(self.inputs),) or np.any(counts < 1):
            raise InvalidInput(f"`counts` must be {len(self.inputs)} whole numbers from 1 on, one per street.")
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "ratios", frozen(checked_ratios(self.ratios, len(counts), least=TINIEST_RATIO)))
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

    def _repr_html_(self) -> str:
        return mechanism_card(self)

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
