"""Time to a certified gap against the number of secrets, for every solver and for libqif, in one run.

    python benchmarks/optimal.py                                   # grids of up to 100 cells, all solvers
    python benchmarks/optimal.py --qif /tmp/qif/bin/python         # libqif beside them, from an environment of its own
    python benchmarks/optimal.py --full --qif ... --record         # up to 1,024 cells, libqif at 81 too (300 s at most)

Square grids, uniform prior, Euclidean loss and metric, epsilon 1 per cell, all pairs enforced. Seconds on the wall and
seconds of processor time are both measured: on a busy machine only the second can be compared. libqif is installed with
`pip install qif` and is driven by a subprocess with its default solver; the time is that of its one call.
"""

from __future__ import annotations

import csv
import json
import math
import os
import resource
import subprocess
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from record import Recorder, arguments, recorder

import metricdp as mdp
from metricdp.auditing.exact import float_leakage
from metricdp.plots import palette
from metricdp.solvers import named

EPSILON = 1.0
SOLVERS = ("auto", "interior", "first_order", "highs")
SHORT, FULL = (49, 64, 81, 100), (49, 64, 81, 100, 196, 400, 1024)
MOST = {"highs": 81, "interior": 400, "first_order": 1024, "auto": 1024}  # the largest grid each is asked for
ASKED = {
    64: "within 0.1 % of 1.44967, 5x libqif",
    81: "within 0.1 % of 1.49396, 10x libqif",
    100: "gap 0.5 % in 15 s",
    196: "gap 0.5 % in 60 s",
    400: "gap 2 % in 60 s, 1 % in 150 s",
    1024: "gap 2 % in 10 minutes, under 8 GB, below 1.7915",
}
QIF_SIZES, QIF_SECONDS = (49, 64), 300.0
QIF = """
import json, sys, time
import numpy, qif
side = int(sys.argv[1])
cells = numpy.array([(i, j) for i in range(side) for j in range(side)], float)
apart = numpy.linalg.norm(cells[:, None] - cells[None], axis=2)
size = len(cells)
def distance(i, j):
    return float(apart[i, j])
used, started = time.process_time(), time.perf_counter()
matrix = qif.mechanism.d_privacy.min_loss_given_d(numpy.full(size, 1 / size), size, distance, distance)
print(json.dumps({"seconds": time.perf_counter() - started, "processor": time.process_time() - used,
                  "version": qif.__version__, "matrix": numpy.asarray(matrix).tolist()}))
"""


@dataclass(frozen=True)
class Measurement:
    """One solve: what was asked, what came, how long it took."""

    solver: str
    secrets: int
    asked_gap: float
    loss: float
    lower_bound: float
    gap: float
    epsilon: float  # as audited
    seconds: float
    processor_seconds: float
    load: float  # average number of running processes of the machine during the last minute
    note: str


def asked_gap(size: int) -> float:
    """Return the gap that is asked for: finer for small grids."""
    return 1e-3 if size <= 81 else 5e-3 if size <= 196 else 1e-2 if size <= 400 else 2e-2


def measured(size: int, solver: str, seconds: float) -> Measurement:
    """Solve one grid with one solver."""
    problem = mdp.Problem(mdp.grid((round(size**0.5),) * 2), EPSILON)
    gap = asked_gap(size)
    used, started = time.process_time(), time.perf_counter()
    found = mdp.optimal(problem, gap=gap, seconds=seconds, solver=named(solver))
    spent, processor = time.perf_counter() - started, time.process_time() - used
    proof = found.certificate
    note = proof.note or proof.method
    return Measurement(
        solver,
        size,
        gap,
        proof.loss,
        proof.lower_bound,
        proof.gap,
        proof.epsilon,
        spent,
        processor,
        os.getloadavg()[0],
        note,
    )


def measured_qif(size: int, python: str, bound: float) -> Measurement:
    """Solve one grid with libqif and audit what comes back; `bound` is a proven lower bound on the loss."""
    side = round(size**0.5)
    command = [python, "-c", QIF, str(side)]
    apart = mdp.grid((side, side)).distances
    nothing = float("nan")
    before = _children_seconds()
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=QIF_SECONDS, check=True)
    except subprocess.TimeoutExpired:
        spent = _children_seconds() - before
        note = f"not done in {QIF_SECONDS:.0f} s"
        load = os.getloadavg()[0]
        return Measurement("libqif", size, nothing, nothing, bound, nothing, nothing, QIF_SECONDS, spent, load, note)
    answer: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    matrix = np.asarray(answer["matrix"])
    loss = float((matrix * apart).sum() / size)
    return Measurement(
        "libqif",
        size,
        nothing,
        loss,
        bound,
        (loss - bound) / loss,
        float_leakage(matrix, apart),
        float(answer["seconds"]),
        float(answer["processor"]),
        os.getloadavg()[0],
        f"version {answer['version']}, default solver; epsilon as found by the audit",
    )


