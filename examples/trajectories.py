"""Trips with their history: from a table of GPS fixes to a mechanism, reports, an account and a smoothed trace.

The trips are simulated on the bundled roads of central Porto; nobody drove them.
"""

import numpy as np

import metricdp as mdp
from metricdp.auditing import bounded_range
from metricdp.mobility import HiddenWalk, account, allocate, augmented_steps, smooth, trajectory_problem
from metricdp.places import bundled_roads, bundled_trips, spread_places

EPSILON = 1.0  # per kilometre, for every report

# Places are public: nine crossings that cover the map. The table has the columns trip, t (seconds or dates), lat, lon.
places = spread_places(bundled_roads(), 9)
trips = trajectory_problem(bundled_trips(trips=300), places, EPSILON)  # a report every minute, one step back
print(f"{len(places)} places, {len(trips.augmented)} histories, {len(trips.walks)} reports to draw")

mechanism = mdp.contextual(trips.problem, gap=1e-2)
found = mechanism.certificate
print(f"loss {found.loss:.3f} km, none with these reports below {found.lower_bound:.3f} km")
print(mdp.audit(mechanism))
reports = trips.release(mechanism)  # one place for every step, drawn with cryptographic randomness
print(f"the first trip is reported at {reports[trips.walks.trip == trips.walks.trip[0]].tolist()}")

# A trace of 100 reports, and what the receiver makes of it for free (the walk is drawn from the model).
histories = trips.augmented.histories
hidden = HiddenWalk(trips.problem.prior, augmented_steps(trips.augmented, trips.model.next(histories)), mechanism)
walk, drawn = hidden.simulate(100, rng=np.random.default_rng(1))
true = histories[walk, 0]
guesses = smooth(hidden, drawn, loss=places.distances[histories[:, 0]])
errors = [places.distances[true, codes].mean() for codes in (drawn, guesses)]
print(f"mean error of 100 reports {errors[0]:.2f} km, after smoothing {errors[1]:.2f} km")

# What the trace costs: each place is in two reports, once as the present and once as the past.
spent = account(np.full(100, EPSILON), radius=0.1, delta=1e-5, ranges=np.full(100, bounded_range(mechanism)))
print(f"100 reports, histories 100 m apart: basic {spent.basic:.1f}, over time in l2 {spent.product:.1f}, ", end="")
print(f"concentrated {spent.concentrated:.1f} (with the mechanism's own range {spent.bounded_range:.1f})")
print(f"one place of the trace moved: {trips.epsilon_per_place:g} per km at most")

# The same total, spent where it matters: the first and last ten steps count four times as much.
importance = np.where((np.arange(100) < 10) | (np.arange(100) >= 90), 4.0, 1.0)
chosen = allocate(100 * EPSILON, importance)
print(f"epsilon {chosen[0]:.2f} per km at the ends and {chosen[50]:.2f} between; the same total {chosen.sum():.0f}")
