"""Tables that are charged to a ledger: everybody for their own rows, before anything of the table can be seen.

The books are asked twice. Before anything is drawn they say whether all rows fit (or how many of everybody's do), and
nothing is charged. When the whole output is ready and not yet in its place, everybody is charged in one transaction;
only then does the output appear. A run that ends before that cost nothing; one that ends in between cost, and released
nothing.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from metricdp.errors import InvalidInput
from metricdp.tables.spending import Spending

if TYPE_CHECKING:
    from metricdp.ledger import BatchReceipt, Ledger  # its database is imported where books are used

Refused = Literal["fail", "report"]
WHOSE = "the ledger charges everybody for their own rows: name the column that says whose row it is with --id."


@dataclass(frozen=True)
class Charging:
    """Which books a table is charged to, and what becomes of rows that do not fit.

    Attributes:
        ledger: The books.
        key: Who releases, as in `Ledger.release`.
        purpose: One of the purposes of the policy, where it names any.
        refused: "fail" charges all rows or none; "report" leaves out the last rows of everybody whose budget does not
            hold them all, and says how many.
    """

    ledger: Ledger
    key: str = "perturb"
    purpose: str | None = None
    refused: Refused = "fail"

    def __post_init__(self) -> None:
        if self.refused not in ("fail", "report"):
            raise InvalidInput(f"`refused` must be 'fail' or 'report', got {self.refused!r}.")

    def granted(self, spending: Spending) -> Spending:
        """Return what everybody may spend of it now; raise where that is less and not welcome. Nobody is charged."""
        rows, costs = self._rows(spending)
        granted = self.ledger.granted(rows, **costs, partial=self.refused == "report")
        names = {person: granted.get(_name(person), 0) for person in spending.counts}
        short = any(names[person] < spending.rows(person) for person in names)
        return replace(spending, granted=names) if short else spending

    def charge(self, spending: Spending, request: str | None = None) -> tuple[str, ...]:
        """Charge everybody for the rows of the output, all or nobody, once for a request; say what was charged."""
        done = self._batch(spending, request or secrets.token_hex(16))
        if done.repeated:  # a job that goes on; rows that its files have got since are charged too
            more = {person: spending.rows(person) - done.granted.get(_name(person), 0) for person in spending.counts}
            if any(count > 0 for count in more.values()):
                extra = replace(spending, granted={person: max(0, count) for person, count in more.items()})
                mark = hashlib.sha256(repr(sorted((str(who), n) for who, n in more.items())).encode()).hexdigest()
                self._batch(extra, f"{request} {mark}")
        return _told(spending, repeated=done.repeated)

    def _batch(self, spending: Spending, request: str) -> BatchReceipt:
        rows, costs = self._rows(spending)
        return self.ledger.release_batch(rows, request, key=self.key, draw=lambda granted: b"", **costs)

    def _rows(self, spending: Spending) -> tuple[dict[Any, int], dict[str, Any]]:
        """Return how many rows everybody has in the output, and what the books have to know of them."""
        rows: dict[Any, int] = {}
        epsilons, slacks = {}, {}
        for person in spending.counts:
            count, epsilon, slack = spending.cost(person)
            if count:
                name = _name(person)
                rows[name], epsilons[name], slacks[name] = count, epsilon, slack
        if len(rows) < sum(1 for person in spending.counts if spending.rows(person)):
            raise InvalidInput(f"two persons in {spending.asked.column!r} have one name: 7 and 7.0 are the same here.")
        metric = spending.levels[0].task.guarantee.metric
        return rows, {"metric": metric, "epsilon": epsilons, "slack": slacks, "purpose": self.purpose}


@contextmanager
def charged(charging: Charging | None, spending: Spending | None) -> Iterator[list[str]]:
    """Charge for a table when the block ends well; what was charged is told in the list."""
    told: list[str] = []
    yield told
    if charging is not None and spending is not None:
        told.extend(charging.charge(spending))


def request_of(key: bytes) -> str:
    """Return the request id of a job: the same as long as its key is, and nothing can be told from it about the key."""
    return hashlib.blake2b(b"ledger", key=key[:64], digest_size=16).hexdigest()


def _name(person: Any) -> str | bytes | int:
    """Return a person as the books name them: what reads the same is the same person."""
    if isinstance(person, str | bytes | int) and not isinstance(person, bool):
        return person
    if isinstance(person, float) and person.is_integer():
        return int(person)
    return str(person)


def _told(spending: Spending, *, repeated: bool) -> tuple[str, ...]:
    persons = sum(1 for person in spending.counts if spending.rows(person))
    lines = [f"{persons:,} persons were charged for {spending.written:,} rows."]
    if repeated:
        lines = ["This job was charged before: it went on and cost nothing more."]
    if spending.refused:
        short = sum(1 for person in spending.counts if spending.rows(person) < spending.asked_rows(person))
        lines.append(
            f"{spending.refused:,} rows were refused and left out, the last ones of {short:,} persons whose budget "
            "does not hold them all."
        )
    return tuple(lines)
