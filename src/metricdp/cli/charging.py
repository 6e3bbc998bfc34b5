"""Options about the ledger that a table is charged to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from metricdp.errors import InvalidInput
from metricdp.files import is_server

if TYPE_CHECKING:
    from metricdp.mechanisms import Mechanism
    from metricdp.tables import Charging


@dataclass(frozen=True)
class Charged:
    """Which ledger everybody is charged in for their rows.

    Attributes:
        ledger: The books, budget.db or the address of a server (`metricdp budget`); everybody is charged for their own
            rows (--id) before the output appears. Books are begun by metricdp budget begin, or with --budget as the
            total by a command that has it.
        key_file: The key of books on a server.
        head_file: The head file of books on a server, on this machine: it says how far they had come, so that an older
            dump is refused. Beside a file it is kept by itself.
        purpose: One of the purposes of the policy, where it names any.
        refused: What becomes of rows that a budget does not hold: fail refuses the whole table, report leaves the last
            ones of those persons out and says how many.
    """

    ledger: str | None = None
    key_file: str | None = None
    head_file: str | None = None
    purpose: str | None = None
    refused: Literal["fail", "report"] = "fail"

    @contextmanager
    def opened(self, budget: str | None = None, mechanism: Mechanism | None = None) -> Iterator[Charging | None]:
        """Open the books, or begin them with a budget as the total of every person, in the unit of its guarantee."""
        if self.ledger is None:
            named = (self.purpose, self.key_file, self.head_file)
            if named != (None, None, None) or self.refused != "fail":
                raise InvalidInput(
                    "--purpose, --key-file, --head-file and --refused belong to --ledger: name the books."
                )
            yield None
            return
        from metricdp.ledger import Ledger
        from metricdp.tables import Charging, first_policy, parse_amount

        begins = not is_server(self.ledger) and not Path(self.ledger).exists()
        policy = None
        if begins and budget is not None and mechanism is not None:
            promise = mechanism.guarantee
            policy = first_policy(parse_amount(budget, promise), promise, mechanism.inputs.dimension)
        with Ledger.open(self.ledger, policy=policy, key_file=self.key_file, head_file=self.head_file) as ledger:
            yield Charging(ledger, purpose=self.purpose, refused=self.refused)


UNCHARGED = Charged()
