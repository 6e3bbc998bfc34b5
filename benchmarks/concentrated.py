"""Concentrated promises: 1,000 random spaces and 1,000 settings of Gaussian noise judged, and what composition gains.

    python benchmarks/concentrated.py --record           (some three minutes of one core; goes on where it stopped)
    python benchmarks/concentrated.py --only composition --record --picture docs/images/concentrated.png

**Spaces.** 3 to 6 points of a line or of a grid, rho drawn. Gaussian noise put on the nearest point (masses by the
normal distribution function) keeps rho; so does the exponential mechanism at epsilon = sqrt(2 rho), and at the largest
epsilon whose divergences keep it. Each is judged by `mdp.auditing.audit_concentrated` and by brute force, order by
order. The
loss is held against a bound of THIS promise, and of no pure one: the least loss of any matrix whose divergences of the
orders 1 and 2 keep rho. Whoever keeps all orders keeps these two, and both are convex in the matrix, so that a cone
program has that least loss; its dual solution, put into the dual cone and its residual charged, proves the bound. Its
primal solution, mixed with its mean row until all orders keep rho, is a fourth mechanism: nearly the best there is.

**Settings.** Gaussian noise under l_2, Mahalanobis and on the Earth in random dimensions and sizes: judged by its
theorem, on a coarse lattice of the line by its masses, and its squared error held against n / (2 rho), which no
mechanism with this promise goes below everywhere (docs/explanation/composition.md has the proof).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from record import PROGRESS, arguments, gone_through, recorder
from scipy.sparse import csc_matrix
from scipy.special import ndtr

import metricdp as mdp

GROUP = "concentrated"
ORDERS = 1.0 + np.concatenate([np.geomspace(1e-3, 0.1, 40), np.linspace(0.1, 8.0, 200), np.geomspace(8.0, 1e4, 60)])
DELTA, ERROR = 1e-6, 0.2  # of the table of composition: delta, and the mean error of every release in kilometres


def brute_rho(law: np.ndarray, apart: np.ndarray) -> float:
    """Return the largest D_a / (a d^2) over all pairs and many orders, the first among them, term by term."""
    worst = 0.0
    for i in range(len(law)):
        for j in range(len(law)):
            if i != j:
                logs = np.log(law[i]) - np.log(law[j])
                x = (ORDERS - 1.0)[:, None] * logs
                top = x.max(axis=1)
                whole = top + np.log((law[i] * np.exp(x - top[:, None])).sum(axis=1))
                first = float((law[i] * logs).sum())
                worst = max(
                    worst, first / apart[i, j] ** 2, float((whole / (ORDERS - 1) / ORDERS).max()) / apart[i, j] ** 2
                )
    return worst


def on_nearest(sides: list[np.ndarray], sigma: float) -> np.ndarray:
    """Return the law of Gaussian noise put on the nearest point of a grid: one side after the other."""
    matrix = np.ones((1, 1))
    for side in sides:
        borders = np.concatenate([[-np.inf], (side[1:] + side[:-1]) / 2, [np.inf]])
        low, high = ((part[None, :] - side[:, None]) / sigma for part in (borders[:-1], borders[1:]))
        far = low > 0  # the upper tail by the lower one, so that small masses keep their digits
        mass = np.where(far, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
        matrix = np.kron(matrix, mass)
    return matrix


def least_loss(cost: np.ndarray, apart: np.ndarray, rho: float) -> tuple[float, np.ndarray]:
    """Return a proven lower bound of the loss of every matrix with D_1 <= rho d^2 and D_2 <= 2 rho d^2, and the best.

    min <cost, Z> over rows that sum to one, with w >= z_i ln(z_i / z_j) (exponential cones), u z_j >= z_i^2 (cones of
    the second order) and their sums limited. For y in the dual cone and r = A'y + q every matrix has
    q'x >= -b'y - sum |r| |x|, and |x| is at most one for Z, e^(2 rho d^2) for u and rho d^2 + n / e for w.
    """
    import clarabel

    n = len(cost)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    pairs = [
        pair for pair in pairs if 2.0 * rho * apart[pair] ** 2 < 12.0
    ]  # those that are told apart anyway are left out
    size = n * n + 2 * n * len(pairs)
    limits = np.ones(size)
    rows: list[tuple[int, int, float]] = []
    right: list[float] = []

    def add(terms: list[tuple[int, float]], value: float) -> None:
        rows.extend((len(right), column, factor) for column, factor in terms)
        right.append(value)

    first = [n * n + 2 * n * p for p in range(len(pairs))]  # w of a pair, then its u
    for i in range(n):
        add([(i * n + k, 1.0) for k in range(n)], 1.0)
    zeros = len(right)
    for (i, j), at in zip(pairs, first, strict=True):
        budget = rho * float(apart[i, j]) ** 2
        limits[at : at + n], limits[at + n : at + 2 * n] = budget + n / math.e, math.exp(2.0 * budget)
        add([(at + k, 1.0) for k in range(n)], budget)
        add([(at + n + k, 1.0) for k in range(n)], math.exp(2.0 * budget))
    positive = len(right) - zeros
    for i in range(n * n):
        add([(i, -1.0)], 0.0)
    positive += n * n
    squares = 0
    for (i, j), at in zip(pairs, first, strict=True):
        for k in range(n):  # (u + z_j, u - z_j, 2 z_i)
            add([(at + n + k, -1.0), (j * n + k, -1.0)], 0.0)
            add([(at + n + k, -1.0), (j * n + k, 1.0)], 0.0)
            add([(i * n + k, -2.0)], 0.0)
            squares += 1
    for (i, j), at in zip(pairs, first, strict=True):
        for k in range(n):  # (-w, z_i, z_j): z_i exp(-w / z_i) <= z_j
            add([(at + k, 1.0)], 0.0)
            add([(i * n + k, -1.0)], 0.0)
            add([(j * n + k, -1.0)], 0.0)
    columns = np.array([(r, c) for r, c, _ in rows])
    matrix = csc_matrix(([value for _, _, value in rows], (columns[:, 0], columns[:, 1])), shape=(len(right), size))
    q = np.zeros(size)
    q[: n * n] = cost.ravel() / n
    b = np.array(right)
    cones = [clarabel.ZeroConeT(zeros), clarabel.NonnegativeConeT(positive)]
    cones += [clarabel.SecondOrderConeT(3)] * squares + [clarabel.ExponentialConeT()] * squares
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    found = clarabel.DefaultSolver(csc_matrix((size, size)), q, matrix, b, cones, settings).solve()
    y = np.array(found.z)
    y[zeros : zeros + positive] = np.maximum(y[zeros : zeros + positive], 0.0)
    start = zeros + positive
    second = y[start : start + 3 * squares].reshape(-1, 3)
    second[:, 0] = np.maximum(second[:, 0], np.hypot(second[:, 1], second[:, 2]) * (1.0 + 1e-15))
    powers = y[start + 3 * squares :].reshape(-1, 3)  # the dual cone: u < 0 and -u exp(v / u - 1) <= w
    powers[:, 0] = np.minimum(powers[:, 0], -1e-300)
    with np.errstate(over="ignore"):
        powers[:, 2] = np.maximum(
            powers[:, 2], -powers[:, 0] * np.exp(powers[:, 1] / powers[:, 0] - 1.0) * (1.0 + 1e-14)
        )
    left = matrix.T @ y + q
    bound = float(-(b @ y) - np.abs(left) @ limits) - 1e-12 * (1.0 + float(np.abs(b) @ np.abs(y)))
    best = np.maximum(np.array(found.x)[: n * n].reshape(n, n), 1e-12)
    return max(0.0, bound) if math.isfinite(bound) else 0.0, best / best.sum(axis=1, keepdims=True)


def mixed(best: np.ndarray, apart: np.ndarray, rho: float) -> np.ndarray:
    """Return the best matrix for two orders, mixed with its mean row as little as all orders ask for."""
    low, high = 0.0, 1.0
    for _ in range(12):
        middle = 0.5 * (low + high)
        law = (1.0 - middle) * best + middle * best.mean(axis=0)
        kept = mdp.auditing.audit_concentrated(law, distances=apart).rho <= rho
        low, high = (low, middle) if kept else (middle, high)
    return np.asarray((1.0 - high) * best + high * best.mean(axis=0))


def tuned(space: mdp.FiniteSpace, rho: float) -> np.ndarray:
    """Return the exponential mechanism at about the largest epsilon at which its law keeps rho."""
    low = math.sqrt(2.0 * rho)
    high = 4.0 * low
    for _ in range(12):
        middle = 0.5 * (low + high)
        matrix = mdp.exponential(space, middle).matrix
        kept = mdp.auditing.audit_concentrated(matrix, distances=space.distances).rho <= rho
        low, high = (middle, high) if kept else (low, middle)
    return np.asarray(mdp.exponential(space, low).matrix)


def drawn(seed: int) -> tuple[list[np.ndarray], mdp.FiniteSpace, np.ndarray, float]:
    """Return the sides of a random grid, its space, the distances of its points, and a rho."""
    rng = np.random.default_rng(seed)
    shape = [(3,), (4,), (5,), (6,), (2, 2), (3, 2)][int(rng.integers(6))]
    sides = [np.sort(rng.uniform(0, 3, size)) + 0.2 * np.arange(size) for size in shape]
    points = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, len(shape))
    apart = np.linalg.norm(points[:, None] - points[None], axis=-1)
    usual = float(np.median(apart[np.triu_indices(len(points), 1)]))
    return sides, mdp.FiniteSpace(points, mdp.Lp(2)), apart, float(10.0 ** rng.uniform(-1.5, 0.6)) / usual**2


def judged(laws: dict[str, np.ndarray], apart: np.ndarray, rho: float, bound: float) -> dict[str, Any]:
    """Judge laws by the audit and by brute force, and hold their losses against the bound."""
    found: dict[str, Any] = {"bound": bound}
    for name, matrix in laws.items():
        law = matrix / matrix.sum(axis=1, keepdims=True)
        report = mdp.auditing.audit_concentrated(matrix, distances=apart, rho=rho * (1.0 + 1e-9))
        less = mdp.auditing.audit_concentrated(matrix, distances=apart, rho=report.reached * (1.0 - 1e-6))
        brute = brute_rho(law, apart)
        found[name] = {
            "holds": report.verdict == "holds" and bool(brute <= min(rho, report.rho) * (1.0 + 1e-9)),
            "refuted": less.verdict == "violated",
            "share": float(brute / rho),
            "missed": float(report.rho / brute - 1.0),
            "above": float((law * apart).sum(axis=1).mean()) / bound - 1.0 if bound else None,
        }
    return found


def one_space(seed: int) -> dict[str, Any]:
    """Judge three mechanisms on a random space."""
    sides, space, apart, rho = drawn(seed)
    laws = {
        "Gaussian noise, nearest point": on_nearest(sides, math.sqrt(0.5 / rho)),
        "exponential, epsilon^2 = 2 rho": np.asarray(mdp.exponential(space, math.sqrt(2.0 * rho)).matrix),
        "exponential, largest epsilon": tuned(space, rho),
    }
    return judged(laws, apart, rho, least_loss(apart, apart, rho)[0])


def best_of_space(seed: int) -> dict[str, Any]:
    """Judge what the cone program finds on a random space."""
    _, _, apart, rho = drawn(seed)
    bound, best = least_loss(apart, apart, rho)
    return judged({"cone program, mixed until all orders hold": mixed(best, apart, rho)}, apart, rho, bound)


def one_setting(seed: int) -> dict[str, Any]:
    """Judge Gaussian noise of a random size, and measure its squared error."""
    rng = np.random.default_rng(seed)
    sigma = float(10.0 ** rng.uniform(-2, 2))
    kind, size = seed % 3, int(rng.integers(1, 9))
    if kind == 0:
        metric: Any = mdp.Lp(2)
    elif kind == 1:
        public = rng.normal(size=(30, size)) @ rng.normal(size=(size, size))
        metric = mdp.Mahalanobis.regularised(np.atleast_2d(np.cov(public.T)), float(rng.uniform(0, 0.9)))
    else:
        metric, size = mdp.Haversine(), 2
    noise = mdp.gaussian(metric, sigma=sigma, dimension=size)
    if kind == 2:
        x = np.column_stack([np.degrees(np.arcsin(rng.uniform(-1, 1, 400))), rng.uniform(-180, 180, 400)])
    else:
        x = rng.normal(size=(400, size))
    reports = noise.sample(x, rng=rng)
    square = float(np.square(metric(x, reports)).mean()) * 2.0 * noise.guarantee.rho / size
    report, less = (
        mdp.auditing.audit_concentrated(noise),
        mdp.auditing.audit_concentrated(noise, rho=0.98 * noise.guarantee.rho),
    )
    # on the line, on a lattice as coarse as may be, the divergences of the masses
    coarse = mdp.gaussian(mdp.Lp(2), sigma=sigma, dimension=1, pitch=sigma * float(rng.uniform(0.05, 2.0)))
    grid = coarse.lattice.pitch * np.arange(-1200, 1201)
    centre, gap = sigma * float(rng.uniform(-1, 1)), sigma * float(10.0 ** rng.uniform(-1, 0.5))
    p, q = (coarse.log_density(np.full((len(grid), 1), place), grid[:, None]) for place in (centre, centre + gap))
    shown = []
    for order in (1.001, 1.5, 2.0, 4.0, 16.0):
        terms = order * p + (1.0 - order) * q
        top = float(terms.max())
        shown.append((top + math.log(float(np.exp(terms - top).sum()))) / ((order - 1.0) * order * gap**2))
    most = max(shown) / coarse.guarantee.rho
    held = report.verdict == "holds" and less.verdict == "violated" and most <= 1.0 + 1e-7
    return {
        "seed": seed,
        "kind": ("l_2", "Mahalanobis", "Earth")[kind],
        "holds": held,
        "square": square,
        "lattice": most,
    }


def composition() -> list[dict[str, Any]]:
    """Return what k releases of one mean error keep together at two distances, by three ways to add up."""
    pure = mdp.laplace(mdp.Haversine(), 2.0 / ERROR)
    normal = mdp.gaussian(mdp.Haversine(), sigma=ERROR / math.sqrt(math.pi / 2.0))
    worth = mdp.auditing.concentrated(pure)
    rows = []
    for distance in (0.02, 0.1):
        for k in (1, 3, 10, 30, 100, 300, 1000):
            rows.append({
                "distance_km": distance, "releases": k, "mean_error_km": ERROR, "delta": DELTA,
                "linear": k * pure.epsilon * distance,
                "laplace_rho": worth.composed(times=k).epsilon_at(distance, DELTA),
                "gaussian_rho": normal.guarantee.composed(times=k).epsilon_at(distance, DELTA),
            })  # fmt: skip
    return rows


def laplace_delta(epsilon: float, apart: float, rate: float) -> float:
    """Return the least delta of planar Laplace noise, by an integral in the coordinates of an ellipse.

    With the two places as foci, s = d cosh(u) the sum and t = d sin(v) the difference of the distances to them, the
    area is (s^2 - t^2) / 2 du dv for both halves, and the ratio of the densities exp(rate t) is above e^epsilon where
    t > epsilon / rate: nowhere, up to the distance epsilon / rate.
    """
    if epsilon >= rate * apart:
        return 0.0
    nodes, weights = np.polynomial.legendre.leggauss(400)
    first = math.asin(epsilon / (rate * apart))
    v = first + (math.pi / 2 - first) * (nodes + 1) / 2
    longest = math.acosh(1.0 + 100.0 / (rate * apart))
    u = longest * (nodes + 1) / 2
    s, t = apart * np.cosh(u)[:, None], apart * np.sin(v)[None, :]
    gain = np.exp(-rate * (s - t) / 2) - math.exp(epsilon) * np.exp(-rate * (s + t) / 2)
    cell = weights[:, None] * weights[None, :] * longest * (math.pi / 2 - first) / 4
    return float((0.5 * (s * s - t * t) * gain * cell).sum() * rate**2 / (2.0 * math.pi))


def picture(path: str) -> None:
    """Draw delta against the distance for both kinds of noise at one mean error, and what many releases cost."""
    import matplotlib.pyplot as plt

    rate = 2.0 / ERROR
    normal = mdp.gaussian(mdp.Lp(2, unit="km"), sigma=ERROR / math.sqrt(math.pi / 2.0)).guarantee
    figure, axes = plt.subplots(1, 3, figsize=(11.5, 3.7))
    for k, epsilon in enumerate((0.0, 0.5, 1.0, 2.0, 4.0)):
        far = np.geomspace(0.005, 1.0, 160)
        beyond = epsilon / rate + np.geomspace(1e-8, 1.0, 200)  # up to epsilon / rate there is nothing to draw
        for one, places, values in (
            (axes[0], far, [normal.delta_at(float(d), epsilon) for d in far]),
            (axes[1], beyond, [laplace_delta(epsilon, float(d), rate) for d in beyond]),
        ):
            one.plot(1000 * places, np.maximum(values, 1e-12), color=f"C{k}", label=f"epsilon {epsilon:g}")
    for one, name in zip(axes, ("Gaussian: never 0", "Laplace: 0 up to 100 m x epsilon"), strict=False):
        one.set(xscale="log", yscale="log", xlim=(5, 1000), ylim=(1e-10, 1.5), title=name, ylabel="delta")
        one.set(xlabel="metres apart; both with a mean error of 200 m", xticks=[10, 30, 100, 300, 1000])
        one.set_xticklabels(["10", "30", "100", "300", "1000"])
        one.legend(fontsize=7, loc="lower right")
    rows = [row for row in composition() if row["distance_km"] == 0.1]
    names = {
        "linear": "Laplace, added up: pure",
        "laplace_rho": "Laplace in rho, delta 1e-6",
        "gaussian_rho": "Gaussian in rho, delta 1e-6",
    }
    for key, name in names.items():
        axes[2].plot([row["releases"] for row in rows], [row[key] for row in rows], marker=".", label=name)
    axes[2].set(xscale="log", yscale="log", xlabel="releases", ylabel="epsilon, 100 m apart", title="many releases")
    axes[2].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--only", choices=["spaces", "best", "settings", "composition"])
    parser.add_argument("--folder", type=Path, default=PROGRESS, help="what was judged, line by line")
    parser.add_argument("--picture", help="where to draw delta against the distance")
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    for kind, judge in (("spaces", one_space), ("best", best_of_space)):
        if chosen.only not in (None, kind):
            continue
        found = gone_through(chosen.folder / f"concentrated_{kind}.jsonl", chosen.count, judge)
        for name in [key for key, value in found[0].items() if isinstance(value, dict)]:
            own = [one[name] for one in found]
            above = [one["above"] for one in own if one["above"] is not None]
            held = sum(one["holds"] and one["refuted"] for one in own)
            assert min(above) >= -1e-9, (name, min(above))
            words = (
                f"{held:,} of {len(own):,} hold by the audit and by brute force, and a millionth less than is reached "
                f"is refuted; {np.median([one['share'] for one in own]):.0%} of rho is reached in the middle, at most "
                f"{max(one['share'] for one in own):.4%}; loss {np.median(above):.0%} above the bound of this promise "
                f"in the middle, {min(above):.1%} to {max(above):.0%}"
            )
            shares = {"above": float(np.median(above)), "least": min(above), "most": max(above)}
            what = f"{name}: {len(own):,} random spaces"
            keep(GROUP, what, asked="all hold", measured=words, held=held, count=len(own), **shares)
            print(name, words, flush=True)
    if chosen.only in (None, "settings"):
        found = gone_through(chosen.folder / "concentrated_settings.jsonl", chosen.count, one_setting)
        for kind in ("l_2", "Mahalanobis", "Earth"):
            own = [one for one in found if one["kind"] == kind]
            held, squares = sum(one["holds"] for one in own), np.array([one["square"] for one in own])
            wide = 1.96 * float(squares.std() / math.sqrt(len(own)))
            words = (
                f"{held:,} of {len(own):,} hold; masses on coarse lattices show at most "
                f"{max(one['lattice'] for one in own):.6f} of rho; squared error {squares.mean() - 1:+.2%} (95 %: "
                f"+-{wide:.2%}) above n / (2 rho), "
                + ("that of the plane" if kind == "Earth" else "the least of any mechanism with this promise")
            )
            keep(GROUP, f"Gaussian noise, {kind}: random settings", asked="all hold", measured=words, held=held,
                 count=len(own), square=float(squares.mean()), wide=wide)  # fmt: skip
            print(kind, words, flush=True)
    if chosen.only in (None, "composition"):
        for row in composition():
            words = (
                f"added up {row['linear']:.3g} (pure), Laplace in rho {row['laplace_rho']:.3g}, Gaussian in rho "
                f"{row['gaussian_rho']:.3g} (both but for delta {DELTA:g})"
            )
            far = f"{1000 * row['distance_km']:g} m apart"
            what = f"{row['releases']:,} releases, mean error {1000 * ERROR:g} m, {far}"
            keep(GROUP, what, measured=words, **row)
            print(row, flush=True)
    if chosen.picture:
        picture(chosen.picture)


if __name__ == "__main__":
    main()
