"""How often intervals cover: the cases of `decoding.py`, one piece of fifty tables at a time, so that many cores help.

A piece is a file of counts in a folder: what is there is not drawn again. Every piece has a seed of its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np

import metricdp as mdp
from metricdp.estimation import operators
from metricdp.estimation.estimate import EstimateRequest, decode_counts
from metricdp.estimation.report_models import report_models_of

PIECE = 50
Reports = Callable[[np.ndarray, np.random.Generator], object]


@dataclass(frozen=True)
class Case:
    """Where secrets lie, how they are reported, and how reports are decoded."""

    name: str
    mechanism: object
    masses: np.ndarray
    reports: int
    cells: object = None
    within: str = "cell"
    method: str | None = None
    target: str = "table"
    intervals: str = "analytic"
    report: Reports | None = None
    sparse: bool = False
    pairs: object = None
    tags: tuple[str, ...] = field(default=())

    @property
    def what(self) -> str:
        return ", ".join([f"coverage, {self.name}", self.target, *self.tags])

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, object]:
        secrets = rng.choice(len(self.masses), self.reports, p=self.masses)
        made = self.mechanism.sample(secrets, rng=rng) if self.report is None else self.report(secrets, rng)
        return np.bincount(secrets, minlength=len(self.masses)) / self.reports, made


def masses_of(n: int, seed: int = 0) -> np.ndarray:
    """Return masses of which a third are empty, a third small (0.1 to 1 % of all) and a third share the rest."""
    rng = np.random.default_rng(seed)
    found = np.zeros(n)
    order = rng.permutation(n)
    small, large = order[n // 3 : 2 * n // 3], order[2 * n // 3 :]
    found[small] = rng.uniform(0.001, 0.01, len(small)) * min(1.0, 30 / len(small))
    found[large] = (1.0 - found.sum()) * rng.dirichlet(np.full(len(large), 3.0))
    return found


def local_of(side: int, epsilon: float) -> mdp.mechanisms.LocalMechanism:
    """Return an exponential law with stored reports up to three steps away, over one background."""
    places = mdp.grid((side, side))
    near = places.near(3.0)
    values = np.exp(-0.5 * epsilon * near.distances).astype(np.float32)
    background = np.full(len(places), np.exp(-2.0 * epsilon), dtype=np.float32)
    promise = mdp.Guarantee(epsilon, mdp.Lp(2), basis="none")
    certificate = mdp.Certificate(loss=1.0, lower_bound=0.0, method="given", epsilon=float("inf"))
    return mdp.mechanisms.LocalMechanism(
        places, places, near.starts, near.codes, values, background, promise, certificate
    )


@cache
def cases() -> tuple[Case, ...]:
    grid, masses = mdp.grid((6, 6)), masses_of(36)
    noise, gauss = mdp.laplace(mdp.Lp(2), 2.0), mdp.gaussian(mdp.Lp(2), sigma=0.6)
    one, two, three = (mdp.exponential(grid, level) for level in (1.0, 2.0, 3.0))
    wide = mdp.exponential(mdp.grid((20, 20)), 2.0)

    def anywhere(noise: object) -> Reports:
        return lambda secrets, rng: noise.sample(
            grid.points[secrets] + rng.uniform(-0.5, 0.5, (len(secrets), 2)), rng=rng
        )

    def crowded(secrets: np.ndarray, rng: np.random.Generator) -> object:
        # Everybody in a corner of the cell, a corner of its own for each: at the border, where cells are told worst.
        corner = np.stack([secrets % 2, secrets // 6 % 2], axis=1) - 0.5
        return noise.sample(grid.points[secrets] + 0.96 * corner, rng=rng)

    def halves(secrets: np.ndarray, rng: np.random.Generator) -> object:
        half = len(secrets) // 2
        return [one.sample(secrets[:half], rng=rng), three.sample(secrets[half:], rng=rng)]

    words = mdp.vocabulary([f"w{i}" for i in range(60)], np.random.default_rng(4).normal(size=(60, 8)))
    kernel = mdp.exponential(words, 1.2, form="kernel")
    mask = mdp.masked(grid, 3.0, inner=0.5, outer=1.0)
    found = [
        Case("exponential, 6 x 6 cells, epsilon 2", two, masses, 5_000),
        Case("exponential, 6 x 6 cells, epsilon 2, 300 reports", two, masses, 300),
        Case("exponential, 6 x 6 cells, epsilon 1", one, masses, 20_000),
        Case("optimal, 6 x 6 cells, epsilon 2", mdp.optimal(mdp.Problem(grid, 2.0), gap=0.01), masses, 5_000),
        Case("tight, 6 x 6 cells, epsilon 2", mdp.tight_constraints(grid, 2.0), masses, 5_000),
        Case("ring mask, 6 x 6 cells, epsilon 3", mask, masses, 20_000),
        Case("Laplace in the plane, epsilon 2, secrets anywhere", noise, masses, 5_000, grid, report=anywhere(noise)),
        Case("Gaussian in the plane, sigma 0.6, secrets anywhere", gauss, masses, 5_000, grid, report=anywhere(gauss)),
        Case("epsilon 1 and 3 in one table", [one, three], masses, 10_000, report=halves),
        Case("kernel on 60 words, epsilon 1.2", kernel, masses_of(60, 1), 20_000),
        Case("LocalMechanism, 12 x 12 cells, no table", local_of(12, 3.0), masses_of(144, 2), 20_000, sparse=True),
        Case("exponential, 20 x 20 cells, epsilon 2", wide, masses_of(400, 3), 50_000),
        Case("exponential, 20 x 20 cells, epsilon 2, 5,000 reports", wide, masses_of(400, 3), 5_000),
    ]
    both = [replace(case, target=target) for case in found for target in ("table", "population")]
    flat = mdp.optimal(mdp.Problem(grid, 0.5), gap=0.01)
    both += [
        Case("optimal, 6 x 6 cells, epsilon 0.5", flat, masses, 5_000, method="bounded", tags=("bounded",)),
        Case(
            "Laplace in the plane, epsilon 2, everybody in a corner of the cell", noise, masses, 5_000, grid,
            report=crowded, within="anywhere", tags=("bounded",),
        ),
        Case(
            "Laplace in the plane, epsilon 2, everybody in a corner of the cell", noise, masses, 5_000, grid,
            report=crowded, tags=("equal chance assumed, wrongly",),
        ),
    ]  # fmt: skip
    for target in ("table", "population"):
        both.append(replace(found[0], target=target, intervals="bootstrap", tags=("bootstrap",)))
        both.append(replace(found[1], target=target, intervals="bootstrap", tags=("bootstrap",)))
    return tuple(both)


def piece(name: str, number: int, folder: Path, size: int = PIECE) -> Path:
    """Draw the tables of one piece, decode them, and write how often the truth was in its interval."""
    place = folder / f"{_slug(name)}-{number}.json"
    if place.exists():
        return place
    case = next(one for one in cases() if one.what == name)
    rng, n = np.random.default_rng([7, number]), len(case.masses)
    regions = _regions(n)
    hits, region_hits, together = np.zeros(n), np.zeros(len(regions)), 0
    before, began = operators.MOST_DENSE, time.perf_counter()
    operators.MOST_DENSE = 1 if case.sparse else before
    several = case.mechanism if isinstance(case.mechanism, list) else [case.mechanism]
    try:
        sources = report_models_of(several, case.cells, within=case.within)  # the law is made once for all tables
        for _ in range(size):
            told, reports = case.draw(rng)
            truth = told if case.target == "table" else case.masses
            tables = reports if isinstance(case.mechanism, list) else [reports]
            counts = [source.count_reports(table) for source, table in zip(sources, tables, strict=True)]
            how = EstimateRequest(case.method, case.target, intervals=case.intervals)
            found = decode_counts(sources, counts, how)
            hits += (found.lower <= truth) & (truth <= found.upper)
            for at, (codes, mass) in enumerate(zip(regions.values(), found.regions(regions).values(), strict=True)):
                region_hits[at] += mass.lower <= truth[codes].sum() <= mass.upper
            wide = decode_counts(sources, counts, replace(how, simultaneous=True))
            together += bool(np.all((wide.lower <= truth) & (truth <= wide.upper)))
    finally:
        operators.MOST_DENSE = before
    made = {"tables": size, "hits": hits.tolist(), "regions": region_hits.tolist(), "together": together}
    partial = place.with_suffix(".part")
    partial.write_text(json.dumps({**made, "seconds": time.perf_counter() - began}))
    return partial.rename(place)


def summary(case: Case, pieces: list[Path]) -> tuple[str, dict[str, object]]:
    """Say what all pieces of a case found."""
    found = [json.loads(place.read_text()) for place in pieces]
    tables = sum(one["tables"] for one in found)
    hits = np.sum([one["hits"] for one in found], axis=0) / tables
    areas = np.sum([one["regions"] for one in found], axis=0) / tables
    together = sum(one["together"] for one in found) / tables
    kinds = {"large": case.masses > 0.01, "small": (case.masses > 0) & (case.masses <= 0.01), "empty": case.masses == 0}
    shares = {name: float(hits[which].mean()) for name, which in kinds.items() if which.any()}
    words = ", ".join(f"{name} cells {share:.1%}" for name, share in shares.items())
    words += f"; single cells {hits.min():.1%} to {hits.max():.1%}; regions {areas.min():.1%} to {areas.max():.1%}"
    words += f"; all cells at once {together:.1%}"
    outside = float(np.mean((hits < 0.93) | (hits > 0.97)))
    values: dict[str, object] = {
        "tables": tables, "reports": case.reports, "least": float(hits.min()), "most": float(hits.max()),
        "kinds": shares, "regions": areas.tolist(), "together": together, "outside": outside,
        "seconds": sum(one["seconds"] for one in found),
    }  # fmt: skip
    return words, values


def _regions(n: int) -> dict[str, np.ndarray]:
    mixed = np.random.default_rng(7).permutation(n)[: n // 3]
    return {"quarter": np.arange(n // 4), "scattered": mixed, "two": np.array([0, 1])}


def _slug(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)
