"""Words of tables under a kernel: every kind of table, the law of the mechanism, strangers refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import metricdp as mdp
from instances import some_kernel
from metricdp.errors import MetricdpError

ROWS = 4_800


@pytest.fixture(scope="module")
def kernel() -> mdp.mechanisms.KernelMechanism:
    return some_kernel()


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.table({"id": range(ROWS), "word": [f"word{i % 24}" for i in range(ROWS)]})


def protected(kind: str, table: pa.Table, kernel: mdp.mechanisms.KernelMechanism) -> Any:
    if kind == "arrow":
        return mdp.perturb(table, kernel, columns=["word"]).column("word").to_pylist()
    library = pytest.importorskip(kind)
    if kind == "duckdb":
        with library.connect() as connection:
            connection.register("words", table)
            mdp.perturb((connection, "FROM words"), kernel, to="safe", columns=["word"])
            return [word for (word,) in connection.execute("SELECT word FROM safe ORDER BY id").fetchall()]
    frame = table.to_pandas() if kind == "pandas" else library.from_arrow(table)
    return mdp.perturb(frame, kernel, columns=["word"])["word"].to_list()


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "duckdb"])
def test_words_of_every_kind_of_table_follow_the_law(
    kind: str, table: pa.Table, kernel: mdp.mechanisms.KernelMechanism
) -> None:
    words = protected(kind, table, kernel)
    codes = np.array([int(word.removeprefix("word")) for word in words])
    counts = np.zeros((24, 24))
    np.add.at(counts, (np.arange(ROWS) % 24, codes), 1)
    expected = kernel.matrix * (ROWS / 24)
    # chi-square over cells with enough expected draws: 5 standard deviations is one false alarm in three million
    cells = expected >= 5
    statistic = float((((counts - expected) ** 2) / expected)[cells].sum())
    assert abs(statistic - cells.sum()) < 6 * np.sqrt(2 * cells.sum())


def test_a_stranger_is_refused_and_not_shown(kernel: mdp.mechanisms.KernelMechanism) -> None:
    with pytest.raises(MetricdpError, match="holds no secret of this mechanism: secrets are the 24 words") as caught:
        mdp.perturb(pa.table({"word": ["word1", "stranger"]}), kernel, columns=["word"])
    assert "stranger" not in str(caught.value)
