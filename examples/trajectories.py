"""Trips with their history: from a table of GPS fixes to a mechanism, a report, an account and a smoothed trace.

The trips are simulated on the bundled roads of central Porto; nobody drove them.
"""

import numpy as np

import metricdp as mdp
from metricdp.auditing import HiddenWalk, bounded_range
from metricdp.mobility import (
    account,
    allocate,
    augmented_steps,
    clean,
    estimate,
    histories_of,
    load_traces,
    reachable,
    resample,
    smooth,
    snap,
    snap_distances,
    split_trips,
    trajectory_epsilon,
)
from metricdp.places import bundled_roads, bundled_trips

EPSILON, STEP = 1.0, 60.0  # per kilometre; a report every minute

# A table with the columns trip, t (unix seconds or dates), lat, lon; impossible speeds are dropped.
traces = resample(clean(load_traces(bundled_trips(trips=300))), step_seconds=STEP)

# Places: crossings near the middles of a coarse grid. A fix goes to the nearest one.
roads = bundled_roads()
low, high = roads.coordinates.min(axis=0), roads.coordinates.max(axis=0)
share = (np.arange(3) + 0.5) / 3
middles = np.array([(a, b) for a in low[0] + share * (high[0] - low[0]) for b in low[1] + share * (high[1] - low[1])])
places = mdp.FiniteSpace(roads.coordinates[np.unique(roads.nearest(middles)[0])], mdp.Haversine())
moved = snap_distances(traces, places, most_km=1.0)
print(f"{len(places)} places; half of the fixes are put {np.median(moved):.2f} km away or less")

# What a vehicle can do in one step is public: the map and a speed limit.
allowed = reachable(places.distances, step_seconds=STEP, most_kmh=50.0, slack_km=0.5)
walks = snap(traces, places, most_km=1.0, allowed=allowed)
train, test = split_trips(walks, share=0.7)
model = estimate(train, allowed, order=2, smoothing=2.0)

# The secret is the place with the one before it. The loss: how far the report is from where the vehicle is next.
histories = histories_of(allowed, 1)
augmented = mdp.Augmented(places, histories, [0.5])
problem = mdp.Problem(
    augmented.space,
    EPSILON,
    outputs=places,
    loss=model.next(histories) @ places.distances,
    prior=model.history_prior(histories),
)
mechanism = mdp.contextual(problem, gap=1e-2)
found = mechanism.certificate
print(f"{len(augmented)} histories; loss {found.loss:.3f} km, no mechanism below {found.lower_bound:.3f} km")
print(mdp.audit(mechanism))

# One report: the current place first, then the one before it.
now, before = test.histories(1)[5]
report = mechanism.sample(augmented.encode([[now, before]]))
print(f"at place {now}, coming from {before}: reported {report[0]}")

# A trace of 100 reports, and what the receiver makes of it for free (the walk is drawn from the model).
steps = augmented_steps(augmented, model.next(histories))
hidden = HiddenWalk(problem.prior, steps, mechanism)
walk, reports = hidden.simulate(100, rng=np.random.default_rng(1))
true = histories[walk, 0]
guesses = smooth(hidden, reports, loss=places.distances[histories[:, 0]])
errors = [places.distances[true, codes].mean() for codes in (reports, guesses)]
print(f"mean error of 100 reports {errors[0]:.2f} km, after smoothing {errors[1]:.2f} km")

# What the trace costs: each place is in two reports, once as the present and once as the past.
spent = account(np.full(100, EPSILON), radius=0.1, delta=1e-5, ranges=np.full(100, bounded_range(mechanism)))
print(f"100 reports, histories 100 m apart: basic {spent.basic:.1f}, over time in l2 {spent.product:.1f}, ", end="")
print(f"concentrated {spent.concentrated:.1f} (with the mechanism's own range {spent.bounded_range:.1f})")
print(f"one place of the trace moved: {trajectory_epsilon(EPSILON, [0.5]):g} per km")

# The same total, spent where it matters: the first and last ten steps count four times as much.
importance = np.where((np.arange(100) < 10) | (np.arange(100) >= 90), 4.0, 1.0)
chosen = allocate(100 * EPSILON, importance)
print(f"epsilon {chosen[0]:.2f} per km at the ends and {chosen[50]:.2f} between; the same total {chosen.sum():.0f}")
