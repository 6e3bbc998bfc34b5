"""Options about the rows of one person: whose they are, what they may cost together, how many stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from metricdp.tables import Charging, People


@dataclass(frozen=True)
class Sharing:
    """Whose rows they are, and what all rows of one person may cost.

    Attributes:
        person: The column that says whose row it is; the total per person is stated.
        budget: What all rows of one person may cost together, such as 40/km; with --spread or --at-most.
        spread: even gives each row of a person the budget divided by how many there are, and at most --epsilon.
        at_most: Leave so many rows of every person in the table, chosen without looking at the secrets.
        which: Which rows stay with --at-most: the first of the table, or random ones.
    """

    person: Annotated[str | None, Parameter(name="--id")] = None
    budget: str | None = None
    spread: Literal["even"] | None = None
    at_most: int | None = None
    which: Literal["first", "random"] = "first"

    def people(self, ledger: Charging | None) -> People:
        """Return them as `mdp.perturb` takes them."""
        from metricdp.tables import People

        return People(self.person, self.budget, self.spread, self.at_most, self.which, ledger)


ONE_BY_ONE = Sharing()
