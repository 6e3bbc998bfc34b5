"""Coarse near home, precise elsewhere; hidden times; and a stream without end of which any hour costs the same."""

import metricdp as mdp
from metricdp.mobility import (
    Absorption,
    clean,
    cloak_traces,
    load_traces,
    predictive,
    resample,
    stay_points,
    window_costs,
    zones,
)  # fmt: skip
from metricdp.places import bundled_trips

# A home zone: its centre is a report of the home, drawn once and then public.
places = mdp.grid((7, 7), spacing=0.5, metric=mdp.Lp(2, unit="km"))
home = 24
centre = mdp.exponential(places, 4.0).sample([home])
near_home = zones(places, centre, radius=1.1, scale=0.1)
mechanism = mdp.exponential(near_home.space, 6.0)
print(near_home.visit(mechanism))
print(f"{near_home.at_home(6.0, visits=20, centre_epsilon=4.0):g} per km by which the home moves, after 20 visits")

# Places and times with noise, each on its own scale, sorted by the reported times. The trips are simulated.
trips = load_traces(bundled_trips(trips=5))
minutes = mdp.laplace(mdp.Lp(1, unit="min"), 0.5, dimension=1)
hidden = cloak_traces(trips, place=mdp.laplace(mdp.Haversine(), 4.0), time=minutes, seconds_per_unit=60.0)
print(f"{len(hidden.traces)} fixes; each: {hidden.place}; {hidden.time}")
print(f"{len(stay_points(trips, radius_km=0.3, least_seconds=30))} stays of half a minute, as secret as the trips")

# Any 60 steps in a row cost at most 20 per km, for as long as it goes on.
stream = predictive(mdp.Haversine(), budget=Absorption(60, 20.0))
run = stream.release(resample(clean(trips), step_seconds=5).coordinates)
print(f"{len(run)} steps, {sum(run.fresh)} fresh reports, at most {window_costs(run.costs, 60).max():.3f} in any 60")
