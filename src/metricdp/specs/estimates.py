"""What made reports, by names: mechanism files, or Laplace noise on the cells of a map."""

from __future__ import annotations

from pathlib import Path

from metricdp.artifacts import load
from metricdp.design.laplace import laplace
from metricdp.errors import InvalidInput
from metricdp.specs.metrics import read_metric
from metricdp.specs.options import OriginSpec
from metricdp.specs.places import map_space
from metricdp.tables.estimates import ReportOrigin
from metricdp.units import parse_epsilon


def read_origin(spec: OriginSpec, sources: int) -> ReportOrigin:
    """Return the mechanisms that made the reports of `sources` tables, and the cells where they have none."""
    files, levels = spec.mechanism or (), spec.epsilon or ()
    if bool(files) == bool(levels):
        raise InvalidInput(
            "say what made the reports, with either --mechanism cells.mdp, or --epsilon 10/km for Laplace noise."
        )
    if (spec.grid is None) != (spec.cell is None):
        raise InvalidInput("--grid and --cell belong together, such as --grid 41.8,12.4,42.0,12.6 --cell 1km.")
    count = len(files) + len(levels)
    if spec.which is None and count not in (1, sources):
        raise InvalidInput(
            f"{count} mechanisms and {sources} tables: name one mechanism for every table, or the column that names "
            "the mechanism of every row with --which."
        )
    cells = None if spec.grid is None or spec.cell is None else map_space(spec.grid, spec.cell, spec.metric)
    names: tuple[tuple[str, ...], ...]
    if files:
        made = tuple(load(name, trusted=spec.key) for name in files)
        names = tuple((name, Path(name).name, Path(name).stem) for name in files)
        return ReportOrigin(made, names, cells, spec.within, spec.which)
    if spec.key is not None:
        raise InvalidInput("--key is for a mechanism file that was signed: name it with --mechanism.")
    if cells is None:
        raise InvalidInput(
            "Laplace noise takes secrets anywhere: say on which cells densities are wanted, with --grid "
            "41.8,12.4,42.0,12.6 --cell 1km."
        )
    metric = read_metric(spec.metric)
    made = tuple(laplace(metric, parse_epsilon(level, metric.unit)) for level in levels)
    names = tuple((level, level.split("/")[0]) for level in levels)
    return ReportOrigin(made, names, cells, spec.within, spec.which)
