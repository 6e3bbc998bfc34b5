"""Mechanism files of 1,000 x 1,000: size, opening, and a million JavaScript draws on each of 20 rows.

    python benchmarks/devices.py [file.mdp] [--engine chromium|node]

Without a file, an exponential and a tight mechanism on a 32 x 32 grid (the first 1,000 cells) are built.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import metricdp as mdp
from metricdp.artifacts import inspect

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import browsers

ROWS, DRAWS = 20, 1_000_000
GRID = np.stack(np.meshgrid(np.arange(32.0), np.arange(32.0)), axis=-1).reshape(-1, 2)[:1000]


def opening(path: Path) -> str:
    """Return seconds to open and certify, in a process that just started (imports apart) and again."""
    code = (
        "import sys, time, metricdp as mdp; from metricdp.artifacts import load; times = []\n"
        "for _ in range(3):\n"
        "    wall, work = time.perf_counter(), time.process_time(); load(sys.argv[1])\n"
        "    times += [time.perf_counter() - wall, time.process_time() - work]\n"
        "print(*(f'{value:.2f}' for value in times))"
    )
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    first, first_work, _, _, third, third_work = run.stdout.split()
    return f"first {first} s ({first_work} processor s), later {third} s ({third_work})"


def chi_square(counts: np.ndarray, law: np.ndarray) -> float:
    expected = law * counts.sum()
    rare = expected < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0
    return float(stats.chisquare(counts[keep], expected[keep] * counts[keep].sum() / expected[keep].sum()).pvalue)


def metrics(folder: Path) -> None:
    """Print how long files over other metrics take to open."""
    apart = mdp.FiniteSpace(GRID, mdp.Lp(2)).distances
    spaces = {
        "Lp(2)": mdp.FiniteSpace(GRID, mdp.Lp(2)),
        "Haversine": mdp.FiniteSpace(GRID * 0.009 + [41.0, -8.7], mdp.Haversine()),
        "Precomputed": mdp.FiniteSpace(np.arange(1000.0)[:, None], mdp.Precomputed(apart)),
    }
    for name, space in spaces.items():
        path = mdp.save(mdp.exponential(space, 1.0), folder / "metric.mdp")
        print(f"exponential on {name}: {path.stat().st_size:,} bytes, {opening(path)}")


def judged(engine: browsers.Engine, path: Path, rng: np.random.Generator) -> None:
    """Print size, opening, draw time and the chi-square tests of one file."""
    found = inspect(path)
    made: Any = found.mechanism
    law = made.matrix / made.matrix.sum(axis=1, keepdims=True)
    bits = f" {found.bits}" if found.bits else ""
    print(f"{found.storage}{bits}: {found.bytes:,} bytes, loss {made.certificate.loss:.6g}, {opening(path)}")
    address = engine.offer(path)
    rows = sorted(int(r) for r in rng.choice(len(law), ROWS, replace=False))
    wall = engine.ask("opening", file=address)
    speed = engine.ask("speed", file=address, secrets=list(range(len(law))), count=200_000)
    print(f"    JavaScript: opens in {wall:.0f} ms, {speed:.2f} microseconds per draw")
    exact, between = [], []
    for row in rows:
        counts = np.array(engine.ask("counts", file=address, secrets=[row], count=DRAWS, seconds=590)[0])
        exact.append(chi_square(counts, law[row]))
        ours = np.bincount(made.sample(np.full(DRAWS, row)), minlength=law.shape[1])
        often = counts + ours > 20
        between.append(float(stats.chi2_contingency(np.array([counts[often], ours[often]])).pvalue))
    for name, values in (("against the stored law", exact), ("against Python's draws", between)):
        spread = stats.kstest(values, "uniform").pvalue
        print(
            f"    {ROWS} rows x {DRAWS:,} draws {name}: p from {min(values):.3g} to {max(values):.3g} (KS {spread:.2g})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--engine", default="chromium", choices=["chromium", "node"])
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {time.strftime('%Y-%m-%d %H:%M')}")
    rng = np.random.default_rng(20)
    with tempfile.TemporaryDirectory() as name, browsers.running(options.engine) as engine:
        folder = Path(name)
        space = mdp.FiniteSpace(GRID, mdp.Lp(2))
        if options.file:
            mechanisms = {options.file: mdp.load(options.file)}
        else:
            metrics(folder)
            mechanisms = {"exponential": mdp.exponential(space, 1.0), "tight": mdp.tight_constraints(space, 1.0)}
        for title, mechanism in mechanisms.items():
            print(f"\n{title}: {mechanism.guarantee}")
            for storage, bits in (("dense", None), ("sparse", None), ("quantised", 16), ("quantised", 32)):
                made = mechanism if bits is None else mdp.quantised(mechanism, bits=bits)
                path = mdp.save(made, folder / f"{storage}{bits}.mdp", storage=storage)
                judged(engine, path, rng)


if __name__ == "__main__":
    main()
