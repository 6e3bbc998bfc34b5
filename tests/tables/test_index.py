"""The index of a pandas frame leaves with it: it is looked at, dropped and coarsened like a column."""

from __future__ import annotations

import io
import logging
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import metricdp as mdp
from metricdp.errors import NotPrivate

NOISE = mdp.laplace(mdp.Haversine(), 10.0)
ROWS = 200
RNG = np.random.default_rng(1)
LAT, LON = 41.1 + RNG.random(ROWS) / 10, -8.6 + RNG.random(ROWS) / 10


def frame(index: Any = None, **more: Any) -> pd.DataFrame:
    return pd.DataFrame({"lat": LAT, "lon": LON, **more}, index=index)


INDICES = {
    "unnamed": pd.Index(LAT),
    "named": pd.Index(LAT, name="k"),
    "texts": pd.Index([f"{lat:.5f},{lon:.5f}" for lat, lon in zip(LAT, LON, strict=True)]),
    "several": pd.MultiIndex.from_arrays([np.arange(ROWS), LAT], names=[None, "k"]),
    "pairs": pd.MultiIndex.from_arrays([LAT, LON]),
    "times": pd.date_range("2024-01-01 10:00:07", periods=ROWS, freq="13s", name="k"),
    "categories": pd.CategoricalIndex([f"{lat:.5f},{lon:.5f}" for lat, lon in zip(LAT, LON, strict=True)]),
    "the column once more": pd.Index(LAT, name="lat"),
    "persons": pd.Index([f"anna{row % 7}@example.org" for row in range(ROWS)], name="k"),
}


@pytest.mark.parametrize("name", INDICES)
def test_an_index_that_tells_the_place_is_refused_if_strict_and_named_otherwise(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = frame(INDICES[name])
    with pytest.raises(NotPrivate, match=r"index|level_|k\b"):
        mdp.perturb(given, NOISE, strict=True)
    caplog.set_level(logging.WARNING, "metricdp")
    made = mdp.perturb(given, NOISE)
    assert "Check " in caplog.text
    pd.testing.assert_index_equal(made.index, given.index)
    assert list(made.columns) == ["lat", "lon"]
    if isinstance(given.index, pd.DatetimeIndex):
        assert made.index.freq == given.index.freq or made.index.freq is None


def test_an_index_is_dropped_coarsened_and_kept_by_its_name() -> None:
    made = mdp.perturb(frame(INDICES["named"]), NOISE, drop="k", strict=True)
    assert list(made.index) == list(range(ROWS))
    made = mdp.perturb(frame(INDICES["unnamed"]), NOISE, drop="index", strict=True)
    assert made.index.names == [None]
    made = mdp.perturb(frame(INDICES["times"]), NOISE, coarsen={"k": "1h"}, strict=True)
    assert made.index.name == "k"
    assert set(made.index) == {pd.Timestamp("2024-01-01 10:00")}
    made = mdp.perturb(frame(INDICES["several"]), NOISE, drop=["k"], keep="level_0", strict=True)
    assert made.index.nlevels == 1
    assert made.index.tolist() == list(range(ROWS))
    kept = mdp.perturb(frame(INDICES["named"]), NOISE, keep="k", strict=True)
    assert kept.index.equals(INDICES["named"])


def test_an_index_that_counts_the_rows_passes_and_rows_keep_theirs() -> None:
    made = mdp.perturb(frame(), NOISE, strict=True)
    assert isinstance(made.index, pd.RangeIndex)
    given = frame(pd.Index(np.arange(ROWS) * 1.0 + 5))
    given.loc[given.index[3], "lat"] = 99.0
    made = mdp.perturb(given, NOISE, on_error="drop", force=True)
    assert made.index.tolist() == [row + 5.0 for row in range(ROWS) if row != 3]


def test_an_index_says_whose_row_it_is_and_holds_no_categories_of_rows_that_are_gone() -> None:
    words = [f"word{row}" for row in range(ROWS)]
    given = frame(pd.CategoricalIndex(words, name="w"), who=[row % 5 for row in range(ROWS)])
    given.index.name = "w"
    made = mdp.perturb(given, NOISE, id="who", max_rows=1, keep=["w", "who"])
    assert len(made.index.categories) == len(made) == 5
    given = frame(pd.Index([row % 5 for row in range(ROWS)], name="who"))
    assert len(mdp.perturb(given, NOISE, id="who", max_rows=2)) == 10


def test_no_frame_that_comes_back_holds_values_of_dropped_rows() -> None:
    bad = {"lat": [41.1, 99.0, 41.2], "lon": [-8.6, 0.0, -8.6]}
    kind = pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))
    given = pd.DataFrame({
        **bad, "a": pd.Series(["x", "canary", "x"], dtype=kind),
        "n": pd.array([7, 123454321, 2], "Int64"),
    })  # fmt: skip
    given["n"].array._mask[0] = True  # somebody emptied a cell: the value is under the mask
    given.columns.name = "canary"
    given.attrs = {"canary": 1}
    made = mdp.perturb(given, NOISE, on_error="drop", force=True)
    assert b"canary" not in pickle.dumps(made)
    assert made["n"].array._data[0] == 0
    enum = pl.Enum(["canary", "x"])
    frame = pl.DataFrame({
        **bad,
        "s": pl.Series([{"a": "x"}, {"a": "canary"}, {"a": None}], dtype=pl.Struct({"a": enum})),
        "l": pl.Series([["x"], ["canary"], None], dtype=pl.List(enum)),
        "e": pl.Series(["x", "canary", None], dtype=enum),
        "c": pl.Series(["x", "canary", "x"], dtype=pl.Categorical),
    })  # fmt: skip
    made = mdp.perturb(frame, NOISE, on_error="drop", force=True)
    held = io.BytesIO()
    made.write_ipc(held, compression="uncompressed")
    assert b"canary" not in held.getvalue()
    assert "canary" not in str(made.schema)
    assert made["s"].to_list() == [{"a": "x"}, {"a": None}]
    assert made["l"].to_list() == [["x"], None]


def test_a_level_of_categories_names_only_those_of_its_rows() -> None:
    kinds = pd.Categorical(["gone", *["a", "b"] * 10], categories=["never", "gone", "a", "b"])
    frame = pd.DataFrame({"lat": [float("nan"), *[41.1] * 20], "lon": [-8.6] * 21})
    frame.index = pd.MultiIndex.from_arrays([kinds, [1, *[1, 2] * 10]])
    made = mdp.perturb(frame, mdp.laplace(mdp.Haversine(), 10.0), on_error="drop", force=True)
    assert list(made.index.levels[0].categories) == ["a", "b"]
    assert list(made.index) == list(frame.index[1:])


def test_a_column_or_index_that_arrow_cannot_hold_is_looked_at_too() -> None:
    rng = np.random.default_rng(3)
    places = np.column_stack([41.1 + rng.random(60) / 10, -8.6 + rng.random(60) / 10])
    held = pd.Series([(north, east) if row % 2 else f"{north},{east}" for row, (north, east) in enumerate(places)])
    frame = pd.DataFrame({"lat": places[:, 0], "lon": places[:, 1]})
    for index in (pd.Index(places[:, 0] + 1j * places[:, 1]), pd.Index(held, tupleize_cols=False)):
        with pytest.raises(NotPrivate, match="index: it"):
            mdp.perturb(frame.set_index(index), mdp.laplace(mdp.Haversine(), 10.0), strict=True)
    with pytest.raises(NotPrivate, match="note: it"):
        mdp.perturb(frame.assign(note=held), mdp.laplace(mdp.Haversine(), 10.0), strict=True)
