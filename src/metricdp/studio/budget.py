"""The panel Budget: who spent what, what is left, what a day would cost. Persons appear as hashes of the ledger."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from metricdp.errors import InvalidInput
from metricdp.ledger.amounts import account_for, in_words
from metricdp.ledger.periods import time_text
from metricdp.ledger.planning import plan_releases
from metricdp.service.state import ServiceState
from metricdp.studio.web import answer, number, question

MOST_SHOWN = 500
SHORT = 12  # digits of a hash that tell persons apart on a page


class BudgetPanel:
    """The endpoints of the panel; `lasting` says whether the ledger outlives Studio."""

    def __init__(self, state: Callable[[], ServiceState], *, lasting: bool) -> None:
        self._state, self._lasting = state, lasting

    def routes(self) -> list[Route]:
        """Return the endpoints."""
        return [
            Route("/studio/budget", self.show_ledger),
            Route("/studio/budget/person", self.person, methods=["POST"]),
            Route("/studio/budget/plan", self.plan, methods=["POST"]),
        ]

    async def show_ledger(self, request: Request) -> Response:
        """Show the ledger: the policy, the accounts, and whether it verifies."""
        return answer(await run_in_threadpool(self._ledger_values))

    async def person(self, request: Request) -> Response:
        """Show the budget of one person."""
        name = (await question(request)).get("person")
        if not isinstance(name, str) or not name.strip() or len(name) > 200:
            raise InvalidInput("`person` must be a name of at most 200 characters.")
        return answer(await run_in_threadpool(self._person, name.strip()))

    async def plan(self, request: Request) -> Response:
        """Say what becomes of releases at a steady pace."""
        asked = await question(request)
        epsilon, minutes = number(asked, "epsilon", 1e-6, 1e6), number(asked, "minutes", 0.1, 525_600)

        def lines() -> list[str]:
            account = account_for("haversine/km")
            policy = self._state().ledger.policy()
            return plan_releases(policy, account.unit, account.charge(epsilon), every=60.0 * minutes).lines()

        return answer({"lines": await run_in_threadpool(lines)})

    def _ledger_values(self) -> dict[str, Any]:
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
            "mechanisms": [one.described for one in self._state().registry],
        }

    def _person(self, name: str) -> dict[str, Any]:
        found = self._state().ledger.budget(name)
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
