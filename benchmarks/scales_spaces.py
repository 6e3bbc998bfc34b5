"""A thousand random spaces under elastic metrics and local scales: audited twice, losses held to the bound.

    python benchmarks/scales_spaces.py --record               # minutes
    python benchmarks/scales_spaces.py --count 20

Spaces are 4 to 12 points in the plane under l_1, l_2 or l_inf, or crossings of a ring road; mass, requirement, scale
(circles, tiles, categories or a list), epsilon and prior are drawn, the loss is the distance of before. The metric is
compared with brute force: the paths of its formula by Floyd and Warshall, and every ball of an elastic one. Beside the
library's audit stands a second one: all pairs and reports, without its code.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray
from record import arguments, recorder

import metricdp as mdp
from metricdp.errors import Infeasible

METRICS = ("elastic", "scaled")
BUILDERS = ("exponential", "tight_constraints", "optimal")
Matrix = NDArray[np.float64]


def paths(steps: Matrix) -> Matrix:
    """Return the shortest paths of steps, by Floyd and Warshall."""
    found = steps.copy()
    for middle in range(len(found)):
        found = np.minimum(found, found[:, middle, None] + found[middle])
    return found


def drawn(seed: int) -> tuple[mdp.FiniteSpace, np.random.Generator]:
    """Return random places and what goes on drawing."""
    rng = np.random.default_rng(seed)
    size, kind = int(rng.integers(4, 13)), seed % 4
    if kind == 3:
        ring = np.stack([np.arange(size), (np.arange(size) + 1) % size], axis=1)
        return mdp.FiniteSpace(np.arange(size), mdp.ShortestPath(ring, rng.uniform(0.3, 2.0, size), size)), rng
    points = rng.uniform(0, 3, (size, 2))
    return mdp.FiniteSpace(points, mdp.Lp((1, 2, np.inf)[kind]), columns=("lat", "lon")), rng


def elastic(space: mdp.FiniteSpace, rng: np.random.Generator) -> mdp.FiniteSpace:
    """Return an elastic space, compared with its formula and its promise by brute force."""
    mass = rng.integers(1, 6, len(space)).astype(float)
    factor, most = float(rng.uniform(0.5, 6.0)), float(mass.sum())

    def requirement(level: float) -> float:
        return min(factor * level * level, most)

    made, apart = mdp.elastic(space, mass=mass, requirement=requirement), space.distances
    nearer = np.array([[mass[row < length].sum() for length in row] for row in apart])
    steps = np.where(nearer < most, np.sqrt(nearer / factor), np.inf)
    steps = np.minimum(steps, steps.T)
    np.fill_diagonal(steps, 0.0)
    assert np.allclose(made.distances, paths(steps), rtol=1e-9)
    for row in made.distances:
        for level in np.unique(row):
            assert mass[row <= level].sum() >= requirement(float(level)) * (1 - 1e-12)
    return made


def scaled(space: mdp.FiniteSpace, rng: np.random.Generator) -> mdp.FiniteSpace:
    """Return a space with scales of circles, tiles, categories or a list, compared with its formula."""
    size, kind = len(space), int(rng.integers(4))
    where = space.coordinates
    if kind == 0 or where.shape[1] == 1:
        scale = mdp.places.region_scale(space, {"scale": rng.uniform(0.1, 1.0, size)})
    elif kind == 1:
        middle, radius, own = rng.uniform(0, 3, (2, 2)), rng.uniform(0.3, 1.5, 2), rng.uniform(0.1, 1.0, 2)
        scale = mdp.places.region_scale(
            space, {"lat": middle[:, 0], "lon": middle[:, 1], "radius": radius, "scale": own}
        )
        inside = np.array(
            [[space.metric(place, one) <= far for one, far in zip(middle, radius, strict=True)] for place in where]
        )
        assert np.array_equal(scale, np.where(inside, own, 1.0).min(axis=1))
    elif kind == 2:
        south, west = rng.uniform(0, 2, (2, 3))
        north, east, own = south + 1.0, west + 1.0, rng.uniform(0.1, 1.0, 3)
        tiles = {"south": south, "west": west, "north": north, "east": east, "scale": own}
        scale = mdp.places.region_scale(space, tiles)
        high, wide = where[:, :1], where[:, 1:]
        inside = (high >= south) & (high <= north) & (wide >= west) & (wide <= east)
        assert np.array_equal(scale, np.where(inside, own, 1.0).min(axis=1))
    else:
        kinds = rng.choice(["home", "clinic", "shop", "church"], size)
        own = {"clinic": 0.2, "church": 0.5}
        there = sorted(set(kinds.tolist()) & set(own))  # a category that no place has is refused
        regions = {"category": there, "scale": [own[one] for one in there]}
        scale = mdp.places.region_scale(space, regions, categories=kinds.tolist()) if there else np.ones(size)
        assert scale.tolist() == [own.get(str(one), 1.0) for one in kinds]
    made = mdp.places.scaled(space, scale)
    smaller = np.minimum(scale[:, None], scale[None])
    steps = smaller * space.distances
    if space.network is not None:
        joined = np.full((size, size), np.inf)
        for (u, v), length in zip(space.network.edges.tolist(), space.network.lengths.tolist(), strict=True):
            joined[u, v] = joined[v, u] = min(joined[u, v], length * smaller[u, v])
        np.fill_diagonal(joined, 0.0)
        steps = joined
    assert np.allclose(made.distances, paths(steps), rtol=1e-12)
    return made


def checked(space: mdp.FiniteSpace) -> None:
    """Check symmetry, positive distances and all triangles."""
    apart = space.distances
    assert np.array_equal(apart, apart.T)
    assert np.all((apart > 0) | np.eye(len(apart), dtype=bool))
    assert np.all(apart[:, None, :] <= (apart[:, :, None] + apart[None]) * (1 + 1e-15))


def leak(matrix: Matrix, apart: Matrix) -> float:
    """Return the largest log ratio per distance, of the law row / sum(row)."""
    used = matrix[:, matrix.max(axis=0) > 0]  # a report that nobody makes tells nothing
    logs = np.log(used / used.sum(axis=1, keepdims=True))
    found = np.abs(logs[:, None] - logs[None]).max(axis=2)
    return float((found / np.where(apart > 0, apart, np.inf)).max())


def main() -> None:
    """Judge these builders on all spaces."""
    parser = arguments(__doc__)
    parser.add_argument("--count", type=int, default=1_000)
    chosen = parser.parse_args()
    keep, started = recorder(chosen.record), time.perf_counter()
    found: dict[tuple[str, str], list[tuple[float, float]]] = {
        (metric, builder): [] for metric in METRICS for builder in BUILDERS
    }
    for seed in range(chosen.count):
        for name in METRICS:
            space, rng = drawn(seed)
            made = elastic(space, rng) if name == "elastic" else scaled(space, rng)
            checked(made)
            epsilon, prior, loss = (
                float(rng.choice([0.3, 1.0, 3.0])),
                rng.dirichlet(np.ones(len(space))),
                space.distances,
            )
            best = mdp.optimal(mdp.Problem(made, epsilon, prior=prior, loss=loss), gap=1e-2)
            bound = best.certificate.lower_bound
            for builder in BUILDERS:
                try:
                    one = best if builder == "optimal" else getattr(mdp, builder)(made, epsilon, prior=prior, loss=loss)
                except Infeasible:
                    assert builder == "tight_constraints"  # it does not exist everywhere, and says so
                    continue
                assert mdp.audit(one).verdict == "holds", (name, builder, seed)
                leaked, paid = leak(one.matrix, made.distances) / epsilon, one.certificate.loss
                assert leaked <= 1.0 + 1e-12, (name, builder, seed, leaked)
                assert paid >= bound * (1.0 - 1e-9), (name, builder, seed, paid, bound)
                found[name, builder].append((leaked, paid / bound - 1.0))
        if seed % 100 == 99:
            print(f"{seed + 1:,} spaces, {time.perf_counter() - started:.0f} s", flush=True)
    for (name, builder), pairs in found.items():
        leaks, above = np.array(pairs).T
        none = chosen.count - len(leaks)
        where = f" (on the other {none:,} spaces there is no such mechanism)" if none else ""
        words = (
            f"{len(leaks):,} of {len(leaks):,} hold by both audits{where}, largest leak {leaks.max():.9f} epsilon; "
            f"loss above the proven bound {np.median(above):.2%} in the middle, {above.min():.2%} to {above.max():.1%}"
        )
        what = f"{name}, {builder}: {chosen.count:,} random spaces"
        keep(
            "elastic",
            what,
            asked="all hold",
            measured=words,
            count=chosen.count,
            spaces=True,
            metric=name,
            builder=builder,
        )
        print(what, words, sep=": ", flush=True)


if __name__ == "__main__":
    main()
