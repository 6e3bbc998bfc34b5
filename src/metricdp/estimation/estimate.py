"""From a table of reports back to where the secrets were, as shares with intervals.

Everything here is post-processing: it uses reports and the public distribution of the mechanism, costs no privacy, and
needs no secret. It tells about crowds; about one person it can tell no more than the guarantee allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_codes, frozen
from metricdp.errors import InvalidInput
from metricdp.estimation import sentences
from metricdp.estimation.bayes import LikelyMasses, Progress, iterative_bayes, part_progress
from metricdp.estimation.bins import boxes_of
from metricdp.estimation.bootstrap import bootstrap_ends
from metricdp.estimation.decoders import (
    Decoder,
    DenseDecoder,
    Evidence,
    IterativeDecoder,
    MassBounds,
    Method,
    Target,
    WindowDecoder,
    decoder_for,
)
from metricdp.estimation.nodes import Nodes
from metricdp.estimation.operators import DenseOperator, ReportOperator, stack_operators
from metricdp.estimation.report_models import ReportModel, check_inside, check_reports, report_models_of
from metricdp.mechanisms import Mechanism
from metricdp.rendering import card
from metricdp.spaces import FiniteSpace

RequestedMethod = Literal["linear", "bounded", "em"]
Within = Literal["anywhere", "cell", "point"]
Intervals = Literal["analytic", "bootstrap"]
ROUGH_STEPS, STEPS = 200, 2_000  # of iterative Bayes: for errors, and for masses
ROUGH = 1e-4  # nats a report: near enough for errors
LITTLE = 0.1  # nats of the whole table: what iterative Bayes may leave to gain


@dataclass(frozen=True)
class Mass:
    """The share of secrets in a region, with its interval."""

    mass: float
    lower: float
    upper: float
    error: float

    def scaled(self, total: float) -> Mass:
        """Return the same as a number of `total`."""
        return Mass(*(total * value for value in (self.mass, self.lower, self.upper, self.error)))


@dataclass(frozen=True, eq=False)
class DensityEstimate:
    """The share of secrets in every cell, with an interval for each.

    `lower` and `upper` are the interval as it covers: for an empty cell it begins below 0, and `clipped` cuts that off
    (which keeps every guarantee of coverage). Each interval holds the truth with a probability of `confidence`; all of
    them at once only where `simultaneous` is set. `target` says the truth of what: "table", the secrets behind these
    very reports, nothing assumed about them, or "population", from which they were drawn independently. `condition` is
    how much the distribution of reports blurs at worst, and `effective` how many secrets without noise would say as
    much. Where secrets may lie anywhere, `elsewhere` is the share of those outside all cells.
    """

    cells: FiniteSpace
    masses: Floats
    lower: Floats
    upper: Floats
    errors: Floats
    reports: int
    confidence: float
    method: RequestedMethod
    target: Target
    simultaneous: bool
    condition: float | None
    notes: tuple[str, ...]
    intervals: Intervals
    elsewhere: Mass | None
    _evidence: Evidence = field(repr=False)
    _decoder: Decoder = field(repr=False)
    _found: MassBounds = field(repr=False)

    def __repr__(self) -> str:
        level = f"{self.confidence:.0%} intervals{' of all cells at once' if self.simultaneous else ''}"
        return f"DensityEstimate({len(self.cells)} cells, {self.reports:,} reports, {self.method}, {level})"

    def _repr_html_(self) -> str:
        rows = [("cells", f"{len(self.cells):,}"), ("reports", f"{self.reports:,}"), ("method", self.method)]
        return card("DensityEstimate", [*rows, *((f"note {i + 1}", note) for i, note in enumerate(self.notes))])

    @property
    def effective(self) -> float:
        """How many secrets reported without noise would give errors of this size, over all cells together."""
        return effective_size(self._evidence, self.masses, self.errors)

    @property
    def misfits(self) -> int:
        """How many cells lie below 0 by more than a probability of one in a million allows for all of them together."""
        return self._found.above.below_zero(sentences.error_probability(1.0 - 1e-6, len(self.masses)))

    @property
    def clipped(self) -> Floats:
        """Masses, lower and upper ends cut to [0, 1], one row a cell."""
        return np.clip(np.stack([self.masses, self.lower, self.upper], axis=1), 0.0, 1.0)

    def counts(self, total: float | None = None) -> Floats:
        """Return estimate, lower and upper end as numbers of `total` secrets (those of the table), one row a cell."""
        size = float(self.reports) if total is None else float(total)
        return np.stack([self.masses, self.lower, self.upper], axis=1) * size

    def region(self, codes: ArrayLike) -> Mass:
        """Return the mass of a union of cells; its interval takes into account how the errors of cells go together."""
        return self.regions({"": codes})[""]

    def regions(self, groups: Mapping[str, ArrayLike]) -> dict[str, Mass]:
        """Return the mass of several unions of cells, each with an interval of its own."""
        n = len(self.cells)
        sums = np.zeros((n, len(groups)))
        for column, codes in enumerate(groups.values()):
            sums[:, column] = region_sum(codes, n, "codes")
        probability = sentences.error_probability(self.confidence, len(groups) if self.simultaneous else 1)
        found = self._decoder.measure(sums, sentences.quantile(probability))
        lower, upper = found.interval(probability)
        if self.intervals == "bootstrap":
            assert isinstance(self._decoder, DenseDecoder)
            lower, upper = bootstrap_ends(self._decoder, sums, self.confidence, simultaneous=self.simultaneous)
        values = found.values if self.method == "linear" else np.clip(self.masses @ sums, lower, upper)
        together = zip(values, lower, upper, found.errors, strict=True)
        return {name: Mass(*(float(v) for v in row)) for name, row in zip(groups, together, strict=True)}


def estimate_density(
    reports: Any,
    mechanism: Mechanism | Sequence[Mechanism],
    *,
    cells: FiniteSpace | None = None,
    within: Within | None = None,
    method: RequestedMethod | None = None,
    target: Target = "table",
    confidence: float = 0.95,
    simultaneous: bool = False,
    intervals: Intervals = "analytic",
    steps: int | None = None,
    progress: Progress | None = None,
) -> DensityEstimate:
    """Estimate the share of secrets in every cell from a table of reports and the public distribution of its mechanism.

    Post-processing: no budget is spent, and no secret is needed.

    Args:
        reports: One report a row: codes, coordinates or words as tables hold them. With several mechanisms a list of
            tables, one each; who was given which must not depend on the secret.
        mechanism: What the reports were drawn from, or several.
        cells: For mechanisms that take secrets anywhere: a public grid (`mdp.grid`); secrets outside it are counted as
            `elsewhere`, or must not be many where something is assumed about places inside cells.
        within: Where in its cell of a regular grid a secret lies: "anywhere", of which nothing is assumed (bounded
            intervals); "cell", all over it with equal probability (the default with "linear"); "point", at the
            point.
        method: "linear", weighted least squares: unbiased whatever the secrets are, masses may be below 0. "em",
            iterative Bayes: the likeliest masses, never below 0 and biased where cells are empty; its intervals are
            those of the other two. "bounded", where the distribution has no useful inverse and where nothing is assumed
            about
            places inside cells: intervals that enclose whatever the secrets are, and the likeliest masses. Unless
            given, "linear", or "bounded" where most intervals would be wider than from 0 to 1.
        target: "table", the secrets behind these reports, nothing assumed about them; "population", from which secrets
            were drawn independently: wider by the error of that drawing.
        confidence: The probability with which each interval holds the truth.
        simultaneous: Make intervals that hold for all cells at once with that probability (Sidak: any correlation).
        intervals: "analytic", from three moments of the estimate; or "bootstrap", from 999 tables drawn anew of the
            likeliest masses.
        steps: So many steps of iterative Bayes at most: many give the likeliest masses, few smooth ones. Unless given
            they end where the masses fit the reports as well as the true ones would on average.
        progress: Called with the share of the work that is done.
    """
    check_request(target, confidence)
    if method is not None and method not in get_args(RequestedMethod):
        raise InvalidInput(f"`method` must be linear, bounded or em, got {method!r}.")
    if intervals not in get_args(Intervals):
        raise InvalidInput(f"`intervals` must be 'analytic' or 'bootstrap', got {intervals!r}.")
    several = isinstance(mechanism, Sequence)
    mechanisms = list(mechanism) if isinstance(mechanism, Sequence) else [mechanism]
    tables = list(reports) if several else [reports]
    if not mechanisms or len(tables) != len(mechanisms):
        raise InvalidInput(f"`reports` must be {len(mechanisms)} tables, one for each mechanism, got {len(tables)}.")
    sources = report_models_of(mechanisms, cells, within=default_within(within, method))
    counts = [source.count_reports(table) for source, table in zip(sources, tables, strict=True)]
    how = EstimateRequest(method, target, confidence, simultaneous, steps, intervals)
    return decode_counts(sources, counts, how, progress)


def region_sum(codes: ArrayLike, count: int, name: str) -> Floats:
    """Return 1 for the cells of a region and 0 for the others of `count`."""
    found = np.zeros(count)
    found[as_codes(codes, count, name)] = 1.0
    return found


def check_request(target: str, confidence: float) -> None:
    """Refuse a target or a confidence that no estimate has."""
    if not 0.5 <= confidence < 1.0:
        raise InvalidInput(f"`confidence` must be at least 0.5 and below 1, such as 0.95, got {confidence!r}.")
    if target not in get_args(Target):
        raise InvalidInput(f"`target` must be 'table' or 'population', got {target!r}.")


@dataclass(frozen=True)
class EstimateRequest:
    """How an estimate is made; see `estimate_density`."""

    method: RequestedMethod | None = None
    target: Target = "table"
    confidence: float = 0.95
    simultaneous: bool = False
    steps: int | None = None
    intervals: Intervals = "analytic"


def decode_counts(
    sources: Sequence[ReportModel], counts: Sequence[Floats], how: EstimateRequest, progress: Progress | None = None
) -> DensityEstimate:
    """Return the estimate from reports that are counted already."""
    cells = sources[0].cells
    if any(len(source.cells) != len(cells) or not _same(source.cells, cells) for source in sources[1:]):
        raise InvalidInput("several mechanisms in one table must have the same secrets in the same order.")
    operators = [source.operator for source in sources]
    tallies = [source.tally(count) for source, count in zip(sources, counts, strict=True)]
    check_inside(sources, counts)
    check_reports(tallies, operators)
    operator, tally = stack_operators(operators, [int(count.sum()) for count in counts]), np.concatenate(tallies)
    total = float(tally.sum())
    first_half, second_half = (part_progress(progress, start, 0.5) for start in (0.0, 0.5))
    likely = _likely_masses(operator, tally, how, first_half)
    ends = np.cumsum([0, *(len(count) for count in tallies)]).tolist()
    parts = tuple(slice(first, last) for first, last in pairwise(ends))
    evidence, nodes = Evidence(operator, tally, likely.masses, likely.reports, how.target, parts), sources[0].nodes
    cell_masses = likely.masses if nodes is None else nodes.cell_masses(likely.masses[: len(nodes.places)])
    probability = sentences.error_probability(how.confidence, len(cells) if how.simultaneous else 1)
    decoder: Decoder
    outside: Mass | None = None
    z, windows = sentences.quantile(probability), [source.windows for source in sources if source.windows is not None]
    if windows:
        anywhere = WindowDecoder(windows, counts, boxes_of(cells), second_half)
        decoder, found = anywhere, anywhere.measure(None, z)
        rest = anywhere.elsewhere(sentences.quantile(sentences.error_probability(how.confidence)))
        outside = mass_of(rest, how.confidence, 1.0 - float(cell_masses.sum()))
    else:
        decoder, found = _measure(evidence, how, nodes, z, second_half)
    lower, upper = _ends(decoder, found, how, probability)
    name: RequestedMethod = "em" if how.method == "em" else decoder.method
    if name == "linear":
        masses = found.values
    else:
        masses = np.clip(cell_masses, lower, upper) if name == "bounded" else cell_masses
    assumed = [source.assumed for source in sources if source.assumed][:1]
    notes = (*_notes(evidence, decoder, found, how, likely), *assumed)
    if outside is not None:
        share = (outside.mass, outside.lower, outside.upper)
        wider_grid = next((text for source in sources if source.outside and (text := source.outside.wider_grid())), "")
        notes = (*notes, sentences.elsewhere(share, how.confidence, wider_grid))
    return DensityEstimate(
        cells, frozen(masses), frozen(lower), frozen(upper), frozen(found.errors), int(total), how.confidence, name,
        how.target, how.simultaneous, decoder.condition, notes, how.intervals, outside, evidence, decoder, found,
    )  # fmt: skip


def mass_of(found: MassBounds, confidence: float, likely: float) -> Mass:
    """Return a mass with its interval, the likeliest one if that lies in it."""
    lower, upper = (float(end[0]) for end in found.interval(sentences.error_probability(confidence)))
    return Mass(min(max(likely, lower), upper), lower, upper, float(found.errors[0]))


def _likely_masses(
    operator: ReportOperator, tally: Floats, how: EstimateRequest, progress: Progress | None
) -> LikelyMasses:
    """Return the masses of iterative Bayes: rough ones for errors alone, else as many steps as were asked for."""
    total = float(tally.sum())
    if how.method != "em":
        left = max(ROUGH, LITTLE / total)
        return iterative_bayes(operator, tally / total, steps=ROUGH_STEPS, tolerance=left, progress=progress)
    limit, fitting = (STEPS, total) if how.steps is None else (how.steps, None)
    return iterative_bayes(
        operator, tally / total, steps=limit, tolerance=LITTLE / total, fitting=fitting, progress=progress
    )


def _measure(
    evidence: Evidence, how: EstimateRequest, nodes: Nodes | None, z: float, progress: Progress | None
) -> tuple[Decoder, MassBounds]:
    """Return the decoder that was asked for; where nobody asked, the unbiased one if its intervals say anything."""
    method: Method = "bounded" if nodes is not None or how.method == "bounded" else "linear"
    if method == "linear" and how.method != "linear" and isinstance(evidence.operator, DenseOperator):
        method = "bounded"
        with suppress(InvalidInput):  # the distribution has no inverse
            decoder = decoder_for(evidence, "linear")
            found = decoder.measure(None, z)
            if np.median(z * found.errors) <= 0.5:
                return decoder, found
    decoder = decoder_for(evidence, method, nodes, progress)
    return decoder, decoder.measure(None, z)


def _ends(decoder: Decoder, found: MassBounds, how: EstimateRequest, probability: float) -> tuple[Floats, Floats]:
    """Return the ends of the intervals of all cells."""
    if how.intervals == "bootstrap":
        if not isinstance(decoder, DenseDecoder):
            raise InvalidInput(
                "bootstrap intervals are made for unbiased estimates from a table of all probabilities: of whole "
                "cities, and where intervals must enclose, take analytic ones."
            )
        return bootstrap_ends(decoder, None, how.confidence, simultaneous=how.simultaneous)
    if how.simultaneous and isinstance(decoder, IterativeDecoder):
        reach = decoder.reach(how.confidence) * found.errors
        return found.values - reach, found.values + reach
    return found.interval(probability)


def default_within(within: Within | None, method: RequestedMethod | None) -> Within:
    """Return what is assumed about places inside cells unless somebody says: nothing, which no inverse could hold."""
    if within == "anywhere" and method == "linear":
        raise InvalidInput(
            "method='linear' estimates cells in which secrets lie all over with equal probability, or at points: say "
            "within='cell' or within='point', or drop `method`."
        )
    return within if within is not None else "cell" if method == "linear" else "anywhere"


def effective_size(evidence: Evidence, masses: Floats, errors: Floats) -> float:
    """Return N B / (B + N V), B = sum p (1 - p), V the summed variance that noise alone causes."""
    masses = np.clip(masses, 0.0, 1.0)
    drawn = float((masses * (1.0 - masses)).sum())
    variance = float((errors**2).sum())
    noise = variance if evidence.target == "table" else max(variance - drawn / evidence.total, 0.0)
    return evidence.total * drawn / (drawn + evidence.total * noise) if drawn > 0 else evidence.total


def _notes(
    evidence: Evidence, decoder: Decoder, found: MassBounds, how: EstimateRequest, likely: LikelyMasses
) -> tuple[str, ...]:
    effective = effective_size(evidence, found.values, found.errors)
    notes = [sentences.effective_size_note(int(evidence.total), effective, decoder.condition)]
    if strange := found.above.below_zero(sentences.error_probability(0.999, len(found.values))):
        notes.append(sentences.misfit_note(strange))
    if decoder.method == "bounded":
        notes.append(sentences.BOUNDED)
    if rare := int((np.abs(found.below.skewness) > sentences.SKEWED).sum()):
        notes.append(sentences.skewness_note(rare, len(found.values)))
    if how.method == "em" and (likely.fits or likely.gap > LITTLE / evidence.total):
        notes.append(sentences.iteration_note(likely.steps, likely.gap * evidence.total, fits=likely.fits))
    return tuple(notes)


def _same(one: FiniteSpace, other: FiniteSpace) -> bool:
    return one is other or np.array_equal(one.coordinates, other.coordinates)
