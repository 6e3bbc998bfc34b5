"""Would a cluster help? What regions of a city would have to tell each other, every iteration of the solver.

    python benchmarks/borders.py             # Rome cut into 2, 4, 8 and 16 regions
    python benchmarks/borders.py --record    # the figures, kept

The columns of the program (reports) are cut by halves of the map, and a region holds the entries of its columns. A row
(secret) is at home where its crossing lies; the step that makes rows sum to one needs all of a row, so the entries of a
region whose row is at home elsewhere travel there and back in every iteration, four bytes each way. Everything else
stays at home: limits run along columns. Times of iterations without a cut are those that `benchmarks/cities.py` showed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import arguments, recorder
from scipy.sparse import csr_array

import metricdp as mdp

CITY, EPSILON, REACH = "rome", 10.0, 10.0  # variables where epsilon times the distance is at most the reach
REGIONS = (2, 4, 8, 16)
# seconds, from the progress that benchmarks/cities.py printed on the whole of Rome: 721 iterations in 48.3 s with three
# bounds on two cores, 11,324 in 6.9 s with bounds and a repair on one H200
ITERATION = {"two cores": 0.067, "one H200": 0.0006}
NETWORKS = {"10 Gbit/s": 1.25e9, "1 Gbit/s": 1.25e8}  # bytes a second, each way
WHAT = "Rome in regions: bytes exchanged in an iteration"
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


def measured(space: mdp.FiniteSpace, near: Any, limits: int, count: int) -> dict[str, Any]:
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
        for machine, whole in ITERATION.items()
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
    keep = recorder(arguments(__doc__).parse_args().record)
    space = mdp.road_network(CITY)
    near = space.near(REACH / EPSILON)
    inside = csr_array((np.ones(len(near.codes), dtype=np.int8), near.codes, near.starts), shape=(len(near), len(near)))
    edges = np.unique(np.sort(np.asarray(space.metric.edges), axis=1), axis=0)
    limits = sum(
        int(inside[part[:, 0]].multiply(inside[part[:, 1]]).sum(dtype=np.int64))
        for part in np.array_split(edges, 1 + len(edges) // 5_000)
    )
    found = [measured(space, near, limits, count) for count in REGIONS]
    for one in found:
        print(one)
    told = ", ".join(f"{one['told'] / 1e6:.1f} MB between {one['regions']}" for one in found)
    keep(
        "cities",
        WHAT,
        measured=f"{told}; within regions {found[0]['inner'] / 1e6:.0f} MB",
        iteration=ITERATION,
        entries=len(near.codes),
        limits=limits,
        regions=found,
    )


if __name__ == "__main__":
    main()
