"""What the ConstOPT study found, as lines, a table and a picture."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np

from metricdp.experiments.constopt.plan import Row
from metricdp.experiments.constopt.published import GAINS
from metricdp.files import replacing
from metricdp.pictures import palette


def draw(rows: Iterable[Row], path: Path) -> None:
    """Draw loss against tight epsilon, one panel a space."""
    points = [row for row in rows if row.part == "figure"]
    panels = list(dict.fromkeys((row.domain, row.secrets) for row in points))
    colours = {
        "Madlib": palette.MUTED,
        "EXPMECH": palette.REPORTED,
        "Spanner": palette.PLAIN,
        "ConstOPT 10": palette.TRUE,
        "OPT": palette.BEST,
        "packing bound": palette.BOUND,
    }
    with palette.styled():
        picture = palette.figure(5.2 * max(1, len(panels)), 4.4)
        for place, (domain, size) in enumerate(panels, start=1):
            axes = picture.add_subplot(1, len(panels), place)
            here = [row for row in points if (row.domain, row.secrets) == (domain, size)]
            for name, colour in colours.items():
                line = [(row.epsilon_tight or row.epsilon, row.loss) for row in here if row.mechanism == name]
                if line:
                    style = "--" if name == "packing bound" else "-"
                    axes.plot(*zip(*sorted(line), strict=True), style, marker="o", color=colour, label=name)
            for row in here:
                if row.mechanism == "uniform":
                    axes.axhline(row.loss, color=palette.LINE, linestyle=":", label="uniform")
            axes.set_title(f"{size} {domain}")
            axes.set_xlabel("tight epsilon, delta 0.001" + ("" if domain == "words" else " (per km)"))
            axes.set_ylabel("loss, 95 % quantile" + ("" if domain == "words" else " (km)"))
            axes.set_ylim(bottom=0)
            axes.legend(frameon=False, fontsize=9)
        with replacing(path) as partial:
            picture.savefig(partial, format="png")


def gain_lines(rows: list[Row]) -> list[str]:
    """Say how far ConstOPT lies below the best of the others that are not optimal, as Appendix C does."""
    lines = [""]
    points = [row for row in rows if row.part == "figure" and np.isfinite(row.loss)]
    for domain, size in dict.fromkeys((row.domain, row.secrets) for row in points):
        gains = []
        here = [row for row in points if (row.domain, row.secrets) == (domain, size)]
        for ours in (row for row in here if row.mechanism == "ConstOPT 10"):
            others = [
                row.loss
                for row in here
                if row.epsilon == ours.epsilon and row.mechanism in ("Madlib", "EXPMECH", "Spanner")
            ]
            gains.append(f"{1 - ours.loss / min(others):.1%} at {ours.epsilon:g}")
        known = GAINS.get((domain, size))
        beside = f" (published, mid-range: {known})" if known else ""
        lines.append(f"ConstOPT below the next best at the same promise, {size} {domain}: {', '.join(gains)}{beside}.")
    return lines


def row_line(row: Row) -> str:
    tight = "" if row.epsilon_tight is None else f"{row.epsilon_tight:.4f}"
    text = f"  {row.domain:<6}{row.secrets:>4} {row.mechanism:<18}"
    if row.part == "ablation":
        text += f"r {row.nearest:<3} penalty {row.penalty:<6g}"
    text += f"epsilon {row.epsilon:<5g} tight {tight:<7} loss {row.loss:<8.4f}"
    if row.part == "vocabularies" and row.worst_loss is not None:
        text += f"worst {row.worst_loss:<8.4f}"
    text += f"{row.seconds:>7.2f} s ({row.processor_seconds:.2f} s of processor)"
    if row.nonzeros is not None:
        text += f"  {row.nonzeros:.2e} non-zeros"
    of = " for 200 FastText words" if row.part == "ablation" else ""
    beside = [
        f"{value:g} {unit}".strip()
        for value, unit in (
            (row.published_loss, "loss"),
            (row.published_seconds, "s"),
            (row.published_nonzeros, "non-zeros"),
        )
        if value is not None
    ]
    return text + (f"  [published{of}: {', '.join(beside)}]" if beside else "") + (f"  {row.note}" if row.note else "")


def write_table(rows: list[Row], path: Path) -> None:
    with replacing(path) as partial, Path(partial).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=[field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
