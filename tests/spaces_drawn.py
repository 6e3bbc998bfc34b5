"""Random spaces of every metric there is, for properties that must hold on all of them."""

import numpy as np

import metricdp as mdp


def road(n, rng):
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    edges = np.concatenate([ring, rng.integers(0, n, (n, 2))])
    edges = edges[edges[:, 0] != edges[:, 1]]
    return mdp.FiniteSpace(np.arange(n), mdp.ShortestPath(edges, rng.uniform(0.3, 2, len(edges)), one_way="longer"))


def words(n, rng):
    drawn = {"".join(rng.choice(list("abc"), size=rng.integers(1, 5))) for _ in range(3 * n)}
    return mdp.FiniteSpace(sorted(drawn)[:n], mdp.Levenshtein())


def symbols(n, rng):
    codes = rng.permutation(3**4)[:n]
    return mdp.FiniteSpace([["abc"[code // 3**place % 3] for place in range(4)] for code in codes], mdp.Hamming())


def given(n, rng):
    points = rng.uniform(0, 4, (n, 2))
    return mdp.FiniteSpace(np.arange(float(n)), mdp.Precomputed(np.abs(points[:, None] - points[None]).sum(axis=-1)))


def place_and_hour(n, rng):
    parts = [(mdp.Lp(2), [0, 1], 1.0), (mdp.Temporal(24.0), [2], 0.2)]
    return mdp.FiniteSpace(np.column_stack([rng.uniform(0, 4, (n, 2)), rng.uniform(0, 24, n)]), mdp.Weighted(parts))


def policy_in_parts(n, rng):
    space, labels = mdp.FiniteSpace(rng.uniform(0, 4, (n, 2)), mdp.Lp(2)), rng.integers(0, 2, n)
    labels[:3] = 0, 0, 1
    edges = mdp.policy_graphs.areas(labels)
    return mdp.policy(space, edges, lengths="distance", isolated="disclose", parts="disclose")


def home_zone(n, rng):
    places = mdp.FiniteSpace(rng.uniform(0, 4, (n, 2)), mdp.Lp(2))
    return mdp.mobility.zones(places, [0], radius=float(np.median(places.distances[0])), scale=0.3).space


def elastic_or_sensitive(n, rng):
    places = mdp.FiniteSpace(rng.uniform(0, 4, (n, 2)), mdp.Lp(2))
    if rng.integers(2):
        return mdp.places.scaled(places, rng.choice([0.5, 0.9, 1.0], n))
    factor = float(rng.uniform(0.5, 3.0))
    return mdp.elastic(places, mass=rng.integers(1, 5, n), requirement=lambda level: factor * level * level)


SPACES = {
    "l1": lambda n, rng: mdp.FiniteSpace(rng.uniform(0, 4, (n, 2)), mdp.Lp(1)),
    "l2": lambda n, rng: mdp.FiniteSpace(rng.uniform(0, 4, (n, 2)), mdp.Lp(2)),
    "l3": lambda n, rng: mdp.FiniteSpace(rng.uniform(0, 4, (n, 2)), mdp.Lp(3)),
    "linf": lambda n, rng: mdp.FiniteSpace(rng.uniform(0, 4, (n, 3)), mdp.Lp(np.inf)),
    "earth": lambda n, rng: mdp.FiniteSpace(rng.normal(size=(n, 2)) * 0.02 + [-17.7, 179.9], mdp.Haversine()),
    "road": road,
    "policy in parts": policy_in_parts,
    "home zone": home_zone,
    "elastic or sensitive": elastic_or_sensitive,
    "words": words,
    "symbols": symbols,
    "given": given,
    "place and hour": place_and_hour,
    "angles": lambda n, rng: mdp.FiniteSpace(rng.normal(size=(n, 3)), mdp.Angular()),
    "hyperbolic": lambda n, rng: mdp.FiniteSpace(rng.uniform(-0.6, 0.6, (n, 2)), mdp.Hyperbolic()),
    "ellipse": lambda n, rng: mdp.FiniteSpace(rng.normal(size=(n, 2)), mdp.Mahalanobis([[2.0, 0.3], [0.3, 1.0]])),
    "clock": lambda n, rng: mdp.FiniteSpace(rng.permutation(24)[:n, None] + 0.5, mdp.Temporal(24.0)),
    "histograms": lambda n, rng: mdp.FiniteSpace(rng.dirichlet(np.ones(3), n), mdp.Wasserstein([0.0, 1.0, 3.0])),
    "curves": lambda n, rng: mdp.FiniteSpace(rng.normal(size=(n, 6)), mdp.Frechet(mdp.Lp(1), 2)),
}
