"""One door for every kind of table: in memory, on disk, or with an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.mechanisms import Mechanism
from metricdp.randomness import Randomness
from metricdp.tables.care import Care
from metricdp.tables.charging import Books, open_books
from metricdp.tables.engines import engine_of
from metricdp.tables.engines.base import Target, refuse_for_texts, refuse_target
from metricdp.tables.frames import perturb_frame, protect_frame_texts
from metricdp.tables.persons import Spread, Which, per_person
from metricdp.tables.task import OnError, Request
from metricdp.tables.text_task import TextRequest
from metricdp.text import TextMechanism

Frame = TypeVar("Frame")


def perturb(
    frame: Frame,
    mechanism: Mechanism | TextMechanism,
    *,
    columns: Sequence[str] | str | None = None,
    snap: float = 0.0,
    on_error: OnError = "fail",
    show_values: bool = False,
    id: str | None = None,
    budget: float | str | None = None,
    spread: Spread | None = None,
    at_most: int | None = None,
    which: Which = "first",
    ledger: Books = None,
    drop: Sequence[str] | str = (),
    coarsen: Mapping[str, Any] | None = None,
    keep: Sequence[str] | str = (),
    strict: bool = False,
    yes_really: bool = False,
    rng: Randomness = None,
    target: Target = None,
) -> Frame:
    """Return the table with the columns of the secret replaced by reports; every other column stays, unless you say so.

    Takes pandas and Polars data frames and Arrow tables and record batches, and gives back the type it got, rows in
    the same order. Never gives out a lazy noisy table, which would draw again whenever it is looked at: a lazy Polars
    frame is collected once and comes back eager, a Ray data set comes back materialised, an Arrow data set or reader
    and a Spark frame are written to `target` and read back. DuckDB has `mdp.duckdb_table`.

    The columns default to lat and lon (latitude, longitude, lng) on the Earth, to the names the mechanism was designed
    with, or to x, y, z. A product takes the columns of its parts one after the other. Columns of the secret that do not
    become columns of the report (the history of a place, the street and offset) are removed.

    What a table carries besides its rows stays behind unless it is known to be harmless: names and types stay, metadata
    (`attrs`, bounding boxes, notes on columns) do not, and categories are those of the rows that come back.

    Every row is protected by itself: rows of one person add up, and so do two calls on one table.

    Args:
        frame: The table.
        mechanism: What is applied to every row; or a `mdp.text.TextMechanism`, which is applied to every text of the
            columns, by rules of its own: of the options below `columns`, `drop`, `coarsen`, `keep`, `strict`, `rng` and
            `target` are for texts too.
        columns: The columns that hold the secret, in the order of its coordinates.
        snap: For mechanisms on finitely many points: values up to this distance from a point become that point. It
            adds a slack to the promise: 2 * epsilon * snap, and on roads epsilon times the largest distance by road
            between two points that one place can reach (`FiniteSpace.charge`). In the unit of the metric.
        on_error: What becomes of rows that hold no legal secret: "fail" raises an error that names them, "drop" leaves
            them out, "null" empties their columns; the number of such rows is logged.
        show_values: Let the error show what the first bad row holds. Errors end in logs, so they name rows and columns
            only unless this is asked for. Not for Spark and Ray, whose workers write logs of their own.
        id: The column that says whose row it is, for a budget or a limit for all rows of one person.
        budget: What all rows of one person may cost together, per unit of the metric; 40.0 or "40/km". For Gaussian
            noise it is rho per squared unit: 3.0 or "3/km2".
        spread: "even" gives each row of a person min(epsilon, budget / rows of that person).
        at_most: Leave so many rows of every person in the table, chosen without looking at the secrets.
        which: Which rows stay: the "first" of the table, or "random" ones.
        ledger: The books that everybody is charged in for their own rows (`id`), in one transaction, before anything
            comes back: an open `Ledger`, the place of one such as "budget.db", or a `Charging`, which says more. All
            rows or none; `Charging(ledger, refused="report")` leaves out the last rows of those whose budget does not
            hold them all, and `Charging(ledger, job="monday")` names the release: repeated, it costs nothing and gives
            what it gave. Books in a file that is not there begin with `budget` as the total of every person.
        drop: Columns that do not leave, such as ["ip"]; "position.accuracy" is a field inside a struct.
        coarsen: Columns that get coarser, such as {"t": "1h", "age": 10}: times and numbers are put down to a step.
        keep: Columns that you have looked at: what is found in them is not told again, and not refused.
        strict: Refuse a table with columns that stay and may give the secret away; otherwise they are logged by the
            logger "metricdp".
        yes_really: The secrets are right although they look exchanged, constant or far from all others.
        rng: None draws cryptographic randomness. A NumPy generator is for tests and simulations, and its output is
            marked as such, and so is that of any other source that is not cryptographic: in the metadata
            `metricdp.simulated` (Arrow, Parquet), in `attrs` (pandas), in a column `metricdp_simulated` (Polars, CSV).
            Not for Spark and Ray, whose workers draw.
        target: Where the reports are written: a folder for Spark, a Parquet file for Arrow data sets and readers.
    """
    care = Care.of(drop=drop, coarsen=coarsen, keep=keep, strict=strict, yes_really=yes_really)
    if isinstance(mechanism, TextMechanism):
        refuse_for_texts(
            {
                "snap": snap, "on_error": on_error != "fail", "show_values": show_values, "id": id, "budget": budget,
                "spread": spread, "at_most": at_most, "ledger": ledger, "yes_really": yes_really,
            }
        )  # fmt: skip
        texts: Frame = _protect_texts(frame, TextRequest(mechanism, columns, care), rng, target)
        return texts
    persons = per_person(id, budget, spread, at_most, which=which, promise=mechanism.guarantee)
    with open_books(ledger, persons, rng, mechanism=mechanism) as charging:
        request = Request(mechanism, columns, snap, on_error, show_values, care, persons=persons, charging=charging)
        result: Frame = _perturb(frame, request, rng, target)
    return result


def _protect_texts(frame: Any, request: TextRequest, rng: Randomness, target: Target) -> Any:
    engine = None if isinstance(frame, pa.Table | pa.RecordBatch) else engine_of(frame)
    if engine is not None:
        if engine.texts is None:
            raise InvalidInput(f"the engine {engine.name!r} protects no texts: write the table to a file first.")
        return engine.texts(frame, request, target=target, rng=rng)
    refuse_target(frame, target)
    return protect_frame_texts(_eager(frame), request, rng)


def _eager(frame: Any) -> Any:
    """Return a lazy Polars frame collected, once: the reports must not be drawn again."""
    if type(frame).__module__.partition(".")[0] == "polars" and type(frame).__name__ == "LazyFrame":
        return frame.collect(engine="streaming")
    return frame


def _perturb(frame: Any, request: Request, rng: Randomness, target: Target) -> Any:
    engine = None if isinstance(frame, pa.Table | pa.RecordBatch) else engine_of(frame)
    if engine is not None and engine.perturb is not None:
        return engine.perturb(frame, request, target=target, rng=rng)
    refuse_target(frame, target)
    return perturb_frame(_eager(frame), request, rng)
