"""What only some builders take, as the command knows it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from metricdp.cli import choices
from metricdp.wording import Objective


@dataclass(frozen=True)
class Options:
    """What only some builders take; None where it was not asked for.

    Attributes:
        prior: A table that says how likely every place is: shares or counts, one row a place in their order, or with
            the columns of the places (lat and lon), where rows count for the nearest one. It must be public.
        sensitivity: A table of regions in which less may be told: lat, lon, radius (in km) and scale, or tiles south,
            west, north, east and scale, or one scale a place. With scale 0.2 distances there count a fifth, so that
            epsilon does; the loss stays in the places' own distances. It must be public. Or a scale for every category,
            with --categories.
        categories: With sensitivity by category: the category of every place, column:kind of the points, or a table
            with the column category, one row a place in their order, or with lat and lon, where rows count for the
            nearest place; of several the most sensitive counts.
        reach: With sensitivity on more than 4,096 places without streets: the longest single step between two, such as
            250m; ways of such steps count in between.
        error: What every best guess of a place has to err by, whatever is reported, such as 100m, or a file with one
            such number a place: places are divided into public protection sets (PIVE made sound), and epsilon is per
            diameter of a set, such as 1/diameter. It is a bound for people who follow the prior.
        prior_column: Which column of the prior holds the numbers, where there are several.
        prior_within: How far a row of the prior may lie from its place, such as 300m; rows beyond are left out. As far
            as places lie apart unless given.
        loss: What a report costs: distance (the default), squared (its square), ground (the distance on the map, where
            --policy counts hops), time (to drive there, with --roads), or a file with a matrix, one row per place and
            one column per report.
        speed: With --loss time: km/h on streets that do not say how fast they are.
        gap: How far the loss may be from the proven optimum, as a share; for builders that search. On windows and with
            --anchors refine (see there) 0.05 unless said, elsewhere 0.001.
        seconds: When to stop searching: what was found by then is written, with the gap that it reached.
        objective: expected (the default of optimal and spanner) or worst (that of constopt); for these three.
        solver: auto, interior, first_order or gpu, among others; on windows first_order or gpu; for optimal.
        window: How far from every report rows are stored, such as 2.2km; for optimal, which solves on windows above
            4,096 points or where one is given, and chooses it so that what lies beyond hardly costs.
        reports: finer, for candidate reports between the places as well, on a grid at half its steps: they cost time
            and no privacy, and may lower the loss; for optimal, dictionary and spanner.
        stretch: How much longer paths may be than the distance; for spanner. The published one is --stretch 3
            --objective worst.
        nearest: How many nearest reports are free; for constopt, 10 unless said.
        weights: A CSV file with a header and one positive number a point; for weighted_exponential.
        base: What is remapped: the name of another builder (exponential unless said), or a mechanism file.
        parts: The mechanism files of a product, with commas between.
        matrix: A file with one's own matrix, one row per place and one column per report; for from_matrix.
        dimension: How many coordinates noise is added to; for laplace on l1, l2, linf, angular and hyperbolic.
        anchors: Cells along each axis, such as 7,7, or refine, which adds some until the gap is reached; on roads
            pieces of every street, or their longest length such as 200m; for interpolated, like the next four.
        rule: exact, direction or log (as published).
        split: How axes share the budget: even, grid, or one number per axis; searched unless given.
        budget: half (as published) or certified; for --rule log.
        box: The corners of the box, such as 0,0,10,10; the one around all points unless given.
        blocks: Into how many blocks the points are cut; for decomposed, like all that follows.
        partition: How they are cut: balanced, distances, records, neighbours or spectral.
        neighbours: The distance up to which pairs are constrained directly, such as 2km; its detours are charged.
        start: Where it begins: engine or kernels.
        executor: Who solves the blocks: threads, processes, ray, or ray:address.
        checkpoint: A file for the state of a long run.
        resume: Go on from the checkpoint, where there is one.
        set: name=value for an option that only this builder has, such as one of a plugin; may be repeated.
    """

    prior: str | None = None
    sensitivity: str | None = None
    categories: str | None = None
    reach: str | None = None
    error: str | None = None
    prior_column: str | None = None
    prior_within: str | None = None
    loss: str | None = None
    speed: float | None = None
    gap: float | None = None
    seconds: float | None = None
    objective: Objective | None = None
    solver: str | None = None
    window: str | None = None
    reports: Literal["finer"] | None = None
    stretch: float | None = None
    nearest: int | None = None
    weights: str | None = None
    base: str | None = None
    parts: str | None = None
    matrix: str | None = None
    dimension: int | None = None
    anchors: str | None = None
    rule: str | None = None
    split: str | None = None
    budget: str | None = None
    box: choices.Corners | None = None
    blocks: int | None = None
    partition: str | None = None
    neighbours: str | None = None
    start: str | None = None
    executor: str | None = None
    checkpoint: str | None = None
    resume: bool = False
    set: tuple[str, ...] = ()

    def given(self) -> dict[str, Any]:
        """Return what was asked for."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value for name, value in values.items() if value is not None and value is not False and value != ()
        }


NOTHING_ASKED = Options()
