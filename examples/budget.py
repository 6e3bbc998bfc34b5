"""Release the place of one person again and again, charged exactly once each, until the day's budget is spent."""

import json

import metricdp as mdp
from metricdp.errors import BudgetExceeded
from metricdp.ledger import Ledger

mechanism = mdp.laplace(mdp.Haversine(), 10.0)  # epsilon 10 per kilometre
guarantee = mechanism.guarantee
here = [41.1496, -8.6110]


def draw() -> bytes:
    """A fresh report, as bytes: this is what is stored and handed out."""
    return json.dumps(mechanism.sample([here])[0].tolist()).encode()


with Ledger.open("budget.db", policy="40/km per day, 200/km ever") as ledger:
    for request in ("breakfast", "breakfast", "lunch", "tea", "dinner", "midnight"):
        try:
            receipt = ledger.release(
                "anna",
                request,
                key="app",
                metric=guarantee.metric,
                epsilon=guarantee.epsilon,
                slack=guarantee.slack,
                draw=draw,
            )
            again = "the same again, for nothing" if receipt.repeated else f"{receipt.charged / 1e6:g}/km charged"
            print(f"{request}: {again}, {receipt.left / 1e6:g}/km left")
        except BudgetExceeded as refusal:
            print(f"{request}: {refusal}")
    print("The ledger is unchanged." if ledger.verify().holds else "The ledger was changed.")
