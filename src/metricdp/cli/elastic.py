"""An elastic metric on the command line: a public mass of every place, and how much of it a level holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Floats
from metricdp.cli.counts import Counted, counts_from
from metricdp.cli.policies import Ground
from metricdp.cli.terminal import note
from metricdp.errors import InvalidInput
from metricdp.spaces import FiniteSpace

COLUMN = "column"
SHAPE = "such as --requirement 200,4000: 200 within level 1, growing with the square of the level, up to 4000"


@dataclass(frozen=True)
class Elastic:
    """How far a place is hidden, where that is not a distance: as far as it takes until enough is inside.

    Attributes:
        elastic: Count distances in levels, each as far as it takes until enough public mass is inside, so that epsilon
            is per level: one (every place counts one), column:people (that column of the points), or a table of counts
            like that of --prior. Losses stay in the distances of before.
        elastic_column: Which column of that table holds the mass, where there are several.
        requirement: With elastic: how much mass lies within level 1, growing with the square of the level, and where it
            ends, such as 200,4000. Above 4,096 places it must end.
    """

    elastic: str | None = None
    elastic_column: str | None = None
    requirement: str | None = None

    def check(self) -> None:
        """Refuse what says more about an elastic metric that was not asked for, and one without a requirement."""
        if self.elastic is None:
            for option in ("elastic_column", "requirement"):
                if getattr(self, option) is not None:
                    shown = option.replace("_", "-")
                    raise InvalidInput(f"--{shown} says more about --elastic, which is not given.")
        elif self.requirement is None:
            raise InvalidInput(f"--elastic needs --requirement, how much of that mass a level holds, {SHAPE}.")

    @property
    def column(self) -> str | None:
        """The column of the points that holds the mass."""
        word, colon, rest = (self.elastic or "").partition(":")
        return rest.strip() if word == COLUMN and colon else None

    @property
    def besides(self) -> tuple[str, ...]:
        """The columns of the points that are no coordinates."""
        return () if self.column is None else (self.column,)

    def laid_over(self, ground: Ground) -> FiniteSpace:
        """Return the places in levels; what lies within the first ones is said."""
        import metricdp

        first, most = self._asked()
        mass, space = self._mass(ground), ground.space
        total = float(mass.sum())

        def requirement(level: float) -> float:
            return min(first * level * level, most)

        if most > total:
            note(f"all places together have a mass of {total:,.6g}: more than that is not asked for.")
        made = metricdp.elastic(space, mass=mass, requirement=requirement)
        ends = f", up to {most:,.6g}" if np.isfinite(most) else ""
        note(
            f"level 1 holds a mass of at least {min(first, total):,.6g}, level 2 {min(requirement(2.0), total):,.6g}, "
            f"growing with the square of the level{ends}; the mass is public."
        )
        return made

    def _asked(self) -> tuple[float, float]:
        try:
            numbers = [float(part) for part in str(self.requirement).split(",")]
        except ValueError:
            numbers = []
        if len(numbers) not in (1, 2) or not all(0 < number < np.inf for number in numbers):
            raise InvalidInput(f"--requirement must be one or two numbers above 0, {SHAPE}; got {self.requirement!r}.")
        first, most = numbers[0], numbers[1] if len(numbers) == 2 else np.inf
        if most < first:
            raise InvalidInput(f"--requirement {self.requirement} ends at {most:g}, below the {first:g} of level 1.")
        return first, most

    def _mass(self, ground: Ground) -> Floats:
        if self.elastic == "one":
            if self.elastic_column is not None:
                raise InvalidInput("--elastic-column names a column of a table, and with --elastic one there is none.")
            rows = ground.rows
            return np.ones(len(ground.space)) if rows is None else np.bincount(rows).astype(np.float64)
        if self.column is None:
            what = Counted("elastic", "the mass of a place", self.elastic_column)
            return counts_from(str(self.elastic), ground.space, ground.rows, what)
        return _column_of(ground, self.column)


NOT_ELASTIC = Elastic()


def _column_of(ground: Ground, column: str) -> Floats:
    """Return the numbers in a column of the points; rows of one place add up."""
    from metricdp.cli.reading import numbers_of
    from metricdp.tables import there_are

    if ground.points is None:
        raise InvalidInput("--elastic column:NAME names a column of the points: it belongs to --points.")
    table, path = ground.table(), ground.points
    if column not in table.schema.names:
        raise InvalidInput(f"{path!r}: no column {column!r}. {there_are(table.schema.names)}")
    mass = numbers_of(table.column(column).combine_chunks(), column, path)
    bad = np.flatnonzero(~(np.isfinite(mass) & (mass >= 0)))
    if len(bad):
        raise InvalidInput(f"{path!r}: row {bad[0]} (the first is row 0) has no {column} of at least 0.")
    if ground.rows is None:
        return mass
    return np.asarray(np.bincount(ground.rows, weights=mass, minlength=len(ground.space)), dtype=np.float64)
