"""A policy graph has an account of its own: a hop in one graph is no hop in another."""

from __future__ import annotations

import numpy as np
import pytest

import metricdp as mdp
from books import Clock
from metricdp.errors import BudgetExceeded
from metricdp.ledger import Ledger, account_for

PLACES = mdp.grid((2, 3))
STEPS = mdp.policy_graphs.grid_neighbours((2, 3))
ROWS = mdp.policy_graphs.areas([0, 0, 0, 1, 1, 1])


def named(space: mdp.FiniteSpace) -> str:
    return account_for(space.metric).name


def test_the_name_of_an_account_is_that_of_the_edges_in_any_order() -> None:
    steps = named(mdp.policy(PLACES, STEPS))
    assert steps.startswith("policy.")
    assert steps.endswith("/hop")
    assert named(mdp.policy(PLACES, STEPS[::-1, ::-1])) == steps
    assert account_for(steps).name == steps  # as people write it
    others = [
        mdp.policy(PLACES, STEPS[1:]),
        mdp.policy(PLACES, mdp.policy_graphs.grid_neighbours((3, 2))),
        mdp.policy(PLACES, ROWS, parts="disclose"),
        mdp.policy(PLACES, ROWS, parts="join"),
        mdp.policy(PLACES, STEPS[:2], isolated="disclose"),
        mdp.policy(mdp.grid((2, 4)), mdp.policy_graphs.grid_neighbours((2, 4))),
    ]
    assert len({steps, *map(named, others)}) == 1 + len(others)
    inside = mdp.policy(PLACES, ROWS, lengths="distance", parts="disclose")
    assert named(inside) != named(mdp.policy(PLACES, ROWS, lengths=np.full(len(ROWS), 2.0), parts="disclose"))
    # roads share one account, as before: their distances are lengths
    assert named(mdp.road_network("porto", nodes=10)) == named(mdp.road_network("porto", nodes=12)) == "shortestpath/km"


def test_what_is_spent_under_one_policy_is_not_spent_under_another(tmp_path) -> None:
    steps, rows = mdp.policy(PLACES, STEPS).metric, mdp.policy(PLACES, ROWS, parts="disclose").metric
    with Ledger.open(tmp_path / "budget.db", policy="2/hop ever", clock=Clock()) as ledger:
        for request, metric in enumerate((steps, steps, rows)):
            ledger.release("anna", str(request), key="app", metric=metric, epsilon=1.0, draw=lambda: b"")
        with pytest.raises(BudgetExceeded, match="2/hop ever is spent"):
            ledger.release("anna", "3", key="app", metric=steps, epsilon=1.0, draw=lambda: b"")
        found = {one.metric: one.spent for one in ledger.budget("anna").accounts}
    assert found == {account_for(steps).name: 2_000_000, account_for(rows).name: 1_000_000}
