"""Noise with a shape on 1,000 random settings: ellipses, regularised covariances, hyperbolic space, bags of words.

    python benchmarks/shapes.py --settings 250 --record          (so many of each of the four)

A setting has a random dimension, epsilon, shape and space. Its noise is audited by its theorem and its densities are
compared with the promise by brute force, at pairs of secrets and at reports beyond them, where the whole of epsilon
shows. Over a random finite space the exponential mechanism of the same metric is audited exactly. For bags the table of
all bags of two or three words over a vocabulary is written down order by order and audited exactly at epsilon, and one
in ten is compared with the optimum under the same promise: by how much the loss lies above its proven lower bound.
"""

from __future__ import annotations

from itertools import combinations_with_replacement, permutations
from math import factorial, prod
from typing import Any

import numpy as np
from record import arguments, recorder

import metricdp as mdp

GROUP = "shapes"


def setting(family: str, rng: np.random.Generator) -> tuple[Any, Any, float, int]:
    """Return a metric, a drawer of secrets, epsilon and how many numbers a secret has."""
    epsilon = float(10.0 ** rng.uniform(-1, 2))
    if family == "ellipse":
        at = (float(rng.uniform(-80, 80)), float(rng.uniform(-180, 180)))
        metric = mdp.Mahalanobis.ellipse(*(10.0 ** rng.uniform(-2, 1, 2)), bearing=float(rng.uniform(0, 360)), at=at)
        return metric, lambda rows: np.array(at) + 0.01 * rng.normal(size=(rows, 2)), epsilon, 2
    n = int(rng.integers(1, 9))
    if family == "regularised":
        public = rng.normal(size=(int(rng.integers(2, 20)), n)) @ rng.normal(size=(n, n))
        metric = mdp.Mahalanobis.regularised(np.atleast_2d(np.cov(public.T)), float(rng.uniform(0, 0.999)))
        return metric, lambda rows: rng.normal(size=(rows, n)), epsilon, n
    if family == "hyperbolic":

        def ball(rows: int) -> np.ndarray:
            found = rng.normal(size=(rows, n))
            return found / np.linalg.norm(found, axis=1, keepdims=True) * np.tanh(rng.uniform(0, 2, size=(rows, 1)))

        return mdp.Hyperbolic(), ball, n - 1 + max(0.05, epsilon), n
    count, size = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    metric = mdp.Bags(mdp.Lp([1, 2, np.inf][int(rng.integers(3))]), size)
    return metric, lambda rows: rng.normal(size=(rows, count * size)), epsilon, count * size


def leaked(mechanism: Any, secrets: Any, metric: Any) -> float:
    """Return the largest |ln ratio| over epsilon times distance that densities show, the reports beyond included."""
    x, other = secrets(40), secrets(40)
    reports = np.concatenate([mechanism.sample(x, rng=np.random.default_rng(0)), secrets(40)])
    if not isinstance(metric, mdp.Hyperbolic):
        reports = np.concatenate([reports, x + 50.0 * (x - other)])
    repeat = len(reports) // 40
    x, other = np.tile(x, (repeat, 1)), np.tile(other, (repeat, 1))
    logs = np.abs(mechanism.log_density(x, reports) - mechanism.log_density(other, reports))
    apart = metric(x, other)
    far = apart > 1e-6
    return float((logs[far] / (mechanism.epsilon * apart[far])).max())


def bags_of_words(rng: np.random.Generator) -> tuple[Any, np.ndarray, float]:
    """Return all bags over a random vocabulary, and the law of a bag of draws from a private table over its words."""
    words, count, epsilon = int(rng.integers(3, 5)), int(rng.integers(2, 4)), float(10.0 ** rng.uniform(-0.5, 0.7))
    vectors = rng.normal(size=(words, 2))
    table = mdp.exponential(mdp.FiniteSpace(vectors, mdp.Lp(2)), epsilon).matrix
    table = table / table.sum(axis=1, keepdims=True)
    bags = list(combinations_with_replacement(range(words), count))
    repeats = [prod(factorial(report.count(word)) for word in set(report)) for report in bags]
    matrix = np.array([
        [sum(prod(table[a, b] for a, b in zip(bag, way, strict=True)) for way in permutations(report)) / many
         for report, many in zip(bags, repeats, strict=True)]
        for bag in bags
    ])  # fmt: skip
    points = np.array([vectors[list(bag)].ravel() for bag in bags])
    return mdp.FiniteSpace(points, mdp.Bags(mdp.Lp(2), 2)), matrix, epsilon


