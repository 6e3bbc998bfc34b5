"""Measure the exact audit of an exponential mechanism on random points of a plane: wall, processor time, memory.

python benchmarks/audit.py            5,000 secrets and 5,000 reports
python benchmarks/audit.py 1000 3     1,000, three runs
"""

import resource
import sys
import time

import numpy as np

import metricdp as mdp
from metricdp.auditing import audit_matrix


def main(count: int, runs: int) -> None:
    points = np.random.default_rng(0).uniform(0, np.sqrt(count), size=(count, 2))
    distances = mdp.FiniteSpace(points, mdp.Lp(2)).distances
    matrix = np.exp(-0.5 * distances)
    matrix /= matrix.sum(axis=1, keepdims=True)
    small = matrix[:300, :300] / matrix[:300, :300].sum(axis=1, keepdims=True)
    audit_matrix(small, distances[:300, :300], 1.0)  # compile, or load what was compiled
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(runs):
        wall, processor = time.perf_counter(), time.process_time()
        report = audit_matrix(matrix, distances, 1.0)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(
            f"{count} x {count}: {wall:.1f} s wall, {processor:.1f} s of processor time, peak {peak / 2**20:.2f} GiB "
            f"({before / 2**20:.2f} before the audit); {report}"
        )


if __name__ == "__main__":
    main(*(int(a) for a in [*sys.argv[1:], *["5000", "1"][len(sys.argv) - 1 :]]))
