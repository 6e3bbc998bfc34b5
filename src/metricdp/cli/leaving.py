"""Options about the columns besides those of the secret: which leave, and how."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from metricdp.errors import InvalidInput

if TYPE_CHECKING:
    from metricdp.tables import Disclosure


@dataclass(frozen=True)
class Leaving:
    """What leaves with a table besides the reports.

    Attributes:
        drop: Columns that do not leave, with commas between, such as ip,address; position.accuracy is one in a struct.
        coarsen: A column that gets coarser, such as t=1h or age=10; several with commas between or the option again.
        keep: Columns that you have looked at and that may stay, with commas between: they are not named again.
        strict: Refuse a table with columns that stay and may give the secret away, instead of naming them.
    """

    drop: tuple[str, ...] = ()
    coarsen: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    strict: bool = False

    def disclosure(self, *, force: bool = False, accuracy_column: list[str] | None = None) -> Disclosure:
        """Return them as `mdp.perturb` takes them."""
        from metricdp.tables import Disclosure

        steps: dict[str, str] = {}
        for item in _names(self.coarsen):
            name, mark, step = item.rpartition("=")
            if not mark or not name or not step:
                raise InvalidInput(f"--coarsen takes a column and a step, such as t=1h or age=10, got {item!r}.")
            if name in steps:
                raise InvalidInput(f"--coarsen names the column {name!r} twice.")
            steps[name] = step
        return Disclosure(_names(self.drop), steps, _names(self.keep), self.strict, force, accuracy_column)


ALL_STAY = Leaving()


def _names(texts: tuple[str, ...]) -> list[str]:
    """Return names with commas between; a comma of a name itself is written \\,."""
    parts = (part for text in texts for part in re.split(r"(?<!\\),", text))
    return [name.replace("\\,", ",").strip() for name in parts if name.strip()]
