"""Would a cluster help? What regions of a city would have to tell each other, every iteration of the solver.

    python benchmarks/borders.py                 # Rome cut into 2, 4, 8 and 16 regions
    python benchmarks/borders.py --iterations    # how long an iteration of the whole takes, by cores, and on a GPU
    python benchmarks/borders.py --record        # the figures, kept

The columns of the program (reports) are cut by halves of the map, and a region holds the entries of its columns. A row
(secret) is at home where its crossing lies; the step that makes rows sum to one needs all of a row, so the entries of a
region whose row is at home elsewhere travel there and back in every iteration, four bytes each way. Everything else
stays at home: limits run along columns. Times of iterations without a cut are those that `--iterations` recorded.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import RESULTS, Recorder, arguments, recorder
from scipy.sparse import csr_array

import metricdp as mdp
from metricdp.design.local import build
from metricdp.design.local.order import spatial_order
from metricdp.solvers.local import solve
from metricdp.solvers.local.windows import SecretWindows

CITY, EPSILON, REACH = "rome", 10.0, 10.0  # variables where epsilon times the distance is at most the reach
REGIONS = (2, 4, 8, 16)
NETWORKS = {"10 Gbit/s": 1.25e9, "1 Gbit/s": 1.25e8}  # bytes a second, each way
WHAT = "Rome in regions: bytes exchanged in an iteration"
WHOLE = "Rome in one piece: an iteration"
THREADS, TURNS = (2, 4, 8, 16), 60
ENTRY, EDGE, TOLD = 28, 16, 4  # bytes an iteration moves in memory for an entry and for a limit; bytes of one number


def halves(places: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Cut places into `count` regions of equal size, every time across the longer side."""
    region = np.zeros(len(places), dtype=np.int64)
    parts = [np.arange(len(places))]
    while len(parts) < count:
        parts = [half for part in parts for half in _halved(places, part)]
    for number, part in enumerate(parts):
        region[part] = number
    return region


def _halved(places: NDArray[np.float64], part: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    axis = int(np.ptp(places[part], axis=0).argmax())
    order = part[np.argsort(places[part, axis], kind="stable")]
    return [order[: len(order) // 2], order[len(order) // 2 :]]


def iterations(keep: Recorder) -> None:
    """Time iterations of the whole city with more and more threads, and on a GPU where there is one."""
    import numba

    from metricdp.solvers.local.cores import LocalCores

    problem = mdp.Problem(mdp.road_network(CITY), EPSILON)
    near = problem.inputs.near(REACH / EPSILON)
    plan = build.Plan(0.05, REACH / EPSILON, REACH / EPSILON, 1.0, float(len(near.codes)))
    order = spatial_order(problem.inputs, problem.outputs, near)
    task = build.task_of(problem, plan, build.edges_of(problem.inputs, EPSILON, plan.window, plan.gap), near, order)
    program = solve.program_of(task, SecretWindows(task.entries, task.reports))
    start = solve.start_of(program, task)
    seconds: dict[str, float] = {}
    state: Any = LocalCores(program, start)
    for threads in THREADS:
        if threads <= numba.config.NUMBA_NUM_THREADS:
            numba.set_num_threads(threads)
            seconds[f"{threads} cores"] = timed(state)
    del state
    try:
        from metricdp.solvers.local.device import LocalDevice

        state = LocalDevice(program, start)
        seconds["one GPU"] = timed(state, 40 * TURNS)
    except mdp.MetricdpError as error:
        print(f"no GPU: {error}")
    text = ", ".join(f"{1e3 * value:.3g} ms on {name}" for name, value in seconds.items())
    print(text)
    keep(
        "cities", f"{WHOLE}{', one machine with a GPU' if 'one GPU' in seconds else ''}", measured=text, seconds=seconds
    )


def timed(state: Any, turns: int = TURNS) -> float:
    """Return the seconds of an iteration, once everything is compiled and in place."""
    state.advance(4, 1.0)
    started = time.perf_counter()
    state.advance(turns, 1.0)
    return (time.perf_counter() - started) / turns


def recorded() -> dict[str, float]:
    """Return the newest seconds of an iteration, of two cores and of one GPU."""
    lines = [json.loads(line) for line in (RESULTS / "cities.jsonl").read_text(encoding="utf-8").splitlines()]
    found = {line["what"]: line["values"]["seconds"] for line in lines if line["what"].startswith(WHOLE)}
    return {"two cores": found[WHOLE]["2 cores"], "one H200": found[f"{WHOLE}, one machine with a GPU"]["one GPU"]}


def measured(space: mdp.FiniteSpace, near: Any, limits: int, count: int, iteration: dict[str, float]) -> dict[str, Any]:
    """Return what `count` regions hold and exchange, and how many times faster an iteration would be."""
    degrees = np.asarray(space.coordinates, dtype=np.float64)
    region = halves(degrees * [1.0, np.cos(np.radians(degrees[:, 0].mean()))], count)
    home, column = np.repeat(region, near.counts), region[near.codes]
    foreign = home != column
    held = np.bincount(column, minlength=count)
    # a region sends the foreign entries of its columns, and sends back those of its rows that others hold
    sent = TOLD * (np.bincount(column[foreign], minlength=count) + np.bincount(home[foreign], minlength=count))
    shared = np.add.reduceat(foreign, near.starts[:-1]) > 0
    share = float(held.max() / held.sum())
    inner = ENTRY * len(near.codes) + EDGE * limits
    faster = {
        f"{machine}, {network}": whole / (whole * share + float(sent.max()) / speed)
        for machine, whole in iteration.items()
        for network, speed in NETWORKS.items()
    }
    return {
        "regions": count,
        "largest": share,
        "shared_rows": float(shared.mean()),
        "travelling": float(foreign.mean()),
        "told": int(sent.sum()),
        "most_told": int(sent.max()),
        "inner": inner,
        "faster": faster,
    }


def main() -> None:
    """Measure, print and, where asked, record."""
    parser = arguments(__doc__)
    parser.add_argument("--iterations", action="store_true", help="time iterations of the whole city")
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    if chosen.iterations:
        iterations(keep)
        return
    iteration = recorded()
    space = mdp.road_network(CITY)
    near = space.near(REACH / EPSILON)
    inside = csr_array((np.ones(len(near.codes), dtype=np.int8), near.codes, near.starts), shape=(len(near), len(near)))
    edges = np.unique(np.sort(np.asarray(space.metric.edges), axis=1), axis=0)
    limits = sum(
        int(inside[part[:, 0]].multiply(inside[part[:, 1]]).sum(dtype=np.int64))
        for part in np.array_split(edges, 1 + len(edges) // 5_000)
    )
    found = [measured(space, near, limits, count, iteration) for count in REGIONS]
    for one in found:
        print(one)
    told = ", ".join(f"{one['told'] / 1e6:.1f} MB between {one['regions']}" for one in found)
    keep(
        "cities",
        WHAT,
        measured=f"{told}; within regions {found[0]['inner'] / 1e6:.0f} MB",
        iteration=iteration,
        entries=len(near.codes),
        limits=limits,
        regions=found,
    )


if __name__ == "__main__":
    main()
