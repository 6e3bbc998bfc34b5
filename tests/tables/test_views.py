"""Columns of views, which Arrow stores and picks no rows of: kept, dropped and protected like any other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metricdp as mdp
from metricdp.tables import perturb

LAPLACE = mdp.laplace(mdp.Lp(2), 1.0, dimension=2)
WORDS = mdp.exponential(mdp.vocabulary(["cat", "dog", "bird"], np.eye(3)), 2000.0)
VIEWS = {
    "text": pa.array(["one", None, "three"], pa.string_view()),
    "bytes": pa.array([b"one", None, b"three"], pa.binary_view()),
    "lists": pa.array([[1.0, 2.0], None, []], pa.list_view(pa.float64())),
    "large": pa.array([[1.0, 2.0], None, []], pa.large_list_view(pa.float64())),
    "structs": pa.array([{"a": "x"}, None, {"a": None}], pa.struct([("a", pa.string_view())])),
    "deep": pa.array([["x"], None, ["y", "z"]], pa.list_(pa.string_view())),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_column_of_views_stays_beside_reports_and_loses_the_rows_that_go(name: str, tmp_path: Path) -> None:
    table = pa.table({"x": [1.0, 2.0, None], "y": [1.0, 2.0, 3.0], "kept": VIEWS[name]})
    made = mdp.perturb(table, LAPLACE, columns=["x", "y"], on_error="drop")
    assert made["kept"].type == table["kept"].type
    assert made["kept"].to_pylist() == table["kept"].to_pylist()[:2]
    pq.write_table(table, tmp_path / "in.parquet")
    perturb(tmp_path / "in.parquet", LAPLACE, to=tmp_path / "out.parquet", columns=["x", "y"], on_error="drop")
    stored = pq.read_table(tmp_path / "out.parquet")
    assert stored["kept"].to_pylist() == table["kept"].to_pylist()[:2]
    assert len(stored) == 2


def test_secrets_in_views_are_secrets_like_any_other() -> None:
    words = pa.table({"word": pa.array(["cat", None, "bird"], pa.string_view())})
    made = mdp.perturb(words, WORDS, columns="word", on_error="null")
    assert made["word"].type == pa.string_view()
    assert made["word"].to_pylist() == ["cat", None, "bird"]  # at such an epsilon every word stays
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["cat", "dog"], pa.string_view()))
    assert mdp.perturb(pa.table({"word": coded}), WORDS, columns="word")["word"].to_pylist() == ["cat", "dog", "cat"]
    for kind in (pa.list_view(pa.float32()), pa.large_list_view(pa.float64())):
        vectors = pa.table({"v": pa.array([[1.0, 2.0], None, [3.0, 4.0]], kind)})
        reports = mdp.perturb(vectors, mdp.laplace(mdp.Lp(2), 1e6, dimension=2), columns="v", on_error="drop")["v"]
        assert np.allclose(reports.to_pylist(), [[1, 2], [3, 4]], atol=0.01)
        assert reports.type.value_type == kind.value_type
    numbers = pa.table({"x": pa.array(["1.5", "no", "2"], pa.string_view()), "y": [1.0, 2.0, 3.0]})
    assert len(mdp.perturb(numbers, LAPLACE, columns=["x", "y"], on_error="drop")) == 2


def test_tensors_are_vectors_and_come_back_as_lists() -> None:
    kind = pa.fixed_shape_tensor(pa.float32(), [2])
    values = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6.0), pa.float32()), 2)
    table = pa.table({"v": pa.ExtensionArray.from_storage(kind, values)})
    reports = mdp.perturb(table, mdp.laplace(mdp.Lp(2), 1e6, dimension=2), columns="v")["v"]
    assert reports.type == pa.list_(pa.float32(), 2)
    assert np.allclose(reports.to_pylist(), [[0, 1], [2, 3], [4, 5]], atol=0.01)
