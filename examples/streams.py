"""A stream that ends and goes on, because the ledger knows its window; and the loss of a trace beside the best."""

import numpy as np

import metricdp as mdp
from metricdp.ledger import Ledger
from metricdp.mobility import Distribution, FixedUtility, Stream, predictive, trace_loss
from metricdp.tables import Charging

# Any 10 rows in a row of one person cost at most 20 per km.
budget = Distribution(window=10, total=20.0)
rows = [(60.0 * minute, (41.15 + 0.001 * minute, -8.61)) for minute in range(12)]
with Ledger.open("stream.db", policy="2880/km per day") as ledger:
    stream = Stream(Charging(ledger), budget)
    reports = [stream.step("anna", time, place) for time, place in rows]

# Another process, later: the last row comes again and gets the answer it had, the next one goes on in the same window.
with Ledger.open("stream.db") as ledger:
    stream = Stream(Charging(ledger), budget)
    again = stream.step("anna", *rows[-1])
    stream.step("anna", 720.0, (41.17, -8.61))
print(f"the same report: {(again.latitude, again.longitude) == (reports[-1].latitude, reports[-1].longitude)}")
print("\n".join(stream.lines(step_seconds=60.0)))

# What a predicted trace of two steps loses, beside the best of all mechanisms with the same guarantee.
corners = mdp.FiniteSpace(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [2.0, 2.0]]), mdp.Lp(2, unit="km"))
print(trace_loss(predictive(corners, budget=FixedUtility(2.0)), 2))
