"""Tables and pictures of the trajectory study: losses against epsilon, p-values, blanket sizes."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from metricdp.errors import MissingExtra, import_extra
from metricdp.experiments._blankets import Study

if TYPE_CHECKING:
    from metricdp.experiments.contextual import Row


def write(rows: Sequence[Row], studies: dict[str, Study], folder: Path) -> list[Path]:
    """Write losses.csv and blankets.csv, and the pictures where matplotlib is installed."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [_losses(rows, folder / "losses.csv"), _blankets(studies, folder / "blankets.csv")]
    try:
        import_extra("matplotlib", "plots")
    except MissingExtra:
        return paths
    from matplotlib.figure import Figure

    cities = list(studies)
    losses, values, sizes = (Figure(figsize=(4.2 * len(cities), 3.4), layout="constrained") for _ in range(3))
    for at, city in enumerate(cities):
        _draw_losses(losses.add_subplot(1, len(cities), at + 1), [row for row in rows if row.city == city], city)
        _draw_values(values.add_subplot(1, len(cities), at + 1), studies[city], city)
        _draw_sizes(sizes.add_subplot(1, len(cities), at + 1), studies[city], city)
    for name, figure in (("losses", losses), ("p_values", values), ("blanket_sizes", sizes)):
        figure.savefig(folder / f"{name}.png", dpi=120)
        paths.append(folder / f"{name}.png")
    return paths


def _losses(rows: Sequence[Row], path: Path) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, fieldnames=list(asdict(rows[0])))
        table.writeheader()
        table.writerows(asdict(row) for row in rows)
    return path


def _blankets(studies: dict[str, Study], path: Path) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["city", "trips", "hour_bin", "speed_bin", "region", "samples", "size", "p_0", "p_1", "p_2"])
        for city, study in studies.items():
            for part, found in (("train", study.train), ("test", study.test)):
                for group, size, values, samples in zip(
                    found.groups.tolist(), found.sizes, found.p_values, found.samples, strict=True
                ):
                    table.writerow([city, part, *group, samples, size, *(f"{value:.4g}" for value in values)])
    return path


def _draw_losses(axes: Any, rows: list[Row], city: str) -> None:
    for method in dict.fromkeys(row.method for row in rows):
        mine = sorted((row.epsilon, row.loss) for row in rows if row.method == method)
        axes.plot([epsilon for epsilon, _ in mine], [loss for _, loss in mine], marker="o", label=method)
    axes.set(title=city, xlabel="epsilon per km", ylabel="expected loss in km", ylim=(0, None))
    axes.legend(fontsize="x-small")


def _draw_values(axes: Any, study: Study, city: str) -> None:
    for m in range(study.train.p_values.shape[1]):
        speed = (study.train.groups[:, 1] + 0.5) * study.bins.speed_mph
        axes.plot(speed, study.train.p_values[:, m], "o", alpha=0.6, label=f"the last {m} places suffice")
    axes.axhline(0.05, color="grey", linewidth=0.8)
    axes.set(title=city, xlabel="speed in mph", ylabel="p-value", ylim=(-0.02, 1.02))
    axes.legend(fontsize="x-small")


def _draw_sizes(axes: Any, study: Study, city: str) -> None:
    counts = np.bincount(study.train.sizes, minlength=study.train.p_values.shape[1] + 1)
    axes.bar(np.arange(len(counts)), counts)
    axes.set(title=city, xlabel="places in the blanket of the next place", ylabel="groups")
