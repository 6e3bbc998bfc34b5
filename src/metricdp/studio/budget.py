"""The panel Budget: who spent what, what is left, what a day would cost. Persons appear as hashes of the ledger."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from starlette.routing import Route

from metricdp.errors import InvalidInput
from metricdp.ledger.amounts import account_for, in_words
from metricdp.ledger.periods import time_text
from metricdp.ledger.planning import plan_releases
from metricdp.service.state import ServiceState
from metricdp.studio.web import get, number, post

MOST_SHOWN = 500
SHORT = 12  # digits of a hash that tell persons apart on a page


class BudgetPanel:
    """The endpoints of the panel; `lasting` says whether the ledger outlives Studio."""

    def __init__(self, state: Callable[[], ServiceState], *, lasting: bool) -> None:
        self._state, self._lasting = state, lasting

    def routes(self) -> list[Route]:
        """Return the endpoints."""
        return [
            get("/studio/budget", self.show_ledger),
            post("/studio/budget/person", self.person),
            post("/studio/budget/plan", self.plan),
        ]

    def plan(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Say what becomes of releases at a steady pace."""
        epsilon, minutes = number(asked, "epsilon", 1e-6, 1e6), number(asked, "minutes", 0.1, 525_600)
        account, policy = account_for("haversine/km"), self._state().ledger.policy()
        plan = plan_releases(policy, account.unit, account.charge(epsilon), every=60.0 * minutes)
        return {"lines": plan.lines()}

    def show_ledger(self) -> dict[str, Any]:
        """Show the ledger: the policy, the accounts, and whether it verifies."""
        ledger = self._state().ledger
        rows = (row for row in ledger.export() if row["table"] == "accounts" and not row["purpose"])
        accounts = [
            {
                "person": str(row["person"])[:SHORT],
                "metric": row["metric"],
                "spent": in_words(row["ever"], str(row["metric"]).partition("/")[2]),
                "today": in_words(row["day"], str(row["metric"]).partition("/")[2]),
                "last": time_text(row["time"]),
            }
            for row in islice(rows, MOST_SHOWN)
        ]
        verdict = ledger.verify()
        return {
            "policy": str(ledger.policy()),
            "lasting": self._lasting,
            "accounts": accounts,
            "verified": verdict.holds,
            "faults": list(verdict.faults),
            "entries": verdict.entries,
            "refusals": self._state().counters.refusals("budget"),
            "mechanisms": [one.description for one in self._state().registry],
        }

    def person(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Show the budget of one person."""
        name = asked.get("person")
        if not isinstance(name, str) or not name.strip() or len(name) > 200:
            raise InvalidInput("`person` must be a name of at most 200 characters.")
        found = self._state().ledger.budget(name.strip())
        accounts = [
            {
                "metric": account.metric,
                "limits": [
                    {
                        "limit": str(one.limit),
                        "spent": in_words(one.spent, one.limit.unit),
                        "left": in_words(one.left, one.limit.unit),
                        "share": one.spent / (one.spent + one.left) if one.spent + one.left else 0.0,
                        "refreshes": None if one.refreshes is None else time_text(one.refreshes),
                    }
                    for one in account.balances
                ],
            }
            for account in found.accounts
        ]
        return {"closed": found.closed, "accounts": accounts}
