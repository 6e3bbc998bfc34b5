"""The numbers that the paper prints, typed once: Qiu (2024), Tables 1 to 4 and the sentences about its figures.

Cells are (mean, 1.96 standard deviations) over ten instances, by data set and partition. A text stands where the paper
prints one. Figures without printed values are not here: nothing is read off a picture.
"""

from __future__ import annotations

from typing import TypeAlias

from metricdp.solvers import PartitionName

Cell: TypeAlias = tuple[float, float] | str
Printed: TypeAlias = dict[str, dict[PartitionName, Cell]]

NAMES: dict[PartitionName, str] = {
    "distances": "k-m-DV",
    "records": "k-m-rec",
    "neighbours": "k-m-adj",
    "spectral": "BSC",
    "balanced": "balanced (ours)",
}
PUBLISHED_PARTITIONS: tuple[PartitionName, ...] = ("distances", "records", "neighbours", "spectral")


def _row(*cells: Cell) -> dict[PartitionName, Cell]:
    return dict(zip(PUBLISHED_PARTITIONS, cells, strict=True))


# Table 1: inner records of a subproblem
SUBPROBLEM_MEAN: Printed = {
    "road": _row((9.5, 1.2), (10.1, 0.8), (17.7, 1.3), (15.4, 0.8)),
    "grid": _row((4.7, 3.0), (3.7, 6.9), (14.9, 1.7), (3.0, 4.7)),
    "text": _row((12.6, 2.6), (4.9, 6.9), (44.7, 13.4), (33.0, 16.3)),
    "synthetic": _row((9.6, 1.9), (10.2, 1.9), (8.5, 1.2), (8.4, 5.2)),
}
SUBPROBLEM_MOST: Printed = {
    "road": _row((18.6, 8.9), (16.1, 10.1), (34.6, 12.5), (32.1, 15.3)),
    "grid": _row((11.3, 5.5), (10.2, 7.6), (28.3, 11.0), (17.2, 10.3)),
    "text": _row((31.8, 6.4), (42.7, 16.4), (103.2, 30.4), (62.4, 38.4)),
    "synthetic": _row((17.9, 2.9), (19.8, 5.1), (90.0, 24.6), (90.2, 56.6)),
}
# Table 2: records of a component of the master
COMPONENT_MEAN: Printed = {
    "road": _row((11.3, 6.0), (37.9, 24.7), (40.4, 34.3), (64.7, 14.5)),
    "grid": _row((3.6, 2.9), (8.8, 4.3), (9.0, 60.9), (18.6, 3.3)),
    "text": _row((8.0, 4.4), (9.7, 9.2), (8.8, 84.2), (11.4, 16.2)),
    "synthetic": _row((10.9, 4.3), (12.4, 8.7), (17.9, 9.0), (18.3, 9.2)),
}
COMPONENT_MOST: Printed = {
    "road": _row((42.5, 46.8), (98.75, 44.4), (117.8, 59.2), (121.1, 79.1)),
    "grid": _row((22.1, 3.4), (10.3, 5.1), (99.5, 95.1), (27.1, 4.2)),
    "text": _row((36.0, 15.4), (53.2, 25.4), (112.7, 85.4), (79.2, 34.2)),
    "synthetic": _row((35.9, 45.5), (46.3, 48.5), (41.3, 32.4), (63.6, 41.0)),
}
# Table 3: seconds on a desktop with 16 cores
EXCEEDED = "max iter. ex."
SECONDS: Printed = {
    "road": _row((290.7, 33.5), (1066.9, 154.4), EXCEEDED, EXCEEDED),
    "grid": _row((161.4, 14.3), (159.8, 4.8), EXCEEDED, (238.2, 6.0)),
    "text": _row((27.2, 0.3), (925.0, 79.0), (58.7, 9.7), (1218.6, 78.3)),
    "synthetic": _row((185.1, 23.9), (162.7, 12.0), EXCEEDED, (434.1, 21.1)),
}
CLASSIC = EXCEEDED  # dual simplex and interior point alike, on all four data sets, at 10,000 iterations
# Table 4: iterations until the bounds are within 0.01
MANY = "≥ 500"
ITERATIONS: Printed = {
    "road": _row((128.0, 10.0), (180.0, 17.0), MANY, MANY),
    "grid": _row((143.0, 4.0), (130.0, 6.0), MANY, (185.0, 7.0)),
    "text": _row((41.0, 6.0), (204.0, 19.0), (42.0, 5.0), (154.0, 14.0)),
    "synthetic": _row((142.0, 11.0), (144.0, 15.0), MANY, (237.0, 19.0)),
}
# Figure 6, in words: 1,000 records, k-m-DV
LARGER = {
    "road": "about 30 minutes",
    "grid": "below 6 minutes",
    "text": "below 6 minutes",
    "synthetic": "below 6 minutes",
}
# Figure 7, in words: how far the loss is below the exponential mechanism's, percent, mean over epsilon 2 to 10
REDUCTION = {"road": 47.19, "grid": 46.99, "text": 22.49, "synthetic": 24.05}
# Figure 8, in words: correlation of a subproblem's size with the iterations until it has a solution
CORRELATION = {"road": 0.712, "grid": 0.6264, "text": 0.1302, "synthetic": 0.6072}
# Figures 10 and 11, in words: k-m-DV, mean over the data sets
MASTER_SECONDS = 1.505
SUBPROBLEM_SECONDS = 1.194
THRESHOLD = 0.01  # xi
MOST_ITERATIONS = 500  # what Table 4 does not go beyond


def cell(table: Printed, data: str, method: PartitionName) -> dict[str, float | str]:
    """Return the columns of a printed number: itself, and a note with its spread; nothing where the paper has none."""
    found = table[data].get(method, ())
    if isinstance(found, str):
        return {"published": found}
    return {"published": found[0], "note": f"published ± {found[1]:g} (1.96 standard deviations)"} if found else {}
