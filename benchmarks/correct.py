"""Small correct mechanisms of many builders, to count the false alarms of audits on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import metricdp as mdp
from metricdp.errors import Infeasible, NotPrivate
from metricdp.metrics import Metric

PLANE = mdp.Lp(2)
SIZE = 5
Sampler = Callable[[Any, int], Any]


@dataclass(frozen=True)
class Case:
    """A mechanism that keeps its promise, with what an audit asks for: `kind` is "builder" or "builder, variant"."""

    kind: str
    mechanism: Any
    secrets: Any
    metric: Metric

    @property
    def builder(self) -> str:
        return self.kind.partition(",")[0]

    def sampler(self, rng: np.random.Generator) -> Sampler:
        """Return draw(secret, count), the reports of a product column by column."""

        def draw(x: Any, count: int) -> Any:
            rows = np.repeat(np.asarray([x]), count, axis=0)
            if self.builder != "product":
                return self.mechanism.sample(rows, rng=rng)
            place, code = self.mechanism.sample([rows[:, :2], rows[:, 2].astype(np.int64)], rng=rng)
            return np.column_stack([place, code])

        return draw


def correct_mechanisms(rng: np.random.Generator, number: int) -> Iterator[Case]:
    """Yield mechanisms on random points with a random epsilon and prior; over 24 numbers every builder named here.

    What takes a program of its own comes with every fourth number, windows with every 24th: building takes longer than
    the audit.
    """
    points = np.round(rng.uniform(0, 3, size=(SIZE, 2)), 3)
    epsilon = float(rng.uniform(0.3, 3.0))
    space = mdp.FiniteSpace(points, [PLANE, mdp.Lp(1), mdp.Lp(np.inf)][number % 3])
    yield from closed_form(space, epsilon, rng)
    yield from noise(points, epsilon, rng)
    if number % 4 == 0:
        problem = mdp.Problem(space, epsilon, prior=rng.dirichlet(np.ones(SIZE)))
        yield from solved(problem, windows=number % 24 == 0)
        yield from contextual(points[:3], epsilon, rng)
        yield from anywhere(points, epsilon, rng)


def built(builders: dict[str, Callable[[], Any]], secrets: Any, metric: Metric) -> Iterator[Case]:
    for kind, build in builders.items():
        try:
            yield Case(kind, build(), secrets, metric)
        except (Infeasible, NotPrivate) as refusal:  # tight constraints exist for some spaces only; nothing to audit
            print(f"{kind} refused: {refusal}", flush=True)


def closed_form(space: mdp.FiniteSpace, epsilon: float, rng: np.random.Generator) -> Iterator[Case]:
    """Yield what needs no program, and a random matrix with the epsilon that it has."""
    weights, prior = rng.uniform(0.5, 2.0, SIZE), rng.dirichlet(np.ones(SIZE))
    law = rng.dirichlet(np.ones(SIZE), SIZE)
    ratios = np.abs(np.log(law)[:, None] - np.log(law)).max(axis=2)
    leak = float((ratios / (space.distances + np.eye(SIZE))).max()) * (1 + 1e-9)
    made: dict[str, Callable[[], Any]] = {
        "exponential": lambda: mdp.exponential(space, epsilon),
        "exponential, half": lambda: mdp.exponential(space, epsilon, budget="half"),
        "weighted_exponential": lambda: mdp.weighted_exponential(space, epsilon, weights=weights),
        "truncated_exponential": lambda: mdp.truncated_exponential(space, epsilon, beta=0.2),
        "tight_constraints": lambda: mdp.tight_constraints(space, epsilon),
        "remapped": lambda: mdp.remapped(mdp.exponential(space, epsilon), prior=prior),
        "dictionary": lambda: mdp.dictionary(mdp.Problem(space, epsilon, prior=prior)),
        "from_matrix": lambda: mdp.from_matrix(space, law, leak),
        "quantised": lambda: mdp.quantised(mdp.weighted_exponential(space, epsilon, weights=weights[::-1])),
        "madlib": lambda: mdp.madlib(space, epsilon),
    }
    yield from built(made, list(range(SIZE)), mdp.Precomputed(space.distances))


def solved(problem: mdp.Problem, *, windows: bool) -> Iterator[Case]:
    """Yield the optima of a problem."""
    made: dict[str, Callable[[], Any]] = {
        "optimal": lambda: mdp.optimal(problem),
        "optimal, worst loss": lambda: mdp.optimal(problem, objective="worst"),
        "spanner": lambda: mdp.spanner(problem, stretch=1.1),
        "constopt": lambda: mdp.constopt(problem, nearest=3),
        "decomposed": lambda: mdp.decomposed(problem, blocks=2),
    }
    if windows:
        local = mdp.optimal(problem, window=1.5, gap=0.1, seconds=1.0)
        made |= {"optimal, windows": lambda: local, "quantised, windows": lambda: mdp.quantised(local)}
    yield from built(made, list(range(SIZE)), mdp.Precomputed(problem.inputs.distances))


def contextual(points: Any, epsilon: float, rng: np.random.Generator) -> Iterator[Case]:
    """Yield mechanisms that know one step back, and one that looks at classes."""
    base = mdp.FiniteSpace(points, PLANE)
    histories = np.array([[now, before] for now in range(3) for before in range(3)])
    augmented = mdp.spaces.Augmented(base, histories, [float(rng.uniform(0.2, 0.8))]).space
    whole = mdp.Problem(augmented, epsilon, outputs=base, loss=base.distances[histories[:, 0]])
    for kind, classes in (("contextual", None), ("contextual, classes", histories[:, 0])):
        made = mdp.contextual(whole, classes=classes)
        yield Case(kind, made, list(range(len(histories))), mdp.Precomputed(augmented.distances))


def noise(points: Any, epsilon: float, rng: np.random.Generator) -> Iterator[Case]:
    """Yield Laplace noise on the metrics that have it, and noise beside a table."""
    earth = np.stack([41.9 + points[:, 0] / 100, 12.5 + points[:, 1] / 100], axis=1)
    solid = np.column_stack([points, points[::-1, 0]])
    ellipse = mdp.Mahalanobis([[2.0, 0.3], [0.3, 1.0]])
    plane = mdp.laplace(PLANE, epsilon)
    yield Case("laplace, plane", plane, points.tolist(), PLANE)
    yield Case("laplace, line", mdp.laplace(mdp.Lp(1), epsilon, dimension=1), points[:, :1].tolist(), mdp.Lp(1))
    yield Case("laplace, Earth", mdp.laplace(mdp.Haversine(), epsilon), earth.tolist(), mdp.Haversine())
    yield Case("laplace, cube", mdp.laplace(mdp.Lp(np.inf), epsilon, dimension=3), solid.tolist(), mdp.Lp(np.inf))
    yield Case("laplace, ellipse", mdp.laplace(ellipse, epsilon), points.tolist(), ellipse)
    hours = mdp.FiniteSpace(np.arange(float(SIZE))[:, None], mdp.Temporal(24.0, unit="h"))
    joint = mdp.product(plane, mdp.exponential(hours, float(rng.uniform(0.2, 1.0))))
    rows = np.column_stack([points, rng.permutation(SIZE)])
    yield Case("product", joint, rows.tolist(), joint.guarantee.metric)


def anywhere(points: Any, epsilon: float, rng: np.random.Generator) -> Iterator[Case]:
    """Yield what is private at every point of a box and of a street, the published normalised rule among them."""
    box = mdp.Box([0, 0], [3, 3], PLANE)
    reports = mdp.FiniteSpace(np.round(rng.uniform(0, 3, (4, 2)), 3), PLANE)
    places = rng.uniform(0, 3, (12, 2))
    losses = np.linalg.norm(places[:, None] - reports.points, axis=2)
    ring = mdp.ShortestPath([[i, (i + 1) % 4] for i in range(4)], np.round(rng.uniform(0.5, 2.0, 4), 3))
    streets = mdp.FiniteSpace(np.arange(4)[:, None], ring)
    options: dict[str, Any] = {"loss": (places, losses), "anchors": (1, 1), "split": "even", "bound": False}
    inside = mdp.interpolated(box, reports, epsilon, **options)
    made: dict[str, Callable[[], Any]] = {
        "interpolated": lambda: inside,
        "interpolated, normalised": lambda: mdp.interpolated(box, reports, epsilon, rule="log", **options),
        "quantised, interpolated": lambda: mdp.quantised(inside),
    }
    yield from built(made, points.tolist(), PLANE)
    along = mdp.interpolated(streets, mdp.FiniteSpace([[0], [2]], ring), epsilon, anchors=1, bound=False)
    chosen = rng.integers(0, 4, SIZE)
    secrets = np.column_stack([chosen, rng.uniform(0, 1, SIZE) * np.asarray(ring.lengths)[chosen]])
    made = {"interpolated, streets": lambda: along, "quantised, streets": lambda: mdp.quantised(along)}
    yield from built(made, secrets.tolist(), along.guarantee.metric)
