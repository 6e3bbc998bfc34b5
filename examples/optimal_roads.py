"""The optimal mechanism on a few crossings of central Porto, distances along the roads."""

import metricdp as mdp
from metricdp.places import bundled_roads

roads = bundled_roads(nodes=60)
problem = mdp.Problem(roads, mdp.epsilon_for(2, 0.1))  # 100 m along the roads: at most a factor of two
mechanism = mdp.optimal(problem, gap=0.01)

certificate = mechanism.certificate
print(
    f"expected loss {1000 * certificate.loss:.0f} m; "
    f"none that reports these crossings below {1000 * certificate.lower_bound:.0f} m"
)
print(f"exponential:  {1000 * mdp.expected_loss(mdp.exponential(roads, problem.epsilon)):.0f} m")
