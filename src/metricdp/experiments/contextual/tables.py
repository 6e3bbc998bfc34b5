"""What the trajectory study found, and its tables as CSV files, written anew whenever something was found."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.experiments.contextual.blankets import Study
from metricdp.experiments.contextual.dependence import Slice
from metricdp.experiments.contextual.methods import FullProgram, Row
from metricdp.experiments.contextual.promises import Promises


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run found: a row per city, epsilon and method; full programs; promises; the blankets of every city."""

    rows: list[Row] = field(default_factory=list)
    programs: list[FullProgram] = field(default_factory=list)
    promises: list[Promises] = field(default_factory=list)
    studies: dict[str, Study] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)


def write(outcome: Outcome, folder: Path) -> list[Path]:
    """Write the tables of what is known so far; those with nothing in them are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [
        _records(outcome.rows, folder / "losses.csv"),
        _records(outcome.programs, folder / "programs.csv"),
        _records(outcome.promises, folder / "promises.csv"),
        _records(outcome.slices, folder / "p_values.csv"),
        _table(_blanket_rows(outcome.studies), folder / "blankets.csv"),
        _table(_correlation_rows(outcome.studies), folder / "correlations.csv"),
        _table(_classifier_rows(outcome.studies), folder / "classifier.csv"),
        _table(_size_rows(outcome.studies), folder / "blanket_sizes.csv"),
        _table(_time_rows(outcome.studies), folder / "prediction_times.csv"),
    ]
    return [path for path in paths if path is not None]


def _records(records: Sequence[Any], path: Path) -> Path | None:
    return _table((asdict(record) for record in records), path)


def _table(rows: Iterable[dict[str, Any]], path: Path) -> Path | None:
    """Write dictionaries with the same keys; nothing where there is none."""
    kept = list(rows)
    if not kept:
        return None
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, fieldnames=list(kept[0]))
        table.writeheader()
        table.writerows(kept)
    return path


def _blanket_rows(studies: dict[str, Study]) -> Iterable[dict[str, Any]]:
    """One row per group with enough samples: its bins, its blanket, the p-value of every m tested."""
    for city, study in studies.items():
        for part, found in (("train", study.train), ("test", study.test)):
            for group, size, values, samples in zip(
                found.groups.tolist(), found.sizes, found.p_values, found.samples, strict=True
            ):
                bins = dict(zip(("hour_bin", "speed_bin", "region"), group, strict=True))
                levels = {f"p_{m}": f"{value:.4g}" for m, value in enumerate(values)}
                yield {"city": city, "trips": part, **bins, "samples": samples, "size": size, **levels}


def _correlation_rows(studies: dict[str, Study]) -> Iterable[dict[str, Any]]:
    for city, study in studies.items():
        for feature, found in study.correlations.items():
            yield {"city": city, "feature": feature, **asdict(found)}


def _classifier_rows(studies: dict[str, Study]) -> Iterable[dict[str, Any]]:
    """One row per evaluation: scores, ceiling, the four counts of the confusion."""
    for city, study in studies.items():
        scored = [] if study.scores is None else [("one split of the trips", study.scores, study.ceiling)]
        scored += [(name, found.scores, found.ceiling) for name, found in study.crossed.items()]
        for name, scores, ceiling in scored:
            row = asdict(scores)
            names = ("yes_yes", "no_yes", "yes_no", "no_no")  # said and true
            counts = dict(zip(names, row.pop("confusion"), strict=True))
            yield {"city": city, "evaluation": name, "ceiling": ceiling, **row, **counts}


def _size_rows(studies: dict[str, Study]) -> Iterable[dict[str, Any]]:
    """One row per region, and one for the whole city (row and column -1): shares of predicted blanket sizes."""
    for city, study in studies.items():
        everywhere = np.ones(len(study.sizes), dtype=bool)
        parts = [(-1, -1, everywhere)]
        for row, column in np.ndindex(*study.bins.regions):
            parts.append((row, column, study.size_regions == row * study.bins.regions[1] + column))
        for row, column, inside in parts:
            counts = np.bincount(study.sizes[inside], minlength=len(study.shares))
            shares = {f"share_{size}": count / max(1, inside.sum()) for size, count in enumerate(counts.tolist())}
            mean = float(study.sizes[inside].mean()) if inside.any() else float("nan")
            yield {"city": city, "row": row, "column": column, "windows": int(inside.sum()), "mean": mean, **shares}


def _time_rows(studies: dict[str, Study]) -> Iterable[dict[str, Any]]:
    """Percentiles of the time of one call of the predictor."""
    for city, study in studies.items():
        for percent, value in enumerate(np.percentile(study.milliseconds, np.arange(101)).tolist()):
            yield {"city": city, "percent": percent, "milliseconds": value}
