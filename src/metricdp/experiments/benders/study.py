"""Decomposition on four data sets: sizes of the parts, seconds, rounds and loss, beside the other solvers.

Settings as published: 500 records, 100 reports, epsilon 10 per unit, neighbours up to 2 (2.2 for words), 25 blocks,
ten instances, a gap of 1 %. Only neighbours are protected there, which `Problem(radius=...)` says on purpose. At that
epsilon the problem is close to trivial (the bound that ignores privacy is within a fraction of a percent), so a
smaller epsilon is run beside it, and the pictures of convergence use that one.

References: Qiu (2024), Tables 1 to 4, Figures 17 to 20.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.design.decomposed import Neighbours
from metricdp.errors import InvalidInput, MissingExtra
from metricdp.experiments.benders.data import DATA, available
from metricdp.experiments.benders.pictures import convergence
from metricdp.experiments.benders.runs import (
    Case,
    Run,
    benders_run,
    engine_run,
    exponential_run,
    simplex_run,
    spread,
)
from metricdp.files import made_folder, replacing
from metricdp.solvers.benders.partition import PARTITIONS, PartitionName, balance, partition

SMALL_EPSILON = 2.0


@dataclass(frozen=True)
class Plan:
    """What to run. `instances` are for the first partition and the sizes, `others` for the other partitions."""

    size: int = 500
    blocks: int = 25
    instances: int = 10
    others: int = 3
    partitions: tuple[PartitionName, ...] = PARTITIONS
    larger: int | None = 1000
    seconds: float = 600.0  # of a run at the published epsilon; three times as much for the larger size
    small_seconds: float = 240.0  # of a run at the small epsilon
    kernels_seconds: float = 45.0  # of a run there that begins without the engine, which does not end
    simplex_seconds: float = 30.0
    drawn_size: int = 300
    drawn_reports: int = 10
    drawn_blocks: int = 3
    drawn_seconds: float = 45.0


SHORT = Plan(
    size=120, blocks=6, instances=2, others=1, larger=None, seconds=20.0, small_seconds=20.0, kernels_seconds=6.0,
    simplex_seconds=8.0,
    drawn_size=100, drawn_seconds=5.0,
)  # fmt: skip


@dataclass(frozen=True)
class Sizes:
    """Tables 1 and 2 for one instance: records in subproblems and in components of the master, mean and largest."""

    data: str
    method: str
    seed: int
    inner_mean: float
    inner_most: int
    component_mean: float
    component_most: int
    boundary: int


def sizes(data: str, *, size: int = 500, instances: int = 10, blocks: int = 25) -> list[Sizes]:
    """Return the sizes of the parts for every partition and instance (Tables 1 and 2)."""
    found = []
    for seed in range(instances):
        problem = DATA[data](size, seed)
        graph = Neighbours.of(problem)
        points = problem.inputs.points.astype(np.float64)
        for method in PARTITIONS:
            try:
                labels = partition(
                    graph.adjacency, blocks, method=method, distances=problem.inputs.distances, records=points
                )
            except MissingExtra:
                continue
            part = balance(labels, graph.adjacency)
            groups = part.components if part.components.size else np.zeros(1, dtype=np.int64)
            inner, most = float(part.inner.mean()), int(part.inner.max())
            found.append(Sizes(data, method, seed, inner, most, float(groups.mean()), int(groups.max()), part.boundary))
    return found


def runs(names: Sequence[str], plan: Plan) -> Iterator[Run]:
    """Run all solvers on the data sets (Tables 3 and 4): one instance of everything, then what is left."""
    steps = [(plan.size, 1.0), *([(plan.larger, 3.0)] if plan.larger else [])]
    for size, share in steps:
        for name in names:
            yield from _beside(Case(name, DATA[name](size, 0), 0), plan, share * plan.seconds)
    yield from _small(names, plan, plan.size)
    for seed in range(plan.instances):
        for name in names:
            case = Case(name, DATA[name](plan.size, seed), seed)
            for place, method in enumerate(plan.partitions):
                if seed < plan.others if place else seed > 0:  # the first partition had its first instance above
                    yield benders_run(case, blocks=plan.blocks, method=method, seconds=plan.seconds)
    if plan.larger:
        yield from _small(names, plan, plan.larger)


def _small(names: Sequence[str], plan: Plan, size: int) -> Iterator[Run]:
    for name in names:
        case = Case(name, DATA[name](size, 0, epsilon=SMALL_EPSILON), 0)
        yield from _beside(case, plan, plan.small_seconds)
        if size == plan.size:
            yield benders_run(case, blocks=plan.blocks, start="kernels", seconds=plan.kernels_seconds)


def _beside(case: Case, plan: Plan, seconds: float) -> Iterator[Run]:
    yield exponential_run(case)
    yield engine_run(case, seconds=seconds)
    if case.size <= plan.size:
        yield simplex_run(case, seconds=plan.simplex_seconds)
    yield benders_run(case, blocks=plan.blocks, method=plan.partitions[0], seconds=seconds)


def drawn_runs(data: str, plan: Plan) -> Iterator[Run]:
    """Run the variants whose convergence is drawn: few reports, so that rounds are many and quick."""
    made = DATA[data](plan.drawn_size, 0, epsilon=SMALL_EPSILON, reports=plan.drawn_reports)
    case = Case(data, made, 0)
    for start, stabilise in (("kernels", False), ("kernels", True), ("engine", True)):
        yield benders_run(
            case,
            blocks=plan.drawn_blocks,
            start="engine" if start == "engine" else "kernels",
            stabilise=stabilise,
            gap=1e-4,
            seconds=plan.drawn_seconds,
        )


def size_table(rows: Sequence[Sizes]) -> str:
    """Return Tables 1 and 2 in one: mean over instances and 1.96 standard deviations."""
    names = ("inner_mean", "inner_most", "component_mean", "component_most", "boundary")
    head = ["data", "partition", *(name.replace("_", " ") for name in names)]
    lines = []
    for data, method in dict.fromkeys((row.data, row.method) for row in rows):
        mine = [row for row in rows if (row.data, row.method) == (data, method)]
        lines.append([data, method, *(spread(np.array([float(getattr(row, name)) for row in mine])) for name in names)])
    return _markdown(head, lines)


def run_table(rows: Sequence[Run]) -> str:
    """Return Tables 3 and 4 in one: loss, gap, rounds and seconds, mean over instances and 1.96 deviations."""
    head = ["data", "records", "epsilon", "method", "runs", "loss", "gap %", "rounds", "processor s", "wall s", "note"]
    lines = []
    keys = dict.fromkeys((row.size, row.epsilon, row.data, row.method) for row in rows)
    for size, epsilon, data, method in sorted(keys, key=lambda key: (key[0], -key[1], list(DATA).index(key[2]))):
        mine = [row for row in rows if (row.size, row.epsilon, row.data, row.method) == (size, epsilon, data, method)]
        columns = (
            [row.loss for row in mine],
            [100.0 * row.gap for row in mine],
            [float(row.rounds) for row in mine],
            [row.processor_seconds for row in mine],
            [row.seconds for row in mine],
        )
        notes = dict.fromkeys(row.note for row in mine if row.note)
        cells = [spread(np.array(column)) for column in columns]
        lines.append([data, str(size), f"{epsilon:g}", method, str(len(mine)), *cells, "; ".join(notes)])
    return _markdown(head, lines)


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _write(rows: Sequence[Any], path: Path) -> None:
    """Write rows as CSV, whole or not at all."""
    names = [field.name for field in fields(rows[0]) if field.name != "history"]
    with replacing(path) as place, place.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def main(
    *arguments: str | Path,
    full: bool = False,
    plan: Plan | None = None,
    report: Callable[[str], None] = print,
) -> list[Path]:
    """Run the short study, or the full one, and write its tables and pictures: see `PARTS`.

    From the command line: `metricdp reproduce benders [FOLDER] [--full] [--data road,grid] [--parts sizes,rounds]`.
    """
    parser = argparse.ArgumentParser(prog="metricdp reproduce benders", description=__doc__)
    parser.add_argument("folder", nargs="?", default="benders", help="where the tables and the pictures go")
    parser.add_argument("--full", action="store_true", default=full, help="the published sizes; takes an hour or more")
    parser.add_argument("--data", default=",".join(available()), help="data sets with commas between")
    parser.add_argument("--parts", default=",".join(PARTS), help="what to run, with commas between")
    chosen = parser.parse_args([str(argument) for argument in arguments])
    target = made_folder(chosen.folder)
    plan = plan or (Plan() if chosen.full else SHORT)
    names, parts = _named(chosen.data, DATA, "data set"), _named(chosen.parts, PARTS, "part")
    for missing in (name for name in DATA if name not in available()):
        report(f"Skipped: the data of {missing!r} is not here (set METRICDP_DATA to its folder).")
    return [path for part in parts for path in PARTS[part](names, plan, target, report)]


def _named(text: str, known: Iterable[str], what: str) -> list[str]:
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            raise InvalidInput(f"unknown {what} {name!r}: use some of {', '.join(known)}.")
    return wanted


def _sizes(names: Sequence[str], plan: Plan, target: Path, report: Callable[[str], None]) -> list[Path]:
    rows: list[Sizes] = []
    for name in names:
        rows += sizes(name, size=plan.size, instances=plan.instances, blocks=plan.blocks)
        _write(rows, target / "sizes.csv")
    return [target / "sizes.csv", _told("Tables 1 and 2", size_table(rows), target / "sizes.md", report)]


def _rounds(names: Sequence[str], plan: Plan, target: Path, report: Callable[[str], None]) -> list[Path]:
    rows = _collected((run for name in names for run in drawn_runs(name, plan)), target / "rounds.csv", report)
    table = _told("Figures 17 to 20", run_table(rows), target / "rounds.md", report)
    return [target / "rounds.csv", table, convergence(rows, target / "convergence.png")]


def _times(names: Sequence[str], plan: Plan, target: Path, report: Callable[[str], None]) -> list[Path]:
    rows = _collected(runs(names, plan), target / "times.csv", report)
    return [target / "times.csv", _told("Tables 3 and 4", run_table(rows), target / "times.md", report)]


def _collected(made: Iterable[Run], path: Path, report: Callable[[str], None]) -> list[Run]:
    rows: list[Run] = []
    for run in made:
        rows.append(run)
        _write(rows, path)  # after every run, so that nothing is lost when the study is stopped
        report(
            f"{run.data} {run.size} epsilon {run.epsilon:g} instance {run.seed} {run.method}: loss {run.loss:.6g}, gap "
            f"{run.gap:.3%}, {run.rounds} rounds, {run.processor_seconds:.1f} s processor, {run.seconds:.1f} s"
        )
    return rows


def _told(title: str, table: str, path: Path, report: Callable[[str], None]) -> Path:
    report(f"\n{title}\n\n{table}\n")
    path.write_text(table + "\n", encoding="utf-8")
    return path


# sizes: sizes.csv and .md (Tables 1, 2); rounds: rounds.csv, .md and convergence.png; times: times.csv and .md (3, 4)
PARTS = {"sizes": _sizes, "rounds": _rounds, "times": _times}


if __name__ == "__main__":
    main()