def _children_seconds() -> float:
    """Return the processor time of all finished subprocesses."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def draw(rows: list[Measurement], path: Path) -> None:
    """Draw seconds of processor time against the number of secrets."""
    colours = {
        "auto": palette.BEST,
        "interior": palette.TRUE,
        "first_order": palette.BOUND,
        "highs": palette.MUTED,
        "libqif": palette.REPORTED,
    }
    with palette.plot_style():
        picture = palette.figure(8.0, 4.6)
        axes = picture.add_subplot()
        for solver, colour in colours.items():
            chosen = [row for row in rows if row.solver == solver and np.isfinite(row.loss)]
            if not chosen:
                continue
            axes.plot(
                [row.secrets for row in chosen],
                [row.processor_seconds for row in chosen],
                marker="o",
                color=colour,
                linestyle="--" if solver == "libqif" else "-",
                label="libqif (no certificate)" if solver == "libqif" else solver,
            )
        missed = [row for row in rows if row.solver != "libqif" and row.gap > row.asked_gap]
        if missed:
            axes.plot(
                [row.secrets for row in missed],
                [row.processor_seconds for row in missed],
                marker="o",
                markersize=11,
                fillstyle="none",
                linestyle="",
                color=palette.INK,
                label="stopped by the time limit, gap missed",
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        sizes = sorted({row.secrets for row in rows})
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.minorticks_off()
        axes.set_xlabel("secrets (square grid); gap 0.1 % up to 81, 0.5 % up to 196, 1 % up to 400, then 2 %")
        axes.set_ylabel("seconds of processor time")
        axes.set_title("Processor time to a certified gap")
        axes.legend(frameon=False)
        picture.savefig(path)


def main() -> None:
    """Run the benchmark, print and write what was measured."""
    parser = arguments(__doc__)
    parser.add_argument("--full", action="store_true", help="grids of up to 1,024 cells and libqif at 81")
    parser.add_argument("--qif", metavar="PYTHON", help="the Python of an environment with libqif")
    parser.add_argument("--seconds", type=float, default=600.0, help="the most that one solve may take")
    parser.add_argument("--csv", type=Path, default=Path("optimal.csv"))
    parser.add_argument("--plot", type=Path, default=Path("docs/images/optimal.png"))
    chosen = parser.parse_args()
    for solver in SOLVERS:  # compile before the clock starts
        measured(25, solver, 60.0)
    rows: list[Measurement] = []
    for size in FULL if chosen.full else SHORT:
        best = 0.0
        for solver in SOLVERS:
            if size > MOST[solver]:
                continue
            rows.append(measured(size, solver, chosen.seconds))
            best = max(best, rows[-1].lower_bound)
            report(rows[-1])
        if chosen.qif and (size in QIF_SIZES or (chosen.full and size == 81)):
            rows.append(measured_qif(size, chosen.qif, best))
            report(rows[-1])
        with chosen.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=[field.name for field in fields(Measurement)])
            writer.writeheader()
            writer.writerows(asdict(row) for row in rows)
        summed_up([row for row in rows if row.secrets == size], recorder(chosen.record))
    draw(rows, chosen.plot)


def summed_up(rows: list[Measurement], keep: Recorder) -> None:
    """Record one size: what `auto` reached, libqif beside it where it ran; the other solvers as values."""
    found = {row.solver: row for row in rows}
    ours, size = found["auto"], rows[0].secrets
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    told = (
        f"{ours.loss:.5f}, gap {100 * ours.gap:.2f} %, {ours.seconds:.1f} s ({ours.processor_seconds:.1f} processor s)"
    )
    told += f", peak of the whole run {gib:.2f} GiB"
    if rival := found.get("libqif"):
        told += f"; libqif {rival.seconds:.0f} s ({rival.processor_seconds:.0f} processor s)"
        told += f", audited {rival.epsilon:.6g}" if math.isfinite(rival.loss) else f", {rival.note}"
    solvers = {
        solver: {name: value for name, value in asdict(row).items() if value == value}  # libqif states no gap: NaN
        for solver, row in found.items()
    }
    keep("optimal", f"n = {size:,}", asked=ASKED.get(size, ""), measured=told, peak_gib=gib, solvers=solvers)


def report(row: Measurement) -> None:
    """Print one measurement."""
    print(
        f"{row.secrets:5d} {row.solver:12s} loss {row.loss:.5f}  bound {row.lower_bound:.5f}  gap {row.gap:8.3%}  "
        f"epsilon {row.epsilon:.9g}  {row.seconds:7.2f} s, processor {row.processor_seconds:7.2f} s  "
        f"load {row.load:.1f}  {row.note}",
        flush=True,
    )


if __name__ == "__main__":
    main()
