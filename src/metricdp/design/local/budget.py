"""What windows would take, from a sample of them, before anything large is allocated."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from metricdp.errors import InvalidInput
from metricdp.metrics import within
from metricdp.problems import Problem
from metricdp.spaces.near import MOST_PAIRS

SAMPLE = 48  # secrets whose windows are measured
STORED, VARIABLE, EDGE = 70.0, 60.0, 30.0  # bytes of a stored entry, of a variable in addition, of an edge in a window
EDGES = 12.0  # per secret, where no network says how many
ADVICE = (
    "Raise epsilon, take a smaller `window` (the background then costs more), solve districts one by one (each "
    "protects its own secrets), or take a machine with more memory and a GPU (solver=mdp.solvers.Gpu())."
)
PACE, ITERATIONS = 1.5e-8, 1_000  # seconds of one core per edge and iteration, and how many a small gap takes


def refuse_too_large(problem: Problem, window: float, reach: float) -> None:
    """Refuse windows that do not fit into this machine's memory, and say what would."""
    size = len(problem.inputs)
    sample = np.linspace(0, size - 1, min(SAMPLE, size)).astype(np.int64)
    near = within(problem.inputs.metric, problem.inputs.points[sample], problem.outputs.points, window)
    share = size / len(sample)
    entries, variables = share * len(near.codes), share * int((near.distances <= reach).sum())
    network = problem.inputs.network
    edges = EDGES if network is None else len(network.edges) / network.nodes
    needed = STORED * entries + (VARIABLE + EDGE * edges) * variables
    free = free_memory()
    if needed <= free and entries <= MOST_PAIRS:
        return
    cores = os.cpu_count() or 1
    hours = PACE * ITERATIONS * variables * max(edges, 1.0) / cores / 3600.0
    raise InvalidInput(
        f"{size:,} secrets with about {entries / size:,.0f} reports within "
        f"{window:.3g}{format_unit(problem.inputs.unit)} "
        f"are {entries:.2g} entries: about {needed / 1e9:,.0f} GB ({free / 1e9:,.0f} GB are free, and at most "
        f"{MOST_PAIRS:.2g} entries are listed) and {hours:.2g} hours on {cores} cores. {ADVICE}"
    )


def free_memory() -> float:
    """Return the bytes that this machine can still give; infinite where it does not say."""
    found = float("inf")
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found = next(1024.0 * float(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        return min(found, float(limit)) if limit.isdigit() else found
    except (OSError, StopIteration, ValueError):
        return found


def format_unit(unit: str) -> str:
    """Return a unit as it stands behind a number."""
    return f" {unit}" if unit else ""
