"""A trace that is released by prediction: fresh noise only where a private test says that the last report is too old.

The trips are simulated on the bundled roads of central Porto; nobody drove them.
"""

import numpy as np

import metricdp as mdp
from metricdp.ledger import Ledger
from metricdp.mobility import FixedUtility, audit_runs, clean, load_traces, predictive, resample
from metricdp.places import bundled_trips

ticks = resample(clean(load_traces(bundled_trips(trips=20))), step_seconds=10)
trace = ticks.coordinates[ticks.owner == 0]  # where one vehicle was, every ten seconds

# A fresh report lies within 2 km with probability 90 %. No trip leaks more than 30 per kilometre, for certain.
mechanism = predictive(mdp.Haversine(), budget=FixedUtility(2.0, total=30.0))
run = mechanism.release(trace)
print(f"{len(run)} reports, {sum(run.fresh)} of them fresh: {run.spent:.1f} per km spent, at most 30")
print(f"independent noise of the same accuracy: {len(run) * mechanism.budget.epsilon:.1f} per km")

# The same with a ledger: every test and every fresh report is charged before it is drawn.
with Ledger.open("budget.db", policy="25/km per day") as ledger:

    def spend(label, epsilon, draw):
        metric = mechanism.ground.metric
        return ledger.release("anna", f"trip 0 {label}", key="app", metric=metric, epsilon=epsilon, draw=draw).report

    charged = mechanism.release(trace, spend=spend)  # ends where the day's budget does
print(f"with a ledger {len(charged)} reports, {charged.spent:.1f} per km charged")

# On finite places the guarantee is proven for every run and every pair of traces.
corners = mdp.FiniteSpace(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [2.0, 2.0]]), mdp.Lp(2, unit="km"))
print(audit_runs(predictive(corners, budget=FixedUtility(2.0)), steps=3))