def picture(path: str) -> None:
    """Draw reports of one place by a circle and by an ellipse, and of two points of the Poincare ball."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.6))
    rng, at = np.random.default_rng(0), (41.15, -8.61)
    kilometres = 111.195 * np.array([1.0, np.cos(np.radians(at[0]))])
    shapes = {"circle, 1 km": (1.0, 1.0), "2 km along, 0.5 km across": (2.0, 0.5)}
    for one, (name, (along, across)) in zip(axes, shapes.items(), strict=False):
        noise = mdp.laplace(mdp.Mahalanobis.ellipse(along, across, bearing=25.0, at=at), 4.0)
        away = (noise.sample(np.tile(at, (1500, 1)), rng=rng) - at) * kilometres
        one.scatter(away[:, 1], away[:, 0], s=2, alpha=0.5)
        one.set(xlim=(-2.2, 2.2), ylim=(-2.2, 2.2), title=name, xlabel="km east", ylabel="km north", aspect="equal")
    ball = mdp.laplace(mdp.Hyperbolic(), 5.0, dimension=2)
    for k, centre in enumerate(([0.0, 0.0], [0.75, 0.35])):
        reports = ball.sample(np.tile(centre, (1200, 1)), rng=rng)
        axes[2].scatter(reports[:, 0], reports[:, 1], s=2, alpha=0.5, color=f"C{k}")
        axes[2].plot(*centre, "k+")
    axes[2].add_patch(plt.Circle((0, 0), 1.0, fill=False, color="0.5"))
    axes[2].set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), title="two words of the ball, epsilon 5", aspect="equal")
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--picture", help="draw some noise there, and measure nothing")
    parser.add_argument("--settings", type=int, default=250)
    chosen = parser.parse_args()
    if chosen.picture:
        picture(chosen.picture)
        return
    keep = recorder(chosen.record)
    for family in ("ellipse", "regularised", "hyperbolic", "bags"):
        largest, held, shares, whole = 0.0, 0, [], 0.0
        for seed in range(chosen.settings):
            rng = np.random.default_rng(seed)
            metric, secrets, epsilon, size = setting(family, rng)
            noise = mdp.laplace(metric, epsilon, dimension=size)
            largest = max(largest, leaked(noise, secrets, metric))
            space = mdp.FiniteSpace(secrets(5), metric)
            usual = float(np.median(space.distances[np.triu_indices(5, 1)]))
            scaled = float(10.0 ** rng.uniform(-0.5, 0.7)) / usual  # so that neither all nor nothing is told
            finite = mdp.exponential(space, scaled)
            verdicts = [mdp.audit(noise).verdict, mdp.audit(finite).verdict]
            if family == "bags":
                documents, matrix, rate = bags_of_words(rng)
                report = mdp.audit(matrix, metric=documents.metric, points=documents.points, epsilon=rate * (1 + 1e-9))
                verdicts.append(report.verdict)
                whole = max(whole, report.epsilon / rate)
                if seed % 10 == 0:
                    loss = float((matrix * documents.distances).sum(axis=1).mean())
                    best = mdp.optimal(mdp.Problem(documents, rate), gap=0.01).certificate.lower_bound
                    shares.append(loss / best - 1.0)
            elif seed % 10 == 0:
                best = mdp.optimal(mdp.Problem(space, scaled), gap=0.01).certificate
                shares.append(finite.certificate.loss / best.lower_bound - 1.0)
            held += all(verdict == "holds" for verdict in verdicts)
        told = f"; tables of all bags show {whole:.4f} of it" if family == "bags" else ""
        measured = (
            f"{held:,} of {chosen.settings:,} hold; densities show at most {largest:.6f} of the promise{told}; loss "
            f"over finite spaces {min(shares):.1%} to {max(shares):.1%} above the bound, median {np.median(shares):.1%}"
        )
        keep(GROUP, f"{family}: random settings", asked="all hold", measured=measured, held=held, largest=largest,
             least=min(shares), most=max(shares))  # fmt: skip
        print(family, measured, flush=True)


if __name__ == "__main__":
    main()
