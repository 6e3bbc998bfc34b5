"""Mechanism files of 1,000 x 1,000: size, opening, and a million JavaScript draws on each of 20 rows.

    python benchmarks/devices.py [file.mdp] [--engine chromium|node] [--draws 1000000] [--record]

Without a file, an exponential and a tight mechanism on a 32 x 32 grid (the first 1,000 cells) are built.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from record import Recorder, arguments, recorder
from scipy import stats

import metricdp as mdp
from metricdp.artifacts import inspect

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import browsers

ROWS, MILLION = 20, 1_000_000
GRID = np.stack(np.meshgrid(np.arange(32.0), np.arange(32.0)), axis=-1).reshape(-1, 2)[:1000]


@dataclass(frozen=True)
class Opening:
    """Seconds to open and certify: in a process that just started (imports apart), and again."""

    first: float
    first_work: float
    later: float
    later_work: float

    def __str__(self) -> str:
        return (
            f"first {self.first:.2f} s ({self.first_work:.2f} processor s), "
            f"later {self.later:.2f} s ({self.later_work:.2f})"
        )


@dataclass(frozen=True)
class Judged:
    """What was measured of one file."""

    storage: str
    size: int
    loss: float
    opened: Opening
    microseconds: float  # of one draw in JavaScript
    exact: list[float]  # p-values against the stored law
    between: list[float]  # p-values against Python's draws


def opening(path: Path) -> Opening:
    """Measure how long a file takes to open."""
    code = (
        "import sys, time, metricdp as mdp; from metricdp.artifacts import load; times = []\n"
        "for _ in range(3):\n"
        "    wall, work = time.perf_counter(), time.process_time(); load(sys.argv[1])\n"
        "    times += [time.perf_counter() - wall, time.process_time() - work]\n"
        "print(*(f'{value:.2f}' for value in times))"
    )
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    first, first_work, _, _, third, third_work = (float(value) for value in run.stdout.split())
    return Opening(first, first_work, third, third_work)


def chi_square(counts: np.ndarray, law: np.ndarray) -> float:
    expected = law * counts.sum()
    rare = expected < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0
    return float(stats.chisquare(counts[keep], expected[keep] * counts[keep].sum() / expected[keep].sum()).pvalue)


def metrics(folder: Path) -> dict[str, Opening]:
    """Print and return how long files over other metrics take to open."""
    apart = mdp.FiniteSpace(GRID, mdp.Lp(2)).distances
    spaces = {
        "Lp(2)": mdp.FiniteSpace(GRID, mdp.Lp(2)),
        "Haversine": mdp.FiniteSpace(GRID * 0.009 + [41.0, -8.7], mdp.Haversine()),
        "Precomputed": mdp.FiniteSpace(np.arange(1000.0)[:, None], mdp.Precomputed(apart)),
    }
    found = {}
    for name, space in spaces.items():
        path = mdp.save(mdp.exponential(space, 1.0), folder / "metric.mdp")
        found[name] = opening(path)
        print(f"exponential on {name}: {path.stat().st_size:,} bytes, {found[name]}")
    return found


def judged(engine: browsers.Engine, path: Path, draws: int, rng: np.random.Generator) -> Judged:
    """Print and return size, opening, draw time and the chi-square tests of one file."""
    found = inspect(path)
    made: Any = found.mechanism
    law = made.matrix / made.matrix.sum(axis=1, keepdims=True)
    bits = f" {found.bits}" if found.bits else ""
    opened = opening(path)
    print(f"{found.storage}{bits}: {found.bytes:,} bytes, loss {made.certificate.loss:.6g}, {opened}")
    address = engine.offer(path)
    rows = sorted(int(r) for r in rng.choice(len(law), ROWS, replace=False))
    wall = engine.ask("opening", file=address)
    speed = engine.ask("speed", file=address, secrets=list(range(len(law))), count=200_000)
    print(f"    JavaScript: opens in {wall:.0f} ms, {speed:.2f} microseconds per draw")
    exact, between = [], []
    for row in rows:
        counts = np.array(engine.ask("counts", file=address, secrets=[row], count=draws, seconds=590)[0])
        exact.append(chi_square(counts, law[row]))
        ours = np.bincount(made.sample(np.full(draws, row)), minlength=law.shape[1])
        often = counts + ours > 20
        between.append(float(stats.chi2_contingency(np.array([counts[often], ours[often]])).pvalue))
    for name, values in (("against the stored law", exact), ("against Python's draws", between)):
        spread = stats.kstest(values, "uniform").pvalue
        print(
            f"    {ROWS} rows x {draws:,} draws {name}: p from {min(values):.3g} to {max(values):.3g} (KS {spread:.2g})"
        )
    storage = f"{found.bits} bits" if found.bits else found.storage
    return Judged(storage, found.bytes, made.certificate.loss, opened, speed, exact, between)


def summed_up(
    files: dict[str, list[Judged]], others: dict[str, Opening], *, engine: str, draws: int, keep: Recorder
) -> None:
    """Record what was found on all files."""
    every = [file for group in files.values() for file in group]
    tight = {file.storage: file for file in files["tight"]}
    first, work = [file.opened.first for file in every], [file.opened.first_work for file in every]
    later = [opened.later for opened in (*(file.opened for file in every), *others.values())]
    elsewhere = ", ".join(f"{others[name].first:.2f} s ({name})" for name in ("Haversine", "Precomputed"))
    keep(
        "devices",
        "opens and certifies in a process that just started, wall",
        asked="under 1 s",
        measured=f"{min(first):.2f} to {max(first):.2f} s (plane; dense, sparse, 16 and 32 bits; "
        f"{min(work):.2f} to {max(work):.2f} processor s), {elsewhere}; "
        f"{min(later):.2f} to {max(later):.2f} s from the second file on",
        first=first,
        first_processor=work,
        later=later,
    )
    sizes = {name: file.size for name, file in tight.items()}
    told = ", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in sizes.items())
    keep("devices", "size", asked="stated", measured=told, **sizes)
    losses = {name: tight[name].loss for name in ("dense", "32 bits", "16 bits")}
    told = "{:.6g} before, {:.6g} at 32 bits, {:.4g} at 16 bits".format(*losses.values())
    keep("devices", "loss after rounding, tight mechanism", asked="stated", measured=told, **losses)
    speeds = [file.microseconds for file in every]
    told = f"{min(speeds):.2f} to {max(speeds):.2f} microseconds"
    keep("devices", f"one draw in {engine}", asked="under 50 microseconds", measured=told, microseconds=speeds)
    tests = [values for file in every for values in (file.exact, file.between)]
    spread = [float(stats.kstest(values, "uniform").pvalue) for values in tests]
    many = "a million draws" if draws == MILLION else f"{draws:,} draws"
    least, count = min(min(values) for values in tests), sum(len(values) for values in tests)
    keep(
        "devices",
        f"{many} on each of {ROWS} rows, against the stored law and against Python's draws, eight files",
        asked="chi-square",
        measured=f"smallest p of {count} tests {least:.2g}; are the p-values uniform: Kolmogorov-Smirnov p "
        f"{min(spread):.2g} to {max(spread):.2g}",
        p_values=tests,
        engine=engine,
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--engine", default="chromium", choices=["chromium", "node"])
    parser.add_argument("--draws", type=int, default=MILLION)
    options = parser.parse_args()
    if options.file and options.record:
        parser.error("--record is for the mechanisms that are built here; leave out the file")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {time.strftime('%Y-%m-%d %H:%M')}")
    rng = np.random.default_rng(20)
    with tempfile.TemporaryDirectory() as name, browsers.running(options.engine) as engine:
        folder = Path(name)
        space = mdp.FiniteSpace(GRID, mdp.Lp(2))
        if options.file:
            mechanisms = {options.file: mdp.load(options.file)}
        else:
            others = metrics(folder)
            mechanisms = {"exponential": mdp.exponential(space, 1.0), "tight": mdp.tight_constraints(space, 1.0)}
        files: dict[str, list[Judged]] = {title: [] for title in mechanisms}
        for title, mechanism in mechanisms.items():
            print(f"\n{title}: {mechanism.guarantee}")
            for storage, bits in (("dense", None), ("sparse", None), ("quantised", 16), ("quantised", 32)):
                made = mechanism if bits is None else mdp.quantised(mechanism, bits=bits)
                path = mdp.save(made, folder / f"{storage}{bits}.mdp", storage=storage)
                files[title].append(judged(engine, path, options.draws, rng))
        if not options.file:
            name = options.engine.capitalize()
            summed_up(files, others, engine=name, draws=options.draws, keep=recorder(options.record))


if __name__ == "__main__":
    main()
