"""Dense centre, empty suburbs on a real city: what an elastic promise costs and protects at every crossing.

    python benchmarks/elastic_maps.py solve rome_elastic.npz --city rome --seconds 1200   # the mechanism: long
    python benchmarks/elastic_maps.py draw rome_elastic.npz --record    # docs/images/elastic.png

Places are 5,000 crossings drawn from all of the city, with distances along all its roads; every crossing counts for the
nearest of them. Level l of the elastic metric holds 8 l^2 crossings, up to 150; beside it stands what a promise per
kilometre protects. Protection is how many crossings of the city a ratio of e^2 hides a place among: those of the
places within level 2, or within 2 / epsilon kilometres.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from record import arguments, recorder

import metricdp as mdp
from metricdp.pictures.palette import STYLE, write_picture

LEVEL, KILOMETRE, HIDDEN = 1.0, 3.0, 2.0  # epsilon per level, per kilometre; the exponent of what protects
MOST = 150.0  # crossings that the requirement ends at
CENTRE, SUBURB = 3.0, 8.0  # kilometres from the middle
WHAT = "elastic metric, loss and protection by place"


def requirement(level: float) -> float:
    """How many crossings level l holds."""
    return min(8.0 * level * level, MOST)


def thinned(city: mdp.FiniteSpace, count: int) -> tuple[mdp.FiniteSpace, NDArray[np.float64]]:
    """Return some crossings in the metric of all roads, and how many crossings are nearest to each."""
    from scipy.sparse.csgraph import dijkstra

    codes = np.sort(np.random.default_rng(0).choice(len(city), min(count, len(city)), replace=False))
    assert city.network is not None
    nearest = dijkstra(city.network.graph, directed=False, indices=codes, min_only=True, return_predecessors=True)[2]
    return city.part(codes), np.bincount(nearest, minlength=len(city))[codes].astype(np.float64)


def hidden(space: mdp.FiniteSpace, radius: float, mass: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mass within a radius of every place."""
    near = space.near(radius)
    return np.asarray(np.add.reduceat(mass[near.codes], near.starts[:-1]))


def losses(made: mdp.LocalMechanism, problem: mdp.Problem) -> NDArray[np.float64]:
    """Return the expected road distance in metres between truth and report, of every crossing, at most."""
    rows = np.repeat(np.arange(len(made.inputs)), np.diff(made.starts))
    paid = np.empty(len(rows))
    for start in range(0, len(rows), 10_000_000):
        some = slice(start, start + 10_000_000)
        paid[some] = made.values[some] * problem.losses(rows[some], made.columns[some])
    far = problem.most_beyond(made.background.astype(np.float64))
    return np.asarray(1000.0 * (np.add.reduceat(paid, made.starts[:-1]) + far) / made.totals)


def solve(whole: mdp.FiniteSpace, count: int, gap: float, seconds: float, target: Path) -> None:
    """Design the mechanism on windows and keep what the pictures show."""
    started = time.perf_counter()
    city, mass = thinned(whole, count)
    elastic = mdp.elastic(city, mass=mass, requirement=requirement)
    print(f"{len(city):,} places, {len(elastic.metric.edges):,} steps, {time.perf_counter() - started:.0f} s")
    found: dict[str, NDArray[np.float64]] = {"places": np.asarray(city.coordinates, dtype=np.float64)}
    found["mass"] = mass
    found["hidden_elastic"] = hidden(elastic, HIDDEN / LEVEL, mass)
    found["hidden_plain"] = hidden(city, HIDDEN / KILOMETRE, mass)
    problem = mdp.Problem(elastic, LEVEL, loss=city)
    made = mdp.optimal(problem, gap=gap, seconds=seconds, progress=told)
    assert isinstance(made, mdp.LocalMechanism)
    assert mdp.audit(made).verdict == "holds"
    facts = made.certificate
    found["metres_elastic"] = losses(made, problem)
    found["facts_elastic"] = np.array([facts.loss, facts.lower_bound, facts.epsilon, facts.seconds])
    print(facts)
    np.savez_compressed(target, **found)  # type: ignore[arg-type]


