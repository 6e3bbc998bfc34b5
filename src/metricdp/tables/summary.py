"""What was done to a file, what it promises and what it does not, in plain words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from metricdp.mechanisms import Guarantee
from metricdp.units import show_distance, show_epsilon

REVEALING = re.compile(
    r"time|date|timestamp|hour|minute|second|speed|veloc|heading|bearing|course|altitude|elevation|accuracy|dist|"
    r"geo|wkb|wkt|h3|s2|cell|addr|street|city|zip|postal|postcode|place|poi|plate|phone|mail|name|^ts?$|^x$|^y$|"
    r"^lat|^lon|^lng",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class People:
    """How often one person occurs: rows of one person add up."""

    column: str
    count: int
    most_rows: int
    without: int  # rows whose identifier is empty


@dataclass(frozen=True)
class Summary:
    """What `perturb_file` did and what it means."""

    source: str
    target: str
    columns: tuple[str, ...]
    kept_columns: tuple[str, ...]
    rows: int
    written: int
    bad: int
    on_error: str
    bad_rows: tuple[int, ...]  # the first of them
    guarantee: Guarantee
    snap: float
    people: People | None
    simulated: bool
    seconds: float

    @property
    def revealing_columns(self) -> tuple[str, ...]:
        """The kept columns whose names suggest that they say where or when somebody was, or who."""
        return tuple(name for name in self.kept_columns if REVEALING.search(name))

    @property
    def composed_epsilon(self) -> float | None:
        """The epsilon of the person with the most rows: rows add up. None where nobody was counted."""
        return None if self.people is None else self.people.most_rows * self.guarantee.epsilon

    @property
    def twice(self) -> float:
        """The epsilon of every row if this file is protected and released a second time."""
        return 2.0 * self.guarantee.epsilon

    def lines(self) -> list[str]:
        """Return the summary for people, one sentence a line."""
        unit, epsilon = self.guarantee.unit, self.guarantee.epsilon
        lines = [f"{self.written:,} rows written to {self.target} in {self.seconds:.1f} s; {self._protected()}."]
        if self.bad:
            done = "left out" if self.on_error == "drop" else "emptied"
            named = ", ".join(str(row) for row in self.bad_rows[:10]) + (", ..." if self.bad > 10 else "")
            lines.append(f"{self.bad:,} of {self.rows:,} rows held no legal secret and were {done}: rows {named}.")
        lines.append(f"Promise per row: {self.guarantee}.")
        if self.snap:
            lines.append(
                f"Snapping up to {show_distance(self.snap, unit)} put "
                f"2 x {epsilon:.6g} x {self.snap:g} = {2 * epsilon * self.snap:.4g} into the slack."
            )
        lines.extend(self._composition())
        lines.append(
            f"Protecting this file a second time and releasing both costs 2 x {epsilon:.6g} = "
            f"{show_epsilon(self.twice, unit)} for every row."
        )
        if self.kept_columns:
            lines.append(f"Kept as they were, not protected: {', '.join(self.kept_columns)}.")
        if self.revealing_columns:
            lines.append(
                f"Look at {', '.join(self.revealing_columns)}: such columns can give away where somebody was. "
                "Remove or coarsen them before release."
            )
        if self.simulated:
            lines.append("SIMULATION ONLY: drawn from a seed, whoever knows it can undo the noise. Do not release.")
        return lines

    def _protected(self) -> str:
        plural = "columns" if len(self.columns) > 1 else "column"
        return f"protected {plural}: {', '.join(self.columns)}"

    def _composition(self) -> list[str]:
        unit, epsilon = self.guarantee.unit, self.guarantee.epsilon
        if self.people is None:
            return ["Rows of one person add up; name the person's column with --id to have them counted."]
        people = self.people
        slack = f", plus a slack of {people.most_rows * self.guarantee.slack:.4g}" if self.guarantee.slack else ""
        lines = [
            f"{people.count:,} persons by {people.column}; the one with the most has {people.most_rows:,} rows. Rows "
            f"add up, so that person's whole history is protected at {people.most_rows:,} x {epsilon:.6g} = "
            f"{show_epsilon(people.most_rows * epsilon, unit)}{slack}."
        ]
        if people.without:
            lines.append(f"{people.without:,} rows have no {people.column} and are not part of that count.")
        return lines
