"""The whole journey on bundled data: a road network, mechanisms, a protected table, a proof and a report."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from metricdp import messages
from metricdp.arrays import Floats, Integers
from metricdp.artifacts import save
from metricdp.auditing import audit, expected_loss
from metricdp.design.exponential import exponential, tight_constraints
from metricdp.design.laplace import laplace
from metricdp.design.local import FEW
from metricdp.design.optimal import optimal
from metricdp.design.post_processing import remapped
from metricdp.errors import Infeasible, InvalidInput
from metricdp.files import make_folder, replace_file
from metricdp.mechanisms import FiniteMechanism
from metricdp.metrics import Haversine
from metricdp.places import bundled_roads, bundled_streets, bundled_trips, road_network
from metricdp.plots import Comparison, Contender, Map, ReportContent, overview, write_picture, write_report
from metricdp.problems import Problem
from metricdp.solvers import Interior
from metricdp.spaces import FiniteSpace
from metricdp.tables import perturb
from metricdp.units import epsilon_for

EPSILON = epsilon_for(2.0, 0.1)  # per kilometre: crossings 100 m apart differ by at most a factor of two
MATCH_KM = 0.03  # a position lies this close to a crossing, or it is no position of these trips
SECRET = (
    "The secret is a crossing: every position was first put on the nearest one, by a public rule, and the promise is "
    "between crossings, along the roads."
)
NODES = 300
SECONDS = 60.0  # the most that the optimal mechanism may take
GAP = 0.02
CITY_NODES, CITY_GAP = 5_000, 0.05  # of a larger map, which is solved on windows
CITY_WINDOW = 15.0 / EPSILON  # kilometres, where a map of few crossings would not need windows
DRAWS, CITY_DRAWS = 20_000, 2_000
ATTRIBUTION = "Roads © OpenStreetMap contributors, ODbL 1.0."
SIMULATED = (
    "The trips are simulated on a real road network, with positions close to crossings. Nobody drove them. "
    "The prior comes from other trips of the same simulation, so real data may cost more."
)

Progress: TypeAlias = Callable[[float, str], None]


@dataclass(frozen=True, eq=False)
class DemoScene:
    """Where the journey goes: crossings, what the place is called, streets for the map, whose roads they are."""

    space: FiniteSpace
    place: str
    streets: tuple[Floats, ...]
    attribution: str
    again: str = ""  # what the command needs to go there again
    windows: bool = False


@dataclass(frozen=True, eq=False)
class Demo:
    """What the demo made."""

    folder: Path
    story: ReportContent
    mechanism: FiniteMechanism
    seconds: float

    def lines(self) -> list[str]:
        """Return what was promised and what it cost, one sentence a line."""
        story, comparison = self.story, self.story.comparison
        unit = comparison.unit
        same = [entry for entry in comparison.contenders if entry.bounded]  # all that keep this very promise
        most = max(same, key=lambda entry: entry.loss)
        others = (
            f"; {most.name} would cost {messages.distance(most.loss, unit)} for the same promise"
            if len(same) > 1
            else ""
        )
        how = "along all streets, which imply all pairs" if self.story.certificate.at_most else "for all pairs"
        total = messages.epsilon(story.rows_per_person * story.guarantee.epsilon, story.guarantee.unit)
        proven = messages.number(story.audit.epsilon, messages.templates()["digits"]["audited"], "up")
        return [
            f"Promised: {messages.lead_sentence(story.guarantee)}",
            f"Proven:   the promise {story.audit.verdict} {how}, {story.audit.pairs:,} of them judged exactly: "
            f"epsilon {proven} per km (promised {messages.epsilon(story.guarantee.epsilon, unit)}).",
            f"Cost:     a report lies {messages.cost(story.certificate, unit)} from the truth, along the roads and on "
            f"average over the prior{others}. "
            f"It is proven that {messages.rivals(unit)} can do better than "
            f"{messages.distance(comparison.lower_bound, unit, 'down')}.",
            f"Mind:     {SECRET} The guarantee is for one row; the longest trip has {story.rows_per_person} rows, "
            f"in total {total}. The columns {', '.join(story.kept_columns)} stay as they were.",
            f"Look at:  {self.folder / 'report.html'}",
        ]


def run(
    folder: str | Path = "demo",
    *,
    progress: Progress | None = None,
    city: str | None = None,
    nodes: int | None = None,
    seconds: float = SECONDS,
    trips: int = 40,
) -> Demo:
    """Run the journey and write the table, the mechanism, the report and a picture to a folder.

    Without a city it is 300 crossings of central Porto. With one (whatever `road_network` takes) it is a larger map,
    5,000 crossings unless `nodes` says otherwise, solved on windows. `progress` is told the share that is done and what
    is being done. Nothing needs the network.
    """
    started = perf_counter()
    target = make_folder(folder)
    notify = progress if progress is not None else _ignore_progress
    notify(0.0, "reading the streets")
    scene = _porto(nodes) if city is None else _city(city, nodes)
    space = scene.space
    driven = bundled_trips(trips=trips, seed=7, space=space)
    table = _match_positions(driven, space)
    prior = _public_prior(space)
    problem = Problem(space, EPSILON, prior=prior)

    contenders = _closed_forms(problem, notify, dense=not scene.windows)
    best = _optimal(problem, seconds, notify, windows=scene.windows)
    contenders.append(Contender("optimal", best.certificate.loss, _proof(best), best=True))

    notify(0.88, "protecting the table")
    protected = perturb(table, best, columns=["lat", "lon"])
    notify(0.9, "auditing every pair of crossings")
    report = audit(best)
    notify(0.93, "writing the results")
    save(best, target / "mechanism.mdp")
    _write_table(table, target / "trips.parquet")
    _write_table(protected, target / "protected.parquet")
    secret, other, _ = report.witness or (0, 0, 0)
    rows = np.bincount(table["trip"].to_numpy())
    story = ReportContent(
        title=f"Trips in {scene.place}, protected",
        place=scene.place,
        mechanism=f"Optimal mechanism on {len(space):,} crossings",
        guarantee=best.guarantee,
        certificate=best.certificate,
        audit=report,
        map=_map(driven, protected, scene, (secret, other)),
        comparison=Comparison(tuple(contenders), best.certificate.lower_bound),
        rows=table.num_rows,
        rows_per_person=int(rows.max()),
        person="trip",
        kept_columns=tuple(name for name in table.column_names if name not in ("lat", "lon")),
        worst_distance=float(problem.losses([secret], [other])[0]),  # the loss is the distance
        simulated=SIMULATED,
        secret=SECRET,
        attribution=scene.attribution,
        files=(
            ("protected.parquet", "the table with reported positions; all other columns as they were"),
            ("mechanism.mdp", "the mechanism with its certificate; loading it checks the proof again"),
            ("trips.parquet", "the true crossings, to try things with: simulated, or they would not lie here"),
            ("picture.png", "the map and the comparison as one picture"),
        ),
        repeat=(
            f"metricdp demo {target}{scene.again}",
            f"metricdp audit {target}/mechanism.mdp",
            f"metricdp perturb {target}/trips.parquet --mechanism {target}/mechanism.mdp -o out.parquet",
        ),
    )
    write_picture(overview(story)[0], target / "picture.png")
    write_report(story, target / "report.html")
    notify(1.0, "done")
    return Demo(target, story, best, perf_counter() - started)


def show(folder: str | Path = "demo", *, city: str | None = None, nodes: int | None = None) -> Demo:
    """Run the demo in a terminal: a bar while it works, then plain words."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    where = "the real streets of central Porto" if city is None else f"a larger map: {escape(city)}"
    console.print(f"[bold]metricdp demo[/]: protect simulated trips on {where}")
    with _bar(console) as notify:
        result = run(folder, city=city, nodes=nodes, progress=notify)
    console.print()
    for entry in sorted(result.story.comparison.contenders, key=lambda entry: entry.loss):
        loss = messages.distance(entry.loss, result.story.comparison.unit)
        console.print(
            f"  {entry.name:<34}{loss:>8}" + (f"  [dim]{entry.note}[/]" if entry.note else ""), soft_wrap=True
        )
    console.print()
    for line in result.lines():
        console.print(line, soft_wrap=True)
    console.print(
        f"[dim]Done in {result.seconds:.0f} seconds. {result.story.attribution} {SIMULATED}[/]", soft_wrap=True
    )
    console.print("To see and touch it in a browser: metricdp studio", soft_wrap=True)
    return result