def told(lower: float, upper: float, seconds: float, iterations: int) -> None:
    """Print the bounds now and then."""
    print(f"{seconds:.0f} s, {iterations} iterations: {lower:.5g} to {upper:.5g}", flush=True)


def ring(places: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which crossings lie in the centre and which in the suburbs."""
    middle = np.median(places, axis=0)
    away = mdp.Haversine()(places, middle[None])
    return away <= CENTRE, away >= SUBURB


def draw(found: dict[str, NDArray[np.float64]], target: Path) -> None:
    """Draw what either promise protects, on one scale, and what the elastic one costs."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import colors, pyplot

    places = found["places"]
    size = min(14.0, 12_000 / len(places))
    crowd = colors.LogNorm(5, 300)
    with pyplot.rc_context(STYLE):
        figure, charts = pyplot.subplots(1, 3, figsize=(11.0, 4.6), layout="constrained")
        for chart, name, title, scale, words in (
            (charts[0], "hidden_plain", f"{KILOMETRE:g} per kilometre:\nhidden among", crowd, ""),
            (charts[1], "hidden_elastic", f"{LEVEL:g} per level:\nhidden among", crowd, "crossings"),
            (charts[2], "metres_elastic", f"{LEVEL:g} per level:\nloss", colors.Normalize(0, 1500), "metres"),
        ):
            dots = chart.scatter(
                places[:, 1], places[:, 0], c=found[name], s=size, cmap="viridis_r", norm=scale, linewidths=0
            )
            chart.set_aspect(1.0 / np.cos(np.radians(places[:, 0].mean())))
            chart.set_axis_off()
            chart.set_title(title)
            if words:
                figure.colorbar(dots, ax=chart, label=words, shrink=0.8)
        write_picture(figure, target)


def words_of(found: dict[str, NDArray[np.float64]]) -> str:
    """Say what the maps show, in the centre and in the suburbs."""
    centre, suburb = ring(found["places"])
    said = []
    for name, promise in (("plain", f"{KILOMETRE:g}/km"), ("elastic", f"{LEVEL:g}/level")):
        hidden = found[f"hidden_{name}"]
        said.append(
            f"{promise}: a ratio of e² hides a place among {np.median(hidden[centre]):.0f} crossings in the centre, "
            f"{np.median(hidden[suburb]):.0f} in the suburbs, at most {np.quantile(hidden, 0.1):.0f} for a tenth "
            f"of all places and {hidden.min():.0f} at the least"
        )
    loss, bound, epsilon, seconds = found["facts_elastic"]
    metres = found["metres_elastic"]
    said.append(
        f"the mechanism of {LEVEL:g}/level loses {metres[centre].mean():.0f} m in the centre and "
        f"{metres[suburb].mean():.0f} m in the suburbs, at most {1000 * loss:.0f} m on average, none below "
        f"{1000 * bound:.0f} m (gap {1 - bound / loss:.1%} in {seconds:.0f} s, audited epsilon {epsilon:.9g})"
    )
    return "; ".join(said)


def main() -> None:
    """Solve, or draw and record."""
    parser = arguments(__doc__)
    parser.add_argument("step", choices=("solve", "draw"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--city", default="rome")
    parser.add_argument("--places", type=int, default=5_000)
    parser.add_argument("--gap", type=float, default=0.05)
    parser.add_argument("--seconds", type=float, default=1200.0)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/images/elastic.png"))
    chosen = parser.parse_args()
    if chosen.step == "solve":
        solve(mdp.road_network(chosen.city), chosen.places, chosen.gap, chosen.seconds, chosen.file)
        return
    with np.load(chosen.file) as kept:
        found = {name: np.asarray(kept[name]) for name in kept.files}
    draw(found, chosen.output)
    crossings, places = int(found["mass"].sum()), len(found["places"])
    what = f"{chosen.city.title()}, {places:,} places for {crossings:,} crossings, {WHAT}"
    recorder(chosen.record)("elastic", what, measured=words_of(found), places=places, crossings=crossings, picture=True)
    print(words_of(found))


if __name__ == "__main__":
    main()
