"""Measure exact noise: a million points on the Earth, the slow path, planted borders, 300 dimensions.

    python benchmarks/noise.py --record
    python benchmarks/noise.py --planted 10000000      # draws that are compared with arbitrary precision (an hour)

Times are the best of several turns in one run, exact and plain noise by turns, wall clock and processor.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from doubles import DoubleLaplace
from record import Recorder, arguments, recorder

import metricdp as mdp
from metricdp.mechanisms.noise import distributions
from metricdp.randomness import RowWords

GROUP, ROWS = "noise", 1_000_000


def best(calls: dict[str, Callable[[], Any]], turns: int = 7) -> dict[str, tuple[float, float]]:
    """Return the least wall clock and processor seconds of every call, taken by turns."""
    found = dict.fromkeys(calls, (np.inf, np.inf))
    for call in calls.values():
        call()
    for _ in range(turns):
        for name, call in calls.items():
            wall, processor = time.perf_counter(), time.process_time()
            call()
            spent = time.perf_counter() - wall, time.process_time() - processor
            found[name] = (min(found[name][0], spent[0]), min(found[name][1], spent[1]))
    return found


def plain(exact: mdp.SphericalLaplace) -> DoubleLaplace:
    """Return the same noise in plain doubles."""
    return DoubleLaplace(exact.inputs, exact.epsilon, exact.lattice, exact.guarantee, exact.certificate)


def million(keep: Recorder) -> None:
    """A million points, Arrow to Arrow, with and without numba."""
    rng = np.random.default_rng(0)
    table = pa.table({"lat": rng.uniform(35, 65, ROWS), "lon": rng.uniform(-10, 30, ROWS)})
    exact = mdp.laplace(mdp.Haversine(), 10.0)
    before = plain(exact)
    calls = {
        "exact": partial(mdp.perturb, table, exact, columns=["lat", "lon"]),
        "doubles": partial(mdp.perturb, table, before, columns=["lat", "lon"]),
    }
    found = best(calls)
    loops, distributions.compiled = distributions.compiled, lambda **_: None
    slow = best(calls, 3)
    distributions.compiled = loops
    for what, times in (("with numba", found), ("without numba", slow)):
        (wall, processor), (old, old_processor) = times["exact"], times["doubles"]
        measured = (
            f"{wall:.3f} s and {processor:.3f} s of processors; plain doubles {old:.3f} and {old_processor:.3f} s: "
            f"{wall / old:.2f}x, {processor / old_processor:.2f}x by processor"
        )
        print(what, measured, flush=True)
        asked = "at most 1.3x plain doubles in the same run" if what == "with numba" else "said"
        keep(GROUP, f"a million points on the Earth, Arrow to Arrow, {what}", asked=asked, measured=measured, wall=wall,
             doubles=old, processor=processor, doubles_processor=old_processor)  # fmt: skip


def slow_path(keep: Recorder, draws: int) -> None:
    """How many draws doubles leave undecided at default pitches, and what one of them takes."""
    rng = np.random.default_rng(1)
    distributions.compiled(load=True)
    for name, noise, rows in (
        ("on the Earth", mdp.laplace(mdp.Haversine(), 10.0), np.array([60.17, 24.94])),
        ("in the plane", mdp.laplace(mdp.Lp(2), 1.0), np.array([512_345.678, 4_612_345.678])),
    ):
        law, left = noise.distribution, 0
        places = np.tile(rows, (1 << 16, 1))
        for _ in range(0, draws, 1 << 16):
            words = RowWords(rng.bytes(32), law.width)
            left += int(np.sum(~law.doubles(places, partial(words.first, start=0, stop=1 << 16))[1]))
        words, start = RowWords(rng.bytes(32), law.width), time.process_time()
        for row in range(2000):
            law.exactly(rows, words.digits(row))
        each = (time.process_time() - start) / 2000
        measured = f"{left} of {draws:,}; {1e6 * each:.0f} microseconds of a processor each"
        print("slow path", name, measured, flush=True)
        keep(GROUP, f"draws {name} that doubles leave undecided, default pitch", asked="fewer than 1 in 100,000",
             measured=measured, left=left, draws=draws, seconds=each)  # fmt: skip


def planted(keep: Recorder, draws: int, seconds: float = np.inf) -> None:
    """Secrets so close to the border of a cell that doubles hesitate, each decided twice, while there is time."""
    start = time.perf_counter()
    rng = np.random.default_rng(2)
    checked = undecided = wrong = 0
    makers = [mdp.laplace(mdp.Haversine(), 10.0), mdp.laplace(mdp.Lp(2), 1.0), mdp.laplace(mdp.Lp(1), 1.0, dimension=1),
              mdp.laplace(mdp.Haversine(), 0.001)]  # fmt: skip
    count = 2000
    while checked < draws and time.perf_counter() - start < seconds:
        for noise in makers:
            law, words = noise.distribution, RowWords(rng.bytes(32), noise.distribution.width)
            first = partial(words.first, start=0, stop=count)
            rows = rng.uniform(-80, 80, (count, noise.inputs.dimension))
            with np.errstate(all="ignore"):
                cells, _ = law.doubles(rows, first)
                low, high = rows[:, 0].copy(), rows[:, 0] + 1.5 * noise.lattice.pitch
                for _ in range(rng.integers(25, 60)):  # from near the border to the last bit
                    rows[:, 0] = (low + high) / 2
                    same = law.doubles(rows, first)[0][:, 0] == cells[:, 0]
                    low, high = np.where(same, rows[:, 0], low), np.where(same, high, rows[:, 0])
                rows[:, 0] = np.where(rng.random(count) < 0.5, low, high)
                cells, sure = law.doubles(rows, first)
            undecided += int(np.sum(~sure))
            for row in np.flatnonzero(sure):
                exactly = law.exactly(rows[row], words.digits(int(row)))
                wrong += tuple(map(float, exactly)) != tuple(cells[row].tolist())
            checked += count
    measured = (
        f"{wrong} disagreements in {checked:,} draws beside borders; {undecided:,} of them doubles left undecided"
    )
    print(measured, flush=True)
    keep(GROUP, "planted borders against arbitrary precision", asked="no disagreement in 10 million", measured=measured,
         checked=checked, undecided=undecided, wrong=wrong)  # fmt: skip


def dimensions(keep: Recorder) -> None:
    """Vectors of 300 coordinates."""
    noise, vectors = mdp.laplace(mdp.Lp(2), 1.0, dimension=300), np.zeros((20_000, 300))
    wall, processor = best({"exact": partial(noise.sample, vectors)}, 3)["exact"]
    measured = (
        f"{len(vectors) / wall:,.0f} a second; {1e6 * processor / len(vectors):.0f} microseconds of a processor each"
    )
    print("300 dimensions", measured, flush=True)
    keep(GROUP, "vectors of 300 dimensions", asked="20,000 a second", measured=measured, wall=wall, processor=processor)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--planted", type=int, default=200_000, help="draws beside borders")
    parser.add_argument("--seconds", type=float, default=np.inf, help="stop with draws beside borders after so long")
    parser.add_argument("--draws", type=int, default=20_000_000, help="draws to count the slow path in")
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    million(keep)
    dimensions(keep)
    slow_path(keep, chosen.draws)
    planted(keep, chosen.planted, chosen.seconds)


if __name__ == "__main__":
    sys.exit(main())