@contextmanager
def _bar(console: Any) -> Any:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), BarColumn(bar_width=30), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as bars:
        task = bars.add_task("starting", total=1.0)

        def notify(share: float, what: str) -> None:
            bars.update(task, completed=share, description=what)

        yield notify


def _ignore_progress(share: float, what: str) -> None:
    return None


def _porto(nodes: int | None) -> DemoScene:
    space = bundled_roads(nodes=NODES if nodes is None else nodes)
    return DemoScene(space, "central Porto", tuple(bundled_streets()), ATTRIBUTION)


def _city(city: str, nodes: int | None) -> DemoScene:
    """Return a larger map; its streets are drawn straight from crossing to crossing."""
    space = road_network(city, nodes=CITY_NODES if nodes is None else nodes)
    network = space.network
    assert network is not None
    pairs = np.unique(np.sort(network.edges, axis=1), axis=0)
    ends = np.asarray(space.coordinates, dtype=np.float64)[pairs]
    again = f" --city {shlex.quote(city)}" + ("" if nodes is None else f" --nodes {nodes}")
    place = Path(city).stem.removeprefix("roads_").replace("_", " ").capitalize()
    return DemoScene(space, place, tuple(ends), f"Roads from {Path(city).name}.", again, windows=True)


def _public_prior(space: FiniteSpace) -> Floats:
    """Return how likely each crossing is, from other trips than those to be protected: a prior must be public."""
    history = bundled_trips(trips=400, seed=1, space=space)
    codes = _crossings(history, space)
    counts = np.bincount(codes, minlength=len(space)) + 1.0
    return np.asarray(counts / counts.sum())


