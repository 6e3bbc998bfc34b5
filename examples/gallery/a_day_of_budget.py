"""A day with a budget: the ledger grants reports until 40/km are spent, and refuses the others."""

import matplotlib.pyplot as plt

import metricdp as mdp
from metricdp.errors import BudgetExceeded
from metricdp.ledger import Ledger

noise = mdp.laplace(mdp.Haversine(), 8.0)
metric, left = noise.guarantee.metric, [40.0]
with Ledger.open("day.db", policy="40/km per day") as ledger:
    for hour in range(8, 16):
        try:
            receipt = ledger.release(
                "anna", f"hour {hour}", key="app", metric=metric, epsilon=8.0, draw=lambda: b"a report"
            )
            left.append(receipt.left / 1e6)
        except BudgetExceeded:
            left.append(left[-1])

figure, axes = plt.subplots(figsize=(5.5, 3.5))
axes.step(range(7, 16), left, where="post", color="teal")
axes.set(xlabel="hour", ylabel="left, per km", title="One report an hour, 40/km per day", ylim=(0, 42))
figure.tight_layout()
figure.savefig("a_day_of_budget.png", dpi=80)
