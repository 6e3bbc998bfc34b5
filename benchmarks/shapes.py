"""Noise with a shape, 1,000 random settings of each: ellipses, covariances, hyperbolic space, bags of words, spheres.

    python benchmarks/shapes.py --record                  (some five minutes of one core; goes on where it stopped)
    python benchmarks/shapes.py --only sphere --settings 50
    python benchmarks/shapes.py --only words --record     (the covariance of GloVe words, as Xu et al. 2020 mix it)

A setting has a random dimension, epsilon, shape and space. Its noise is audited by its theorem, one in ten also at a
hundredth less than epsilon, which must be refuted; its densities are compared with the promise at pairs of secrets and
at reports beyond them, where the whole of epsilon shows. Losses are held against two lower bounds:

- **anywhere**: the mean distance between secret and report that no mechanism with the same promise goes below at every
  secret of the whole space (docs/explanation/families.md has the proofs): n / epsilon in n dimensions, under any norm;
  N times that for bags of N vectors; on the sphere the mean of the noise itself; in hyperbolic space the larger of
  the sum of 1 / (epsilon + 2 j) for j below n and of what the volumes of balls leave.
- **finite**: over six random secrets the exponential mechanism of the same metric is audited exactly, and in one
  setting of four the noise is put on the nearest of them (post-processing; the mean of some draws); both are held
  against the engine's proven bound for these six secrets, these six reports and this promise.

For bags the table of all bags of two or three words over a vocabulary is written down order by order and audited too.
"""

from __future__ import annotations

from itertools import combinations_with_replacement, permutations
from math import factorial, prod
from pathlib import Path
from typing import Any

import numpy as np
from record import PROGRESS, arguments, gone_through, recorder

import metricdp as mdp
from metricdp.places import data_folder

GROUP = "shapes"
FAMILIES = ("ellipse", "regularised", "hyperbolic", "bags", "sphere")
POINTS, DRAWS = 6, 20  # secrets of a finite space, and reports drawn for each of them
CELLS = 40_000  # of integrals


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
    if family == "sphere":

        def directions(rows: int) -> np.ndarray:
            found = rng.normal(size=(rows, n + 1))
            return found / np.linalg.norm(found, axis=1, keepdims=True)

        return mdp.Angular(), directions, epsilon, n + 1
    count, size = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    metric = mdp.metrics.Bags(mdp.Lp([1, 2, np.inf][int(rng.integers(3))]), size)
    return metric, lambda rows: rng.normal(size=(rows, count * size)), epsilon, count * size


def leaked(mechanism: Any, secrets: Any, metric: Any) -> float:
    """Return the largest |ln ratio| over epsilon times distance that densities show, the reports beyond included."""
    x, other = secrets(40), secrets(40)
    reports = np.concatenate([mechanism.sample(x, rng=np.random.default_rng(0)), secrets(40)])
    if isinstance(metric, mdp.Angular):  # on the great circle through both, before the first; its antipode is no nearer
        turned = x - 0.1 * (other - (other * x).sum(axis=1, keepdims=True) * x)
        reports = np.concatenate([reports[40:], turned / np.linalg.norm(turned, axis=1, keepdims=True)])
    elif not isinstance(metric, mdp.Hyperbolic):
        reports = np.concatenate([reports, x + 50.0 * (x - other)])
    repeat = len(reports) // 40
    x, other = np.tile(x, (repeat, 1)), np.tile(other, (repeat, 1))
    logs = np.abs(mechanism.log_density(x, reports) - mechanism.log_density(other, reports))
    apart = metric(x, other)
    far = apart > 1e-6
    return float((logs[far] / (mechanism.epsilon * apart[far])).max())


