"""Options about the ledger that a table is charged to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from metricdp.errors import InvalidInput

if TYPE_CHECKING:
    from metricdp.mechanisms import AnyGuarantee
    from metricdp.tables.charging import Charging


@dataclass(frozen=True)
class Charged:
    """Which ledger everybody is charged in for their rows.

    Attributes:
        ledger: The books, budget.db or the address of a server (`metricdp budget`); everybody is charged for their own
            rows (--id) before the output appears. Books are begun by metricdp budget begin, or with --budget as the
            total by a command that has it.
        key_file: The key of books on a server.
        purpose: One of the purposes of the policy, where it names any.
        refused: What becomes of rows that a budget does not hold: fail refuses the whole table, report leaves the last
            ones of those persons out and says how many.
    """

    ledger: str | None = None
    key_file: str | None = None
    purpose: str | None = None
    refused: Literal["fail", "report"] = "fail"

    @contextmanager
    def opened(self, budget: str | None = None, promise: AnyGuarantee | None = None) -> Iterator[Charging | None]:
        """Open the books, or begin them with a budget as the total of every person, in the unit of the promise."""
        if self.ledger is None:
            if self.purpose is not None or self.key_file is not None or self.refused != "fail":
                raise InvalidInput("--purpose, --key-file and --refused belong to --ledger: name the books.")
            yield None
            return
        from metricdp.ledger import Ledger
        from metricdp.tables.charging import Charging, first_policy
        from metricdp.tables.persons import parse_amount

        begins = "://" not in self.ledger and not Path(self.ledger).exists()
        policy = None
        if begins and budget is not None and promise is not None:
            policy = first_policy(parse_amount(budget, promise), promise)
        with Ledger.open(self.ledger, policy=policy, key_file=self.key_file) as ledger:
            yield Charging(ledger, purpose=self.purpose, refused=self.refused)


UNCHARGED = Charged()
