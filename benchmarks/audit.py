"""Measure the exact audit of an exponential mechanism on random points of a plane: wall, processor time, memory.

python benchmarks/audit.py            5,000 secrets and 5,000 reports
python benchmarks/audit.py 1000 3     1,000, three runs, of which the best counts
python benchmarks/audit.py --roads rome      sparse rows within 2.2 km over a background, along all streets
python benchmarks/audit.py --grid 100        sparse rows within 22 cells on 100 x 100, in the Euclidean metric
"""

import resource
import time

import numpy as np
from record import Recorder, arguments, recorder

import metricdp as mdp
from metricdp.auditing import AuditReport, Claim, SparseDistribution, audit_local, audit_matrix


def measure(count: int, runs: int, keep: Recorder) -> None:
    points = np.random.default_rng(0).uniform(0, np.sqrt(count), size=(count, 2))
    distances = mdp.FiniteSpace(points, mdp.Lp(2)).distances
    matrix = np.exp(-0.5 * distances)
    matrix /= matrix.sum(axis=1, keepdims=True)
    small = matrix[:300, :300] / matrix[:300, :300].sum(axis=1, keepdims=True)
    audit_matrix(small, distances[:300, :300], 1.0)  # compile, or load what was compiled
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures = []
    for _ in range(runs):
        wall, processor = time.perf_counter(), time.process_time()
        report = audit_matrix(matrix, distances, 1.0)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(
            f"{count} x {count}: {wall:.1f} s wall, {processor:.1f} s of processor time, peak {peak / 2**20:.2f} GiB "
            f"({before / 2**20:.2f} before the audit); {report}"
        )
        figures.append((wall, processor, peak / 2**20))
    wall, processor, gib = min(figures)
    keep(
        "first",
        f"audit of {count:,} x {count:,}, exponential mechanism on the plane",
        asked="exact, under 4 GB" if count == 5000 else "",
        measured=f"{wall:.1f} s, {processor:.1f} processor s, peak {gib:.2f} GiB (`benchmarks/audit.py`)",
        seconds=wall,
        processor_seconds=processor,
        peak_gib=gib,
    )


def measure_local(space: mdp.FiniteSpace, name: str, runs: int, keep: Recorder) -> None:
    """Audit exp(-a min(d, reach)) with a = 0.45 epsilon and epsilon reach = 22: a typical start."""
    epsilon = 10.0 if space.unit == "km" else 1.0
    near = space.near(22.0 / epsilon)
    values = np.exp(-0.45 * epsilon * near.distances).astype(np.float32)
    background = np.full(len(space), np.exp(-0.45 * 22.0), dtype=np.float32)
    arrays = near.starts, near.codes, values, background
    del near
    figures = []
    for _ in range(runs):
        law = SparseDistribution(*arrays)
        wall, processor = time.perf_counter(), time.process_time()
        report: AuditReport = audit_local(space, law, Claim(epsilon))
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{name}: {wall:.1f} s wall, {processor:.1f} s of processor time, peak {peak:.2f} GiB; {report}")
        figures.append((wall, processor, peak))
    wall, processor, gib = min(figures)
    keep(
        "first",
        f"audit of sparse rows, {name}",
        asked="under 2 minutes, under 4 GB",
        measured=f"{wall:.1f} s, {processor:.1f} processor s, peak {gib:.2f} GiB, {len(values) / 1e6:.0f} M weights",
        seconds=wall,
        processor_seconds=processor,
        peak_gib=gib,
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("secrets", type=int, nargs="?", default=5000)
    parser.add_argument("runs", type=int, nargs="?", default=1)
    parser.add_argument("--roads", help="the name or the folder of a network")
    parser.add_argument("--grid", type=int, help="cells along each side")
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    if chosen.roads is not None:
        measure_local(mdp.road_network(chosen.roads), chosen.roads, max(2, chosen.runs), keep)
    elif chosen.grid is not None:
        cells = np.stack(np.meshgrid(*[np.arange(float(chosen.grid))] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
        name = f"{chosen.grid} x {chosen.grid} cells"
        measure_local(mdp.FiniteSpace(cells, mdp.Lp(2)), name, max(2, chosen.runs), keep)
    else:
        measure(chosen.secrets, chosen.runs, keep)


if __name__ == "__main__":
    main()
