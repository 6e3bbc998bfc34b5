"""What builders start from besides places: a metric alone, mechanism files, a matrix, a box around places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from metricdp import spaces
from metricdp.arrays import Floats
from metricdp.cli import choices
from metricdp.cli.choices import Places, Where
from metricdp.design.builders import Builder
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Mechanism
from metricdp.mechanisms.kinds.matrix import as_table
from metricdp.metrics import Metric, exponent_of, pairwise
from metricdp.spaces import Box, FiniteSpace


def is_file(base: str | None) -> bool:
    """Tell whether `--base` names a mechanism file rather than a builder."""
    return base is not None and (Path(base).suffix == ".mdp" or Path(base).exists())


def refuse_other(builder: Builder, where: Where, level: str | None) -> None:
    """Refuse places and an epsilon where mechanism files bring both."""
    given = [field.name for field in fields(where) if getattr(where, field.name) != field.default]
    given += [] if level is None else ["epsilon"]
    if given:
        raise InvalidInput(
            f"{builder.name} takes places and epsilon from its mechanism files: leave --{given[0]} away."
        )


def mechanisms_in(builder: Builder, paths: Sequence[str]) -> tuple[Mechanism, ...]:
    """Return the mechanisms of files, each audited again as it is read."""
    names = [path.strip() for path in paths if path.strip()]
    found = tuple(choices.mechanism_in(name, trusted=None) for name in names)
    if builder.start == "mechanism" and as_table(found[0]) is None:
        raise InvalidInput(f"{names[0]!r} must hold a table of probabilities to be {builder.name}, and holds none.")
    return found


def places_of(mechanism: Mechanism) -> Places:
    """Return the secrets of a mechanism that has finitely many."""
    return Places(spaces.given(mechanism.inputs, FiniteSpace, "the secrets"))


def metric_alone(builder: Builder, where: Where) -> Metric:
    """Return the metric of noise, which needs no places."""
    given = [
        field.name for field in fields(where) if field.name != "metric" and getattr(where, field.name) != field.default
    ]
    if given:
        raise InvalidInput(
            f"{builder.name} is noise for secrets anywhere and needs no places: leave --{given[0]} away, or choose a "
            "builder for places, such as optimal."
        )
    return choices.metric_named(where.metric or "haversine")


def own_matrix(path: str | None, space: FiniteSpace) -> Floats:
    """Return the probabilities of a file."""
    from metricdp.cli.matrices import read_matrix

    return read_matrix(str(path), rows=len(space))


def in_box(
    builder: Builder, places: Places, epsilon: float, stakes: dict[str, Any], wanted: dict[str, Any]
) -> Mechanism:
    """Build a mechanism for all of a box, or for all places along streets; reports are the places."""
    space = places.space
    corners, anchors = wanted.pop("box", None), wanted.pop("anchors", None)
    split = wanted.get("split")
    if split is not None and split not in ("even", "grid"):
        wanted["split"] = numbers(split, "split", "even, grid or one number per axis, such as 1,2")
    loss, prior = stakes["loss"], stakes["prior"]
    if space.network is not None:
        if corners is not None:
            raise InvalidInput("--box belongs to places in the plane: on roads secrets are places along streets.")
        if prior is not None and loss is None:
            loss = space.distances
        pieces = _pieces(anchors)
        return builder.function(space, space, epsilon, loss=loss, prior=prior, anchors=pieces, **wanted)
    if exponent_of(space.metric) is None:
        raise InvalidInput(
            f"{builder.name} needs lengths along axes (--metric l1, l2 or linf) or roads (--roads): with "
            f"{type(space.metric).__name__} there are none. Project latitude and longitude to metres first, and name "
            "the columns x and y."
        )
    box = _box(corners, places)
    outside = np.flatnonzero(~box.legal(space.points))
    if len(outside) and (loss is not None or prior is not None):
        raise InvalidInput(
            f"--box leaves out {len(outside):,} of the places that a prior or a loss is given for, the first in row "
            f"{outside[0]}: make it larger."
        )
    if prior is not None and loss is None:
        loss = pairwise(space.metric, space.points, space.points)
    counted = None if loss is None else (space.points, loss)
    cells = _cells(anchors, box.dimension)
    return builder.function(box, space, epsilon, loss=counted, prior=prior, anchors=cells, **wanted)


def _box(corners: str | None, places: Places) -> Box:
    """Return the box that was named, the map of a grid, or the one around all places."""
    space = places.space
    if corners is None and places.where is not None and places.where.grid is not None:
        corners = places.where.grid
    if corners is None:
        low, high = space.points.min(axis=0), space.points.max(axis=0)
    else:
        values = np.array(numbers(corners, "box", "the lower and then the upper corner, such as 0,0,10,10"))
        if values.size != 2 * space.dimension:
            raise InvalidInput(
                f"--box must be {2 * space.dimension} numbers, two corners of the places, got {corners!r}."
            )
        low, high = values.reshape(2, -1)
    if not np.all(low < high):
        raise InvalidInput(
            "the box must have a lower and an upper corner that differ along every axis; name it with --box."
        )
    return Box(low, high, space.metric)


def _cells(anchors: str | None, dimension: int) -> Any:
    if anchors is None or anchors == "refine":
        return "refine"
    counts = numbers(anchors, "anchors", "refine, or cells along each axis such as 7,7")
    if len(counts) not in (1, dimension) or any(count < 1 or count != int(count) for count in counts):
        raise InvalidInput(f"--anchors must be refine or {dimension} whole numbers of at least 1, got {anchors!r}.")
    return tuple(int(count) for count in counts) * (dimension if len(counts) == 1 else 1)


def _pieces(anchors: str | None) -> int | float:
    if anchors is None:
        return 1
    if anchors.strip()[-1:].isalpha() and anchors != "refine":
        return choices.distance_in(anchors, "km", "anchors")
    counts = (
        [] if anchors == "refine" else numbers(anchors, "anchors", "pieces of every street, or their longest length")
    )
    if len(counts) != 1 or counts[0] < 1 or counts[0] != int(counts[0]):
        raise InvalidInput(
            f"--anchors on roads must be the number of pieces of every street, or their longest length such as 200m, "
            f"got {anchors!r}."
        )
    return int(counts[0])


def numbers(text: str, option: str, meaning: str) -> list[float]:
    """Return numbers with commas between."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"--{option} must be {meaning}, got {text!r}.") from None
