"""From reports back to densities, counts and flows, with intervals: post-processing, which costs no privacy."""

import numpy as np

import metricdp as mdp

cells = mdp.grid((8, 8))  # 64 cells of a town, a cell the unit
mechanism = mdp.exponential(cells, 2.0)

# Nobody but this example knows where the 20,000 people are: most live around two centres.
rng = np.random.default_rng(1)
centres = np.array([[2.0, 2.0], [5.0, 6.0]])[rng.integers(0, 2, 20_000)]
people = cells.encode(np.clip(np.rint(centres + rng.normal(size=(20_000, 2))), 0, 7))
reports = mechanism.sample(people)

found = mdp.estimate_density(reports, mechanism)  # unbiased, with an interval for every cell
truth = np.bincount(people, minlength=64) / len(people)
print(found)
print(found.notes[0])
print(f"{np.mean((found.lower <= truth) & (truth <= found.upper)):.0%} of the cells lie in their 95 % intervals")

south = np.flatnonzero(cells.points[:, 0] < 4)
count = found.region(south).scaled(found.reports)  # the errors of neighbouring cells go together: regions know more
really = np.isin(people, south).sum()
print(f"south: {count.mass:,.0f} people, {count.lower:,.0f} to {count.upper:,.0f}; really {really:,}")

likely = mdp.estimate_density(reports, mechanism, method="em")  # iterative Bayes: never below zero
plain = np.bincount(reports, minlength=64) / len(reports)
print("mean error of a cell:", np.abs(likely.masses - truth).mean(), "without decoding:", np.abs(plain - truth).mean())

# Flows: where people go, from two reports each with noise of its own.
towns = mdp.FiniteSpace(np.arange(5.0)[:, None], mdp.Lp(1))
noise = mdp.exponential(towns, 2.0)
start = rng.integers(0, 5, 10_000)
end = np.minimum(start + rng.integers(0, 2, 10_000), 4)
flows = mdp.estimate_flows(noise.sample(start), noise.sample(end), noise)
there = flows.between([0, 1], [2, 3, 4]).scaled(10_000)
really = ((start < 2) & (end >= 2)).sum()
print(f"from the first two towns to the others: {there.lower:,.0f} to {there.upper:,.0f}; really {really:,}")
moves = flows.transitions()  # shares of destinations among those who left, with intervals
print(
    f"from the first town to the second: {moves.shares[0, 1]:.0%}, {moves.lower[0, 1]:.0%} to {moves.upper[0, 1]:.0%}"
)