def anywhere(family: str, epsilon: float, size: int) -> float:
    """Return the mean distance that no mechanism with this promise goes below at every secret."""
    if family == "sphere":  # the noise itself: the mean angle under exp(-epsilon t) sin(t)^(size - 2)
        angle = (np.arange(CELLS) + 0.5) * np.pi / CELLS
        logs = -epsilon * angle + (size - 2) * np.log(np.sin(angle))
        mass = np.exp(logs - logs.max())
        return float((mass * angle).sum() / mass.sum())
    if family != "hyperbolic":
        return size / epsilon
    by_fields = sum(1.0 / (epsilon + 2 * j) for j in range(size))
    far = 80.0 / (epsilon - size + 1)
    radius = (np.arange(CELLS) + 0.5) * far / CELLS
    logs = (size - 1) * (radius + np.log1p(-np.exp(-2 * radius)) - np.log(2.0))  # of sinh(r)^(n - 1)
    mass = np.exp(logs - epsilon * radius).sum()
    with np.errstate(over="ignore"):
        balls = np.cumsum(np.exp(np.minimum(logs, 700.0)))
    by_balls = float(np.maximum(1.0 - balls / mass, 0.0).sum()) * far / CELLS
    return float(max(by_fields, by_balls))


def one_setting(family: str, seed: int) -> dict[str, Any]:
    """Judge the noise of a random setting and mechanisms over a finite space of its metric."""
    rng = np.random.default_rng(seed)
    metric, secrets, epsilon, size = setting(family, rng)
    noise = mdp.laplace(metric, epsilon, dimension=size, normalise=family == "sphere")
    held = mdp.audit(noise).verdict == "holds"
    if seed % 10 == 0:  # a hundredth less than what is kept
        held = held and mdp.audit(noise, epsilon=0.99 * epsilon).verdict == "violated"
    shown = leaked(noise, secrets, metric)
    x = secrets(40)
    if family == "bags":  # words that are far apart: there the bound is
        x = x + 1e3 * (1.0 + 1.0 / epsilon) * np.repeat(np.arange(size // metric.dimension), metric.dimension)
    mean = float(metric(x, noise.sample(x, rng=rng)).mean())
    least = anywhere(family, epsilon, size)
    found = {"shown": shown, "mean": mean / least, "loss": round(noise.certificate.loss / least - 1.0, 7) + 0.0}
    points = secrets(POINTS)
    space = mdp.FiniteSpace(points, metric)
    usual = float(np.median(space.distances[np.triu_indices(POINTS, 1)]))
    rate = float(10.0 ** rng.uniform(-0.5, 0.7)) / usual  # so that neither all nor nothing is told
    if family == "hyperbolic":
        rate += size - 1
    finite = mdp.exponential(space, rate)
    held = held and mdp.audit(finite).verdict == "holds"
    if seed % 4 == 0:
        bound = mdp.optimal(mdp.Problem(space, rate), gap=0.01).certificate.lower_bound
        codes = np.repeat(np.arange(POINTS), DRAWS)
        own = mdp.laplace(metric, rate, dimension=size, normalise=family == "sphere").sample(points[codes], rng=rng)
        if family == "sphere":
            own = own / np.linalg.norm(own, axis=1, keepdims=True)
        nearest = np.stack([metric(own, np.tile(point, (len(own), 1))) for point in points], axis=1).argmin(axis=1)
        found["finite"] = finite.certificate.loss / bound - 1.0
        found["nearest"] = float(space.distances[codes, nearest].mean()) / bound - 1.0
    if family == "bags":
        documents, matrix, rate = bags_of_words(rng)
        report = mdp.audit(matrix, metric=documents.metric, points=documents.points, epsilon=rate * (1 + 1e-9))
        held, found["whole"] = held and report.verdict == "holds", report.epsilon / rate
    return {"held": bool(held), **found}


def words(keep: Any) -> None:
    """Measure what Xu et al. (2020) measure: how often a word stays and how many words it becomes, by region.

    N_w is the share of draws that give the word itself, S_w the number of different words; the paper's question is
    words in sparse regions, where noise that is round leaves most words as they are.
    """
    path = data_folder() / "glove_6b_100d" / "vectors.npz"
    if not path.is_file():
        print(f"{path} is not there: name the folder of the data with METRICDP_DATA")
        return
    with np.load(path, allow_pickle=False) as file:
        vectors = np.asarray(file["vectors"][:10_000], dtype=np.float64)
    covariance = np.cov(vectors.T)
    squares = np.square(vectors).sum(axis=1)

    def nearest(rows: np.ndarray) -> np.ndarray:
        return np.asarray((squares[None, :] - 2.0 * rows @ vectors.T).argmin(axis=1))

    chosen = np.random.default_rng(0).choice(len(vectors), 400, replace=False)
    own = vectors[chosen]
    away = np.sqrt(np.maximum(squares[None, :] - 2.0 * own @ vectors.T + np.square(own).sum(axis=1)[:, None], 0.0))
    gap = np.partition(away, 1, axis=1)[:, 1]  # to the nearest other word: the sparse are those with the largest
    sparse = gap >= np.quantile(gap, 0.8)
    for epsilon in (6.0, 9.0, 12.0):
        for share in (0.0, 0.2, 0.5, 1.0):
            metric = mdp.Mahalanobis.regularised(covariance, share)
            noise = mdp.laplace(metric, epsilon)
            reports = np.stack([
                nearest(noise.sample(own, rng=np.random.default_rng(k))) for k in range(DRAWS)
            ])  # fmt: skip
            stays = (reports == chosen).mean(axis=0)
            different = np.array([len(np.unique(column)) for column in reports.T]) / DRAWS
            values = {"stays": stays.mean(), "stays_sparse": stays[sparse].mean(), "different": different.mean(),
                      "different_sparse": different[sparse].mean()}  # fmt: skip
            said = (
                f"stays {values['stays']:.1%} of the time (sparse fifth {values['stays_sparse']:.1%}), different words "
                f"of {DRAWS} draws {values['different']:.0%} (sparse fifth {values['different_sparse']:.0%}); in "
                f"Euclidean distance it promises {epsilon * metric.stretch:.3g}"
            )
            keep(GROUP, f"GloVe words, share {share:g} of the covariance, epsilon {epsilon:g}", measured=said,
                 epsilon=epsilon, share=share, euclidean=epsilon * metric.stretch,
                 **{name: float(value) for name, value in values.items()})  # fmt: skip
            print(epsilon, share, said, flush=True)


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
    return mdp.FiniteSpace(points, mdp.metrics.Bags(mdp.Lp(2), 2)), matrix, epsilon


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


def share(value: float) -> str:
    """Return a share in words; what is below half a thousandth is nothing."""
    return f"{round(value, 3) + 0.0:.1%}"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--picture", help="draw some noise there, and measure nothing")
    parser.add_argument("--settings", type=int, default=1_000)
    parser.add_argument("--only", choices=[*FAMILIES, "words"])
    parser.add_argument("--folder", type=Path, default=PROGRESS, help="what was judged, line by line")
    chosen = parser.parse_args()
    if chosen.picture:
        picture(chosen.picture)
        return
    keep = recorder(chosen.record)
    for family in FAMILIES:
        if chosen.only not in (None, family):
            continue
        path = chosen.folder / f"shapes_{family}.jsonl"
        found = gone_through(path, chosen.settings, lambda seed, of=family: one_setting(of, seed))
        held = sum(one["held"] for one in found)
        shares = {name: [one[name] for one in found if name in one] for name in ("loss", "finite", "nearest")}
        middle = {name: float(np.median(some)) for name, some in shares.items()}
        ends = {name: (min(some), max(some)) for name, some in shares.items()}
        assert ends["loss"][0] >= -1e-5, (family, ends)  # nothing is below a bound, but for quadrature
        assert ends["finite"][0] >= -1e-9, (family, ends)
        largest, mean = max(one["shown"] for one in found), float(np.mean([one["mean"] for one in found]))
        told = f"; tables of all bags show {max(one['whole'] for one in found):.4f} of it" if family == "bags" else ""
        measured = (
            f"{held:,} of {len(found):,} hold; densities show at most {largest:.6f} of the promise{told}; loss above "
            f"the least anywhere {share(middle['loss'])} in the middle ({share(ends['loss'][0])} to "
            f"{share(ends['loss'][1])}; by draws {share(mean - 1)} on average); over finite spaces above the engine's "
            f"bound: put on the nearest {middle['nearest']:.0%}, exponential {middle['finite']:.0%} "
            f"({ends['finite'][0]:.1%} to {ends['finite'][1]:.0%})"
        )
        keep(GROUP, f"{family}: {len(found):,} random settings", asked="all hold", measured=measured, held=held,
             count=len(found), largest=largest, family=family, loss=middle["loss"], most=ends["loss"][1],
             finite=middle["finite"], nearest=middle["nearest"], draws=mean - 1.0)  # fmt: skip
        print(family, measured, flush=True)
    if chosen.only in (None, "words"):
        words(keep)


if __name__ == "__main__":
    main()
