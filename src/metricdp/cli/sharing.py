"""Options about the rows of one person: whose they are, what they may cost together, how many stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from metricdp.errors import InvalidInput


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

    def options(self) -> dict[str, Any]:
        """Return them as `perturb_file` takes them."""
        return {
            "id_column": self.person,
            "budget": self.budget,
            "spread": self.spread,
            "at_most": self.at_most,
            "which": self.which,
        }

    def for_many(self) -> dict[str, Any]:
        """Return them as `perturb_files` takes them, which keeps no budget per person."""
        if self.budget is not None or self.spread is not None or self.at_most is not None:
            raise InvalidInput(
                "--budget, --spread and --at-most are for one file: a person may have rows in many, which are "
                "protected side by side. Write them to one file first."
            )
        return {"id_column": self.person}


ONE_BY_ONE = Sharing()