def _crossings(table: Any, space: FiniteSpace) -> Integers:
    """Return the nearest crossing of every position."""
    codes, away = space.nearest(_positions(table))
    if away.max() > MATCH_KM:
        raise InvalidInput(f"a position lies more than {MATCH_KM} km from every crossing.")
    return codes


def _match_positions(table: Any, space: FiniteSpace) -> Any:
    """Return the table with every position on its nearest crossing: these are the secrets."""
    places = np.asarray(space.decode(_crossings(table, space)), float)
    for axis, name in enumerate(("lat", "lon")):
        table = table.set_column(table.column_names.index(name), name, [places[:, axis]])
    return table


def _positions(table: Any) -> Floats:
    return np.stack([table["lat"].to_numpy(), table["lon"].to_numpy()], axis=1)


def _closed_forms(problem: Problem, notify: Progress, *, dense: bool) -> list[Contender]:
    """Return mechanisms to compare with; those that hold a matrix only where it is small."""
    space, prior = problem.inputs, problem.prior
    notify(0.04, "spherical Laplace noise")
    found = [
        Contender(
            "Laplace noise, nearest crossing",
            _laplace_loss(problem, draws := DRAWS if dense else CITY_DRAWS),
            f"measured on {draws:,} draws; epsilon along great circles",
            bounded=False,  # great circles make it another promise
        )
    ]
    if not dense:
        return found
    notify(0.08, "exponential mechanism")
    half = exponential(space, problem.epsilon, prior=prior, budget="half")
    found.append(Contender("exponential, as published", half.certificate.loss, "half of the budget, for safety"))
    certified = exponential(space, problem.epsilon, prior=prior)
    found.append(Contender("exponential, certified budget", certified.certificate.loss, "the whole budget, proven"))
    notify(0.14, "Bayesian remap")
    moved = remapped(certified, prior=prior)
    found.append(Contender("exponential, remapped", expected_loss(moved, prior=prior), "the best guess after noise"))
    notify(0.18, "tight constraints")
    try:
        tight = tight_constraints(space, problem.epsilon, prior=prior)
    except Infeasible:
        notify(0.19, "tight constraints do not exist on these streets")
        return found
    found.append(Contender("tight constraints", tight.certificate.loss, "every pair reaches its limit"))
    return found


def _laplace_loss(problem: Problem, draws: int) -> float:
    """Return the mean road distance of Laplace noise put on the nearest crossing: a simulation, hence seeded.

    Great circles are not longer than roads, up to the rounding of the stored lengths, so epsilon along great circles
    covers the roads.
    """
    space, generator = problem.inputs, np.random.default_rng(11)
    secrets = generator.choice(len(space), size=draws, p=problem.prior)
    noise = laplace(Haversine(), problem.epsilon)
    codes, _ = space.nearest(noise.sample(space.decode(secrets), rng=generator))
    return float(problem.losses(secrets, codes).mean())


def _optimal(problem: Problem, seconds: float, notify: Progress, *, windows: bool) -> FiniteMechanism:
    def report_bounds(lower: float, upper: float, spent: float, iterations: int) -> None:
        bound = f", none with these reports below {1000 * lower:.0f} m" if lower > 0 else ""
        notify(0.2 + 0.68 * min(1.0, spent / seconds), f"optimal mechanism, step {iterations}{bound}")

    notify(0.2, "optimal mechanism")
    if windows:
        window = CITY_WINDOW if len(problem.inputs) <= FEW else None
        return optimal(problem, gap=CITY_GAP, seconds=seconds, window=window, progress=report_bounds)
    # Streets are few and nearly planar, which suits the interior-point method.
    return optimal(problem, gap=GAP, seconds=seconds, solver=Interior(), progress=report_bounds)


def _proof(best: FiniteMechanism) -> str:
    return f"within {messages.gap(best.certificate.gap)} of the best that reports these places, proven"


def _map(table: Any, protected: Any, scene: DemoScene, pair: tuple[int, int]) -> Map:
    shown = np.unique(np.linspace(0, table.num_rows - 1, 260).astype(int))
    return Map(
        true=_positions(table)[shown],
        reported=_positions(protected)[shown],
        streets=scene.streets,
        worst_pair=np.asarray(scene.space.decode(np.array(pair)), float),
        caption=f"{len(shown)} of {table.num_rows:,} positions, drawn once. {SIMULATED} {scene.attribution}",
    )


def _write_table(table: Any, path: Path) -> None:
    import pyarrow.parquet as parquet

    with replace_file(path) as partial:
        parquet.write_table(table, partial, compression="zstd")
